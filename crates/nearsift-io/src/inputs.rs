//! From the arguments of a command line to a list of files, in a fixed order.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};

use globset::{GlobBuilder, GlobMatcher};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use walkdir::WalkDir;

use crate::companions::{Companion, is_companion};
use crate::parse::Plan;
use crate::source::{self, Content, Members, Origin, Source};
use crate::split::{Passed, Way};
use crate::{Error, Format, Links, Note, ReadOptions, Reason};

/// The files of a run, in the order in which their documents count, and how to read them.
///
/// Clones share what the first pass found out about each file; every later pass is held to it.
#[derive(Clone, Debug)]
pub struct Inputs {
    arguments: Arc<[OsString]>,
    files: Arc<[InputFile]>,
    roots: Arc<[Root]>,
    options: Arc<ReadOptions>,
    plan: Arc<Plan>,
    notes: Arc<[Note]>,
    skipped: Skipped,
    companions: Arc<[Companion]>,
    bytes: u64,
    /// The index of the first record of each file, once all are read.
    firsts: Arc<OnceLock<Vec<u64>>>,
}

/// What was left out of searched folders: files whose extension names no known format, and links that lead out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// How many files.
    pub files: u64,
    /// The first of these.
    pub example: Option<PathBuf>,
    /// Links that lead out of a searched folder and were not followed.
    pub links: u64,
}

/// One file to read.
#[derive(Debug)]
pub struct InputFile {
    origin: Origin,
    /// For a copy of standard input or a pipe: what it was, and its output path.
    alias: Option<(String, PathBuf)>,
    format: Format,
    root: usize,
    /// Its size as stored.
    bytes: u64,
    /// What the first pass over the file found.
    pub(crate) seen: OnceLock<Seen>,
    /// What a later pass that went on all the same found to be different.
    pub(crate) change: OnceLock<Change>,
}

/// How a file differs from what the first pass read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub what: &'static str,
    pub expected: u64,
    pub got: u64,
}

impl Change {
    pub(crate) fn of(self, file: &str) -> Error {
        let Change { what, expected, got } = self;
        Error::Changed { file: file.to_owned(), what, expected, got }
    }
}

/// What a first pass found in each file, by its [output path](Inputs::output_path). Its form as data is for the same version of
/// this library alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passes(Vec<(String, Option<Seen>)>);

/// What a pass found in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub records: u64,
    pub state: State,
    pub passed: Passed,
}

/// How far reading a file came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum State {
    /// The system does not give it.
    Closed,
    /// It is not what its format asks for: no part of it can be read.
    Refused,
    Read,
}

/// A place that files were found under.
#[derive(Debug)]
struct Root {
    /// As given; the output path of a file is its path below this...
    given: PathBuf,
    /// ... below this, which is the canonical path without what all roots have in common.
    output: PathBuf,
    canonical: PathBuf,
    /// Whether all that is below it was searched.
    is_folder: bool,
}

impl InputFile {
    /// The name in ids and messages: the path as given, or with the given folder in front; `-` is standard input.
    pub fn name(&self) -> String {
        match (&self.alias, &self.origin) {
            (Some((name, _)), _) => name.clone(),
            (None, Origin::Path(path)) => path.to_string_lossy().into_owned(),
            (None, Origin::Spool(_)) => "-".to_owned(),
        }
    }

    /// The format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Its size when it was found, in bytes as stored.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The value that the folders of the file give to a column, as in `source=web/lang=zh/part.parquet`: what Hive, Spark and
    /// DuckDB write. Of several of one name that of the innermost.
    ///
    /// `None` where no folder has the name, or its value is `__HIVE_DEFAULT_PARTITION__`, which is null.
    pub fn partition(&self, column: &str) -> Option<String> {
        const NULL: &str = "__HIVE_DEFAULT_PARTITION__";
        let Origin::Path(path) = &self.origin else { return None };
        let folders = path.parent()?.components().rev();
        let value = |folder: Component<'_>| {
            let (name, value) = folder.as_os_str().to_str()?.split_once('=')?;
            let plain = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
            (plain(name) == column).then(|| plain(value))
        };
        folders.filter_map(value).next().filter(|value| value != NULL)
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }
}

