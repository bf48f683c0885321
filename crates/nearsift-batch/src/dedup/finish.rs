//! The end of a job: what was decided, as values or in the folder of the results.

use nearsift::dedup::Found;
use nearsift_io::Inputs;

use super::against::Against;
use super::decisions::Decisions;
use super::examples::ShownTexts;
use super::groups::{LargestGroup, largest_groups};
use super::kept_files::KeptFiles;
use super::lookup::{self, TableBlocks};
use super::marks::Marking;
use super::origin::Origin;
use super::pairs::FoundPairs;
use super::summary::{Place, Summary};
use super::{Job, Judgement, One, Outcome};
use crate::corpus::{Ids, Lacking, Records, SourceColumn};
use crate::error::Error;
use crate::folder::Folder;
use crate::partial::{Source, each_passage};
use crate::report::{Example, Head, visible_line};

/// The documents, and what became of them.
pub(super) struct Decided<'a> {
    pub ids: Ids,
    pub records: Records,
    /// Files without documents.
    pub lacking: Lacking,
    /// Where each document comes from, when a field says so.
    pub sources: Option<SourceColumn>,
    pub found: &'a Found<'a>,
    pub against: &'a Against,
}

impl Decided<'_> {
    /// By the label of a group of two or more: its number, from 1 in the order of the first documents, and its size; 0 and 0
    /// of all others.
    pub fn numbers(&self) -> Vec<(u32, u32)> {
        let clusters = self.found.clusters();
        let mut numbers = vec![(0, 0); clusters.documents()];
        for (number, group) in (1..).zip(clusters.members().duplicates()) {
            numbers[group.label as usize] = (number, group.members.len() as u32);
        }
        numbers
    }

    /// Whether a document stays.
    pub fn is_kept(&self, document: u32) -> bool {
        self.found.clusters().is_kept(document) && !self.against.has(document)
    }
}

