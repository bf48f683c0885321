//! Work that gives way to other work of the machine.

#![expect(unsafe_code, reason = "the system is told what a thread gives way to")]

use std::panic::resume_unwind;

/// How urgent it is to make and to merge segments, beside other work of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Priority {
    /// As all else.
    #[default]
    Usual,
    /// It gives way: for who answers, and has a core or more to spare most of the time. On Linux; elsewhere it
    /// is as [`Priority::Usual`].
    Low,
}

/// What a segment is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A memory table makes room for the next one: writes wait when that is full before.
    Room,
    /// Searches visit fewer segments.
    Order,
}

impl Purpose {
    /// The nice value of low priority: a third or a tenth of the share of a usual thread. With a tenth, memory tables filled up
    /// behind a busy processor until writes waited for seconds.
    #[cfg(target_os = "linux")]
    fn nice(self) -> libc::c_int {
        match self {
            Purpose::Room => 5,
            Purpose::Order => 10,
        }
    }
}

impl Priority {
    /// Does the work by a thread of this priority. The work takes no lock that others wait for.
    pub(crate) fn run<T: Send>(self, purpose: Purpose, work: impl FnOnce() -> T + Send) -> T {
        match self {
            Priority::Usual => work(),
            Priority::Low => std::thread::scope(|scope| {
                let lowered = move || {
                    lower(purpose);
                    work()
                };
                scope.spawn(lowered).join().unwrap_or_else(|panic| resume_unwind(panic))
            }),
        }
    }
}

/// Lowers the priority of this thread, and of those that it starts, unless it is as low already.
#[cfg(target_os = "linux")]
fn lower(purpose: Purpose) {
    // SAFETY: no memory is passed. On Linux the number 0 stands for the calling thread (setpriority(2)). That it
    // is refused changes nothing but the speed. Of a process that gives way already, as under `nice -n 19`, a thread
    // must not come to give way less, which a privileged user's could.
    unsafe {
        if libc::getpriority(libc::PRIO_PROCESS, 0) < purpose.nice() {
            libc::setpriority(libc::PRIO_PROCESS, 0, purpose.nice());
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn lower(_: Purpose) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_and_panics_are_those_of_the_work() {
        for priority in [Priority::Usual, Priority::Low] {
            assert_eq!(priority.run(Purpose::Room, || 2 + 2), 4);
            let panicked =
                std::panic::catch_unwind(|| priority.run(Purpose::Order, || panic!("a mistake")));
            let said = panicked.expect_err("it panics");
            assert_eq!(said.downcast_ref(), Some(&"a mistake"));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_the_thread_that_works_gives_way() {
        let nice = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("Linux tells");
            let after = stat.rsplit(')').next().expect("a name in brackets");
            after.split_whitespace().nth(16).expect("many fields").parse::<i32>().expect("nice")
        };
        // Whatever the tests were started with, such as `nice -n 19`.
        let before = nice();
        for purpose in [Purpose::Room, Purpose::Order] {
            let lowered = before.max(purpose.nice());
            assert_eq!(Priority::Low.run(purpose, nice), lowered, "from {before}");
        }
        assert_eq!(nice(), before);
    }
}
