//! What decides the result of a job.

use nearsift::cluster::MajorityLink;
use nearsift::dedup::{Clustering, Keep};
use nearsift::recipe::Recipe;
use nearsift_io::{Body, Codec, Conversion, Format, Inputs, Limits, Links, ReadOptions};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::{Marks, Output, against};
use crate::documents::text_of;
use crate::error::Error;
use crate::parts::Parts;
use crate::report::PageLanguage;
use nearsift::search::{Acceptance, Method};
use nearsift::sketch::Score;

/// What decides the result of a job. Threads, memory and where it runs do not: they are in
/// [`Context`](crate::Context).
///
/// ```
/// use nearsift_batch::dedup::Settings;
///
/// let mut settings = Settings::default();
/// settings.keep = "longest".parse()?;
/// settings.source_field = Some("site".to_owned());
/// assert_eq!(settings.fields(), ["site"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// How near duplicates are found.
    pub method: Method,
    /// Which member of a group stays.
    pub keep: Keep,
    /// How pairs become groups; `None` for the rule of the method.
    pub clustering: Option<Clustering>,
    /// With majority link: the most different texts that a document stands for, 2 or more.
    pub max_cluster: u32,
    /// Whether to look for the passages that kept documents share.
    pub partial: bool,
    /// The field that says where a document comes from; `None` for the top folders of the input.
    pub source_field: Option<String>,
    /// The format of what is kept; `None` for that of the input.
    pub output_format: Option<OutputFormat>,
    /// Whether to decide everything and write no document.
    pub dry_run: bool,
    /// What has to be absent from the results: outputs of earlier jobs, files or folders of documents, indexes.
    pub against: Vec<PathBuf>,
    /// Whether the tables are written as Parquet, too.
    pub parquet_tables: bool,
    /// Whether every document stays, with columns that say what was decided about it.
    pub mark: Option<Marks>,
    /// Whether of a reference that is a run only those documents count that it kept, also where others are at hand.
    pub against_kept_only: bool,
    /// Whether to leave a [part](crate::parts) of all documents beside the results, for later runs against them.
    pub keep_state: bool,
    /// The language of `report.html`; all other results are the same in every language.
    pub language: PageLanguage,
    /// The day that `report.html` names. A job reads no clock: the same input gives the same report.
    pub date: Option<String>,
    /// Whether to leave beside the results what [`regroup`](super::regroup) needs to decide anew: the part of
    /// [`keep_state`](Settings::keep_state) with the scores of all compared pairs from this one on, at most that of near duplicates.
    pub keep_pairs_from: Option<f64>,
}

impl Default for Settings {
    /// Sketches whose texts are compared exactly, with the default score; the first document of a group stays.
    fn default() -> Settings {
        Settings {
            method: Method::default(),
            keep: Keep::First,
            clustering: None,
            max_cluster: MajorityLink::default().max_cluster,
            partial: false,
            source_field: None,
            output_format: None,
            dry_run: false,
            against: Vec::new(),
            parquet_tables: false,
            mark: None,
            against_kept_only: false,
            keep_state: false,
            language: PageLanguage::default(),
            date: None,
            keep_pairs_from: None,
        }
    }
}

/// The format of what is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputFormat {
    /// JSON lines, JSON, CSV, TSV, Parquet or Arrow.
    pub format: Format,
    /// How it is compressed; `None` for what is usual for the format.
    pub codec: Option<Codec>,
}

/// That of the tables that are no JSON lines.
pub(super) fn table_format() -> OutputFormat {
    OutputFormat { format: Format::Parquet, codec: None }
}

impl OutputFormat {
    /// # Errors
    /// A compression that the format does not have.
    pub(super) fn conversion(self) -> Result<Conversion, Error> {
        let text = |body: Body<'_>, charset: Option<&str>| text_of(body, charset).text.into_owned();
        Ok(Conversion::new(self.format, self.codec, text)?)
    }
}