impl Inputs {
    /// Finds the files behind `arguments`, each a file, a folder, a pattern, or `-` for standard input.
    ///
    /// Files come in the order of the arguments, those of a folder or pattern by the bytes of their path. A
    /// named file is always taken: its format is the one asked for, or that of its extension, or of its content.
    /// In a folder, which is searched through and through and along links that stay [inside](crate::Links), only files with a known extension are
    /// taken (of the asked format, if one is); the others are counted. What describes a folder (`README.md`, `_SUCCESS`; beside tables
    /// `dataset_info.json` and `state.json`) is no document, and is [copied](crate::KeptWriter::copy_companions). A pattern names files; `*` and `?` stay
    /// inside one folder, `**` spans folders, `[ab]` and `{a,b}` choose. A path that exists is never a pattern.
    /// Standard input and pipes are copied to a nameless temporary file.
    ///
    /// # Errors
    /// An argument that is missing, cannot be opened or matches nothing; no file at all; an option out of range.
    /// A folder *inside* an argument that cannot be searched is a [note](Inputs::notes).
    ///
    /// # Complexity
    /// One path lookup a file. About 200 bytes a file stay in memory.
    pub fn resolve<S: AsRef<OsStr>>(arguments: &[S], options: ReadOptions) -> Result<Self, Error> {
        Self::resolve_from(arguments, options, &mut io::stdin())
    }

    /// [`resolve`](Inputs::resolve) with another standard input.
    ///
    /// # Errors
    /// As [`resolve`](Inputs::resolve).
    pub fn resolve_from<S: AsRef<OsStr>>(
        arguments: &[S],
        options: ReadOptions,
        stdin: &mut dyn Read,
    ) -> Result<Self, Error> {
        let plan = Plan::new(&options)?;
        if arguments.is_empty() {
            return Err(Error::NoInput);
        }
        let mut finder = Finder {
            options: &options,
            files: Vec::new(),
            roots: Vec::new(),
            notes: Vec::new(),
            known: HashSet::new(),
            skipped: Skipped::default(),
            companions: Vec::new(),
            bytes: 0,
        };
        for argument in arguments {
            finder.argument(argument.as_ref(), stdin)?;
        }
        let Finder { files, mut roots, notes, skipped, companions, bytes, .. } = finder;
        if files.is_empty() {
            return Err(nothing_to_read(arguments, &options, &skipped));
        }
        place_roots(&mut roots);
        Ok(Self {
            arguments: arguments.iter().map(|argument| argument.as_ref().to_owned()).collect(),
            files: files.into(),
            roots: roots.into(),
            plan: Arc::new(plan),
            options: Arc::new(options),
            notes: notes.into(),
            skipped,
            companions: companions.into(),
            bytes,
            firsts: Arc::default(),
        })
    }

    /// What they were found by: [`Inputs::resolve`] finds the same files by it, where these have not changed.
    pub fn arguments(&self) -> &[OsString] {
        &self.arguments
    }

    /// The files in order; never empty.
    pub fn files(&self) -> &[InputFile] {
        &self.files
    }

    /// The indices of the records of a file, once it and all files before it have been read to their ends.
    pub fn records(&self, file: usize) -> Option<Range<u64>> {
        let seen = self.files.get(file)?.seen.get()?;
        let first = self.first_record(file)?;
        Some(first..first + seen.records)
    }

    /// Ranges of the sections of a file, each of at least `bytes` bytes but for the last one. A later pass can
    /// [read](crate::Span::Sections) each range beside the others. There is none when the format or compression needs all bytes
    /// before a record, or before a [reader in the background](crate::Reader::in_background) has read the file to its end.
    pub fn sections(&self, file: usize, bytes: u64) -> Vec<Range<usize>> {
        let seen = self.files.get(file).and_then(|file| file.seen.get());
        let sections = seen.map_or(&[][..], |seen| &seen.passed.sections);
        let mut ranges = Vec::new();
        let (mut start, mut size) = (0, 0);
        for (section, after) in sections.iter().zip(1..) {
            size += section.bytes;
            if size >= bytes || after == sections.len() {
                ranges.push(start..after);
                (start, size) = (after, 0);
            }
        }
        ranges
    }

    /// The bytes that a section of a file has at least: an eighth of a batch, by default 1 MiB, so that what is copied of it stays
    /// in the cache of its core; and more where there would be too many to remember.
    pub(crate) fn section_bytes(&self, file: &InputFile) -> u64 {
        const MOST: u64 = 1 << 16;
        (self.options.batch_bytes as u64 / 8).max(file.bytes / MOST)
    }

