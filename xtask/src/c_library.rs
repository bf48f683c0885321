//! The C library, installed: both libraries, the header and the file for pkg-config.

use std::fs;
#[cfg(unix)]
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::steps::Outcome;
use crate::tools::{cargo, loud, quiet, repository, test_build, works};

/// The command installs on Linux alone; the other commands are for all systems.
#[cfg(not(unix))]
fn symlink(_full: &str, _link: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[derive(Args)]
pub struct Arguments {
    /// Where it is installed: DIR/lib, DIR/include and DIR/lib/pkgconfig
    #[arg(long, value_name = "DIR")]
    prefix: PathBuf,
    /// The libraries as the tests have them, which are slower, instead of those for release
    #[arg(long)]
    dev: bool,
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Before 1.0 every minor version may change the functions: bindings/c/build.rs has the same.
const COMPATIBLE: &str =
    concat!(env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"));

pub fn run(arguments: &Arguments) -> Result<(), String> {
    if !cfg!(target_os = "linux") {
        return Err("c-library installs on Linux; elsewhere run `cargo rustc --release --package nearsift-c --crate-type cdylib,staticlib` and copy what it makes, with bindings/c/include/nearsift.h".to_owned());
    }
    let built = if arguments.dev { dev()? } else { release()? };
    install(&built, &arguments.prefix)?;
    println!("installed in {}", arguments.prefix.display());
    Ok(())
}

/// The folder of the libraries for release, built.
fn release() -> Result<PathBuf, String> {
    // Without the rlib, so that the libraries are optimised across crates.
    let kinds = ["--crate-type", "cdylib,staticlib"];
    let package = ["rustc", "--release", "--locked", "--package", "nearsift-c"];
    loud(cargo(&[&package[..], &kinds].concat()))?;
    Ok(repository().join("target/release"))
}

/// The folder of the libraries of the tests, built.
fn dev() -> Result<PathBuf, String> {
    test_build()?;
    Ok(repository().join("target/debug/deps"))
}

fn install(built: &Path, prefix: &Path) -> Result<(), String> {
    let (lib, include) = (prefix.join("lib"), prefix.join("include"));
    let pkgconfig = lib.join("pkgconfig");
    for folder in [&include, &pkgconfig] {
        fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    let source = repository().join("bindings/c");
    let full = format!("libnearsift.so.{VERSION}");
    copy(&built.join("libnearsift_c.so"), &lib.join(&full))?;
    copy(&built.join("libnearsift_c.a"), &lib.join("libnearsift.a"))?;
    copy(&source.join("include/nearsift.h"), &include.join("nearsift.h"))?;
    for name in [&format!("libnearsift.so.{COMPATIBLE}"), "libnearsift.so"] {
        let link = lib.join(name);
        let error = |e: std::io::Error| format!("{}: {e}", link.display());
        if link.symlink_metadata().is_ok() {
            fs::remove_file(&link).map_err(error)?;
        }
        symlink(&full, &link).map_err(error)?;
    }
    let template = source.join("nearsift.pc.in");
    let text = fs::read_to_string(&template).map_err(|e| format!("{}: {e}", template.display()))?;
    let file = pkgconfig.join("nearsift.pc");
    fs::write(&file, text.replace("@version@", VERSION))
        .map_err(|e| format!("{}: {e}", file.display()))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    // A program may run the old one: its file is left to it.
    let _none = fs::remove_file(to);
    fs::copy(from, to).map_err(|e| format!("{} to {}: {e}", from.display(), to.display()))?;
    Ok(())
}

/// Installs the libraries of the tests, and compiles and runs the example as its first lines say, by pkg-config.
pub fn step() -> Outcome {
    let mut asked = Command::new("pkg-config");
    asked.arg("--version");
    if !cfg!(target_os = "linux") || !works(asked) {
        return Ok("skipped: no pkg-config".to_owned());
    }
    let folder = repository().join("target/c-library");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    install(&dev()?, &folder)?;
    let mut asked = Command::new("pkg-config");
    asked.args(["--cflags", "--libs", "nearsift"]);
    asked.env("PKG_CONFIG_PATH", folder.join("lib/pkgconfig"));
    let flags = quiet(asked)?;
    let (examples, program) = (repository().join("bindings/c/examples"), folder.join("tour"));
    let mut compile = Command::new("cc");
    compile.arg(examples.join("tour.c")).args(flags.split_whitespace()).arg("-o").arg(&program);
    quiet(compile)?;
    let mut run = Command::new(&program);
    run.arg(folder.join("seen")).env("LD_LIBRARY_PATH", folder.join("lib"));
    let printed = quiet(run)?;
    let lines = fs::read_to_string(examples.join("tour.txt")).map_err(|e| e.to_string())?;
    let expected = format!("nearsift    {VERSION}\n{lines}");
    match printed == expected {
        true => Ok(String::new()),
        false => Err(format!("the example printed\n{printed}and was to print\n{expected}")),
    }
}
