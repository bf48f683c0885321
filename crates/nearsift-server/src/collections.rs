//! The folder of the service: a folder for each collection, snapshots in `.snapshots`.
//!
//! Every path is made of the root and of a [`Name`], which has no dot and no slash. Links are not followed: a link where a
//! collection should be is refused. What a crash left of a collection that was being made or
//! deleted is in a folder with a dot before its name, and is removed at the next start.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, PoisonError, RwLock, mpsc};
use std::time::{Duration, Instant};

use nearsift::recipe::{Fingerprinter, Recipe};
use nearsift::sketch::{MIN_SCORE, Score};
use nearsift_store::{
    IdKind, Kind, Options, Priority, RecipeMark, Settings, Store, StoreError, TextScore,
};

use crate::ServeError;
use crate::metrics::{Durations, durations, of_collection};
use crate::problem::{self, Problem};
use crate::queue::Bounds;
use crate::scratch::Scratch;
use crate::writer::Writer;

/// The collection that routes without a collection's name are for.
pub(crate) const DEFAULT: &str = "default";

const SNAPSHOTS: &str = ".snapshots";

/// The name of a collection: a lower-case letter or digit, then up to 63 of these, `_` and `-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name(String);

impl FromStr for Name {
    type Err = Problem;

    fn from_str(name: &str) -> Result<Name, Problem> {
        let is_plain = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let (first, rest) = name.as_bytes().split_first().unwrap_or((&b'-', &[]));
        let fits = is_plain(first)
            && rest.len() <= 63
            && rest.iter().all(|b| is_plain(b) || matches!(b, b'_' | b'-'));
        if fits {
            return Ok(Name(name.to_owned()));
        }
        Err(Problem::field(
            "/name",
            "The name cannot be that of a collection.",
            "1 to 64 characters of a-z, 0-9, _ and -, the first a letter or digit",
        ))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A store, what writes to it, and what makes its fingerprints.
pub(crate) struct Collection {
    pub(crate) name: Name,
    pub(crate) store: Arc<Store>,
    pub(crate) writer: Writer,
    recipe: Result<Recipe, String>,
    scratch: Arc<Scratch>,
}

impl Collection {
    fn open(
        name: &Name,
        dir: &Path,
        writes: Bounds,
        times: &Durations,
        scratch: &Arc<Scratch>,
    ) -> Result<Collection, ServeError> {
        // Requests should not wait for a processor that makes segments.
        let options = Options {
            priority: Priority::Low,
            text_memory: scratch.for_comparisons(),
            ..Options::default()
        };
        let store = Store::open_with(dir, options)?;
        let mark = store.recipe();
        let recipe = Recipe::parse(&mark.written).and_then(|recipe| {
            recipe.fingerprinter()?;
            Ok(recipe)
        });
        if let Ok(recipe) = &recipe {
            let own = RecipeMark::of(recipe);
            if own != *mark {
                return Err(StoreError::Recipe {
                    path: dir.to_owned(),
                    stored: Box::new(mark.clone()),
                    asked: Box::new(own),
                }
                .into());
            }
        }
        let recipe = recipe.map_err(|error| error.to_string());
        let store = Arc::new(store);
        let times = times.get_or_create(&of_collection(name)).clone();
        let writer = Writer::start(Arc::clone(&store), writes, times)?;
        let scratch = Arc::clone(scratch);
        Ok(Collection { name: name.clone(), store, writer, recipe, scratch })
    }

    /// Writes what is queued, and closes the store.
    fn close(self) -> Result<(), StoreError> {
        let Collection { store, mut writer, .. } = self;
        writer.stop();
        // The thread had the only other share.
        Arc::into_inner(store).map_or(Ok(()), Store::close)
    }

    /// The recipe that turns texts into fingerprints here.
    ///
    /// # Errors
    /// When it needs tables that the service does not have.
    pub(crate) fn recipe(&self) -> Result<&Recipe, Problem> {
        self.recipe.as_ref().map_err(|why| {
            Problem::new(
                problem::Kind::RecipeNeedsTable,
                format!("{why}: the service has no such tables"),
            )
            .expecting("a ready \"fingerprint\"")
        })
    }

    /// The memory that work on documents may take.
    pub(crate) fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    /// Lends a fingerprinter for work on a text of `bytes` bytes, whose share of the memory was taken.
    pub(crate) fn with_fingerprinter<T>(
        &self,
        bytes: usize,
        work: impl for<'r> FnOnce(&mut Fingerprinter<'r>) -> T,
    ) -> Result<T, Problem> {
        self.scratch.with_fingerprinter(self.recipe()?, self.store.recipe(), bytes, work)
    }
}

enum Entry {
    Open(Arc<Collection>),
    /// It could not be opened, and why.
    Unavailable(String),
    /// It is being made or deleted.
    Changing,
}

/// All collections of a folder.
pub(crate) struct Collections {
    root: PathBuf,
    most: usize,
    writes: Bounds,
    write_times: Durations,
    scratch: Arc<Scratch>,
    entries: RwLock<BTreeMap<Name, Entry>>,
}

fn at(path: &Path, doing: &str) -> impl FnOnce(std::io::Error) -> ServeError {
    move |source| ServeError::Io { path: path.to_owned(), doing: doing.to_owned(), source }
}

/// Makes the entries of a folder durable.
fn sync_folder(path: &Path) -> Result<(), ServeError> {
    fs::File::open(path).and_then(|folder| folder.sync_all()).map_err(at(path, "sync"))
}

/// What a new collection holds.
pub(crate) fn settings(kind: Kind, recipe: &Recipe, texts: Option<TextScore>) -> Settings {
    let recipe = RecipeMark::of(recipe);
    Settings { kind, ids: IdKind::Texts, recipe, hash_key: None, texts }
}

/// What the folder of all collections holds.
struct FolderContent {
    /// The collections, in any order.
    names: Vec<Name>,
    /// Folders of collections that were being made or deleted when the service ended.
    leftovers: Vec<PathBuf>,
}

impl FolderContent {
    /// # Errors
    /// A folder that cannot be listed, or a link in the place of a collection.
    fn list(root: &Path) -> Result<FolderContent, ServeError> {
        let mut content = FolderContent { names: Vec::new(), leftovers: Vec::new() };
        for entry in fs::read_dir(root).map_err(at(root, "list the folder"))? {
            let entry = entry.map_err(at(root, "list the folder"))?;
            let path = entry.path();
            let kind = entry.file_type().map_err(at(&path, "look at"))?;
            let written = entry.file_name();
            let name = written.to_str().unwrap_or_default();
            if name.starts_with(".making-") || name.starts_with(".deleting-") {
                content.leftovers.push(path);
            } else if let Ok(name) = name.parse::<Name>() {
                if kind.is_symlink() {
                    return Err(ServeError::File {
                        path,
                        problem: "a link where a collection should be: put the folder itself here"
                            .to_owned(),
                    });
                }
                if kind.is_dir() {
                    content.names.push(name);
                }
            } else if name != SNAPSHOTS {
                tracing::warn!(path = ?path, "not a collection: left alone");
            }
        }
        Ok(content)
    }
}

impl Collections {
    /// Opens every collection of a folder, which is made if there is none, with the collection `default`.
    pub(crate) fn open(
        root: &Path,
        most: usize,
        writes: Bounds,
        scratch: Scratch,
    ) -> Result<Collections, ServeError> {
        fs::create_dir_all(root).map_err(at(root, "make the folder"))?;
        // What stands in for it later changes nothing.
        let root = fs::canonicalize(root).map_err(at(root, "find the folder"))?;
        let FolderContent { mut names, leftovers } = FolderContent::list(&root)?;
        let collections = Collections {
            root,
            most,
            writes,
            write_times: durations(),
            scratch: Arc::new(scratch),
            entries: RwLock::default(),
        };
        names.sort();
        collections.open_all(&names)?;
        // Another service with the same folder would have been found by now.
        for path in leftovers {
            fs::remove_dir_all(&path).map_err(at(&path, "remove"))?;
        }
        let default = Name(DEFAULT.to_owned());
        if !names.contains(&default) {
            let recipe = Recipe::parse("sketch")?;
            let kind = Kind::Sketches { min_score: Score::at_least(MIN_SCORE) };
            let made = collections.make(&default, &settings(kind, &recipe, None))?;
            collections.put(&default, Some(Entry::Open(Arc::new(made))));
        }
        Ok(collections)
    }

