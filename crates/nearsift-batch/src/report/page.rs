//! `report.html`: one page, no script, no network, every text escaped by the template engine.

use askama::Template;

use super::text::shortened;
use super::words::{Words, counted, fill};
use super::{
    Bin, Example, Gone, Group, Head, Measure, Measured, Nearness, PageLanguage, Passage, Place,
    Relation, Report, Setting, Sizes, SourceLine, SourceTable, grouped,
};

/// The most characters of a path or an id that are shown; the whole is its title.
pub(super) const NAME_CHARS: usize = 60;
/// The same in a table of sources.
const SOURCE_CHARS: usize = 40;

/// What the template shows: the report with its charts drawn.
#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    words: &'static Words,
    head: HeadShown,
    headline: String,
    lead: String,
    parts: Parts,
    figures: Vec<Figure>,
    warnings: Vec<&'a str>,
    charts: [Chart; 2],
    sources: Option<Sources>,
    groups: Vec<GroupShown<'a>>,
    more_groups: String,
    examples: Vec<ExamplesShown<'a>>,
    settings: Vec<[&'a str; 2]>,
    terms: Vec<[&'static str; 2]>,
}

/// What was asked, of which documents.
struct HeadShown {
    title: String,
    name: String,
    date: String,
    inputs: Vec<Name>,
    more_inputs: String,
    asked: String,
    settings: Vec<String>,
}

/// A path or an id: what is shown, and the whole.
pub(super) struct Name {
    pub short: String,
    pub whole: String,
}

impl Name {
    pub fn of(whole: &str, most: usize) -> Name {
        Name { short: shortened(whole, most), whole: whole.to_owned() }
    }
}

pub(super) struct Figure {
    pub name: &'static str,
    pub value: String,
    pub note: String,
}

/// A bar in parts, in thousandths of its width.
struct Parts {
    kept: u64,
    exact: u64,
    near: u64,
}

impl Parts {
    fn of(kept: u64, exact: u64, near: u64) -> Self {
        let all = (kept + exact + near).max(1);
        // What is there is never invisible.
        let part = |n: u64| match n {
            0 => 0,
            n => ((u128::from(n) * 1000 / u128::from(all)) as u64).max(3),
        };
        let (exact, near) = (part(exact), part(near));
        Self { kept: 1000_u64.saturating_sub(exact + near), exact, near }
    }

    fn exact_at(&self) -> u64 {
        self.kept
    }

    fn near_at(&self) -> u64 {
        self.kept + self.exact
    }
}

/// A chart of columns.
struct Chart {
    heading: &'static str,
    about: String,
    columns: Vec<Column>,
    /// What the colours and the line mean, where there are several.
    legend: Option<Legend>,
}

struct Legend {
    threshold: String,
    has_refused: bool,
}

struct Column {
    label: String,
    title: String,
    count: String,
    bars: Vec<Bar>,
    /// Where the threshold is in it, in thousandths of its width.
    threshold: Option<u64>,
}

/// A bar of a column: its place in thousandths of the width of the column, its height from 0 to 100.
struct Bar {
    class: &'static str,
    from: u64,
    width: u64,
    height: u64,
}

impl Bar {
    fn top(&self) -> u64 {
        100 - self.height
    }

    /// As wide as its column.
    fn whole(class: &'static str, height: u64) -> Bar {
        Bar { class, from: 0, width: 1000, height }
    }
}

struct Sources {
    about: String,
    rows: Vec<SourceRow>,
    cells: Vec<MatrixRow>,
}

struct SourceRow {
    number: usize,
    name: Name,
    documents: String,
    parts: Parts,
    share: String,
    of: String,
    title: String,
}

struct MatrixRow {
    number: usize,
    name: Name,
    cells: Vec<Cell>,
}

struct Cell {
    count: String,
    title: String,
    /// From 0, nothing, to 6, the most.
    heat: u32,
}

struct GroupShown<'a> {
    size: String,
    documents: String,
    number: String,
    snippet: &'a str,
    members: Vec<MemberShown<'a>>,
    more: String,
}

