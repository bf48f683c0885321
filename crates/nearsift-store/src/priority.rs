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

/// The nice value of low priority: a tenth of the share of a usual thread. Less would let memory tables fill up behind a
/// busy processor until writes wait for them.
#[cfg(target_os = "linux")]
const NICE: libc::c_int = 10;

impl Priority {
    /// Does the work by a thread of this priority. The work takes no lock that others wait for.
    pub(crate) fn run<T: Send>(self, work: impl FnOnce() -> T + Send) -> T {
        match self {
            Priority::Usual => work(),
            Priority::Low => std::thread::scope(|scope| {
                let lowered = move || {
                    lower();
                    work()
                };
                scope.spawn(lowered).join().unwrap_or_else(|panic| resume_unwind(panic))
            }),
        }
    }
}

/// Lowers the priority of this thread, and of those that it starts.
#[cfg(target_os = "linux")]
fn lower() {
    // SAFETY: no memory is passed. On Linux the number 0 stands for the calling thread (setpriority(2)). That it
    // is refused changes nothing but the speed.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, NICE);
    }
}

#[cfg(not(target_os = "linux"))]
fn lower() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_and_panics_are_those_of_the_work() {
        for priority in [Priority::Usual, Priority::Low] {
            assert_eq!(priority.run(|| 2 + 2), 4);
            let panicked = std::panic::catch_unwind(|| priority.run(|| panic!("a mistake")));
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
        let before = nice();
        assert_eq!(Priority::Low.run(nice), before.max(NICE));
        assert_eq!(nice(), before);
    }
}