    /// The index of the first record of a file, once all files before it have been read to their ends.
    ///
    /// # Complexity
    /// O(1) once all files are read; before that, O(files).
    pub(crate) fn first_record(&self, file: usize) -> Option<u64> {
        let counts = || self.files.iter().map(|file| Some(file.seen.get()?.records));
        if self.firsts.get().is_none() && counts().all(|count| count.is_some()) {
            let firsts = counts().scan(0, |next, count| {
                let first = *next;
                *next += count?;
                Some(first)
            });
            self.firsts.get_or_init(|| firsts.collect());
        }
        match self.firsts.get() {
            Some(firsts) => firsts.get(file).copied(),
            None => counts().take(file).sum(),
        }
    }

    /// What the first pass has found in each file, to be kept for another process.
    ///
    /// ```
    /// use nearsift_io::{Decision, Inputs, KeptWriter, Reader, ReadOptions};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let folder = tempfile::tempdir()?;
    /// let [input, kept, bad] = ["in.jsonl", "kept", "bad"].map(|name| folder.path().join(name));
    /// std::fs::write(&input, "{\"id\":1,\"text\":\"a\"}\n{\"id\":2,\"text\":\"a\"}\n")?;
    /// let here = Inputs::resolve(&[&input], ReadOptions::default())?;
    /// let mut reader = Reader::new(&here);
    /// while reader.next_batch()?.is_some() {}
    /// let sent = serde_json::to_string(&here.passes())?;
    ///
    /// // Another process writes what stays, without a first pass of its own.
    /// let there = Inputs::resolve(&[&input], ReadOptions::default())?;
    /// there.hold_to(serde_json::from_str(&sent)?)?;
    /// KeptWriter::new(&there, &kept, bad).write_all(|place| match place.index {
    ///     0 => Decision::Keep,
    ///     _ => Decision::Drop,
    /// })?;
    /// assert_eq!(std::fs::read(kept.join("in.jsonl"))?, b"{\"id\":1,\"text\":\"a\"}\n");
    /// # Ok(()) }
    /// ```
    pub fn passes(&self) -> Passes {
        let pass = |file: &InputFile| (self.shared_path(file), file.seen.get().cloned());
        Passes(self.files.iter().map(pass).collect())
    }

    /// Holds every later pass over these files to what another process found in them: as if they had been read here. None of
    /// them may have been read. The folder that they lie in may be another one.
    ///
    /// # Errors
    /// [`Error::OtherFiles`] when these are not the files that were read there.
    pub fn hold_to(&self, passes: Passes) -> Result<(), Error> {
        let paths: Vec<String> = self.files.iter().map(|file| self.shared_path(file)).collect();
        let read = |at: usize| passes.0.get(at).map(|(path, _)| path);
        let first = (0..paths.len().max(passes.0.len())).find(|&at| paths.get(at) != read(at));
        if let Some(at) = first {
            return Err(Error::OtherFiles { then: read(at).cloned(), now: paths.get(at).cloned() });
        }
        for (file, (_, seen)) in self.files.iter().zip(passes.0) {
            if let Some(seen) = seen {
                file.seen.get_or_init(|| seen);
            }
        }
        Ok(())
    }

    /// What tells a file from the others wherever all of them lie.
    fn shared_path(&self, file: &InputFile) -> String {
        self.output_path(file).to_string_lossy().into_owned()
    }

    /// How a file differs from what the first pass read, when a reader [past changes](crate::Reader::again) has come
    /// upon that: an [`Error::Changed`].
    pub fn change(&self, file: usize) -> Option<Error> {
        let file = self.files.get(file)?;
        Some(file.change.get()?.of(&file.name()))
    }

    /// The records of each file that [differs](Inputs::change) from what the first pass read.
    pub fn changed_records(&self) -> impl Iterator<Item = Range<u64>> {
        let is_changed = |file: &usize| self.files[*file].change.get().is_some();
        (0..self.files.len()).filter(is_changed).filter_map(|file| self.records(file))
    }

    /// The files that have records, as the index behind the last of these and the number of the file: ascending, once
    /// all are read to their ends.
    pub fn ends(&self) -> impl Iterator<Item = (u64, usize)> {
        let records = |file| self.records(file).filter(|records| !records.is_empty());
        (0..self.files.len()).filter_map(move |file| Some((records(file)?.end, file)))
    }