struct MemberShown<'a> {
    id: Name,
    snippet: &'a str,
    source: String,
    relation: String,
    stays: bool,
}

/// Examples of one place, seen from the threshold.
struct ExamplesShown<'a> {
    heading: &'static str,
    about: &'static str,
    /// What is beside the score of each.
    label: &'static str,
    examples: Vec<ExampleShown<'a>>,
}

impl ExamplesShown<'_> {
    /// Whether a passage of one stands elsewhere in the other document.
    fn has_moved(&self) -> bool {
        self.examples.iter().any(|example| has_moved(&example.left))
    }
}

/// Whether a passage stands elsewhere in the other text.
pub(super) fn has_moved(passages: &[PassageShown<'_>]) -> bool {
    passages.iter().any(|passage| passage.moved)
}

pub(super) struct ExampleShown<'a> {
    pub nearness: String,
    pub measures: String,
    pub a: Name,
    pub b: Name,
    pub left: Vec<PassageShown<'a>>,
    pub right: Vec<PassageShown<'a>>,
}

pub(super) struct PassageShown<'a> {
    pub text: &'a str,
    pub changed: bool,
    /// Whether the other text has it elsewhere.
    pub moved: bool,
    /// The number of a moved passage, where it begins.
    pub number: String,
    /// How much is left out behind it.
    pub left_out: String,
}

impl Report {
    /// The page.
    ///
    /// # Errors
    /// What the template engine says; with a string as output there is nothing that it could say.
    pub fn page(&self, language: PageLanguage) -> Result<String, askama::Error> {
        let words = language.words();
        let removed = self.removed_exact + self.removed_near;
        let documents = self.documents;
        let page = Page {
            words,
            head: self.head_shown(words),
            headline: match (documents, removed) {
                (0, _) => words.no_documents.to_owned(),
                (_, 0) => words.no_duplicates.to_owned(),
                _ => fill(words.duplicates, &[&share(removed, documents, words)]),
            },
            lead: fill(
                words.lead,
                &[
                    &counted(words.documents, documents),
                    &counted(words.were_kept, self.kept),
                    &grouped(removed),
                ],
            ),
            parts: Parts::of(self.kept, self.removed_exact, self.removed_near),
            figures: self.figures(words),
            warnings: self.warnings.iter().map(|[en, zh]| language.pick([&**en, &**zh])).collect(),
            charts: [self.nearness.chart(words), self.sizes_chart(words)],
            sources: self.sources.as_ref().map(|table| sources(table, words)),
            groups: self.largest.iter().map(|group| group.shown(words)).collect(),
            more_groups: self.more_groups(words),
            examples: self.examples_shown(words),
            settings: self.settings.iter().map(|setting| setting.shown(language)).collect(),
            terms: self.terms(words),
        };
        page.render()
    }

    fn head_shown(&self, words: &'static Words) -> HeadShown {
        let Head { name, date, inputs, more_inputs, settings, is_verified, bits } = &self.head;
        let limit = rounded(self.nearness.limit);
        let asked = match self.nearness.measure {
            Measure::Distance => fill(words.by_distances, &[&limit, &bits.to_string()]),
            Measure::Score => format!(
                "{}{}{}",
                fill(words.by_scores, &[&limit]),
                words.semicolon,
                if *is_verified { words.texts_decide } else { words.sketches_decide }
            ),
        };
        HeadShown {
            title: match name {
                Some(name) => format!("{} · {}", shortened(name, SOURCE_CHARS), words.report),
                None => words.report.to_owned(),
            },
            name: name.clone().unwrap_or_default(),
            date: date.clone().unwrap_or_default(),
            inputs: inputs.iter().map(|name| Name::of(name, NAME_CHARS)).collect(),
            more_inputs: match more_inputs {
                0 => String::new(),
                n => counted(words.and_more_files, *n),
            },
            asked,
            settings: settings.iter().map(|[name, value]| format!("{name} {value}")).collect(),
        }
    }

