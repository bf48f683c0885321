//! `cargo xtask torture resume`: runs that are killed at random moments, taken up, and compared byte for
//! byte with a run that was not.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use testkit::random::Random;

use crate::tools::{cargo, corpus, loud, repository};

/// How often, on what.
#[derive(Debug, Args)]
pub struct Resume {
    /// Kills, one in each run; half of the runs are killed once more when they are resumed
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    n: u32,
    /// Documents of the generated input
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1_000..))]
    documents: u64,
    /// Bytes of a shard
    #[arg(long, default_value_t = 2_000_000)]
    shard_bytes: u64,
    /// What decides the moments
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A folder for the input and the results; it is made and removed
    #[arg(long, value_name = "DIR", default_value = "target/torture")]
    out: PathBuf,
    /// The program, instead of the one that is built for release first
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// Tortures.
///
/// # Errors
/// A sentence for the terminal: what could not be run, or what differs.
pub fn run(resume: &Resume) -> Result<(), String> {
    let program = match &resume.program {
        Some(program) => std::path::absolute(program).map_err(|e| e.to_string())?,
        None => {
            loud(cargo(&["build", "--release", "--package", "nearsift-cli"]))?;
            repository().join("target/release/nearsift")
        }
    };
    let folder = std::path::absolute(&resume.out).map_err(|e| e.to_string())?;
    let done = resume.all(&program, &folder);
    let removed = fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()));
    let kills = done?;
    removed?;
    println!("{} runs, killed {kills} times and resumed: the same bytes", resume.n);
    Ok(())
}

impl Resume {
    fn all(&self, program: &Path, folder: &Path) -> Result<u32, String> {
        let at = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
        let input = folder.join("in");
        let mut generate = corpus();
        generate.args(["--documents", &self.documents.to_string()]);
        generate.args(["--file-documents", &self.documents.div_ceil(3).to_string()]);
        generate.arg("--out").arg(&input);
        loud(generate)?;
        let begun = Instant::now();
        let whole = folder.join("whole");
        finish(self.start(program, &input, &whole)?)?;
        let whole_took = begun.elapsed();
        let expected = tree(&whole).map_err(|e| at(&whole, e))?;
        println!("a whole run takes {:.1} s", whole_took.as_secs_f64());
        let (mut random, mut kills) = (Random::new(self.seed), 0);
        for round in 0..self.n {
            let output = folder.join("killed");
            let mut moments = Vec::new();
            for _ in 0..=random.below(2) {
                let moment = whole_took * random.below(1_000) as u32 / 1_000;
                let mut child = self.start(program, &input, &output)?;
                if is_killed(&mut child, moment).map_err(|e| e.to_string())? {
                    kills += 1;
                    moments.push(format!("{:.2} s", moment.as_secs_f64()));
                }
                if output.join("summary.json").exists() {
                    break;
                }
            }
            if !output.join("summary.json").exists() || output.join(".unfinished").exists() {
                finish(self.start(program, &input, &output)?)?;
            }
            let got = tree(&output).map_err(|e| at(&output, e))?;
            if let Some(path) = difference(&expected, &got) {
                return Err(format!(
                    "round {round}, killed after {}: {} differs",
                    moments.join(" and "),
                    path.display()
                ));
            }
            println!("round {round}: killed after {}: the same", moments.join(" and "));
            fs::remove_dir_all(&output).map_err(|e| at(&output, e))?;
        }
        Ok(kills)
    }

    fn start(&self, program: &Path, input: &Path, output: &Path) -> Result<Child, String> {
        Command::new(program)
            .args(["dedup", "--quiet", "--resume", "--output"])
            .args([output, input])
            .args(["--bounds", &format!("checkpoint={}", self.shard_bytes)])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{}: {e}", program.display()))
    }
}

fn finish(child: Child) -> Result<(), String> {
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "nearsift ended with {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    ))
}

/// Kills a process after some time; `false` when it came to its end before.
fn is_killed(child: &mut Child, moment: Duration) -> std::io::Result<bool> {
    let begun = Instant::now();
    while begun.elapsed() < moment {
        if child.try_wait()?.is_some() {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill()?;
    child.wait()?;
    Ok(true)
}

/// All files below a folder, but for what a run says of its own time.
fn tree(folder: &Path) -> std::io::Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name() != Some("run.json".as_ref()) {
                files.insert(
                    path.strip_prefix(folder).unwrap_or(&path).to_owned(),
                    testkit::result_bytes(&path)?,
                );
            }
        }
    }
    Ok(files)
}

/// A file that is not the same in both.
fn difference<'t>(
    a: &'t BTreeMap<PathBuf, Vec<u8>>,
    b: &'t BTreeMap<PathBuf, Vec<u8>>,
) -> Option<&'t Path> {
    let missing = b.keys().find(|path| !a.contains_key(*path));
    missing.or_else(|| a.keys().find(|path| a.get(*path) != b.get(*path))).map(PathBuf::as_path)
}
