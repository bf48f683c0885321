//! Starting other programs.

use std::path::{Path, PathBuf};
use std::process::Command;

pub use testkit::command::quiet;

/// The root of the repository.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the repository")
}

/// A cargo command at the root of the repository, run by the toolchain that runs this one.
pub fn cargo(arguments: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from);
    let mut command = Command::new(cargo);
    command.args(arguments).current_dir(repository());
    command
}

/// The generator of corpora, built for release: they are large.
pub fn corpus() -> Command {
    cargo(&["run", "--release", "--quiet", "--package", "generators", "--locked", "--", "corpus"])
}

/// The generator of tables.
pub fn tables() -> Result<Command, String> {
    let mut command = Command::new(program("generators")?);
    command.arg("tables");
    Ok(command)
}

/// Builds all tests, and with them the programs and libraries, unless they are there.
///
/// By itself a program would have dependencies with fewer features, and they would all be compiled once more.
pub fn test_build() -> Result<(), String> {
    quiet(cargo(&["test", "--workspace", "--all-features", "--locked", "--no-run", "--quiet"]))?;
    Ok(())
}

/// A program of the workspace as the tests have it, which is built unless it is there.
pub fn program(name: &str) -> Result<PathBuf, String> {
    test_build()?;
    Ok(repository().join("target/debug").join(name))
}

/// The programs of a Python environment in a folder, with packages as `name==version` or `name[extra]==version`; made
/// unless it is there.
///
/// # Errors
/// Without Python or the network: what they say.
pub fn python_with(packages: &[&str], folder: &Path) -> Result<PathBuf, String> {
    let venv = folder.join("venv");
    let programs = venv.join("bin");
    let python = programs.join("python");
    let has = || {
        let mut command = Command::new(&python);
        let mut check = "from importlib.metadata import version".to_owned();
        for package in packages {
            let (name, version) = package.split_once("==").unwrap_or_default();
            let name = name.split('[').next().unwrap_or_default();
            check += &format!("; assert version('{name}') == '{version}'");
        }
        command.args(["-c", &check]);
        python.exists() && works(command)
    };
    if !has() {
        let mut make = Command::new("python3");
        make.args(["-m", "venv"]).arg(&venv);
        quiet(make)?;
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        install.args(packages);
        quiet(install)?;
    }
    Ok(programs)
}

/// What a step says that is left out because a Python package is not to be had.
pub fn skipped_without(package: &str, why: &str) -> String {
    format!("skipped: no {package}: {}", why.lines().last().unwrap_or_default())
}

/// Runs a command whose output goes straight to ours.
pub fn loud(mut command: Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{} ended with {status}", words(&command))),
        Err(e) => Err(format!("{}: {e}", command.get_program().display())),
    }
}

/// Whether a command starts and reports success: how a tool's presence is asked for.
pub fn works(command: Command) -> bool {
    quiet(command).is_ok()
}

fn words(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_stem().unwrap_or_default();
    std::iter::once(program)
        .chain(command.get_args())
        .map(|w| w.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