impl Settings {
    /// The fields that the inputs must be opened with: [`ReadOptions::fields`](nearsift_io::ReadOptions::fields).
    pub fn fields(&self) -> Vec<String> {
        let fields = self.keep.field().map(str::to_owned).into_iter();
        fields.chain(self.source_field.clone()).collect()
    }

    /// Refuses inputs that were opened without a field that is needed.
    pub(super) fn check_inputs(&self, inputs: &Inputs) -> Result<(), Error> {
        let missing =
            self.fields().into_iter().find(|field| !inputs.options().fields.contains(field));
        let Some(field) = missing else { return Ok(()) };
        let problem = format!(": the inputs must be opened with the field {field:?}");
        Err(Error::Setting { setting: "fields", problem })
    }

    /// Refuses settings that do not fit with each other, before any input is opened.
    ///
    /// # Errors
    /// [`Error::Setting`], with what to leave out.
    pub fn check(&self) -> Result<(), Error> {
        let setting =
            |setting, problem: &str| Err(Error::Setting { setting, problem: problem.to_owned() });
        if let Some(format) = self.output_format {
            format.conversion()?;
        }
        if self.parquet_tables {
            table_format().conversion()?;
        }
        if let Some(from) = self.keep_pairs_from {
            self.check_pairs_from(from)?;
        }
        let of_sketches = match (self.against.is_empty(), self.keep_state) {
            (false, _) => "against",
            (true, true) => "keep-state",
            (true, false) => return Ok(()),
        };
        if matches!(self.method, Method::Simhash { .. }) {
            return setting(
                of_sketches,
                " is of `method` sketch, and SimHash was asked by `method`, `max-distance`, `bits` or `recipe`: leave one of them out",
            );
        }
        Ok(())
    }