    fn figures(&self, words: &'static Words) -> Vec<Figure> {
        let of_all = |n: u64| match self.documents {
            0 => String::new(),
            all => share(n, all, words),
        };
        let figure = |name, value: u64, note| Figure { name, value: grouped(value), note };
        let largest = fill(words.largest, &[&grouped(self.largest_group)]);
        let mut figures = vec![
            figure(words.figure_documents, self.documents, bytes(self.text_bytes, words)),
            figure(words.figure_kept, self.kept, of_all(self.kept)),
            figure(words.figure_same, self.removed_exact, of_all(self.removed_exact)),
            figure(words.figure_near, self.removed_near, of_all(self.removed_near)),
            figure(words.figure_groups, self.groups, largest),
            figure(words.figure_pairs, self.pairs, String::new()),
        ];
        if self.unreadable > 0 {
            let note = words.see_unreadable.to_owned();
            figures.push(figure(words.figure_unreadable, self.unreadable, note));
        }
        figures
    }

    fn sizes_chart(&self, words: &'static Words) -> Chart {
        let most = self.group_sizes.iter().map(|sizes| sizes.groups).max().unwrap_or(0);
        let column = |sizes: &Sizes| Column {
            label: match sizes.from == sizes.to {
                true => compact(sizes.from),
                false => format!("≤{}", compact(sizes.to)),
            },
            title: fill(
                words.sizes_title,
                &[
                    &counted(words.groups, sizes.groups),
                    &match sizes.from == sizes.to {
                        true => counted(words.documents, sizes.from),
                        false => fill(words.range, &[&grouped(sizes.from), &grouped(sizes.to)]),
                    },
                    &counted(words.documents, sizes.documents),
                ],
            ),
            count: compact(sizes.groups),
            bars: vec![Bar::whole("", height(sizes.groups, most))],
            threshold: None,
        };
        Chart {
            heading: words.sizes,
            about: words.sizes_about.to_owned(),
            columns: self.group_sizes.iter().map(column).collect(),
            legend: None,
        }
    }

    fn more_groups(&self, words: &'static Words) -> String {
        if self.groups == 0 {
            return String::new();
        }
        match self.groups.saturating_sub(self.largest.len() as u64) {
            0 => words.see_all.to_owned(),
            more => {
                let more = counted(words.smaller_groups, more);
                format!("{more}{}{}", words.gap, words.see_all)
            }
        }
    }

    /// The examples by their places.
    fn examples_shown(&self, words: &'static Words) -> Vec<ExamplesShown<'_>> {
        let of = |place: Place, heading, about, label| ExamplesShown {
            heading,
            about,
            label,
            examples: self
                .examples
                .iter()
                .filter(|example| example.place == place)
                .map(|example| example.shown(words))
                .collect(),
        };
        let all = [
            of(Place::Borderline, words.borderline, words.borderline_about, words.borderline_badge),
            of(Place::Refused, words.refused_pairs, words.refused_pairs_about, words.refused_badge),
            of(Place::Alike, words.alike_pairs, words.alike_pairs_about, ""),
        ];
        all.into_iter().filter(|shown| !shown.examples.is_empty()).collect()
    }

    /// The terms that the page uses, with what they mean.
    fn terms(&self, words: &'static Words) -> Vec<[&'static str; 2]> {
        let mut terms = vec![
            [words.figure_same, words.term_same],
            [words.figure_near, words.term_near],
            [words.term_threshold_name, words.term_threshold],
        ];
        match self.nearness.measure {
            Measure::Distance => terms.push([words.term_distance_name, words.term_distance]),
            Measure::Score => terms.extend([
                [words.term_score_name, words.term_score],
                [words.term_cosine_name, words.term_cosine],
                [words.term_alignment_name, words.term_alignment],
                [words.term_containment_name, words.term_containment],
            ]),
        }
        terms.extend([
            [words.term_pair_name, words.term_pair],
            [words.term_group_name, words.term_group],
            [words.term_representative_name, words.term_representative],
        ]);
        terms
    }
}

impl Nearness {
    fn chart(&self, words: &'static Words) -> Chart {
        let (heading, about, unknown) = match self.measure {
            Measure::Score => (words.scores, words.scores_about, words.refused_unknown),
            Measure::Distance => (words.distances, words.distances_about, words.refused_distances),
        };
        let below = match &self.refused {
            None => unknown.to_owned(),
            Some(refused) if refused.measured < refused.pairs => format!(
                "{}{}{}",
                counted(words.refused_exactly, refused.pairs),
                words.gap,
                fill(words.refused_estimated, &[&grouped(refused.measured)])
            ),
            Some(refused) => counted(words.refused_exactly, refused.pairs),
        };
        let columns = self.columns(words);
        let limit = rounded(self.limit);
        Chart {
            heading,
            about: format!("{}{}{below}", fill(about, &[&limit]), words.gap),
            legend: (!columns.is_empty()).then(|| Legend {
                threshold: fill(words.threshold, &[&limit]),
                has_refused: self.refused.as_ref().is_some_and(|refused| refused.pairs > 0),
            }),
            columns,
        }
    }