    /// How they are read.
    pub fn options(&self) -> &ReadOptions {
        &self.options
    }

    /// What was met while searching: folders that cannot be searched, files named twice.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// What the searched folders hold beside documents.
    pub fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// The sum of the file sizes, in bytes as stored: the scale of [`Batch::position`](crate::Batch::position).
    pub fn total_bytes(&self) -> u64 {
        self.bytes
    }

    /// Where the kept documents of a file belong, relative to the output folder.
    ///
    /// It is the file's path below the deepest folder that all arguments share, so two files never have the same,
    /// and it has no `..`, no root and no prefix.
    pub fn output_path(&self, file: &InputFile) -> PathBuf {
        if let Some((_, output)) = &file.alias {
            return output.clone();
        }
        match &file.origin {
            Origin::Path(path) => self.output_path_in(file.root, path),
            Origin::Spool(_) => self.output_path_in(file.root, Path::new("stdin")),
        }
    }

    fn output_path_in(&self, root: usize, path: &Path) -> PathBuf {
        let root = &self.roots[root];
        let below = path.strip_prefix(&root.given).unwrap_or(path);
        normal_components(&root.output.join(normal_components(below)))
    }

    /// The files that belong to searched folders and are no documents, each with its path below an output folder.
    pub(crate) fn companions(&self) -> impl Iterator<Item = (&Companion, PathBuf)> {
        self.companions.iter().map(|one| (one, self.output_path_in(one.root, &one.path)))
    }

    /// Whether a file was found by searching a folder, and not named.
    pub(crate) fn was_found(&self, file: &InputFile) -> bool {
        // Standard input has no root.
        self.roots.get(file.root).is_some_and(|root| root.is_folder)
    }

    pub(crate) fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    pub(crate) fn way(&self) -> Way {
        let (options, plan) = (Arc::clone(&self.options), Arc::clone(&self.plan));
        Way { options, plan, ahead: false, section_bytes: None }
    }

    /// The canonical folders of the inputs, and whether all below one is input.
    pub(crate) fn folders(&self) -> impl Iterator<Item = (&Path, bool)> {
        self.roots.iter().map(|root| (root.canonical.as_path(), root.is_folder))
    }
}

/// The work of [`Inputs::resolve`].
struct Finder<'a> {
    options: &'a ReadOptions,
    files: Vec<InputFile>,
    roots: Vec<Root>,
    notes: Vec<Note>,
    known: HashSet<PathBuf>,
    skipped: Skipped,
    companions: Vec<Companion>,
    bytes: u64,
}