    /// Opens some collections. One that cannot be opened is unavailable, and the others are served.
    ///
    /// # Errors
    /// When another service has the folder.
    fn open_all(&self, names: &[Name]) -> Result<(), ServeError> {
        for name in names {
            let entry = match self.open_one(name) {
                Ok(open) => Entry::Open(Arc::new(open)),
                Err(error @ ServeError::Store(StoreError::Locked { .. })) => return Err(error),
                Err(error) => {
                    tracing::error!(collection = %name, %error, "not opened: the others are served without it");
                    Entry::Unavailable(error.to_string())
                }
            };
            self.put(name, Some(entry));
        }
        Ok(())
    }

    fn open_one(&self, name: &Name) -> Result<Collection, ServeError> {
        Collection::open(name, &self.path(name), self.writes, &self.write_times, &self.scratch)
    }

    /// How long writes took, by collection.
    pub(crate) fn write_times(&self) -> Durations {
        self.write_times.clone()
    }

    fn path(&self, name: &Name) -> PathBuf {
        self.root.join(&name.0)
    }

    fn put(&self, name: &Name, entry: Option<Entry>) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        match entry {
            Some(entry) => entries.insert(name.clone(), entry),
            None => entries.remove(name),
        };
    }

    fn make(&self, name: &Name, settings: &Settings) -> Result<Collection, ServeError> {
        let unfinished = self.root.join(format!(".making-{name}"));
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).map_err(at(&unfinished, "remove"))?;
        }
        Store::create(&unfinished, settings)?.close()?;
        let path = self.path(name);
        fs::rename(&unfinished, &path).map_err(at(&path, "rename"))?;
        sync_folder(&self.root)?;
        self.open_one(name)
    }

    /// The collection with a name.
    pub(crate) fn get(&self, name: &str) -> Result<Arc<Collection>, Problem> {
        let none = || Problem::new(problem::Kind::NoCollection, "No collection has this name.");
        let name: Name = name.parse().map_err(|_| none())?;
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        match entries.get(&name) {
            Some(Entry::Open(collection)) => Ok(Arc::clone(collection)),
            Some(Entry::Unavailable(_)) => Err(Problem::new(
                problem::Kind::Unavailable,
                "The collection could not be opened when the service was started; the log and GET /v1/collections say why. Repair it or restore a snapshot, and start the service again.",
            )),
            Some(Entry::Changing) | None => Err(none()),
        }
    }

    /// All collections, by name.
    pub(crate) fn all(&self) -> Vec<Arc<Collection>> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let open = entries.values().filter_map(|entry| match entry {
            Entry::Open(collection) => Some(Arc::clone(collection)),
            Entry::Unavailable(_) | Entry::Changing => None,
        });
        open.collect()
    }

    /// The collections that could not be opened, by name, and why.
    pub(crate) fn unavailable(&self) -> Vec<(Name, String)> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let closed = entries.iter().filter_map(|(name, entry)| match entry {
            Entry::Unavailable(why) => Some((name.clone(), why.clone())),
            Entry::Open(_) | Entry::Changing => None,
        });
        closed.collect()
    }

    /// Makes a collection. Blocks.
    pub(crate) fn create(
        &self,
        name: &Name,
        settings: &Settings,
    ) -> Result<Arc<Collection>, Problem> {
        {
            let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
            if entries.contains_key(name) {
                let detail =
                    "There is a collection of this name, or there was one that is being deleted.";
                return Err(Problem::new(problem::Kind::Conflict, detail).at("/name"));
            }
            if entries.len() >= self.most {
                let detail = format!(
                    "There are {} collections, which are the most (max-collections).",
                    self.most
                );
                return Err(Problem::new(problem::Kind::Conflict, detail));
            }
            entries.insert(name.clone(), Entry::Changing);
        }
        match self.make(name, settings) {
            Ok(made) => {
                let made = Arc::new(made);
                self.put(name, Some(Entry::Open(Arc::clone(&made))));
                Ok(made)
            }
            Err(error) => {
                self.put(name, None);
                Err(problem_of(error))
            }
        }
    }

    /// Deletes a collection with all documents, after requests for it have ended. Blocks.
    pub(crate) fn delete(&self, name: &str, patience: Duration) -> Result<(), Problem> {
        let collection = self.get(name)?;
        let name = collection.name.clone();
        if name.0 == DEFAULT {
            let detail = "The collection 'default' cannot be deleted: it is the one that is meant where none is named.";
            return Err(Problem::new(problem::Kind::Conflict, detail));
        }
        self.put(&name, Some(Entry::Changing));
        let collection = match sole(collection, Instant::now() + patience) {
            Ok(collection) => collection,
            Err(shared) => {
                self.put(&name, Some(Entry::Open(shared)));
                let detail = "Requests for the collection are under way: try again later.";
                return Err(Problem::new(problem::Kind::Busy, detail));
            }
        };
        if let Err(error) = collection.close() {
            tracing::warn!(collection = %name, error = %error, "closed before it is deleted");
        }
        let (path, doomed) = (self.path(&name), self.root.join(format!(".deleting-{name}")));
        let moved = fs::rename(&path, &doomed)
            .map_err(at(&path, "rename"))
            .and_then(|()| sync_folder(&self.root))
            .and_then(|()| fs::remove_dir_all(&doomed).map_err(at(&doomed, "remove")));
        match moved {
            Ok(()) => {
                self.put(&name, None);
                self.write_times.remove(&of_collection(&name));
                Ok(())
            }
            Err(error) => {
                // Its name stays taken until the next start, which removes what is left.
                tracing::error!(collection = %name, error = %error, "not deleted in full");
                Err(problem_of(error))
            }
        }
    }

    /// Copies a collection as it is at this moment, and tells the copy's name. Blocks.
    pub(crate) fn snapshot(&self, collection: &Collection) -> Result<String, Problem> {
        let folder = self.snapshots(collection).map_err(problem_of)?;
        let now = jiff::Timestamp::now().strftime("%Y%m%dt%H%M%Sz").to_string();
        // Two of one second differ by their number.
        for number in 1..1000 {
            let name = format!("{now}-{number}");
            let path = folder.join(&name);
            match fs::create_dir(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(problem_of(at(&path, "make the folder")(error))),
            }
            if let Err(error) = collection.store.snapshot(&path) {
                // Half a copy would fill a disk that is full already.
                let _stays = fs::remove_dir_all(&path);
                return Err(error.into());
            }
            sync_folder(&folder).map_err(problem_of)?;
            return Ok(name);
        }
        Err(Problem::new(problem::Kind::Busy, "Too many snapshots in one second."))
    }

    /// The names of a collection's snapshots, ascending.
    pub(crate) fn list_snapshots(&self, collection: &Collection) -> Result<Vec<String>, Problem> {
        let folder = self.snapshots(collection).map_err(problem_of)?;
        let listed =
            fs::read_dir(&folder).map_err(at(&folder, "list the folder")).map_err(problem_of)?;
        let mut names: Vec<String> = listed
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.parse::<Name>().is_ok())
            .collect();
        names.sort();
        Ok(names)
    }

    /// Removes a snapshot. Blocks.
    pub(crate) fn delete_snapshot(
        &self,
        collection: &Collection,
        name: &str,
    ) -> Result<(), Problem> {
        let none = || {
            Problem::new(problem::Kind::NoSnapshot, "No snapshot of the collection has this name.")
        };
        let name: Name = name.parse().map_err(|_| none())?;
        let folder = self.snapshots(collection).map_err(problem_of)?;
        let path = folder.join(&name.0);
        // Of a link, this looks at the link.
        if !fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
            return Err(none());
        }
        fs::remove_dir_all(&path).map_err(at(&path, "remove")).map_err(problem_of)
    }

    /// The folder of a collection's snapshots, which is made if there is none.
    fn snapshots(&self, collection: &Collection) -> Result<PathBuf, ServeError> {
        let mut folder = self.root.clone();
        for part in [SNAPSHOTS, &collection.name.0] {
            folder.push(part);
            if let Err(error) = fs::create_dir(&folder)
                && error.kind() != ErrorKind::AlreadyExists
            {
                return Err(at(&folder, "make the folder")(error));
            }
            if !fs::symlink_metadata(&folder).is_ok_and(|found| found.is_dir()) {
                let problem = "not a folder of its own: put a folder here, no link and no file";
                return Err(ServeError::File { path: folder, problem: problem.to_owned() });
            }
        }
        Ok(folder)
    }

    /// Closes all stores, after requests have ended, until a moment. Blocks. One that is in use or takes longer is left as
    /// after a crash.
    pub(crate) fn close(&self, until: Instant) -> Result<(), ServeError> {
        let entries =
            std::mem::take(&mut *self.entries.write().unwrap_or_else(PoisonError::into_inner));
        let left = |name: &Name| tracing::warn!(collection = %name, "still in use: left as after a crash, which loses nothing");
        let mut closing = Vec::new();
        for (name, entry) in entries {
            let Entry::Open(collection) = entry else { continue };
            match sole(collection, until) {
                Ok(collection) => {
                    let (tell, told) = mpsc::channel();
                    let close = move || {
                        let _nobody_waits = tell.send(collection.close());
                    };
                    std::thread::Builder::new()
                        .name("nearsift-closing".to_owned())
                        .spawn(close)
                        .map_err(|source| ServeError::System { doing: "start a thread", source })?;
                    closing.push((name, told));
                }
                Err(_) => left(&name),
            }
        }
        let mut outcome = Ok(());
        for (name, told) in closing {
            match told.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::error!(collection = %name, error = %error, "not closed well");
                    outcome = Err(error.into());
                }
                Err(_) => left(&name),
            }
        }
        outcome
    }
}