    fn columns(&self, words: &'static Words) -> Vec<Column> {
        let refused = self.refused.as_ref().map_or(&[][..], |refused| &refused.bins);
        let is_estimated =
            self.refused.as_ref().is_some_and(|refused| refused.measured < refused.pairs);
        let most = self.bins.iter().chain(refused).map(|bin| bin.pairs).max().unwrap_or(0);
        if most == 0 {
            return Vec::new();
        }
        // Bins of equal steps that end at the same place: the longer list begins first, and the threshold is among them.
        let mut all = if refused.len() > self.bins.len() { refused } else { &self.bins }.to_vec();
        while let Some(Bin { from, to, .. }) = all.first().filter(|bin| self.limit < bin.from) {
            let (from, to) = ((from - (to - from)).max(0.0), *from);
            all.insert(0, Bin { from, to, pairs: 0 });
        }
        let at = |bins: &[Bin], index: usize| {
            let place = (bins.len() + index).checked_sub(all.len());
            place.and_then(|place| bins.get(place)).map_or(0, |bin| bin.pairs)
        };
        let column = |(index, bin): (usize, &Bin)| {
            let own = if self.bins.is_empty() { 0 } else { at(&self.bins, index) };
            let below = if refused.is_empty() { 0 } else { at(refused, index) };
            let threshold = self.place_in(bin);
            let mut bars = Vec::new();
            match threshold {
                Some(place) if below > 0 => bars.extend([
                    Bar { class: "below", from: 0, width: place, height: height(below, most) },
                    Bar { class: "", from: place, width: 1000 - place, height: height(own, most) },
                ]),
                _ if below > own => bars.push(Bar::whole("below", height(below, most))),
                _ => bars.push(Bar::whole("", height(own, most))),
            }
            let (label, range) = self.label(bin, words);
            let counted_below = match is_estimated {
                true => counted(words.about_pairs, below),
                false => counted(words.pairs, below),
            };
            let title = match (own, below) {
                (own, 0) => format!("{range}{}{}", words.colon, counted(words.pairs, own)),
                (0, _) => format!("{range}{}{counted_below}", words.colon),
                (own, _) => {
                    let own = counted(words.pairs, own);
                    format!("{range}{}{counted_below} + {own}", words.colon)
                }
            };
            let count = compact(if own > 0 { own } else { below });
            Column { label, title, count, bars, threshold }
        };
        all.iter().enumerate().map(column).collect()
    }

    /// Where the threshold is in a bin, in thousandths of its width; at the far end of the last bin of distances.
    fn place_in(&self, bin: &Bin) -> Option<u64> {
        match self.measure {
            Measure::Distance => (bin.from <= self.limit && self.limit <= bin.to).then_some(1000),
            Measure::Score => {
                let place = (self.limit - bin.from) / (bin.to - bin.from);
                let is_in = place > -1e-9 && place < 1.0 - 1e-9;
                is_in.then_some((place.max(0.0) * 1000.0).round() as u64)
            }
        }
    }

