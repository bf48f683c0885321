//! The documents tell the truth: every command in them runs, every output shown is the program's
//! own, every figure about the example corpus is counted, every link leads somewhere.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use nearsift::recipe::Recipe;
use serde_json::Value;
use tempfile::TempDir;
use testkit::examples::{Edit, truth};
use testkit::repository;

const ENGLISH: &str = "README.md";
const CHINESE: &str = "README.zh-CN.md";
const LIMITS: &str = "docs/use/limits.md";
/// The table of what each recipe finds.
const CHOICE: &str = "docs/use/choose-a-recipe.md";
/// A worked example of fingerprints, and one golden vector.
const EXAMPLES: [&str; 2] =
    ["docs/understand/fingerprints.md", "docs/understand/golden-vectors.md"];
/// Tables of speeds, in both languages.
const SPEEDS: [&str; 2] = ["docs/records/speed.md", "docs/zh-CN/use/speed.md"];
/// A walk through real data, in both languages.
const WALKS: [&str; 2] = ["docs/use/walkthrough.md", "docs/zh-CN/use/walkthrough.md"];

/// Pages of `docs/use` whose Chinese twin in `docs/zh-CN/use` has the same sections, commands and options.
const TWINS: [&str; 12] = [
    "start",
    "commands",
    "dedup",
    "options",
    "formats-and-columns",
    "results",
    "output",
    "languages",
    "compare-and-why",
    "pairs-and-fingerprints",
    "exit-statuses",
    "limits",
];

/// Documents outside the book, whose links are followed.
const OUTSIDE: [&str; 7] = [
    ENGLISH,
    CHINESE,
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "examples/README.md",
];

/// The most words that `README.md` may have.
const MOST_WORDS: usize = 1_500;

/// The pages of the book, in the order of its summary.
fn book() -> Vec<String> {
    let summary = document("docs/SUMMARY.md");
    links(&summary).map(|target| format!("docs/{target}")).collect()
}

/// The pages whose shown outputs are compared with those of the program, by language: the commands of one language run in one
/// folder, in this order, as a reader types them.
fn with_outputs() -> [Vec<String>; 4] {
    let of = |folders: &[&str]| -> Vec<String> {
        let is_of = |page: &String| folders.iter().any(|folder| page.starts_with(folder));
        book().into_iter().filter(|page| is_of(page) && !WALKS.contains(&page.as_str())).collect()
    };
    [
        vec![ENGLISH.to_owned()],
        vec![CHINESE.to_owned()],
        of(&["docs/use/", "docs/understand/"]),
        of(&["docs/zh-CN/"]),
    ]
}

/// The targets of a document's links and pictures.
fn links(text: &str) -> impl Iterator<Item = &str> {
    outside_of_code(text)
        .flat_map(|line| line.split("](").skip(1).filter_map(|rest| rest.split(')').next()))
}

/// The lines of a document that are in no fenced block.
fn outside_of_code(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let is_fence = line.starts_with("```");
        fenced ^= is_fence;
        !fenced && !is_fence
    })
}

fn document(name: &str) -> String {
    String::from_utf8(testkit::read(&repository().join(name))).expect("UTF-8")
}

/// A copy of what the documents' commands read, to run them in.
struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().expect("a temporary folder"));
        for name in ["examples", "crates/nearsift/tests/vectors"] {
            copy(&repository().join(name), &folder.0.path().join(name));
        }
        folder
    }

    fn run(&self, args: &[String]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_nearsift"))
            .args(args)
            .current_dir(self.0.path())
            .env("NEARSIFT_LANGUAGE", "en")
            .stdin(Stdio::null())
            .output()
            .expect("the program runs")
    }

    fn text(&self, name: &str) -> String {
        let path = self.0.path().join(name);
        fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).expect("a copy");
        }
    }
}

/// The arguments of a command line; single quotes hold together.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// The arguments of the program, when the line runs it.
fn arguments(line: &str) -> Option<Vec<String>> {
    let rest = line
        .strip_prefix("nearsift ")
        .or_else(|| line.strip_prefix("cargo run --release -p nearsift-cli -- "))?;
    // A comment, or a command behind it, is no argument.
    let end = [" #", " || "].iter().filter_map(|end| rest.find(end)).min();
    Some(words(&rest[..end.unwrap_or(rest.len())]))
}

