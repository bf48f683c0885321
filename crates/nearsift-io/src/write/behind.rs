//! Writing on a thread of its own, so that compression does not keep the reader waiting.

use std::io::{self, Write};
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};

/// Bytes that are handed over at once; what is not longer is written without a thread.
const BUFFER: usize = 256 << 10;
/// Full buffers that wait.
const WAITING: usize = 4;

/// A writer that does more at a time once it knows that much will come.
pub(super) trait ExpectMuch: Write {
    /// Is called before the first byte, if at all.
    fn expect_much(&mut self) -> io::Result<()>;
}

/// Writes bytes in order to a writer that another thread has, once there are more than a buffer of them. Dropping it
/// before it is [finished](Behind::finish) leaves out what is in its own buffer.
pub(super) struct Behind<W> {
    buffer: Vec<u8>,
    writer: Writer<W>,
}

enum Writer<W> {
    Here(W),
    There(Other<W>),
    /// It was given back, or failed.
    Gone,
}

/// The other thread.
struct Other<W> {
    full: SyncSender<Vec<u8>>,
    empty: Receiver<Vec<u8>>,
    thread: JoinHandle<io::Result<W>>,
}

impl<W: ExpectMuch + Send + 'static> Behind<W> {
    pub(super) fn new(writer: W) -> Self {
        Self { buffer: Vec::new(), writer: Writer::Here(writer) }
    }

    /// An error may be that of bytes that were put before.
    pub(super) fn put(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while self.buffer.len() + bytes.len() > BUFFER {
            let (first, rest) = bytes.split_at(BUFFER - self.buffer.len());
            self.buffer.extend_from_slice(first);
            bytes = rest;
            self.hand_over()?;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn hand_over(&mut self) -> io::Result<()> {
        let other = match std::mem::replace(&mut self.writer, Writer::Gone) {
            Writer::Here(mut writer) => {
                writer.expect_much()?;
                Other::start(writer)?
            }
            Writer::There(other) => other,
            Writer::Gone => return Err(io::ErrorKind::BrokenPipe.into()),
        };
        let next = other.empty.try_recv().unwrap_or_default();
        let full = std::mem::replace(&mut self.buffer, next);
        match other.full.send(full) {
            Ok(()) => {
                self.writer = Writer::There(other);
                Ok(())
            }
            // It ended before it was told to.
            Err(_) => other.end().and(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    /// The writer, once it has taken all bytes.
    pub(super) fn finish(mut self) -> io::Result<W> {
        match std::mem::replace(&mut self.writer, Writer::Gone) {
            Writer::Here(mut writer) => {
                writer.write_all(&self.buffer)?;
                Ok(writer)
            }
            Writer::There(other) => {
                // Where nobody takes it, the thread knows why.
                drop(other.full.send(std::mem::take(&mut self.buffer)));
                other.end()
            }
            Writer::Gone => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl<W: Write + Send + 'static> Other<W> {
    fn start(mut writer: W) -> io::Result<Self> {
        let (full, filled): (_, Receiver<Vec<u8>>) = sync_channel(WAITING);
        let (emptied, empty): (Sender<Vec<u8>>, _) = channel();
        let work = move || {
            for mut bytes in filled {
                writer.write_all(&bytes)?;
                bytes.clear();
                // Who has handed over the last one wants none back.
                drop(emptied.send(bytes));
            }
            Ok(writer)
        };
        let thread = Builder::new().name("nearsift-write".to_owned()).spawn(work)?;
        Ok(Self { full, empty, thread })
    }
}

impl<W> Other<W> {
    /// Waits for its end.
    fn end(self) -> io::Result<W> {
        drop(self.full);
        self.thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl<W> Drop for Behind<W> {
    fn drop(&mut self) {
        // The file is closed before anybody removes it.
        if let Writer::There(other) = std::mem::replace(&mut self.writer, Writer::Gone) {
            drop(other.full);
            drop(other.thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Its second field bounds its bytes.
    struct Small(Vec<u8>, usize);

    impl Write for Small {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.len() + bytes.len() > self.1 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.0.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl ExpectMuch for Small {
        fn expect_much(&mut self) -> io::Result<()> {
            assert!(self.0.is_empty());
            Ok(())
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn what_is_put_is_written_in_order(
            lens in prop::collection::vec(prop_oneof![0usize..9, 0..BUFFER / 2, 0..3 * BUFFER], 0..9),
            room in prop_oneof![Just(usize::MAX), 0..8 * BUFFER],
        ) {
            let all: Vec<u8> = (0..lens.iter().sum::<usize>()).map(|at| ((at * at) >> 7) as u8).collect();
            let mut behind = Behind::new(Small(Vec::new(), room));
            let mut rest = all.as_slice();
            let put = lens.iter().try_for_each(|&len| {
                let (now, later) = rest.split_at(len);
                rest = later;
                behind.put(now)
            });
            match put.and_then(|()| behind.finish()) {
                Ok(written) => prop_assert!(written.0 == all),
                Err(error) => {
                    prop_assert_eq!(error.kind(), io::ErrorKind::StorageFull);
                    prop_assert!(all.len() > room);
                }
            }
        }
    }

    #[test]
    fn a_writer_that_is_dropped_has_ended() {
        let (told, hear) = channel();
        struct Telling(Sender<()>);
        impl Write for Telling {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        impl ExpectMuch for Telling {
            fn expect_much(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        impl Drop for Telling {
            fn drop(&mut self) {
                let _ = self.0.send(());
            }
        }
        let mut behind = Behind::new(Telling(told));
        behind.put(&vec![0; 3 * BUFFER]).expect("written");
        drop(behind);
        hear.try_recv().expect("it has ended");
    }
}
