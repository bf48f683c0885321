//! Gives the shared library the name that programs look for at run time.

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let of = |name: &str| var(name).unwrap_or_default();
    if of("CARGO_CFG_TARGET_OS") != "linux" {
        return;
    }
    // Before 1.0 every minor version may change the functions.
    let version = match of("CARGO_PKG_VERSION_MAJOR").as_str() {
        "0" => format!("0.{}", of("CARGO_PKG_VERSION_MINOR")),
        major => major.to_owned(),
    };
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libnearsift.so.{version}");
}
