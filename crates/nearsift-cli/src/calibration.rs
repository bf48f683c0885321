//! The machine's measured speeds, by which planners choose: a file that `nearsift bench --calibrate` writes.
//! They change how fast answers come, and no answer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nearsift::fingerprint::Bits;
use nearsift::hamming::kernels::Kernel;
use nearsift::join;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// The variable that names another file.
const VARIABLE: &str = "NEARSIFT_CALIBRATION";

/// What the file holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The instructions that were measured: with others the figures mean nothing.
    pub kernel: String,
    /// Speeds of joins, by the bits of a fingerprint.
    pub join: BTreeMap<u32, join::Speed>,
}

impl Calibration {
    /// The calibration of this machine, if it was measured. A file that cannot be read, or is of
    /// another machine, counts as none.
    pub fn load() -> Option<Calibration> {
        let text = std::fs::read_to_string(file().ok()?).ok()?;
        let found: Calibration = serde_json::from_str(&text).ok()?;
        (found.kernel == Kernel::best().to_string()).then_some(found)
    }

    /// Writes the file, and tells its name.
    ///
    /// # Errors
    /// When there is no place for it, or it cannot be written.
    pub fn save(&self) -> Result<PathBuf, Failure> {
        let file = file()?;
        let folder = file.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(|e| Failure::at(folder, "create", &e))?;
        let text = serde_json::to_string_pretty(self).map_err(Failure::new)?;
        std::fs::write(&file, text + "\n").map_err(|e| Failure::at(&file, "write", &e))?;
        Ok(file)
    }
}

/// The measured speed of joins of this width, if it was measured.
pub fn join_speed(bits: Bits) -> Option<join::Speed> {
    Calibration::load()?.join.get(&bits.count()).copied()
}

fn file() -> Result<PathBuf, Failure> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(file) = set(VARIABLE) {
        return Ok(file.into());
    }
    let folder = set("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| Path::new(&home).join(".config")))
        .or_else(|| set("APPDATA").map(PathBuf::from))
        .ok_or_else(|| {
            Failure::new(format!("no folder for settings is known: set {VARIABLE} to a file"))
        })?;
    Ok(folder.join("nearsift").join("calibration.json"))
}
