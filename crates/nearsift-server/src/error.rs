//! Why the service does not start, or does not end well.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use nearsift::recipe::RecipeError;
use nearsift_store::StoreError;

/// Why the service does not start, or does not end well.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A setting is wrong.
    #[error("{place}: {problem}")]
    Setting {
        /// Where: a flag, a variable, or a file and a name.
        place: String,
        /// What is wrong, and what was expected.
        problem: String,
    },
    /// Others than this machine could reach it, and nobody would be asked for a key.
    #[error(
        "{address}: not a loopback address, and there are no API keys: make one with `nearsift serve --new-key admin`, put its line into a file and name that by --keys-file; or listen on 127.0.0.1"
    )]
    Open {
        /// The address.
        address: SocketAddr,
    },
    /// A view has no keys: others than this machine must not reach it.
    #[error(
        "{address}: not a loopback address, and a view asks for no key: listen on 127.0.0.1 or [::1]"
    )]
    NotLocal {
        /// The address.
        address: SocketAddr,
    },
    /// The address cannot be listened on.
    #[error("{address}: cannot listen: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// A file or folder cannot be worked on.
    #[error("{}: cannot {doing}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was to be done.
        doing: String,
        /// What the system says.
        source: io::Error,
    },
    /// A file or folder cannot be used.
    #[error("{}: {problem}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// A collection's store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A collection's recipe.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// The system gives no threads, signals or random bytes.
    #[error("cannot {doing}: {source}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
}