impl Finder<'_> {
    fn argument(&mut self, argument: &OsStr, stdin: &mut dyn Read) -> Result<(), Error> {
        if argument == "-" {
            return self.once_only(stdin, "-", "stdin");
        }
        let path = Path::new(argument);
        match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => self.folder(path),
            Ok(meta) if meta.is_file() => self.named_file(path, meta.len()),
            Ok(_) => {
                let name = path.to_string_lossy();
                let output = path.file_name().map_or("input".into(), OsStr::to_string_lossy);
                let mut pipe = File::open(path)
                    .map_err(|source| Error::Open { path: path.to_owned(), source })?;
                self.once_only(&mut pipe, &name, &output)
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => match argument.to_str() {
                Some(pattern) if pattern.contains(['*', '?', '[', '{']) => self.pattern(pattern),
                _ => Err(Error::Missing { path: path.to_owned() }),
            },
            Err(source) => Err(Error::Open { path: path.to_owned(), source }),
        }
    }

    fn once_only(&mut self, input: &mut dyn Read, name: &str, output: &str) -> Result<(), Error> {
        if self.files.iter().any(|f| f.alias.as_ref().is_some_and(|(n, _)| n == name)) {
            self.notes.push(Note::new(name, None, Reason::NamedTwice));
            return Ok(());
        }
        let folder = self.options.spool_folder.clone().unwrap_or_else(std::env::temp_dir);
        let (copy, bytes) = source::spool(input, &folder).map_err(|source| Error::Spool {
            input: name.to_owned(),
            folder,
            source,
        })?;
        let origin = Origin::Spool(Arc::new(copy));
        let format = match self.options.format {
            Some(format) => format,
            None => sniff(&origin, self.options, Path::new(name))?,
        };
        let taken =
            |name: &Path| self.files.iter().any(|f| f.file_name() == Some(name.as_os_str()));
        let extension = format.extensions()[0];
        let alias = (1..)
            .map(|n| match n {
                1 => PathBuf::from(format!("{output}.{extension}")),
                n => PathBuf::from(format!("{output}-{n}.{extension}")),
            })
            .find(|name| !taken(name))
            .unwrap_or_default();
        self.bytes += bytes;
        self.files.push(InputFile {
            origin,
            alias: Some((name.to_owned(), alias)),
            format,
            root: 0,
            bytes,
            seen: OnceLock::new(),
            change: OnceLock::new(),
        });
        Ok(())
    }

    fn named_file(&mut self, path: &Path, bytes: u64) -> Result<(), Error> {
        let open = |source| Error::Open { path: path.to_owned(), source };
        File::open(path).map_err(open)?;
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new(""),
        };
        let here = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let root = self.root(parent, fs::canonicalize(here).map_err(open)?, false);
        self.take(path, root, bytes, Named::ByItself)
    }

    fn folder(&mut self, path: &Path) -> Result<(), Error> {
        let open = |source| Error::Open { path: path.to_owned(), source };
        let root = self.root(path, fs::canonicalize(path).map_err(open)?, true);
        let mut found = Vec::new();
        let links = self.options.links;
        self.walk(path, path, links, |file| found.push(file))?;
        found.sort_unstable_by(|a, b| a.0.as_os_str().cmp(b.0.as_os_str()));
        for (file, bytes) in &found {
            if self.options.format.is_some() || !is_companion(file, &found) {
                self.take(file, root, *bytes, Named::ByFolder)?;
            } else if self.known.insert(fs::canonicalize(file).unwrap_or_else(|_| file.clone())) {
                self.companions.push(Companion { path: file.clone(), root });
            }
        }
        Ok(())
    }

    fn pattern(&mut self, pattern: &str) -> Result<(), Error> {
        let error = |source| Error::Pattern { pattern: pattern.to_owned(), source };
        let glob = GlobBuilder::new(pattern).literal_separator(true).build().map_err(error)?;
        let matcher: GlobMatcher = glob.compile_matcher();
        let base: PathBuf = Path::new(pattern)
            .components()
            .take_while(|c| !c.as_os_str().to_string_lossy().contains(['*', '?', '[', '{']))
            .collect();
        let start = if base.as_os_str().is_empty() { Path::new(".") } else { base.as_path() };
        let no_match = || Error::NoMatch { pattern: pattern.to_owned() };
        let canonical = fs::canonicalize(start).map_err(|_| no_match())?;
        let mut found = Vec::new();
        // What a pattern matches is named, as a file is.
        self.walk(start, Path::new(pattern), Links::Followed, |(file, bytes)| {
            let file = match file.strip_prefix(".") {
                Ok(below) if base.as_os_str().is_empty() => below.to_owned(),
                _ => file,
            };
            if matcher.is_match(&file) {
                found.push((file, bytes));
            }
        })?;
        if found.is_empty() {
            return Err(no_match());
        }
        found.sort_unstable_by(|a, b| a.0.as_os_str().cmp(b.0.as_os_str()));
        let root = self.root(&base, canonical, false);
        found
            .into_iter()
            .try_for_each(|(file, bytes)| self.take(&file, root, bytes, Named::ByItself))
    }

    /// Hands every regular file below `start` to `found`.
    fn walk(
        &mut self,
        start: &Path,
        argument: &Path,
        links: Links,
        mut found: impl FnMut((PathBuf, u64)),
    ) -> Result<(), Error> {
        let mut notes = Vec::new();
        let inside = fs::canonicalize(start).ok();
        let leads_out = |entry: &walkdir::DirEntry| {
            let is_inside = |at: PathBuf| inside.as_ref().is_some_and(|root| at.starts_with(root));
            entry.depth() > 0
                && links == Links::Inside
                && entry.path_is_symlink()
                && !fs::canonicalize(entry.path()).is_ok_and(is_inside)
        };
        let mut out: Vec<PathBuf> = Vec::new();
        let mut walk = WalkDir::new(start).follow_links(true).into_iter();
        while let Some(entry) = walk.next() {
            match entry {
                Ok(entry) if leads_out(&entry) => {
                    if entry.file_type().is_dir() {
                        walk.skip_current_dir();
                    }
                    out.push(entry.into_path());
                }
                Ok(entry) if entry.file_type().is_file() => {
                    let bytes = entry.metadata().map_or(0, |m| m.len());
                    found((entry.into_path(), bytes));
                }
                Ok(_) => {}
                Err(e) if e.depth() == 0 => {
                    // The search's own error names the path once more.
                    let source = e.into_io_error().unwrap_or_else(|| io::ErrorKind::Other.into());
                    return Err(Error::Open { path: argument.to_owned(), source });
                }
                Err(e) => {
                    let place = e.path().unwrap_or(start).to_string_lossy().into_owned();
                    let why = match (e.loop_ancestor(), e.io_error()) {
                        (Some(_), _) => "a link to a folder that it lies in".to_owned(),
                        (None, Some(io)) => io.to_string(),
                        (None, None) => e.to_string(),
                    };
                    notes.push(Note::new(place, None, Reason::Folder(why)));
                }
            }
        }
        self.skipped.links += out.len() as u64;
        if let Some(first) = out.iter().min() {
            let example = first.to_string_lossy().into_owned();
            let reason = Reason::LinksOut { links: out.len() as u64, example };
            notes.push(Note::new(argument.to_string_lossy(), None, reason));
        }
        // The order of the file system is no order.
        notes.sort_by(|a, b| a.file.cmp(&b.file));
        self.notes.append(&mut notes);
        Ok(())
    }

    fn take(&mut self, path: &Path, root: usize, bytes: u64, named: Named) -> Result<(), Error> {
        let by_name = format_by_name(path);
        let format = match (self.options.format, by_name, named) {
            (_, Some(archive), _) if archive.is_archive() => archive,
            (None, Some(format), _) => format,
            (Some(format), _, Named::ByItself) => format,
            (Some(format), Some(found), Named::ByFolder) if found == format => format,
            (None, None, Named::ByItself) => {
                sniff(&Origin::Path(path.to_owned()), self.options, path)?
            }
            (_, _, Named::ByFolder) => {
                self.skipped.files += 1;
                self.skipped.example.get_or_insert_with(|| path.to_owned());
                return Ok(());
            }
        };
        // A file that cannot be resolved is taken: it is reported when it cannot be opened.
        let canonical = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if !self.known.insert(canonical) {
            self.notes.push(Note::new(path.to_string_lossy(), None, Reason::NamedTwice));
            return Ok(());
        }
        self.bytes += bytes;
        self.files.push(InputFile {
            origin: Origin::Path(path.to_owned()),
            alias: None,
            format,
            root,
            bytes,
            seen: OnceLock::new(),
            change: OnceLock::new(),
        });
        Ok(())
    }

    fn root(&mut self, given: &Path, canonical: PathBuf, is_folder: bool) -> usize {
        let same = |r: &Root| r.given == given && r.is_folder == is_folder;
        // Files of one folder mostly come one after another.
        if self.roots.last().is_some_and(same) {
            return self.roots.len() - 1;
        }
        let given = given.to_owned();
        self.roots.push(Root { given, output: PathBuf::new(), canonical, is_folder });
        self.roots.len() - 1
    }
}

