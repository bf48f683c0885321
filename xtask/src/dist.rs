//! What a release has for one system: the archive of the program, the Debian package, the folder of the container, and their
//! checksums. The workflow `release` calls this and has no steps of its own.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use sha2::{Digest, Sha256};

use crate::tools::{cargo, loud, quiet, repository, works};

#[derive(Args)]
pub struct Arguments {
    /// The system that it is for [default: this one; on Linux with the C library musl, whose programs are static]
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// A program for that system that was built before; it must run here
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// What an image may have.
const MAX_IMAGE_BYTES: u64 = 60_000_000;
/// A file for each shell, and its name.
const SHELLS: [(&str, &str); 5] = [
    ("bash", "nearsift.bash"),
    ("zsh", "_nearsift"),
    ("fish", "nearsift.fish"),
    ("powershell", "nearsift.ps1"),
    ("elvish", "nearsift.elv"),
];
/// Files of the repository that an archive has.
const TEXTS: [&str; 5] =
    ["README.md", "README.zh-CN.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

pub fn run(arguments: &Arguments) -> Result<(), String> {
    let target = match &arguments.target {
        Some(target) => target.clone(),
        None => own_target()?,
    };
    let program = match &arguments.program {
        Some(program) => program.clone(),
        None => build(&target)?,
    };
    if target.contains("musl") && !is_static(&fs::read(&program).map_err(|e| at(&program, e))?) {
        return Err(format!("{}: loads libraries, and must not", program.display()));
    }
    let out = repository().join("target/dist");
    let name = format!("nearsift-{VERSION}-{target}");
    let folder = out.join(&name);
    for old in [&folder, &out.join("container")] {
        if old.exists() {
            fs::remove_dir_all(old).map_err(|e| at(old, e))?;
        }
    }
    fill(&folder, &program, &target)?;
    let mut files = vec![archive(&out, &name, &target)?];
    let mut image_bytes = 0;
    if target.contains("linux") {
        let bytes = container(&out.join("container"), &folder)?;
        println!("container  {:>5.1} MB in target/dist/container", megabytes(bytes));
        image_bytes = bytes;
        files.extend(package(&out, &folder, &target)?);
    }
    let mut sums = String::new();
    for file in &files {
        let bytes = fs::read(file).map_err(|e| at(file, e))?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let digest: String =
            Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        sums.push_str(&format!("{digest}  {name}\n"));
        println!("{name}  {:.1} MB", megabytes(bytes.len() as u64));
    }
    let path = out.join(format!("SHA256SUMS-{target}"));
    fs::write(&path, sums).map_err(|e| at(&path, e))?;
    match image_bytes > MAX_IMAGE_BYTES {
        true => Err(format!("the container is larger than {} MB", MAX_IMAGE_BYTES / 1_000_000)),
        false => Ok(()),
    }
}

fn at(path: &Path, error: impl std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// The system that this runs on; on Linux with musl.
fn own_target() -> Result<String, String> {
    let mut rustc = Command::new("rustc");
    rustc.arg("-vV");
    let said = quiet(rustc)?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or_else(|| format!("no host in:\n{said}"))?;
    Ok(host.replace("-linux-gnu", "-linux-musl"))
}

/// Builds the program for release, without symbols.
fn build(target: &str) -> Result<PathBuf, String> {
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", target]);
    // Without rustup the target is there, or the build says that it is not.
    let _may_be_there = works(rustup);
    let what = ["build", "--profile", "dist", "--locked", "--package", "nearsift-cli"];
    let mut command = cargo(&[&what[..], &["--bin", "nearsift", "--target", target]].concat());
    if target.contains("musl") {
        // zstd and ring have C code; the compiler of musl has no C++.
        let variable = format!("CC_{}", target.replace('-', "_"));
        if std::env::var_os(&variable).is_none() {
            command.env(variable, "musl-gcc");
        }
    }
    loud(command)?;
    let name = if target.contains("windows") { "nearsift.exe" } else { "nearsift" };
    Ok(repository().join("target").join(target).join("dist").join(name))
}

/// Whether a program of 64-bit ELF asks for no loader of libraries.
fn is_static(elf: &[u8]) -> bool {
    const INTERPRETER: u32 = 3;
    let number = |at: usize, bytes: usize| -> u64 {
        let bytes = elf.get(at..at + bytes).unwrap_or_default();
        bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    };
    let (table, size, count) = (number(32, 8) as usize, number(54, 2) as usize, number(56, 2));
    elf.starts_with(b"\x7fELF\x02\x01")
        && (0..count as usize).all(|n| number(table + n * size, 4) as u32 != INTERPRETER)
}

/// Puts everything that an archive has into a folder.
fn fill(folder: &Path, program: &Path, target: &str) -> Result<(), String> {
    let [completions, man] = ["completions", "man"].map(|name| folder.join(name));
    fs::create_dir_all(&completions).map_err(|e| at(&completions, e))?;
    // Whatever the file of a program that was built before is called.
    let own = folder.join(if target.contains("windows") { "nearsift.exe" } else { "nearsift" });
    fs::copy(program, &own).map_err(|e| at(program, e))?;
    let program = &own;
    for text in TEXTS {
        copy_into(&repository().join(text), folder)?;
    }
    for (shell, name) in SHELLS {
        let mut command = Command::new(program);
        command.args(["completions", shell]).env("NEARSIFT_LANGUAGE", "en");
        let path = completions.join(name);
        fs::write(&path, quiet(command)?).map_err(|e| at(&path, e))?;
    }
    let mut command = Command::new(program);
    command.args(["man", "--output"]).arg(&man).env("NEARSIFT_LANGUAGE", "en");
    quiet(command)?;
    if target.contains("linux") {
        let systemd = folder.join("systemd");
        fs::create_dir_all(&systemd).map_err(|e| at(&systemd, e))?;
        for name in ["nearsift.service", "nearsift.sysusers", "service.toml"] {
            copy_into(&repository().join("packaging/systemd").join(name), &systemd)?;
        }
    }
    let path = folder.join("THIRD-PARTY.txt");
    fs::write(&path, licences(target)?).map_err(|e| at(&path, e))
}

fn copy_into(file: &Path, folder: &Path) -> Result<(), String> {
    let to = folder.join(file.file_name().unwrap_or_default());
    fs::copy(file, &to).map_err(|e| at(file, e))?;
    Ok(())
}

/// The licences of the crates that the program is made of, with their texts.
fn licences(target: &str) -> Result<String, String> {
    let tree = ["tree", "--locked", "--package", "nearsift-cli", "--edges", "normal"];
    let shape = ["--prefix", "none", "--no-dedupe", "--format", "{p}\t{l}", "--target", target];
    let listed = quiet(cargo(&[&tree[..], &shape].concat()))?;
    let mut lines: Vec<&str> = listed.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    let sources = sources()?;
    let mut out = "The program nearsift contains these crates:\n\n".to_owned();
    // Many have the same text, which is there once.
    let mut texts: Vec<(String, Vec<String>)> = Vec::new();
    for line in lines {
        let (package, licence) = line.split_once('\t').unwrap_or((line, ""));
        let mut words = package.split(' ');
        let (name, version) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        // Those of the workspace have a path behind the version, and the licence of the program.
        if package.contains('(') && !package.contains("proc-macro") {
            continue;
        }
        let own = format!("{name} {}", version.trim_start_matches('v'));
        out.push_str(&format!("{own}: {licence}\n"));
        let folder = sources.iter().map(|s| s.join(own.replace(' ', "-"))).find(|f| f.is_dir());
        for file in folder.map(|folder| texts_of(&folder)).transpose()?.into_iter().flatten() {
            let text = fs::read(&file).map_err(|e| at(&file, e))?;
            let text = String::from_utf8_lossy(&text).trim().to_owned();
            match texts.iter_mut().find(|(other, _)| *other == text) {
                Some((_, of)) => of.push(own.clone()),
                None => texts.push((text, vec![own.clone()])),
            }
        }
    }
    for (text, mut of) in texts {
        of.dedup();
        out.push_str(&format!("\n{}\n{}:\n\n{text}\n", "-".repeat(78), of.join(", ")));
    }
    Ok(out)
}

/// Where cargo keeps the sources of crates.
fn sources() -> Result<Vec<PathBuf>, String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| {
        let home = std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE"))?;
        Some(PathBuf::from(home).join(".cargo"))
    });
    let folder = home.ok_or("neither CARGO_HOME nor HOME is set")?.join("registry/src");
    let entries = fs::read_dir(&folder).map_err(|e| at(&folder, e))?;
    Ok(entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
}

/// The files of a crate that have its licence.
fn texts_of(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|e| at(folder, e))?;
    let mut texts: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
            let starts = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];
            path.is_file() && starts.iter().any(|start| name.starts_with(start))
        })
        .collect();
    texts.sort();
    Ok(texts)
}