/// What is shared, once nobody else has it.
fn sole<T>(mut shared: Arc<T>, until: Instant) -> Result<T, Arc<T>> {
    loop {
        shared = match Arc::try_unwrap(shared) {
            Ok(sole) => return Ok(sole),
            Err(shared) if Instant::now() >= until => return Err(shared),
            Err(shared) => shared,
        };
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn problem_of(error: ServeError) -> Problem {
    match error {
        ServeError::Store(error) => error.into(),
        ServeError::Recipe(error) => {
            Problem::new(problem::Kind::InvalidField, error.to_string()).at("/recipe")
        }
        ServeError::Io { ref source, .. }
            if matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) =>
        {
            Problem::new(problem::Kind::DiskFull, error.to_string())
        }
        other => {
            tracing::error!(error = %other, "collections");
            Problem::new(
                problem::Kind::Internal,
                "A file could not be worked on; the log says more.",
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_known_by_its_kind() {
        let check = |error: std::io::Error, expect: problem::Kind| {
            let said = format!("/data/a: cannot sync: {error}");
            let error = at(Path::new("/data/a"), "sync")(error);
            assert_eq!(error.to_string(), said);
            assert_eq!(problem_of(error).kind, expect, "{said}");
        };
        check(ErrorKind::StorageFull.into(), problem::Kind::DiskFull);
        check(ErrorKind::QuotaExceeded.into(), problem::Kind::DiskFull);
        check(ErrorKind::PermissionDenied.into(), problem::Kind::Internal);
        // Words say nothing.
        check(std::io::Error::other("no file of os error 28"), problem::Kind::Internal);
    }

    #[test]
    fn names() {
        for good in ["a", "0", "news-2026_x", &"a".repeat(64)] {
            assert!(good.parse::<Name>().is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "-a", "_a", "A", "a/b", "a.b", "ä", "a\0", " a", &"a".repeat(65)]
        {
            assert!(bad.parse::<Name>().is_err(), "{bad}");
        }
    }

    const BOUNDS: Bounds = Bounds { capacity: 10, patience: Duration::from_secs(60) };

    fn scratch() -> Scratch {
        Scratch::new(1 << 30, 2, Duration::from_secs(1))
    }

    #[test]
    fn leftovers_go_and_links_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("data");
        fs::create_dir_all(root.join(".making-news/x")).unwrap();
        fs::create_dir_all(root.join(".deleting-old")).unwrap();
        fs::create_dir_all(root.join("Not a collection")).unwrap();
        let collections = Collections::open(&root, 10, BOUNDS, scratch()).unwrap();
        assert!(!root.join(".making-news").exists() && !root.join(".deleting-old").exists());
        assert!(root.join("Not a collection").exists());
        assert_eq!(collections.all().len(), 1);
        assert!(
            matches!(Collections::open(&root, 10, BOUNDS, scratch()), Err(ServeError::Store(_))),
            "one service a folder"
        );
        collections.close(Instant::now() + Duration::from_secs(60)).unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(root.join(DEFAULT), root.join("news")).unwrap();
            let error = Collections::open(&root, 10, BOUNDS, scratch()).err().unwrap();
            assert!(error.to_string().contains("a link where a collection should be"), "{error}");
        }
    }
}