/// A fenced block: what stands behind the fence, and the lines.
fn fenced(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut blocks: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if let Some(kind) = line.strip_prefix("```") {
            inside = !inside;
            if inside {
                blocks.push((kind, Vec::new()));
            }
        } else if let (true, Some(block)) = (inside, blocks.last_mut()) {
            block.1.push(line);
        }
    }
    blocks
}

/// The lines of indented blocks.
fn indented(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter_map(move |line| {
        fenced ^= line.starts_with("```");
        line.strip_prefix("    ").filter(|_| !fenced).map(str::trim)
    })
}

/// The commands of the `console` blocks with the lines shown below each.
fn sessions(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut sessions: Vec<(&str, Vec<&str>)> = Vec::new();
    for (_, lines) in fenced(text).into_iter().filter(|(kind, _)| *kind == "console") {
        for line in lines {
            match line.strip_prefix("$ ") {
                Some(command) => sessions.push((command, Vec::new())),
                None => sessions.last_mut().expect("a command comes first").1.push(line),
            }
        }
    }
    sessions
}

/// Whether an output is as shown, where a line `...` stands for any lines, and ` ...` at the end of a
/// line for the rest of it.
fn is_shown(output: &[&str], shown: &[&str]) -> bool {
    let same = |line: &str, shown: &str| match shown.strip_suffix(" ...") {
        Some(start) => line.starts_with(start),
        None => line == shown,
    };
    match shown.split_first() {
        None => output.is_empty(),
        Some((&"...", rest)) => (0..=output.len()).any(|skip| is_shown(&output[skip..], rest)),
        Some((first, rest)) => {
            output.first().is_some_and(|line| same(line, first)) && is_shown(&output[1..], rest)
        }
    }
}

/// Runs a command of a document, and returns what it prints.
fn printed(folder: &Folder, name: &str, command: &str) -> String {
    match (arguments(command), &words(command)[..]) {
        (Some(args), _) => {
            let output = folder.run(&args);
            assert_ne!(output.status.code(), Some(2), "{name}: {command}: {output:?}");
            String::from_utf8(output.stdout).expect("UTF-8")
        }
        (None, [grep, word, file]) if grep == "grep" => {
            let lines = folder.text(file);
            lines.lines().filter(|l| l.contains(word)).map(|l| format!("{l}\n")).collect()
        }
        _ => panic!("{name}: '{command}' cannot be checked"),
    }
}

#[test]
fn every_output_shown_is_the_programs_own() {
    for pages in with_outputs() {
        let folder = Folder::new();
        let mut checked = 0;
        for name in &pages {
            let text = document(name);
            for (command, shown) in sessions(&text) {
                let output = printed(&folder, name, command);
                let lines: Vec<&str> = output.lines().collect();
                assert!(is_shown(&lines, &shown), "{name}: {command} prints\n{output}");
                checked += 1;
            }
        }
        assert!(checked > 0, "{pages:?} show commands");
    }
}

/// Says why a part of a test did not run.
#[allow(clippy::print_stderr, reason = "tests say on standard error why they skip")]
fn skip(why: &str) {
    eprintln!("SKIPPED: {why}");
}

/// The folder in which the commands of the walk are run: they see the evaluation data as `data`, this program as `nearsift`, and the
/// environment of the tests of the Python package where there is one.
#[cfg(unix)]
struct Walk {
    folder: TempDir,
    path: std::ffi::OsString,
}

#[cfg(unix)]
impl Walk {
    fn new(data: &Path) -> Walk {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data = data.canonicalize().expect("the data");
        std::os::unix::fs::symlink(data, folder.path().join("data")).expect("a link");
        let program = Path::new(env!("CARGO_BIN_EXE_nearsift"));
        let python = repository().join("target/python/venv/bin");
        let mut folders = vec![program.parent().expect("a folder").to_owned(), python];
        folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        Walk { folder, path: std::env::join_paths(folders).expect("a path") }
    }

    fn run(&self, command: &str) -> Output {
        Command::new("bash")
            .args(["-c", command])
            .current_dir(self.folder.path())
            .env("PATH", &self.path)
            .env("LC_ALL", "C.UTF-8")
            .env("NEARSIFT_LANGUAGE", "en")
            .stdin(Stdio::null())
            .output()
            .expect("bash runs")
    }
}

