//! Where the documents of a job come from: files that it reads, or parts that were made of them.

use std::path::{Component, PathBuf};

use nearsift_io::Inputs;

use crate::parts::{Part, Parts};

/// Where the documents of a job come from.
#[derive(Clone, Copy)]
pub enum Origin<'a> {
    /// Files, which the job reads once or twice, and of which it writes what stays.
    Files(&'a Inputs),
    /// Parts, of whose files others write what stays.
    Parts(&'a Parts),
}

/// A file, as results name it.
pub struct NamedFile {
    pub name: String,
    pub format: String,
}

impl<'a> Origin<'a> {
    /// The files, where the job reads them.
    pub fn files(self) -> Option<&'a Inputs> {
        match self {
            Origin::Files(inputs) => Some(inputs),
            Origin::Parts(_) => None,
        }
    }

    /// All files, in order.
    pub fn named(self) -> Box<dyn Iterator<Item = NamedFile> + 'a> {
        match self {
            Origin::Files(inputs) => Box::new(
                inputs
                    .files()
                    .iter()
                    .map(|file| NamedFile { name: file.name(), format: file.format().to_string() }),
            ),
            Origin::Parts(parts) => {
                let files = parts.all().iter().flat_map(|part| &part.manifest.files);
                Box::new(
                    files.map(|file| NamedFile {
                        name: file.file.clone(),
                        format: file.format.clone(),
                    }),
                )
            }
        }
    }

    /// How many files there are.
    pub fn count(self) -> usize {
        match self {
            Origin::Files(inputs) => inputs.files().len(),
            Origin::Parts(parts) => parts.all().iter().map(|part| part.manifest.files.len()).sum(),
        }
    }

    /// What searched folders hold beside documents.
    pub fn skipped_files(self) -> u64 {
        match self {
            Origin::Files(inputs) => inputs.skipped().files,
            Origin::Parts(parts) => {
                parts.all().iter().map(|part| part.manifest.skipped_files).sum()
            }
        }
    }

    /// The files that have records, as the index behind the last of these and the top folder of the file, or its name where it is
    /// in none: ascending.
    pub fn top_folders(self) -> Box<dyn Iterator<Item = (u64, String)> + 'a> {
        match self {
            Origin::Files(inputs) => {
                Box::new(inputs.ends().map(|(end, file)| {
                    (end, top_folder(&inputs.output_path(&inputs.files()[file])))
                }))
            }
            Origin::Parts(parts) => Box::new(parts.all().iter().flat_map(|part| {
                let first = part.first_record;
                let files = part.manifest.files.iter();
                files.map(move |file| (first + file.end, file.top.clone()))
            })),
        }
    }

    /// The folders of the parts, which results must not be written to, with all links resolved.
    pub fn folders(self) -> Vec<PathBuf> {
        match self {
            Origin::Files(_) => Vec::new(),
            Origin::Parts(parts) => {
                let folder = |part: &Part| part.folder.canonicalize();
                parts.all().iter().filter_map(|part| folder(part).ok()).collect()
            }
        }
    }
}

/// The first folder of a path, or its name where it is in none.
pub fn top_folder(path: &std::path::Path) -> String {
    let mut parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    });
    parts.next().unwrap_or_default()
}
