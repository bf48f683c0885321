//! The settings file.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::args::Tune;
use crate::failure::Failure;
use nearsift_batch::tune::{Basis, Expected, Report};

/// Where settings go, unless a file is named.
const NAME: &str = "nearsift.toml";

/// A settings file that may be written.
pub struct Place {
    path: PathBuf,
    overwrite: bool,
}

/// The settings file of an output: the folder's, or the file itself.
///
/// # Errors
/// A file that is there and was not to be replaced.
pub fn place(output: &Path, overwrite: bool) -> Result<Place, Failure> {
    let is_file = output.extension().is_some_and(|e| e == "toml") && !output.is_dir();
    let path = if is_file { output.to_owned() } else { output.join(NAME) };
    let place = Place { path, overwrite };
    match fs::symlink_metadata(&place.path) {
        Ok(found) if overwrite && found.is_file() => Ok(place),
        Ok(found) if found.is_file() => Err(place.is_there()),
        Ok(_) => Err(Failure::new(format!(
            "{}: expected a file, found something else",
            place.path.display()
        ))),
        Err(_) => Ok(place),
    }
}

impl Place {
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn is_there(&self) -> Failure {
        Failure::new(format!(
            "{}: there is a settings file already: give --overwrite, or another --output",
            self.path.display()
        ))
    }

    /// Writes the settings, whole or not at all, and says whether they replaced others.
    pub fn write(&self, report: &Report) -> Result<bool, Failure> {
        let error = |e: &std::io::Error| Failure::at(&self.path, "write", e);
        let folder = match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        fs::create_dir_all(folder).map_err(|e| error(&e))?;
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(|e| error(&e))?;
        file.write_all(report.settings.as_bytes()).map_err(|e| error(&e))?;
        let replaces = self.path.exists();
        if self.overwrite {
            file.persist(&self.path).map_err(|e| error(&e.error))?;
        } else {
            // Someone may have written it meanwhile.
            file.persist_noclobber(&self.path).map_err(|e| match e.error.kind() {
                ErrorKind::AlreadyExists => self.is_there(),
                _ => error(&e.error),
            })?;
        }
        readable(&self.path);
        Ok(replaces)
    }
}

/// Temporary files are for their owner alone, and settings are not secret.
fn readable(path: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o644));
    }
    #[cfg(not(unix))]
    let _ = path;
}

/// The settings as TOML, with what they rest on.
pub fn settings(args: &Tune, report: &Report) -> String {
    let basis = match report.threshold.basis {
        Basis::Proposed => "proposed",
        Basis::Default => "the default",
        Basis::Asked => "as asked",
    };
    let mut text = format!(
        "# Written by nearsift {} tune; read by dedup, pairs and eval --config.\n\
         # {} documents, {} of {} searched against all, seed {}.\n",
        report.nearsift,
        report.documents.documents,
        report.sample.anchors,
        report.sample.population,
        report.seed
    );
    let mut line = |key: &str, value: toml::Value| text += &format!("{key} = {value}\n");
    line("method", report.method.into());
    if let Some(recipe) = &args.recipe.recipe {
        line("recipe", recipe.as_str().into());
    }
    if let Some(bits) = &args.recipe.bits {
        line("bits", bits.as_str().into());
    }
    if let Some(idf) = &args.recipe.idf {
        line("idf", idf.as_str().into());
    }
    let files = [
        ("user-dictionary", &args.recipe.user_dictionary),
        ("stop-words", &args.recipe.stop_words),
        ("levels", &args.recipe.levels),
    ];
    for (key, file) in files {
        if let Some(file) = file {
            line(key, file.display().to_string().into());
        }
    }
    let reading = &args.input.reading;
    if reading.text_field != "text" {
        line("text-field", reading.text_field.as_str().into());
    }
    if reading.id_field != "id" {
        line("id-field", reading.id_field.as_str().into());
    }
    if let Some(charset) = &reading.charset {
        line("charset", charset.as_str().into());
    }
    text += &format!("# {basis}: {}\n", report.threshold.because);
    if let Some(expected) = report.threshold.precision {
        let Expected { value, low, high } = expected;
        text += &format!("# expected precision {value:.3}, 95% interval {low:.3} to {high:.3}\n");
    }
    if let Some(score) = report.threshold.min_score {
        text += &format!("min-score = {score:?}\n");
    }
    if let Some(distance) = report.threshold.max_distance {
        text += &format!("max-distance = {distance}\n");
    }
    text
}