/// Runs what the walk through real data shows.
#[cfg(unix)]
#[test]
fn the_walk_through_real_data_is_true() {
    let Some(data) = testkit::data_dir() else { return };
    let (walk, text) = (Walk::new(&data), document(WALKS[0]));
    if !walk.run("zstd --version").status.success() {
        return skip("no zstd");
    }
    let has_python = walk.run("python -c 'import duckdb, polars'").status.success();
    if !has_python {
        skip(
            "the scripts of the walk: no Python with duckdb and polars: the step `python` of `cargo xtask` makes one",
        );
    }
    for (_, lines) in fenced(&text).into_iter().filter(|(kind, _)| *kind == "python") {
        let name = lines[0].strip_prefix("# ").expect("a name in the first line");
        fs::write(walk.folder.path().join(name), lines.join("\n")).expect("a script");
    }
    for (command, shown) in sessions(&text) {
        if command.starts_with("python ") && !has_python {
            continue;
        }
        let output = walk.run(command);
        assert!(output.status.success(), "{command}: {output:?}");
        let output = String::from_utf8(output.stdout).expect("UTF-8");
        let lines: Vec<&str> = output.lines().collect();
        assert!(is_shown(&lines, &shown), "{command} prints\n{output}");
    }
}

#[test]
fn both_walks_have_the_same_sections_and_commands() {
    let [english, chinese] = WALKS.map(|name| skeleton(&document(name)));
    assert_eq!(english, chinese);
}

/// Commands without an output may name files that are not there, but no option that is not.
#[test]
fn every_command_line_is_understood() {
    let mut refused = Vec::new();
    for name in OUTSIDE.map(str::to_owned).into_iter().chain(book()) {
        let text = document(&name);
        if !indented(&text).any(|line| arguments(line).is_some()) {
            continue;
        }
        let folder = Folder::new();
        for (number, line) in indented(&text).enumerate() {
            let Some(mut args) = arguments(line) else { continue };
            if let Some(at) = args.iter().position(|arg| arg == "--output") {
                args[at + 1] = format!("out/{number}");
            }
            if args.first().is_some_and(|command| command == "serve") {
                // It would go on for ever.
                args.push("--print-config".to_owned());
            }
            let output = folder.run(&args);
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            let understood = match output.status.code() {
                Some(0 | 1 | 3) => true,
                _ => {
                    let absent = [
                        "no such file or folder",
                        "cannot read: No such file or directory",
                        "no file matches",
                        "no results of `nearsift dedup`",
                        "not the folder of a run that can be decided anew",
                        "no complete part",
                        "no store: expected a file MANIFEST",
                    ];
                    absent.iter().any(|what| stderr.contains(what))
                }
            };
            if !understood {
                refused.push(format!("{name}: {line}\n{stderr}"));
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

/// What a document consists of, whatever its language.
fn skeleton(text: &str) -> Vec<String> {
    let mut skeleton = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        fenced ^= line.starts_with("```");
        if fenced || line.starts_with("    ") {
            skeleton.push(line.to_owned());
        } else if line.starts_with('#') {
            skeleton.push(line.chars().take_while(|&c| c == '#').collect());
        } else if line.starts_with('|') {
            skeleton.push(format!("row of {}", line.matches('|').count()));
        } else if line.starts_with("- ") {
            skeleton.push("item".to_owned());
        }
    }
    skeleton
}

#[test]
fn both_languages_have_the_same_sections_and_commands() {
    let pages =
        TWINS.map(|name| [format!("docs/use/{name}.md"), format!("docs/zh-CN/use/{name}.md")]);
    for [english, chinese] in pages.into_iter().chain([[ENGLISH, CHINESE].map(str::to_owned)]) {
        let (ours, theirs) = (document(&english), document(&chinese));
        let (ours_skeleton, theirs_skeleton) = (skeleton(&ours), skeleton(&theirs));
        for (line, other) in ours_skeleton.iter().zip(&theirs_skeleton) {
            assert_eq!(line, other, "{chinese}");
        }
        assert_eq!(ours_skeleton.len(), theirs_skeleton.len(), "{chinese}");
        assert_eq!(options(&ours), options(&theirs), "{chinese}");
    }
}

/// The long options that a document names.
fn options(text: &str) -> Vec<String> {
    let mut options: Vec<String> = text
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
        .filter(|word| word.starts_with("--") && word.len() > 2)
        .map(str::to_owned)
        .collect();
    options.sort_unstable();
    options.dedup();
    options
}

#[test]
fn the_readme_is_short() {
    let words = document(ENGLISH).split_whitespace().count();
    assert!(words <= MOST_WORDS, "README.md has {words} words, and {MOST_WORDS} are allowed");
}

#[test]
fn the_summary_lists_every_page() {
    let pages = book();
    let mut sorted = pages.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted.len(), pages.len(), "a page is listed once");
    let mut found = Vec::new();
    let mut folders = vec![repository().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                let name = path.strip_prefix(repository()).expect("inside");
                found.push(name.to_str().expect("UTF-8").replace('\\', "/"));
            }
        }
    }
    found.retain(|name| name != "docs/SUMMARY.md");
    found.sort();
    assert_eq!(sorted, found);
    let summary = document("docs/SUMMARY.md");
    for page in pages {
        let text = document(&page);
        let heading = text.lines().next().and_then(|line| line.strip_prefix("# "));
        let heading = heading.unwrap_or_else(|| panic!("{page} begins with its title"));
        let item = format!("[{heading}]({})", page.trim_start_matches("docs/"));
        assert!(summary.contains(&item), "docs/SUMMARY.md has no {item}");
    }
}

