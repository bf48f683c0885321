//! Licences, sources and known vulnerabilities of the dependencies, by cargo-deny.

use crate::steps::Outcome;
use crate::tools::{cargo, loud, quiet, works};

const VERSION: &str = "0.20.2";

/// Checks `deny.toml`. Installs cargo-deny where it is missing; skips the advisories, and says so,
/// where their database cannot be fetched.
pub fn check() -> Outcome {
    if !works(cargo(&["deny", "--version"])) {
        println!("\ncargo-deny is missing: installing {VERSION}, which takes some minutes");
        loud(cargo(&["install", "--locked", &format!("cargo-deny@{VERSION}")]))?;
    }
    quiet(cargo(&["deny", "--locked", "check", "licenses", "bans", "sources"]))?;
    if !works(cargo(&["deny", "fetch", "db"])) {
        return Ok("advisories NOT checked, since their database could not be fetched".to_owned());
    }
    quiet(cargo(&["deny", "--locked", "check", "--disable-fetch", "advisories"]))?;
    Ok("advisories checked".to_owned())
}
