//! The Python package: its tests in an environment of its own, and the wheel.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::steps::Outcome;
use crate::tools::{loud, program, python_with, quiet, repository, skipped_without};

/// What the tests use: the libraries whose tables go in and come out, those that are replaced, and the tools.
///
/// data-juicer is not among them: its program installs torch and ray by itself when it runs, more than 5 GB. Its tests run where
/// `py-data-juicer` and `aiohttp` are installed.
const PACKAGES: &[&str] = &[
    // text-dedup uses it.
    "bitarray==3.12.3",
    "click-option-group==0.5.10",
    "daft==0.7.26",
    "datasets==5.2.0",
    "datasketch==2.0.0",
    "datatrove==0.10.1",
    "duckdb==2.0.1",
    "mypy==2.4.1",
    "gaoya==0.2.2",
    // Spark Connect speaks by it.
    "grpcio==1.85.3",
    "grpcio-status==1.85.3",
    "numpy==2.4.6",
    // datatrove reads and cuts texts with these.
    "orjson==3.13.0",
    "pandas==3.1.1",
    "polars==2.1.0",
    "pyarrow==25.0.1",
    "pyright==1.1.414",
    "pysail==0.7.2",
    "pyspark-client==4.2.0",
    "pytest==9.2.0",
    // datatrove reads with it.
    "regex==2026.11.19",
    "rensa==0.5.0",
    "rich==13.9.4",
    "scikit-learn==1.9.1",
    "scrapy==2.19.0",
    "simhash==2.1.2",
    "spacy==3.8.18",
    "tokenizers==0.23.3",
    "tqdm==4.67.3",
    // datatrove 0.10.1 fails with the next one.
    "xxhash==3.8.2",
];

/// What asks for older releases of packages than the others, and works with the newer ones.
const WITHOUT_DEPENDENCIES: &str = "text-dedup==0.4.0";

/// The C++ code of simhash-py: in a folder of its own, since its module has the name of leonsim's.
const SIMHASH_PYBIND: &str = "simhash-pybind==0.0.3";

/// The tool that builds wheels.
const MATURIN: &str = "maturin==1.16.0";

/// Puts the package as it is built for the tests into an environment, and runs its tests, its examples, and the checks of its
/// types there.
pub fn step() -> Outcome {
    let folder = repository().join("target/python");
    let programs = match python_with(PACKAGES, &folder) {
        Ok(programs) => programs,
        Err(why) => return Ok(skipped_without("Python package of the tests", &why)),
    };
    program("nearsift")?;
    install(&programs.join("python"))?;
    let aside = folder.join("simhash-pybind");
    let python = programs.join("python");
    if !aside.exists() {
        let target = aside.display().to_string();
        pip(&python, &["--no-deps", WITHOUT_DEPENDENCIES])?;
        pip(&python, &["--no-deps", "--target", &target, SIMHASH_PYBIND])?;
    }
    let package = repository().join("bindings/python");
    let run = |name: &str, arguments: &[&str]| {
        let mut command = Command::new(programs.join(name));
        command.args(arguments).current_dir(&package);
        quiet(command)
    };
    let tested = run("pytest", &["-q", "-p", "no:cacheprovider", "tests"])?;
    run("python", &["tests/examples.py"])?;
    run("mypy", &["--strict", "--cache-dir", "../../target/python/mypy", "python/nearsift"])?;
    run(
        "pyright",
        &["--pythonpath", &programs.join("python").display().to_string(), "python/nearsift"],
    )?;
    Ok(tested.trim().lines().last().unwrap_or_default().to_owned())
}

/// Installs into an environment.
fn pip(python: &Path, arguments: &[&str]) -> Result<(), String> {
    let mut install = Command::new(python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    install.args(arguments);
    quiet(install).map(drop)
}

/// Copies the package with its compiled half into an environment.
pub fn install(python: &Path) -> Result<(), String> {
    let mut ask = Command::new(python);
    ask.args(["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]);
    let package = PathBuf::from(quiet(ask)?.trim()).join("nearsift");
    let fail = |e: std::io::Error| format!("{}: {e}", package.display());
    if package.exists() {
        std::fs::remove_dir_all(&package).map_err(fail)?;
    }
    std::fs::create_dir(&package).map_err(fail)?;
    for file in
        std::fs::read_dir(repository().join("bindings/python/python/nearsift")).map_err(fail)?
    {
        let file = file.map_err(fail)?.path();
        if let (true, Some(name)) = (file.is_file(), file.file_name()) {
            std::fs::copy(&file, package.join(name)).map_err(fail)?;
        }
    }
    let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let library = repository().join(format!("target/debug/deps/{prefix}nearsift_python{suffix}"));
    std::fs::copy(library, package.join("_native.abi3.so")).map_err(fail)?;
    Ok(())
}

/// Builds the wheel for this machine's processor, for release, into `target/wheels`.
pub fn wheel() -> Result<(), String> {
    let folder = repository().join("target/maturin");
    let maturin = python_with(&[MATURIN], &folder)?.join("maturin");
    let mut build = Command::new(maturin);
    build.args(["build", "--release", "--locked", "--out", "target/wheels"]);
    build.args(["--manifest-path", "bindings/python/Cargo.toml"]).current_dir(repository());
    loud(build)
}