/// How a file came to be considered.
#[derive(Clone, Copy)]
enum Named {
    ByItself,
    ByFolder,
}

impl InputFile {
    fn file_name(&self) -> Option<&OsStr> {
        match (&self.alias, &self.origin) {
            (Some((_, output)), _) => output.file_name(),
            (None, Origin::Path(path)) => path.file_name(),
            (None, Origin::Spool(_)) => None,
        }
    }
}

/// Sets each root's place in the output: its canonical path without what all of them share.
fn place_roots(roots: &mut [Root]) {
    let Some(first) = roots.first() else { return };
    let mut shared: Vec<Component<'_>> = first.canonical.components().collect();
    for root in roots.iter() {
        let same = shared.iter().zip(root.canonical.components()).take_while(|(a, b)| **a == *b);
        let same = same.count();
        shared.truncate(same);
    }
    let shared = shared.len();
    for root in roots {
        root.output =
            normal_components(&root.canonical.components().skip(shared).collect::<PathBuf>());
    }
}

/// The path without root, prefix, `.` and `..`.
fn normal_components(path: &Path) -> PathBuf {
    path.components().filter(|c| matches!(c, Component::Normal(_))).collect()
}

/// The format that the extension names, below one `.gz`, `.zst`, `.xz` or `.bz2`.
pub(crate) fn format_by_name(path: &Path) -> Option<Format> {
    let extension = |p: &Path| Some(p.extension()?.to_str()?.to_ascii_lowercase());
    let mut found = extension(path)?;
    if matches!(found.as_str(), "gz" | "zst" | "xz" | "bz2") {
        found = extension(Path::new(path.file_stem()?))?;
    }
    Format::ALL.into_iter().find(|f| f.extensions().contains(&found.as_str()))
}