/// Packs a folder: for Windows as zip, else as tar with gzip.
fn archive(out: &Path, name: &str, target: &str) -> Result<PathBuf, String> {
    let is_windows = target.contains("windows");
    let file = out.join(format!("{name}.{}", if is_windows { "zip" } else { "tar.gz" }));
    let mut tar = Command::new("tar");
    // The tar of Windows makes a zip by the name.
    tar.arg(if is_windows { "-acf" } else { "-czf" }).arg(&file).arg(name).current_dir(out);
    quiet(tar)?;
    Ok(file)
}

/// The folder that `packaging/container/Containerfile` copies from. Returns the bytes that its image has.
fn container(folder: &Path, filled: &Path) -> Result<u64, String> {
    let data = folder.join("data");
    fs::create_dir_all(&data).map_err(|e| at(&data, e))?;
    copy_into(&repository().join("packaging/container/passwd"), folder)?;
    for file in ["nearsift", "LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY.txt"] {
        copy_into(&filled.join(file), folder)?;
    }
    let entries = fs::read_dir(folder).map_err(|e| at(folder, e))?;
    let sizes = entries.filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len()));
    Ok(sizes.sum())
}

/// The Debian package, where cargo-deb is installed.
fn package(out: &Path, filled: &Path, target: &str) -> Result<Option<PathBuf>, String> {
    if !works(cargo(&["deb", "--version"])) {
        println!("no Debian package: cargo install --locked cargo-deb");
        return Ok(None);
    }
    // What the package has stands in Cargo.toml, with this path.
    let assets = out.join("deb");
    if assets.exists() {
        fs::remove_dir_all(&assets).map_err(|e| at(&assets, e))?;
    }
    for name in ["completions", "man"] {
        let to = assets.join(name);
        fs::create_dir_all(&to).map_err(|e| at(&to, e))?;
        for entry in fs::read_dir(filled.join(name)).map_err(|e| at(filled, e))? {
            copy_into(&entry.map_err(|e| at(filled, e))?.path(), &to)?;
        }
    }
    for file in TEXTS.iter().chain(&["THIRD-PARTY.txt", "nearsift"]) {
        copy_into(&filled.join(file), &assets)?;
    }
    let what = ["deb", "--package", "nearsift-cli", "--no-build", "--no-strip", "--locked"];
    let mut command = cargo(&[&what[..], &["--target", target, "--output"]].concat());
    command.arg(out);
    let said = quiet(command)?;
    std::io::stdout().flush().ok();
    let path = said.lines().rev().find(|line| line.ends_with(".deb")).map(PathBuf::from);
    path.map(Some).ok_or_else(|| format!("no package in:\n{said}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_asks_for_a_loader_is_not_static() {
        let mut elf = vec![0; 64 + 2 * 56];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (elf[32], elf[54], elf[56]) = (64, 56, 2);
        (elf[64], elf[64 + 56]) = (6, 1);
        assert!(is_static(&elf));
        elf[64 + 56] = 3;
        assert!(!is_static(&elf));
        assert!(!is_static(b"#!/bin/sh"));
    }

    #[test]
    fn the_licences_of_a_crate_are_found() {
        let own = texts_of(repository()).expect("texts");
        let names: Vec<_> = own.iter().filter_map(|path| path.file_name()?.to_str()).collect();
        assert_eq!(names, ["LICENSE-APACHE", "LICENSE-MIT"]);
    }
}
