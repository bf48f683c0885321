//! Status codes, the message of the last failure, and the guard that keeps panics on this side of the boundary.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::fmt::Display;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};

use nearsift::dedup::DedupError;
use nearsift::hamming::index::{BuildError, SearchError};
use nearsift::recipe::{NoFingerprint, RecipeError};
use nearsift::text::words::TextTooLong;
use nearsift_store::{NotIndexed, StoreError};

/// What every function returns. The numbers never change; later versions may add some.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum nearsift_status {
    /// It is done.
    Ok = 0,
    /// The text has no fingerprint or sketch: it has no letters and digits, or too few features. This is an answer and no fault:
    /// such texts are matched by being the same text alone. The message has the reason.
    NoFingerprint = 1,
    /// A pointer is NULL that must not be, or is not aligned for its type.
    BadPointer = 2,
    /// A string is not UTF-8. The message has the byte.
    InvalidUtf8 = 3,
    /// A number is out of range, or two arguments do not fit together.
    InvalidArgument = 4,
    /// There is no such recipe, it has no such parameter, or it needs a table that this library does not take.
    Recipe = 5,
    /// The recipe makes sketches and a fingerprint was asked for, or the like.
    WrongRecipe = 6,
    /// The index holds documents of another recipe.
    RecipeMismatch = 7,
    /// There is no index in the folder.
    NotAnIndex = 8,
    /// The folder for a new index is not empty.
    NotEmpty = 9,
    /// Another process, or another handle of this one, has the index open for writing.
    Locked = 10,
    /// Bytes of the index are not what was written.
    Damaged = 11,
    /// The system refused to read or write.
    Io = 12,
    /// The disk is full. Nothing was written; try again when there is space.
    DiskFull = 13,
    /// The index was opened for reading only.
    ReadOnly = 14,
    /// Another version of the library wrote the index.
    Version = 15,
    /// A text or a list of texts is longer than the library takes.
    TooLarge = 16,
    /// A fault of the library: please report it. The process goes on; do not use the handle of the call any more, but to free it.
    Internal = 17,
}

/// Why a function did not do what it was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    status: nearsift_status,
    message: String,
}

impl Failure {
    pub(crate) fn new(status: nearsift_status, message: impl Display) -> Failure {
        Failure { status, message: message.to_string() }
    }

    pub(crate) fn status(&self) -> nearsift_status {
        self.status
    }

    /// The same of one element of an array.
    pub(crate) fn of(self, array: &str, place: usize) -> Failure {
        Failure { message: format!("'{array}[{place}]': {}", self.message), ..self }
    }

    /// An argument that is out of range, or does not fit another.
    pub(crate) fn argument(message: impl Display) -> Failure {
        Failure::new(nearsift_status::InvalidArgument, message)
    }
}

impl From<NoFingerprint> for Failure {
    fn from(reason: NoFingerprint) -> Failure {
        let status = match reason {
            NoFingerprint::TooLong { .. } => nearsift_status::TooLarge,
            _ => nearsift_status::NoFingerprint,
        };
        Failure::new(status, format_args!("the text has no fingerprint: {reason}"))
    }
}

impl From<RecipeError> for Failure {
    fn from(error: RecipeError) -> Failure {
        Failure::new(nearsift_status::Recipe, error)
    }
}

impl From<TextTooLong> for Failure {
    fn from(error: TextTooLong) -> Failure {
        Failure::new(nearsift_status::TooLarge, error)
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Failure {
        Failure::argument(error)
    }
}

impl From<SearchError> for Failure {
    fn from(error: SearchError) -> Failure {
        Failure::argument(error)
    }
}

impl From<DedupError> for Failure {
    fn from(error: DedupError) -> Failure {
        match error {
            DedupError::Recipe(error) => error.into(),
            DedupError::Keep(_) | DedupError::Fingerprints(_) | DedupError::Sketches(_) => {
                Failure::argument(error)
            }
            error => Failure::argument(error),
        }
    }
}

impl From<NotIndexed> for Failure {
    fn from(reason: NotIndexed) -> Failure {
        let status = match reason {
            NotIndexed::CountsOverCorpus => nearsift_status::Recipe,
            _ => nearsift_status::InvalidArgument,
        };
        Failure::new(status, format_args!("'method': {reason}"))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        let status = match &error {
            StoreError::Full { .. } => nearsift_status::DiskFull,
            StoreError::OpenedForReading { .. } => nearsift_status::ReadOnly,
            StoreError::Locked { .. } => nearsift_status::Locked,
            StoreError::NoStore { .. } => nearsift_status::NotAnIndex,
            // The folder is a file.
            StoreError::Io { source, .. } if source.kind() == ErrorKind::NotADirectory => {
                nearsift_status::NotAnIndex
            }
            StoreError::NotEmpty { .. } => nearsift_status::NotEmpty,
            StoreError::Version { .. } => nearsift_status::Version,
            StoreError::Recipe { .. } => nearsift_status::RecipeMismatch,
            StoreError::Id(_)
            | StoreError::Invalid(_)
            | StoreError::Kind { .. }
            | StoreError::Search(_)
            | StoreError::Build(_) => nearsift_status::InvalidArgument,
            error if error.is_damage() => nearsift_status::Damaged,
            _ => nearsift_status::Io,
        };
        Failure::new(status, error)
    }
}

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// Does the work of a function: its failure becomes the status and the thread's message, a panic
/// [`nearsift_status::Internal`].
pub(crate) fn guard(work: impl FnOnce() -> Result<(), Failure>) -> nearsift_status {
    // What a panic leaves half done is behind locks, which notice.
    let failure = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return nearsift_status::Ok,
        Ok(Err(failure)) => failure,
        Err(panic) => panicked(&*panic),
    };
    let bytes: Vec<u8> = failure.message.bytes().filter(|byte| *byte != 0).collect();
    // A thread that is about to end has no message any more.
    let _told = LAST_ERROR.try_with(|last| last.replace(CString::new(bytes).unwrap_or_default()));
    failure.status
}

fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    Failure::new(
        nearsift_status::Internal,
        format_args!("a fault of the library, please report it: {text}"),
    )
}

/// The message of the last call of this thread that did not return `NEARSIFT_STATUS_OK`: what is wrong, where, what was expected
/// and what to do. NUL-terminated UTF-8, empty before the first such call; it lives until the next one on this thread, or the thread's
/// end. Never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn nearsift_last_error() -> *const c_char {
    LAST_ERROR.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn panics_and_messages_with_nul_become_status_and_message() {
        let told = || {
            // SAFETY: the message is NUL-terminated and lives until the next failure.
            let message = unsafe { CStr::from_ptr(nearsift_last_error()) };
            message.to_str().expect("UTF-8").to_owned()
        };
        assert_eq!(told(), "");
        assert_eq!(guard(|| panic!("row {}", 7)), nearsift_status::Internal);
        assert!(told().ends_with("please report it: row 7"), "{}", told());
        assert_eq!(guard(|| Err(Failure::argument("a\0b"))), nearsift_status::InvalidArgument);
        assert_eq!(told(), "ab");
        assert_eq!(guard(|| Ok(())), nearsift_status::Ok);
        assert_eq!(told(), "ab");
        assert_eq!(std::thread::spawn(told).join().expect("a message"), "");
    }
}