/// The format that the first 64 KiB look like. CSV does not look like anything.
fn sniff(origin: &Origin, options: &ReadOptions, path: &Path) -> Result<Format, Error> {
    if let Origin::Path(p) = origin
        && let Some(format) = format_by_name(p)
    {
        return Ok(format);
    }
    let unknown = || Error::UnknownFormat { path: path.to_owned() };
    let mut start = vec![0; 64 << 10];
    let mut len = 0;
    let mut source = Source::open(Content::Origin(origin.clone()), options.limits, Members::Joined)
        .map_err(|_| unknown())?;
    while len < start.len() {
        match source.read(&mut start[len..]) {
            Ok(0) => break,
            Ok(n) => len += n,
            Err(_) if len > 0 => break,
            Err(_) => return Err(unknown()),
        }
    }
    let start = &start[..len];
    if start.starts_with(b"PAR1") {
        return Ok(Format::Parquet);
    }
    // The reader of Arrow refuses Feather 1 and says what it is.
    if start.starts_with(b"ARROW1") || start.starts_with(b"FEA1") {
        return Ok(Format::Arrow);
    }
    if start.starts_with(b"WARC/") || start.starts_with(b"filedesc:") {
        return Ok(Format::Warc);
    }
    if start.starts_with(b"PK\x03\x04") || start.starts_with(b"PK\x05\x06") {
        return Ok(Format::Zip);
    }
    if crate::archive::is_tar(start) {
        return Ok(Format::Tar);
    }
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    match start.first() {
        Some(b'[') => Ok(Format::Json),
        Some(b'{') => {
            let (line, rest) = match memchr::memchr(b'\n', start) {
                Some(end) => (&start[..end], start[end..].trim_ascii_start()),
                None => (start, &b""[..]),
            };
            let whole = line.trim_ascii_end().ends_with(b"}") || line.len() == len;
            let next = rest.first().is_none_or(|b| *b == b'{');
            Ok(if whole && next { Format::JsonLines } else { Format::Json })
        }
        Some(b'<') => Ok(Format::Html),
        _ if start.contains(&0) => Err(unknown()),
        _ => Ok(Format::Text),
    }
}

fn nothing_to_read<S: AsRef<OsStr>>(
    arguments: &[S],
    options: &ReadOptions,
    skipped: &Skipped,
) -> Error {
    let formats = Format::ALL.into_iter().filter(|f| options.format.is_none_or(|o| o == *f));
    let expected: Vec<_> =
        formats.flat_map(Format::extensions).map(|extension| format!(".{extension}")).collect();
    let searched: Vec<OsString> = arguments.iter().map(|a| a.as_ref().to_owned()).collect();
    Error::NothingToRead {
        searched: searched.join(OsStr::new(", ")).to_string_lossy().into_owned(),
        skipped: skipped.files,
        links: skipped.links,
        expected: expected.join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_by_name() {
        let check = |name: &str, expect: Option<Format>| {
            assert_eq!(format_by_name(Path::new(name)), expect, "{name}");
        };
        check("a.jsonl", Some(Format::JsonLines));
        check("a.b/c.NDJSON.GZ", Some(Format::JsonLines));
        check("a.json.zst", Some(Format::Json));
        check("a.csv.gz.gz", None);
        check("a.md", Some(Format::Text));
        check("a.XHTML", Some(Format::Html));
        check(".jsonl", None);
        check("a.gz", None);
        check("a.txt.bz2", Some(Format::Text));
        check("a.tar.zst", Some(Format::Tar));
        check("a.TGZ", Some(Format::Tar));
        check("a.zip", Some(Format::Zip));
        check("a", None);
    }
}