    /// The setting by which a part is left beside the results, if one is.
    pub(super) fn part_setting(&self) -> Option<&'static str> {
        match self.keep_pairs_from {
            Some(_) => Some("keep-pairs-from"),
            None => self.keep_state.then_some("keep-state"),
        }
    }

    fn check_pairs_from(&self, from: f64) -> Result<(), Error> {
        let problem = match &self.method {
            Method::Sketch { acceptance: Acceptance::Verified(min_score), .. }
                if (0.0..=*min_score).contains(&from) =>
            {
                return Ok(());
            }
            Method::Sketch { acceptance: Acceptance::Verified(min_score), .. } => format!(
                " {from} is above `min-score` {min_score}, from which on pairs are kept anyway: give a score from 0 to that"
            ),
            _ => " keeps the scores of compared texts, and here none are compared: leave out `method` simhash, `max-distance`, and `verify` off".to_owned(),
        };
        Err(Error::Setting { setting: "keep-pairs-from", problem })
    }

    /// Refuses what a job over parts cannot have: it has no files, and a few settings decided what is in the parts.
    ///
    /// # Errors
    /// [`Error::Setting`] of the first.
    pub(super) fn check_parts(&self, parts: &Parts, output: &Output) -> Result<(), Error> {
        let is_verified =
            matches!(self.method, Method::Sketch { acceptance: Acceptance::Verified(_), .. });
        if is_verified && !parts.have_texts() {
            let problem = " exact compares texts, and these parts have none: make them again by `sketch` with texts, or let sketches decide by `verify` off";
            return Err(Error::Setting { setting: "verify", problem: problem.to_owned() });
        }
        let of_files = [
            ("partial", self.partial),
            ("output-format", self.output_format.is_some()),
            ("output-file", output.file.is_some()),
            ("dry-run", self.dry_run),
            ("against", !self.against.is_empty()),
            ("mark", self.mark.is_some()),
            ("keep-state", self.keep_state),
            ("keep-pairs-from", self.keep_pairs_from.is_some()),
        ];
        let Some((setting, _)) = of_files.into_iter().find(|(_, is_set)| *is_set) else {
            return Ok(());
        };
        let problem =
            " needs the files of the documents, and a join of parts has none: leave it out";
        Err(Error::Setting { setting, problem: problem.to_owned() })
    }

    /// The same with the format and the compression that the name of the one file for all documents tells, where there is one and they were
    /// not given.
    ///
    /// # Errors
    /// A name that tells no format, where none was given; a dry run, which writes no documents.
    pub(super) fn of_file(&self, file: Option<&Path>) -> Result<Cow<'_, Settings>, Error> {
        let Some(file) = file else { return Ok(Cow::Borrowed(self)) };
        let setting = |problem: &str| {
            Err(Error::Setting { setting: "output-file", problem: problem.to_owned() })
        };
        if self.dry_run {
            return setting(
                " is of documents, and with `dry-run` none are written: leave out one of them",
            );
        }
        let named = Conversion::of_name(file);
        let format = match self.output_format {
            None => {
                let (format, codec) = named?;
                OutputFormat { format, codec }
            }
            Some(OutputFormat { format, codec: None }) => {
                let codec = named.ok().and_then(|(named, codec)| codec.filter(|_| named == format));
                OutputFormat { format, codec }
            }
            Some(given) => given,
        };
        Ok(Cow::Owned(Settings { output_format: Some(format), ..self.clone() }))
    }

    /// Refuses settings of what is written into a folder, where there is none.
    ///
    /// # Errors
    /// [`Error::Setting`] of the first.
    pub(super) fn check_stream(&self) -> Result<(), Error> {
        let in_folder = [
            ("dry-run", self.dry_run),
            ("keep-state", self.keep_state),
            ("keep-pairs-from", self.keep_pairs_from.is_some()),
            ("partial", self.partial),
            ("tables", self.parquet_tables),
        ];
        let Some((setting, _)) = in_folder.into_iter().find(|(_, is_set)| *is_set) else {
            return Ok(());
        };
        let problem = " is of the folder for results, and a stream of documents has none: name a folder by `output`, or leave it out";
        Err(Error::Setting { setting, problem: problem.to_owned() })
    }

    /// The settings that are not the default, with their values as a command line has them. `reading` is how files are read, where
    /// there are some.
    pub(super) fn changed(&self, reading: Option<&ReadOptions>) -> Vec<(&'static str, String)> {
        // All by name, so that a new setting is not left out here.
        let Settings {
            method,
            keep,
            clustering,
            max_cluster,
            partial,
            source_field,
            output_format,
            dry_run,
            against,
            parquet_tables,
            mark,
            against_kept_only,
            keep_state,
            // How the report itself is written.
            language: _,
            date: _,
            // What it leaves is beside the results, which are the same without it, the report too.
            keep_pairs_from: _,
        } = self;
        let default = Settings::default();
        let mut changed = changed_method(method);
        let mut add =
            |name, value: Option<String>| changed.extend(value.map(|value| (name, value)));
        let flag = |is_set: bool| is_set.then(String::new);
        let clustering = clustering.filter(|own| *own != method.clustering());
        add("cluster", clustering.map(|own| name_of(own).to_owned()));
        add("max-cluster", (*max_cluster != default.max_cluster).then(|| max_cluster.to_string()));
        let keep = keep.to_string();
        add("keep", (keep != default.keep.to_string()).then_some(keep));
        add("source-field", source_field.clone());
        against.iter().for_each(|path| add("against", Some(path.display().to_string())));
        add("against-kept-only", flag(*against_kept_only));
        add("mark", flag(mark.is_some()));
        add("mark-names", mark.as_ref().and_then(Marks::renamed));
        add("partial", flag(*partial));
        add("keep-state", flag(*keep_state));
        add("dry-run", flag(*dry_run));
        add("output-format", output_format.map(|own| own.format.to_string()));
        let codec = output_format.and_then(|own| own.codec);
        add("output-compression", codec.map(|codec| codec.name().to_owned()));
        add("tables", parquet_tables.then(|| "parquet".to_owned()));
        changed.extend(reading.map(changed_reading).into_iter().flatten());
        changed
    }

    /// What decides the result, by name, in words that never change with the program's types: a job may be resumed by
    /// one of the same identity. `reading` is how its documents are read.
    ///
    /// # Errors
    /// A reference that cannot be read.
    pub(super) fn identity(&self, reading: String) -> Result<Vec<(String, String)>, Error> {
        let (recipe, near) = match &self.method {
            Method::Simhash { recipe, max_distance } => {
                (recipe, format!("distance {max_distance}"))
            }
            Method::Sketch { recipe, acceptance } => (recipe, acceptance.to_string()),
        };
        let clustering = name_of(self.clustering.unwrap_or(self.method.clustering()));
        let none = || "none".to_owned();
        let output_format =
            self.output_format.map_or_else(none, |OutputFormat { format, codec }| {
                let codec = codec.map_or("as usual", Codec::name);
                format!("{format} {codec}")
            });
        let against: Vec<String> =
            self.against.iter().map(|path| against::identity(path)).collect::<Result<_, _>>()?;
        let settings = [
            ("recipe", written(recipe)),
            ("near", near),
            ("keep", self.keep.to_string()),
            ("cluster", clustering.to_owned()),
            ("max-cluster", self.max_cluster.to_string()),
            ("partial", self.partial.to_string()),
            ("dry-run", self.dry_run.to_string()),
            ("source-field", self.source_field.clone().unwrap_or_else(none)),
            ("output-format", output_format),
            ("reading", reading),
            ("against", against.join(", ")),
            ("against-kept-only", self.against_kept_only.to_string()),
            ("keep-state", self.keep_state.to_string()),
            ("tables", if self.parquet_tables { "parquet" } else { "jsonl" }.to_owned()),
            ("mark", self.mark.as_ref().map_or_else(none, |marks| marks.names().join(", "))),
            ("keep-pairs-from", self.keep_pairs_from.map_or_else(none, |from| from.to_string())),
        ];
        Ok(settings.map(|(name, value)| (name.to_owned(), value)).into())
    }
}

