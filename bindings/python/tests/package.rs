//! The package works in the Python of this machine, with nothing installed beside it. `cargo xtask test python` tests all of it.

#![allow(clippy::print_stdout, reason = "it says what it leaves out")]

use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::command::quiet;

/// The compiled half, which is built with this test.
fn library() -> PathBuf {
    let own = std::env::current_exe().expect("a test has a path");
    let folder = own.parent().expect("it is beside the library");
    let name =
        format!("{}nearsift_python{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    folder.join(name)
}

#[test]
fn the_package_works_alone() {
    let recent = "import sys; assert sys.version_info >= (3, 11), sys.version";
    let mut python = Command::new("python3");
    python.args(["-c", recent]);
    if let Err(why) = quiet(python) {
        println!("skipped: no Python 3.11 or newer: {}", why.lines().last().unwrap_or_default());
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let package = folder.path().join("nearsift");
    std::fs::create_dir(&package).expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/nearsift");
    for file in std::fs::read_dir(source).expect("the package is there") {
        let file = file.expect("the package can be read").path();
        if let (true, Some(name)) = (file.is_file(), file.file_name()) {
            std::fs::copy(&file, package.join(name)).expect("the package can be copied");
        }
    }
    std::fs::copy(library(), package.join("_native.abi3.so")).expect("the library is built");
    let script = "import nearsift, doctest, sys
from nearsift import _dedup, _index, _jobs, _texts, compat, datasketch
failed = 0
for module in (nearsift, _dedup, _index, _jobs, _texts, compat, datasketch):
    failed += doctest.testmod(module).failed
sys.exit(failed > 0)";
    let mut python = Command::new("python3");
    python
        .args(["-c", script])
        .env("PYTHONPATH", folder.path())
        .env("PYTHONDONTWRITEBYTECODE", "1");
    quiet(python).unwrap_or_else(|report| panic!("{report}"));
}