impl Job<'_> {
    /// Ends the job. `judged` is what decided about two documents, where they were compared with each other.
    pub(super) fn finish(
        &self,
        decided: Decided<'_>,
        pairs: FoundPairs,
        summary: Summary,
        judged: impl Fn(u32, u32) -> Option<Judgement> + Sync,
    ) -> Result<Outcome, Error> {
        let Some(folder) = self.folder else {
            let decisions = Decisions::of(decided, pairs.values, summary, judged)?;
            return Ok(Outcome::Found(Box::new(decisions)));
        };
        let summary = self.write(folder, &decided, pairs, summary, judged)?;
        Ok(Outcome::Written(Box::new(summary)))
    }

    /// Writes the groups, the removed and the kept documents, and the report.
    fn write(
        &self,
        folder: &Folder,
        decided: &Decided<'_>,
        pairs: FoundPairs,
        mut summary: Summary,
        judged: impl Fn(u32, u32) -> Option<Judgement> + Sync,
    ) -> Result<Summary, Error> {
        let Decided { ids, records, .. } = decided;
        self.context.check()?;
        summary.set_capped(decided.found.capped());
        summary.dry_run = self.settings.dry_run;
        summary.marked = self.settings.mark.is_some() && !self.settings.dry_run;
        summary.place = self.place();
        summary.write_inputs(self.origin, folder)?;
        self.write_partial(folder, decided, &mut summary)?;
        let FoundPairs { blocks, sample, .. } = pairs;
        let largest = largest_groups(decided.found);
        let in_groups = largest.iter().flat_map(LargestGroup::documents);
        let texts = sample.texts(self.origin, records, in_groups);
        let documents = summary.documents();
        let numbers = decided.numbers();
        let (tables, kept) = rayon::join(
            || {
                let tables =
                    self.write_tables(folder, decided, &numbers, &largest, &mut summary, &judged)?;
                let blocks = TableBlocks { pairs: blocks, ..tables };
                self.write_as_parquet(folder)?;
                lookup::write(folder, decided, &numbers, &blocks)
            },
            || {
                let marking = Marking::new(decided, &numbers, &judged);
                self.write_documents(folder, decided, documents, &texts, &marking)
            },
        );
        tables?;
        summary.set_kept_files(self.context, kept?, &folder.path("unreadable.jsonl"))?;
        self.context.check()?;
        texts.read_rest(self.context, self.origin, records)?;
        let examples = sample.examples(&texts, ids, records)?;
        self.write_report(folder, &summary, &texts, examples)?;
        Ok(summary)
    }

    /// Where the documents are written.
    fn place(&self) -> Place {
        match (&self.one, self.origin) {
            (None, Origin::Parts(_)) => Place::Parts,
            (None, Origin::Files(_)) => Place::Files,
            (Some(One::File(_)), _) => Place::File,
            (Some(One::Stream(_)), _) => Place::Stream,
        }
    }

    /// Writes the kept or marked documents of files, or the decisions about the documents of parts.
    fn write_documents(
        &self,
        folder: &Folder,
        decided: &Decided<'_>,
        documents: u64,
        texts: &ShownTexts,
        marking: &Marking<'_, impl Fn(u32, u32) -> Option<Judgement> + Sync>,
    ) -> Result<KeptFiles, Error> {
        match (self.origin, &self.settings.mark) {
            (Origin::Parts(parts), _) => {
                self.write_decisions(folder, parts, marking)?;
                Ok(KeptFiles::default())
            }
            (Origin::Files(_), _) if self.settings.dry_run => Ok(KeptFiles::default()),
            (Origin::Files(inputs), None) => {
                self.write_kept(folder, inputs, decided, documents, texts, None)
            }
            (Origin::Files(inputs), Some(marks)) => {
                if self.settings.output_format.is_none() {
                    self.write_marks(folder, marks, marking)?;
                }
                let cells = |document| marking.cells(document);
                let marked = Some((marks, &cells as _));
                self.write_kept(folder, inputs, decided, documents, texts, marked)
            }
        }
    }

    /// The passages that kept documents share, where they are wanted: what goes has its
    /// representative.
    fn write_partial(
        &self,
        folder: &Folder,
        decided: &Decided<'_>,
        summary: &mut Summary,
    ) -> Result<(), Error> {
        if !self.settings.partial {
            return Ok(());
        }
        let &Job { context, .. } = self;
        let inputs = self.files();
        let Decided { ids, records, .. } = decided;
        let aside = folder.path("");
        let mut table = folder.table("partial.jsonl")?;
        let source = Source { context, inputs, ids, records, folder: &aside };
        let is_kept = |document| decided.is_kept(document);
        summary.partial = Some(each_passage(&source, is_kept, |line| table.line(&line))?);
        table.finish()
    }

    /// What the report begins with.
    fn head(&self, folder: &Folder, summary: &Summary) -> Head {
        /// Files of the input that are named.
        const INPUTS: usize = 4;
        let &Job { origin, settings, context, .. } = self;
        let changed = settings.changed(origin.files().map(Inputs::options));
        let spelled = |(name, value): (&str, String)| {
            [context.spell(&format!("`{name}`")), visible_line(&value)]
        };
        Head {
            name: match summary.place {
                Place::Stream => None,
                _ => folder.name().map(|name| visible_line(&name)),
            },
            date: settings.date.as_deref().map(visible_line),
            inputs: origin.named().take(INPUTS).map(|file| visible_line(&file.name)).collect(),
            more_inputs: origin.count().saturating_sub(INPUTS) as u64,
            settings: changed.into_iter().map(spelled).collect(),
            ..summary.head()
        }
    }

    fn write_report(
        &self,
        folder: &Folder,
        summary: &Summary,
        texts: &ShownTexts,
        examples: Vec<Example>,
    ) -> Result<(), Error> {
        let head = self.head(folder, summary);
        let report = summary.report(self.context, head, texts, examples);
        let page = report.page(self.settings.language).map_err(Error::invalid)?;
        folder.text("report.html", &page)?;
        let json = serde_json::to_string_pretty(&report).map_err(Error::invalid)?;
        folder.text("report.json", &(json + "\n"))?;
        let json = serde_json::to_string_pretty(summary).map_err(Error::invalid)?;
        folder.text("summary.json", &(json + "\n"))
    }
}