/// What `dedup` finds of the true groups of the examples.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    /// For each kind of edit: copies that came into the group of their original, and all of them.
    by_edit: BTreeMap<String, (usize, usize)>,
    /// Groups that were joined and are none.
    false_groups: usize,
}

impl Found {
    fn of(folder: &Folder, input: &str, table: &str, options: &[String]) -> Found {
        let mut args = ["dedup", input, "--output", "out", "-q"].map(str::to_owned).to_vec();
        args.extend_from_slice(options);
        let run = folder.run(&args);
        assert!(run.status.success(), "{args:?}: {run:?}");
        let mut cluster_of: BTreeMap<String, u64> = BTreeMap::new();
        let mut members: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for line in folder.text("out/clusters.jsonl").lines() {
            let line: Value = serde_json::from_str(line).expect("JSON");
            let number = line["cluster"].as_u64().expect("a number");
            for member in line["members"].as_array().expect("a list") {
                let id = member.as_str().expect("an id").trim_start_matches("examples/").to_owned();
                cluster_of.insert(id.clone(), number);
                members.entry(number).or_default().push(id);
            }
        }
        fs::remove_dir_all(folder.0.path().join("out")).expect("a folder");
        let truth = truth(table).unwrap_or_else(|mistake| panic!("{mistake}"));
        let group_of: BTreeMap<&str, &str> =
            truth.iter().map(|row| (row.id.as_str(), row.group.as_str())).collect();
        let mut found = Found::default();
        for ids in members.values() {
            let mut groups: Vec<&str> = ids.iter().map(|id| group_of[id.as_str()]).collect();
            groups.sort_unstable();
            groups.dedup();
            found.false_groups += groups.len() - 1;
        }
        let mut original_of: BTreeMap<&str, &str> = BTreeMap::new();
        for row in truth.iter().filter(|row| row.edit == Edit::Original).chain(&truth) {
            original_of.entry(&row.group).or_insert(&row.id);
        }
        for row in &truth {
            let original = original_of[row.group.as_str()];
            if original != row.id {
                let (joined, all) = found.by_edit.entry(row.edit.to_string()).or_default();
                let cluster = cluster_of.get(&row.id);
                *joined += usize::from(cluster.is_some() && cluster == cluster_of.get(original));
                *all += 1;
            }
        }
        found
    }

    fn all(&self) -> (usize, usize) {
        self.by_edit.values().fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1))
    }
}

