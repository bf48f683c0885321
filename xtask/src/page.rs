//! The web page: what is committed is what its source builds to, and it works in a browser.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::steps::Outcome;
use crate::tools::{loud, program, quiet, repository, works};

/// The files of the page, as they are committed.
const BUILT: &str = "crates/nearsift-server/src/page/dist";

/// The most that the files may have in all, packed by gzip, in bytes.
const MOST_BYTES: u64 = 150_000;

/// Builds the page again, compares it with what is committed, runs its tests in Chromium, and takes pictures of every view in both
/// languages and themes, at 390 and 1280 px.
pub fn step() -> Outcome {
    let mut node = Command::new("node");
    node.arg("--version");
    if !works(node) {
        return Ok("skipped: no node on the PATH".to_owned());
    }
    let web = repository().join("web");
    npm(&web, &["ci", "--no-audit", "--no-fund", "--ignore-scripts"])?;
    npm(&web, &["run", "check"])?;
    let made = repository().join("target/page");
    let built = made.join("built");
    let mut build = Command::new("npm");
    build.args(["run", "build"]).current_dir(&web).env("NEARSIFT_PAGE_OUT", &built);
    quiet(build)?;
    let packed = compare(&repository().join(BUILT), &built)?;
    npm(&web, &["run", "unit"])?;
    let note = format!("{packed} bytes packed");
    let chromium = std::env::var("NEARSIFT_CHROMIUM").unwrap_or("/usr/bin/chromium".to_owned());
    if !Path::new(&chromium).exists() {
        return Ok(format!("{note}; skipped in a browser: no {chromium}"));
    }
    println!();
    let mut browser = Command::new("npm");
    browser.args(["run", "browser"]).current_dir(&web);
    browser.env("NEARSIFT_BIN", program("nearsift")?);
    loud(browser)?;
    // Pictures of every view, for people to look at.
    let mut pictures = Command::new("npm");
    pictures.args(["run", "pictures", "--"]).arg(made.join("pictures")).current_dir(&web);
    pictures.env("NEARSIFT_BIN", program("nearsift")?);
    quiet(pictures)?;
    Ok(format!("{note}; pictures in target/page/pictures"))
}

fn npm(web: &Path, arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new("npm");
    command.args(arguments).current_dir(web);
    quiet(command).map(drop)
}

/// Compares the files of two folders, and returns how many bytes they have in all, packed.
fn compare(committed: &Path, built: &Path) -> Result<u64, String> {
    let names = |folder: &Path| -> Result<Vec<String>, String> {
        let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let mut names: Vec<String> =
            entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        Ok(names)
    };
    let (own, new) = (names(committed)?, names(built)?);
    if own != new {
        return Err(format!(
            "{BUILT} has {own:?}, and web/ builds {new:?}: npm run build in web\n"
        ));
    }
    let mut packed = 0;
    for name in &own {
        let read = |folder: &Path| fs::read(folder.join(name)).map_err(|e| format!("{name}: {e}"));
        if read(committed)? != read(built)? {
            return Err(format!("{BUILT}/{name} is not what web/ builds: npm run build in web\n"));
        }
        let gzip = Command::new("gzip").args(["-9", "-c"]).arg(committed.join(name)).output();
        packed += gzip.map_err(|e| format!("gzip: {e}"))?.stdout.len() as u64;
    }
    match packed {
        0..=MOST_BYTES => Ok(packed),
        _ => Err(format!("the page has {packed} bytes, packed: at most {MOST_BYTES}\n")),
    }
}