/// The settings of a method that are not the default.
fn changed_method(method: &Method) -> Vec<(&'static str, String)> {
    let mut changed = Vec::new();
    let usual = match method {
        Method::Simhash { max_distance, .. } => {
            changed.push(("method", "simhash".to_owned()));
            changed.push(("max-distance", max_distance.to_string()));
            Recipe::parse("simhash64").ok().map(|usual| usual.digest())
        }
        Method::Sketch { acceptance, .. } => {
            let usual = match acceptance {
                Acceptance::Verified(_) => Acceptance::default(),
                Acceptance::Scored(_) => {
                    changed.push(("verify", "off".to_owned()));
                    Acceptance::Scored(Score::at_least(Acceptance::SKETCHES_ALONE))
                }
            };
            if *acceptance != usual {
                changed.push(("min-score", acceptance.min_score().to_string()));
            }
            Some(Method::default().recipe().digest())
        }
    };
    let recipe = method.recipe();
    if Some(recipe.digest()) != usual {
        changed.push(("recipe", recipe.to_string()));
    }
    changed
}

/// The settings of how files are read that are not the default.
fn changed_reading(options: &ReadOptions) -> Vec<(&'static str, String)> {
    let ReadOptions {
        format,
        text_field,
        id_field,
        // Those that `keep` and `source-field` need.
        fields: _,
        encoding,
        delimiter,
        links,
        limits: Limits { record_bytes, file_bytes, ratio, zstd_window_log },
        // Where and how, and not what is read.
        batch_bytes: _,
        spool_folder: _,
    } = options;
    let usual = ReadOptions::default();
    let differs = |differs: bool, value: &dyn ToString| differs.then(|| value.to_string());
    let text_field = text_field.clone().filter(|field| Some(field) != usual.text_field.as_ref());
    let delimiter = delimiter.map(|byte| match byte {
        b'\t' => "tab".to_owned(),
        byte => char::from(byte).to_string(),
    });
    let all = [
        ("format", format.map(|format| format.to_string())),
        ("text-field", text_field),
        ("id-field", differs(*id_field != usual.id_field, id_field)),
        ("delimiter", delimiter),
        ("charset", encoding.clone()),
        ("follow-links", (*links != usual.links).then(String::new)),
        ("max-record-bytes", differs(*record_bytes != usual.limits.record_bytes, record_bytes)),
        ("max-file-bytes", differs(*file_bytes != usual.limits.file_bytes, file_bytes)),
        ("max-ratio", differs(*ratio != usual.limits.ratio, ratio)),
        (
            "max-window-log",
            differs(*zstd_window_log != usual.limits.zstd_window_log, zstd_window_log),
        ),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The name of a rule.
pub(crate) fn name_of(clustering: Clustering) -> &'static str {
    match clustering {
        Clustering::Majority => "majority",
        Clustering::Components => "components",
        Clustering::Star => "star",
    }
}

/// The rule of a name.
pub(crate) fn clustering_of(name: &str) -> Option<Clustering> {
    let all = [Clustering::Majority, Clustering::Components, Clustering::Star];
    all.into_iter().find(|&clustering| name_of(clustering) == name)
}

/// A recipe with all that decides what it makes.
fn written(recipe: &Recipe) -> String {
    format!("{recipe} (digest {:016x})", recipe.digest())
}

/// How the input is read.
pub(crate) fn reading(options: &ReadOptions) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
    let format = options.format.map_or_else(|| "by name".to_owned(), |format| format.to_string());
    let delimiter = options.delimiter.map_or("found".to_owned(), |byte| byte.to_string());
    let links = match options.links {
        Links::Followed => "followed",
        _ => "inside",
    };
    let limits = &options.limits;
    format!(
        "format {format}, text {}, id {}, charset {}, delimiter {delimiter}, links {links}, record bytes {}, file bytes {}, ratio {}, window {}",
        text(&options.text_field),
        options.id_field,
        text(&options.encoding),
        limits.record_bytes,
        limits.file_bytes,
        limits.ratio,
        limits.zstd_window_log,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_changed_is_listed() {
        let check = |change: fn(&mut Settings), expect: &str| {
            let mut settings = Settings::default();
            change(&mut settings);
            let changed = settings.changed(Some(&ReadOptions::default()));
            let changed: Vec<_> =
                changed.iter().map(|(name, value)| format!("{name} {value}")).collect();
            assert_eq!(changed.join(", "), expect);
        };
        let by_score = |settings: &mut Settings, acceptance| {
            let recipe = settings.method.recipe().clone();
            settings.method = Method::Sketch { recipe, acceptance };
        };
        check(|_| {}, "");
        check(|settings| settings.date = Some("2026-11-28".to_owned()), "");
        check(
            |settings| {
                settings.keep = "longest".parse().expect("a policy");
                settings.max_cluster = 100;
                settings.clustering = Some(Clustering::Majority);
            },
            "max-cluster 100, keep longest",
        );
        let mut settings = Settings::default();
        by_score(&mut settings, Acceptance::Verified(0.7));
        assert_eq!(settings.changed(None), [("min-score", "0.7".to_owned())]);
        by_score(&mut settings, Acceptance::Scored(Score::at_least(Acceptance::SKETCHES_ALONE)));
        assert_eq!(settings.changed(None), [("verify", "off".to_owned())]);
        check(
            |settings| {
                let recipe = Recipe::parse("simhash64").expect("a recipe");
                settings.method = Method::Simhash { recipe, max_distance: 3 };
            },
            "method simhash, max-distance 3",
        );
    }

    /// What `identity` calls a setting that has other names on a command line.
    fn names_of(identity: &str) -> Vec<&str> {
        match identity {
            "near" => vec!["min-score"],
            "reading" => vec![
                "format",
                "text-field",
                "id-field",
                "delimiter",
                "charset",
                "follow-links",
                "max-record-bytes",
                "max-file-bytes",
                "max-ratio",
                "max-window-log",
            ],
            "output-format" => vec!["output-format", "output-compression"],
            "mark" => vec!["mark", "mark-names"],
            // No result depends on it.
            "keep-pairs-from" => Vec::new(),
            own => vec![own],
        }
    }

    #[test]
    fn whatever_decides_the_result_is_listed_when_it_was_changed() {
        let reference = tempfile::tempdir().expect("a folder");
        let mut mark = Marks::default();
        let column = mark.names()[0].clone();
        mark.rename(&column, "own").expect("a column");
        let recipe = Recipe::parse("simhash64").expect("a recipe");
        let settings = Settings {
            method: Method::Sketch { recipe, acceptance: Acceptance::Verified(0.7) },
            keep: Keep::Longest,
            clustering: Some(Clustering::Star),
            max_cluster: 100,
            partial: true,
            source_field: Some("site".to_owned()),
            output_format: Some(OutputFormat { format: Format::Csv, codec: Some(Codec::Zstd) }),
            dry_run: true,
            against: vec![reference.path().to_owned()],
            parquet_tables: true,
            mark: Some(mark),
            against_kept_only: true,
            keep_state: true,
            language: PageLanguage::Chinese,
            date: Some("2026-11-28".to_owned()),
            keep_pairs_from: Some(0.5),
        };
        let limits =
            Limits { record_bytes: 1000, file_bytes: 2000, ratio: 30, zstd_window_log: 20 };
        let options = ReadOptions {
            format: Some(Format::Csv),
            text_field: Some("body".to_owned()),
            id_field: "key".to_owned(),
            encoding: Some("gbk".to_owned()),
            delimiter: Some(b'\t'),
            links: Links::Followed,
            limits,
            ..ReadOptions::default()
        };
        let changed = settings.changed(Some(&options));
        let listed: Vec<&str> = changed.iter().map(|(name, _)| *name).collect();
        let identity = settings.identity(reading(&options)).expect("an identity");
        let expect: std::collections::BTreeSet<&str> =
            identity.iter().flat_map(|(name, _)| names_of(name)).collect();
        assert_eq!(listed.iter().copied().collect::<std::collections::BTreeSet<_>>(), expect);
        // As a command line has them.
        let check = |name: &str, value: &str| {
            assert!(changed.iter().any(|(own, is)| (*own, &**is) == (name, value)), "{changed:?}");
        };
        check("against-kept-only", "");
        check("output-compression", "zst");
        check("mark-names", &format!("{column}=own"));
        check("delimiter", "tab");
        check("max-ratio", "30");
        // Each is a setting that messages can name.
        for name in listed {
            assert_eq!(
                crate::spell(&format!("`{name}`"), |own| format!("--{own}")),
                format!("--{name}")
            );
        }
    }

    #[test]
    fn what_does_not_fit_is_said_in_the_words_of_a_command_line() {
        let check = |change: fn(&mut Settings), expect: &str| {
            let mut settings = Settings::default();
            change(&mut settings);
            let error = settings.check().expect_err("it does not fit").to_string();
            assert_eq!(crate::spell(&error, |setting| format!("--{setting}")), expect);
        };
        let by_simhash = |settings: &mut Settings| {
            let recipe = Recipe::parse("simhash64").expect("a recipe");
            settings.method = Method::Simhash { recipe, max_distance: 3 };
            settings.against = vec!["earlier".into()];
        };
        check(
            by_simhash,
            "--against is of --method sketch, and SimHash was asked by --method, --max-distance, --bits or --recipe: leave one of them out",
        );
    }
}