fn cells(row: &str) -> Vec<&str> {
    row.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`')).collect()
}

#[test]
fn the_table_of_found_copies_is_counted() {
    let (folder, text) = (Folder::new(), document(CHOICE));
    let mut rows = text.lines().skip_while(|line| !line.starts_with("| options |"));
    let header = cells(rows.next().expect("the table"));
    let edits = &header[1..header.len() - 2];
    let mut checked = 0;
    for row in rows.skip(1).take_while(|line| line.starts_with('|')) {
        let cells = cells(row);
        let numbers = |counts: &dyn Fn(&(usize, usize)) -> usize, found: &Found| -> Vec<String> {
            let mut cells: Vec<String> =
                edits.iter().map(|edit| counts(&found.by_edit[*edit]).to_string()).collect();
            cells.push(counts(&found.all()).to_string());
            cells
        };
        let options = match cells[0] {
            "none" | "*copies there are*" => Vec::new(),
            options => words(options),
        };
        let found = Found::of(&folder, "examples/corpus.jsonl", "truth.tsv", &options);
        assert_eq!(found.by_edit.len(), edits.len(), "a column for each kind of edit");
        let expected = if cells[0] == "*copies there are*" {
            [numbers(&|count| count.1, &found), vec![String::new()]].concat()
        } else {
            [numbers(&|count| count.0, &found), vec![found.false_groups.to_string()]].concat()
        };
        assert_eq!(cells[1..], expected, "{row}");
        checked += 1;
    }
    assert!(checked > 10);
}

#[test]
fn the_limits_in_the_readme_are_counted() {
    let folder = Folder::new();
    let text = document(LIMITS).split_whitespace().collect::<Vec<_>>().join(" ");
    let corpus =
        |options: &str| Found::of(&folder, "examples/corpus.jsonl", "truth.tsv", &words(options));
    let says = |sentence: String| assert!(text.contains(&sentence), "{LIMITS} says '{sentence}'");
    let usual = corpus("");
    let (joined, all) = usual.all();
    says(format!(
        "finds {joined} of {all} copies and takes {} pairs of titles",
        usual.false_groups
    ));
    let strict = corpus("--min-score 0.9");
    assert_eq!(strict.false_groups, 0);
    says(format!("with `--min-score 0.9` it finds {} of {all}", strict.all().0));
    let classic = corpus("--method simhash");
    assert_eq!(classic.false_groups, 0);
    says(format!(
        "`--method simhash`, finds {} of the {all}, without a false one",
        classic.all().0
    ));
    for edit in ["exact", "case/width", "reorder"] {
        assert_eq!(classic.by_edit[edit].0, classic.by_edit[edit].1, "{edit}");
    }
    let (light, medium) = (classic.by_edit["light"], classic.by_edit["medium"]);
    says(format!("{} of {} with 1-3% of the characters changed", light.0, light.1));
    assert_eq!(medium.0, 0);
    says(format!("none of {} with 5-10%", medium.1));
    let pages = Found::of(&folder, "examples/pages", "truth-pages.tsv", &[]);
    assert_eq!(pages.false_groups, 0);
    let count = truth("truth-pages.tsv").unwrap_or_else(|mistake| panic!("{mistake}")).len();
    let (joined, all) = pages.all();
    says(format!("finds {joined} of the {all} copies among the example's {count} pages"));
}

/// The rows of a benchmark's record.
fn recorded_rows(record: &str) -> Vec<Value> {
    let path = repository().join(format!("bench/record/{record}.json"));
    let record: Value = serde_json::from_slice(&testkit::read(&path)).expect("JSON");
    record["rows"].as_array().expect("rows").clone()
}

/// Whether a figure is another one, to a tenth of that.
fn is_near(figure: f64, other: f64) -> bool {
    (figure - other).abs() <= 0.1 * other
}

/// The figures of the table of speeds are those of the records, to a tenth: a record that says something
/// else asks for a new table.
#[test]
fn speeds_are_quoted_from_the_records() {
    for name in SPEEDS {
        let text = document(name);
        let rows = text.lines().filter(|line| line.contains(" MB/s |") || line.contains(" ms |"));
        let mut checked = 0;
        for row in rows {
            let cells = cells(row);
            let recorded: Vec<f64> = recorded_rows(cells[1])
                .iter()
                .filter_map(|row| row.get("MB/s").or_else(|| row.get("ms"))?.as_f64())
                .collect();
            for cell in &cells[2..] {
                let numbers: Vec<&str> =
                    cell.split([' ', '：']).filter(|word| !word.is_empty()).collect();
                let Some([figure, _unit]) = numbers.last_chunk::<2>() else { continue };
                let figure: f64 = figure.parse().expect("a number");
                let is_quoted = recorded.iter().any(|recorded| is_near(*recorded, figure));
                assert!(is_quoted, "{name}: {row}\nrecorded: {recorded:?}");
                checked += 1;
            }
        }
        assert!(checked > 4, "{name} has a table of speeds");
    }
}

/// So are those of the index and the service, whose cells have several.
#[test]
fn rates_are_quoted_from_the_records() {
    let recorded = |record: &str, row: &str, figure: &str| {
        let rows = recorded_rows(record);
        let row = rows.iter().find(|found| found["contestant"] == row).expect("a row");
        row[figure].as_f64().expect("a figure")
    };
    let numbers = |row: &str| -> Vec<f64> {
        let is_of_number = |c: char| c.is_ascii_digit() || c == '.' || c == ',';
        let words = row.split(|c| !is_of_number(c));
        words.filter_map(|word| word.replace(',', "").parse().ok()).collect()
    };
    let large = "nearsift, numbers, 100000000";
    let rested = "nearsift, numbers, rested, 100000000";
    let quoted = [
        ("store", rested, "queries/s"),
        ("store", rested, "p99 us"),
        ("store", large, "inserts/s, 1 writer"),
        ("store", "LMDB, filled in order, 100000000", "queries/s"),
        ("serve", "as fast as it answers", "200/s"),
        ("serve", "at the rate", "p99 ms"),
    ];
    for name in SPEEDS {
        let text = document(name);
        for (record, contestant, figure) in quoted {
            let is_of_record = |line: &&str| cells(line).get(1).is_some_and(|cell| *cell == record);
            let row = text.lines().find(is_of_record).expect("a row of the record");
            let recorded = recorded(record, contestant, figure);
            let is_quoted = numbers(row).iter().any(|number| is_near(*number, recorded));
            assert!(is_quoted, "{name}: {figure} {recorded}\n{row}");
        }
    }
}

#[test]
fn the_worked_example_gives_what_it_says() {
    let (folder, text) = (Folder::new(), EXAMPLES.map(document).concat());
    let example = "我用 Rust 写程序。";
    assert!(text.contains(&format!("`{example}` normalises to")));
    let mut checked = 0;
    for line in indented(&text) {
        let key = line.strip_prefix("key of equal texts");
        let (recipe, value) = match (key, &line.split_whitespace().collect::<Vec<_>>()[..]) {
            (Some(value), _) => ("simhash64", value.trim()),
            (None, &[recipe, value]) if recipe.ends_with(":min-features=1") => (recipe, value),
            _ => continue,
        };
        let recipe = Recipe::parse(recipe).expect("a recipe");
        let mut fingerprinter = recipe.fingerprinter().expect("complete");
        let fingerprint = fingerprinter.fingerprint(example).fingerprint();
        match key {
            Some(_) => {
                let key = fingerprinter.text_key().expect("letters");
                assert_eq!(format!("{key:032x}"), value);
            }
            None => assert_eq!(fingerprint.expect("a fingerprint").to_string(), value),
        }
        checked += 1;
    }
    assert_eq!(checked, 5);
    for line in fenced(&text).into_iter().filter(|(kind, _)| *kind == "json").flat_map(|b| b.1) {
        fs::write(folder.0.path().join("one.jsonl"), line).expect("a file");
        let run = folder.run(&["vectors", "one.jsonl"].map(str::to_owned));
        assert_eq!(String::from_utf8_lossy(&run.stdout), "passed 1, failed 0\n", "{line}");
    }
}

/// The name that a heading has in a link, as code forges make it.
fn anchor(heading: &str) -> String {
    heading
        .trim_start_matches('#')
        .trim()
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[test]
fn every_link_leads_somewhere() {
    let docs = repository().join("docs");
    for name in OUTSIDE.map(str::to_owned).into_iter().chain(book()) {
        let text = document(&name);
        let is_of_the_book = name.starts_with("docs/");
        for target in links(&text) {
            if target.starts_with("http") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let path: PathBuf = match file {
                "" => repository().join(&name),
                _ => repository().join(&name).with_file_name("").join(file),
            };
            assert!(path.exists(), "{name}: {target}");
            if is_of_the_book {
                let (path, docs) = (path.canonicalize(), docs.canonicalize());
                let is_inside = path.expect("a file").starts_with(docs.expect("a folder"));
                assert!(
                    is_inside,
                    "{name}: {target} leads out of the book: name the file, without a link"
                );
            }
            if !heading.is_empty() {
                let there = fs::read_to_string(&path).expect("a document");
                let found = outside_of_code(&there)
                    .any(|line| line.starts_with('#') && anchor(line) == heading);
                assert!(found, "{name}: {target}");
            }
        }
    }
}