    /// The label of a bin, and its range in words.
    fn label(&self, bin: &Bin, words: &'static Words) -> (String, String) {
        match self.measure {
            Measure::Score => {
                let [from, to] = [bin.from, bin.to].map(|bound| format!("{bound:.2}"));
                let range = fill(words.score_range, &[&from, &to]);
                (from, range)
            }
            Measure::Distance => {
                let label = match bin.from == bin.to {
                    true => bin.from.to_string(),
                    false => format!("{}–{}", bin.from, bin.to),
                };
                let range = fill(words.distance_of, &[&label]);
                (label, range)
            }
        }
    }
}

impl Group {
    fn shown(&self, words: &'static Words) -> GroupShown<'_> {
        let source = |source: &Option<String>| source.clone().unwrap_or_default();
        let first = MemberShown {
            id: Name::of(&self.kept, NAME_CHARS),
            // It is the heading.
            snippet: "",
            source: source(&self.source),
            relation: words.stays.to_owned(),
            stays: true,
        };
        let others = self.removed.iter().map(|gone: &Gone| MemberShown {
            id: Name::of(&gone.id, NAME_CHARS),
            snippet: &gone.snippet,
            source: source(&gone.source),
            relation: gone.relation.in_words(words),
            stays: gone.relation == Relation::Stays,
        });
        GroupShown {
            size: grouped(self.size),
            documents: counted(words.documents, self.size),
            number: fill(words.group_of, &[&grouped(self.number.into())]),
            snippet: match self.snippet.is_empty() {
                true => words.no_text,
                false => &self.snippet,
            },
            members: std::iter::once(first).chain(others).collect(),
            more: match self.more {
                0 => String::new(),
                more => counted(words.and_more, more),
            },
        }
    }
}

impl Relation {
    fn in_words(self, words: &'static Words) -> String {
        match self {
            Relation::Stays => words.stays.to_owned(),
            Relation::SameText => words.same_text.to_owned(),
            Relation::Near => words.near.to_owned(),
            Relation::Score(score) => fill(words.near_score, &[&format!("{score:.2}")]),
            Relation::Distance(distance) => fill(words.near_distance, &[&distance.to_string()]),
        }
    }
}

impl Measured {
    /// What decided, and the figures that it rests on.
    fn in_words(self, words: &'static Words) -> [String; 2] {
        let three = |value: f32| format!("{value:.3}");
        match self {
            Measured::SameText => [words.the_same_text.to_owned(), String::new()],
            Measured::Sketches(score) => [fill(words.score, &[&three(score)]), String::new()],
            Measured::Texts { score, cosine, alignment, containment } => [
                fill(words.score, &[&three(score)]),
                fill(words.measures, &[&three(cosine), &three(alignment), &three(containment)]),
            ],
            Measured::Distance { distance, bits, score } => [
                fill(words.distance_of_bits, &[&distance.to_string(), &bits.to_string()]),
                fill(words.score, &[&format!("{score:.3}")]),
            ],
        }
    }
}

impl Example {
    fn shown(&self, words: &'static Words) -> ExampleShown<'_> {
        let [nearness, measures] = self.measured.in_words(words);
        ExampleShown {
            nearness,
            measures,
            a: Name::of(&self.a, NAME_CHARS),
            b: Name::of(&self.b, NAME_CHARS),
            left: passages_shown(&self.left),
            right: passages_shown(&self.right),
        }
    }
}

/// Passages with what is left out between them.
pub(super) fn passages_shown(passages: &[Passage]) -> Vec<PassageShown<'_>> {
    let mut last = 0;
    passages
        .iter()
        .map(|passage| PassageShown {
            text: &passage.text,
            changed: passage.changed,
            moved: passage.moved > 0,
            number: match passage.moved {
                0 => String::new(),
                number if number == std::mem::replace(&mut last, number) => String::new(),
                number => number.to_string(),
            },
            left_out: match passage.left_out {
                0 => String::new(),
                characters => grouped(characters),
            },
        })
        .collect()
}

impl Setting {
    fn shown(&self, language: PageLanguage) -> [&str; 2] {
        let [name, value] = &self.chinese;
        let chinese =
            [name.as_deref().unwrap_or(self.name), value.as_deref().unwrap_or(&self.value)];
        language.pick([[self.name, &self.value], chinese])
    }
}

fn sources(table: &SourceTable, words: &'static Words) -> Sources {
    let lines: Vec<&SourceLine> = table.sources.iter().chain(&table.others).collect();
    // The engine names what it sums in English.
    let name = |line: &SourceLine| match line.source.as_str() {
        "(others)" => words.others.to_owned(),
        "(no value)" => words.no_value.to_owned(),
        name => name.to_owned(),
    };
    let most = table.duplicates.iter().flatten().copied().max().unwrap_or(0);
    let rows = lines.iter().enumerate().map(|(row, line)| {
        let removed = line.removed_exact + line.removed_near;
        let mut of: Vec<(usize, u64)> =
            table.duplicates[row].iter().copied().enumerate().filter(|(_, n)| *n > 0).collect();
        of.sort_by_key(|&(column, n)| (u64::MAX - n, column));
        let named = of.iter().take(3).map(|&(column, n)| {
            let name = match column == row {
                true => words.itself.to_owned(),
                false => shortened(&name(lines[column]), SOURCE_CHARS),
            };
            format!("{name} ({})", grouped(n))
        });
        let named: Vec<String> = named.collect();
        SourceRow {
            number: row + 1,
            name: Name::of(&name(line), SOURCE_CHARS),
            documents: counted(words.documents, line.documents),
            parts: Parts::of(line.kept, line.removed_exact, line.removed_near),
            share: share(removed, line.documents, words),
            of: match named.is_empty() {
                true => String::new(),
                false => fill(words.of_sources, &[&named.join(words.comma)]),
            },
            title: fill(
                words.source_title,
                &[&grouped(line.kept), &grouped(line.removed_exact), &grouped(line.removed_near)],
            ),
        }
    });
    let cells = lines.iter().enumerate().map(|(row, line)| {
        let short = |line: &SourceLine| shortened(&name(line), SOURCE_CHARS);
        let cells = table.duplicates[row].iter().enumerate().map(|(column, &n)| Cell {
            count: if n > 0 { compact(n) } else { String::new() },
            title: fill(words.cell_title, &[&grouped(n), &short(line), &short(lines[column])]),
            heat: heat(n, most),
        });
        MatrixRow {
            number: row + 1,
            name: Name::of(&name(line), SOURCE_CHARS),
            cells: cells.collect(),
        }
    });
    let what = match table.by.as_str() {
        "folder" => words.sources_folders.to_owned(),
        field => fill(words.sources_field, &[field]),
    };
    let more = match table.more {
        0 => String::new(),
        n => format!("{}{}", words.gap, counted(words.more_sources, n as u64)),
    };
    Sources {
        about: format!("{what}{more}{}{}", words.gap, words.behind_each),
        rows: rows.collect(),
        cells: cells.collect(),
    }
}

/// The height of a bar by the logarithm of its count: two are twice as high as one, and a million fits beside. What stands for
/// something is never invisible.
fn height(count: u64, most: u64) -> u64 {
    // In integers, between powers of two on a line: every machine draws the same.
    let logarithm = |n: u64| {
        let power = n.max(1).ilog2();
        let beyond = (u128::from(n) << 8 >> power) as u64 - (1 << 8);
        ((u64::from(power) + 1) << 8) + beyond
    };
    match count {
        0 => 0,
        count => {
            let whole = logarithm(most);
            ((logarithm(count) * 100 + whole / 2) / whole).clamp(2, 100)
        }
    }
}

/// How hot a count is beside the largest, by orders of two.
fn heat(count: u64, most: u64) -> u32 {
    match count {
        0 => 0,
        count => 6_u32.saturating_sub((most / count).ilog2() / 2).max(1),
    }
}

/// A share of a whole that is not 0, with one digit behind the point.
pub(super) fn share(part: u64, whole: u64, words: &Words) -> String {
    let thousandths = (u128::from(part) * 1000 + u128::from(whole) / 2) / u128::from(whole.max(1));
    match thousandths {
        0 if part > 0 => words.under_thousandth.to_owned(),
        t => format!("{}.{}%", t / 10, t % 10),
    }
}

/// A threshold with three digits behind the point at most.
fn rounded(number: f64) -> String {
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A number in at most four characters and a letter, rounded.
fn compact(number: u64) -> String {
    let units = [(1_000, "k"), (1_000_000, "M"), (1_000_000_000, "G"), (1_000_000_000_000, "T")];
    if number < 10_000 {
        return number.to_string();
    }
    for (unit, letter) in units {
        let tenths = (u128::from(number) * 10 + unit / 2) / unit;
        let whole = (u128::from(number) + unit / 2) / unit;
        match (tenths, whole) {
            (..100, _) => return format!("{}.{}{letter}", tenths / 10, tenths % 10),
            (_, ..1_000) => return format!("{whole}{letter}"),
            _ => {}
        }
    }
    format!("{}T", grouped(number / 1_000_000_000_000))
}

/// Bytes of text in a unit that is easily read.
pub(super) fn bytes(number: u64, words: &Words) -> String {
    let units = ["kB", "MB", "GB", "TB", "PB", "EB"];
    let mut value = number as f64;
    let mut unit = None;
    for name in units {
        // What would be rounded to a thousand has the next unit.
        if value < 999.95 {
            break;
        }
        value /= 1000.0;
        unit = Some(name);
    }
    let size = match unit {
        None => fill(words.bytes, &[&number.to_string()]),
        Some(unit) => format!("{value:.1} {unit}"),
    };
    fill(words.bytes_of_text, &[&size])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{RefusedPairs, score_bins, snippet, visible, visible_line};

    #[test]
    fn numbers() {
        let check = |number, expect: &str| assert_eq!(compact(number), expect);
        check(0, "0");
        check(9_999, "9999");
        check(12_345, "12k");
        check(19_999, "20k");
        check(999_499, "999k");
        check(999_500, "1.0M");
        check(1_250_000, "1.3M");
        check(9_960_000, "10M");
        check(999_999_999, "1.0G");
        check(12_345_678_901, "12G");
        check(u64::MAX, "18,446,744T");
        let words = PageLanguage::English.words();
        assert_eq!(share(1, 3, words), "33.3%");
        assert_eq!(share(1, 1_000_000, words), "under 0.1%");
        assert_eq!(share(5, 5, words), "100.0%");
        assert_eq!([0.63, 0.6666, 3.0, 1.0].map(rounded), ["0.63", "0.667", "3", "1"]);
        assert_eq!([0, 1, 2, 4, 4].map(|n| height(n, 4)), [0, 33, 67, 100, 100]);
        assert_eq!((heat(0, 9), heat(9, 9), heat(1, 1 << 40)), (0, 6, 1));
        assert_eq!(bytes(999, words), "999 bytes of text");
        assert_eq!(bytes(999_990, words), "1.0 MB of text");
        assert_eq!(bytes(15_000_000_000, words), "15.0 GB of text");
        let parts = Parts::of(1, 1 << 60, 1);
        assert!(parts.near > 0 && parts.kept + parts.exact + parts.near <= 1003);
    }

    fn report(name: &str, sources: usize) -> Report {
        let line = |n: usize| SourceLine {
            source: visible_line(&format!("{name}{n}")),
            documents: 1 << 40,
            kept: 1 << 39,
            ..SourceLine::default()
        };
        Report {
            head: Head {
                name: Some(visible_line(name)),
                date: Some(visible_line(name)),
                inputs: vec![visible_line(name); 3],
                more_inputs: 1 << 40,
                settings: vec![["--keep".to_owned(), visible_line(name)]],
                is_verified: true,
                bits: 256,
            },
            documents: u64::MAX >> 1,
            text_bytes: u64::MAX,
            kept: 1,
            removed_exact: 2,
            removed_near: 3,
            unreadable: 1,
            groups: 1 << 50,
            largest_group: 1 << 40,
            pairs: 7,
            warnings: vec![[visible(name), visible(name)]],
            nearness: Nearness {
                refused: Some(RefusedPairs {
                    pairs: 1 << 50,
                    measured: 500,
                    bins: score_bins(&[0, 7, 1 << 49, 0]),
                }),
                ..Nearness::of_scores(&[0, 0, 1, u64::MAX >> 8], 0.63)
            },
            group_sizes: Sizes::of((2..100_000).map(|size| (size, size))),
            sources: Some(SourceTable {
                by: visible_line(name),
                sources: (0..sources).map(line).collect(),
                more: 1_000_000,
                others: Some(line(0)),
                duplicates: vec![vec![1 << 50; sources + 1]; sources + 1],
            }),
            largest: vec![Group {
                number: 1,
                size: 9,
                kept: visible_line(name),
                snippet: snippet(name),
                source: Some(visible_line(name)),
                removed: vec![Gone {
                    id: visible_line(name),
                    why: "near 0.70".to_owned(),
                    relation: Relation::Score(0.7),
                    snippet: snippet(name),
                    source: None,
                }],
                more: 7,
            }],
            examples: vec![Example {
                place: Place::Borderline,
                measured: Measured::Sketches(0.7),
                a: visible_line(name),
                b: visible_line(name),
                left: vec![Passage { text: visible(name), changed: true, moved: 0, left_out: 3 }],
                right: vec![],
            }],
            settings: vec![Setting {
                name: "Recipe",
                value: visible(name),
                chinese: [Some("配方".to_owned()), None],
            }],
        }
    }

    #[test]
    fn hostile_text_stays_text() {
        let hostile = "</style><script>alert(1)</script>\u{1b}[31m\u{202e}\0\"'&";
        for language in [PageLanguage::English, PageLanguage::Chinese] {
            let html = report(hostile, 3).page(language).expect("a page");
            assert!(!html.contains("<script") && html.matches("</style>").count() == 1);
            assert!(!html.contains(['\u{1b}', '\u{202e}', '\0']));
        }
    }

    #[test]
    fn a_page_is_bounded() {
        let html = report(&"长".repeat(100_000), 30).page(PageLanguage::Chinese).expect("a page");
        // Two texts of three thousand characters are the example's, which come cut.
        assert!(html.len() < 1_500_000, "{}", html.len());
    }

    #[test]
    fn the_threshold_is_in_its_column() {
        let words = PageLanguage::English.words();
        let mut nearness = Nearness::of_scores(&[0, 0, 3, 1], 0.625);
        let refused = RefusedPairs { pairs: 9, measured: 9, bins: score_bins(&[0, 7, 2, 0]) };
        nearness.refused = Some(refused);
        let columns = nearness.columns(words);
        let shown: Vec<_> = columns
            .iter()
            .map(|column| {
                let bars: Vec<_> =
                    column.bars.iter().map(|bar| (bar.class, bar.from, bar.width)).collect();
                (column.label.as_str(), column.threshold, bars)
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("0.25", None, vec![("below", 0, 1000)]),
                ("0.50", Some(500), vec![("below", 0, 500), ("", 500, 500)]),
                ("0.75", None, vec![("", 0, 1000)]),
            ]
        );
        assert_eq!(columns[1].title, "score from 0.50 to 0.75: 2 pairs + 3 pairs");
        // Nothing was found, and much was compared.
        nearness.bins.clear();
        assert_eq!(nearness.columns(words).len(), 3);
        let distances = Nearness::of_distances(&[4, 2, 1, 1], 3).columns(words);
        let lines: Vec<_> = distances.iter().map(|column| column.threshold).collect();
        assert_eq!(lines, [None, None, None, Some(1000)]);
        // The threshold is shown where no pair is near it.
        let alike = Nearness::of_scores(&[0, 0, 0, 0, 9], 0.5).columns(words);
        let labels: Vec<_> = alike.iter().map(|c| (c.label.as_str(), c.threshold)).collect();
        assert_eq!(labels, [("0.40", Some(500)), ("0.60", None), ("0.80", None)]);
    }
}
