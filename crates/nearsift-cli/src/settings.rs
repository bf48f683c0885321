//! The command line, and under it the settings file that `--config` names: its values stand in for the
//! defaults of the options, so that whatever the command line says wins.

use std::any::TypeId;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, CommandFactory, FromArgMatches};
use nearsift_batch::PageLanguage;
use toml::de::{DeTable, DeValue};

use crate::args::Cli;
use crate::failure::Failure;
use crate::output::{Severity, be_quiet, escaped, tell};
use crate::{chinese, language};

/// What the user asks for. A mistake on the command line ends the program here, as does `--help`.
///
/// # Errors
/// A settings file that cannot be read, or what is wrong in it.
pub fn command_line(arguments: &[OsString]) -> Result<Cli, Failure> {
    let mut matches =
        command().try_get_matches_from(arguments).unwrap_or_else(|error| end(&with_remedy(error)));
    if let Some((name, own)) = matches.subcommand()
        // The service has settings of its own.
        && name != "serve"
        && let Some(file) = own.try_get_one::<PathBuf>("config").ok().flatten()
    {
        let settings = Settings::read(file)?;
        matches = settings.under(name, own)?.get_matches_from(arguments);
    }
    Cli::from_arg_matches(&matches).map_err(|error| error.exit())
}

/// Ends the program with clap's message, in Chinese where that is asked for and known.
fn end(error: &clap::Error) -> ! {
    let text = error.to_string();
    // The remedy and the usage follow behind an empty line.
    let message = text.strip_prefix("error: ").and_then(|text| text.split("\n\n").next());
    let message = message.map(in_one_line);
    let is_known = message.as_ref().is_some_and(|message| chinese::translated(message).is_some());
    match (language::of_environment(), message) {
        (PageLanguage::Chinese, Some(message)) if is_known => {
            tell(Severity::Error, &message);
            std::process::exit(error.exit_code())
        }
        _ => error.exit(),
    }
}

/// A message of clap whose list is in lines of its own, with the list in the first line.
pub fn in_one_line(message: &str) -> String {
    let mut lines = message.trim_end().split("\n  ");
    let first = lines.next().unwrap_or_default().to_owned();
    let list: Vec<&str> = lines.collect();
    if list.is_empty() { first } else { format!("{first} {}", list.join(", ")) }
}

/// The command line, whose help is in the language that the environment asks for.
fn command() -> clap::Command {
    match language::of_environment() {
        PageLanguage::English => Cli::command(),
        PageLanguage::Chinese => chinese::translate(Cli::command()),
    }
}

/// Options of other programs for the same work, and what to write here instead.
const OTHER_NAMES: [(&str, &str); 17] = [
    ("--threshold", "--min-score gives the smallest score that is near, from 0 to 1"),
    ("--similarity", "--min-score gives the smallest score that is near, from 0 to 1"),
    ("--jaccard", "--min-score gives the smallest score that is near, from 0 to 1"),
    ("--min-similarity", "--min-score gives the smallest score that is near, from 0 to 1"),
    ("--distance", "--max-distance gives the largest Hamming distance that is near, in bits"),
    ("--hamming", "--max-distance gives the largest Hamming distance that is near, in bits"),
    (
        "--num-perm",
        "there are no permutations to choose: the sketch is of one size; --min-score says what is near",
    ),
    (
        "--num-hashes",
        "there are no hashes to choose: the sketch is of one size; --min-score says what is near",
    ),
    ("--bands", "there are no bands to choose; --min-score says what is near"),
    ("--rows", "there are no rows to choose; --min-score says what is near"),
    ("--ngram", "the recipe says what a feature is: --recipe, and `nearsift recipes` lists them"),
    (
        "--ngram-size",
        "the recipe says what a feature is: --recipe, and `nearsift recipes` lists them",
    ),
    ("--column", "--text-field names the column of the text"),
    ("--text-column", "--text-field names the column of the text"),
    ("--id-column", "--id-field names the column of the id"),
    ("--encoding", "--charset names the charset of the input"),
    ("--sep", "--delimiter gives the character between the fields of CSV"),
];

/// An option that is unknown here and known elsewhere is answered with the one that does its work.
fn with_remedy(mut error: clap::Error) -> clap::Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    // Names are compared as they are mostly written.
    let name = given.split('=').next().unwrap_or_default().replace('_', "-").to_lowercase();
    if let Some((_, remedy)) = OTHER_NAMES.iter().find(|(other, _)| *other == name) {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::Suggested);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![(*remedy).into()]));
    }
    error
}

/// The commands whose options a settings file may have, whichever of them reads it.
const COMMANDS: [&str; 2] = ["dedup", "pairs"];
/// Options that are of one run and not of a kind of documents.
const NOT_HERE: [&str; 9] =
    ["config", "output", "help", "version", "json", "resume", "dry-run", "date", "bounds"];
/// The option that names a list of inputs.
const INPUT_LIST: &str = "files-from";
/// A larger file is no settings file.
const MAX_BYTES: u64 = 1 << 20;

/// What a settings file says, checked value by value.
struct Settings {
    file: PathBuf,
    values: Vec<Setting>,
}

struct Setting {
    /// The long name of the option.
    key: String,
    line: usize,
    /// As the command line would have it.
    value: String,
}

impl Settings {
    fn read(file: &Path) -> Result<Settings, Failure> {
        let mut bytes = Vec::new();
        File::open(file)
            .and_then(|opened| opened.take(MAX_BYTES + 1).read_to_end(&mut bytes))
            .map_err(|e| Failure::at(file, "read", &e))?;
        let about = |what: &str| Failure::new(format!("{}: {what}", file.display()));
        if bytes.len() as u64 > MAX_BYTES {
            return Err(about("more than 1 MiB: expected a settings file"));
        }
        let text = String::from_utf8(bytes).map_err(|_| about("not UTF-8: save it as UTF-8"))?;
        let line_of = |at: usize| 1 + text[..at.min(text.len())].matches('\n').count();
        let at =
            |line: usize, what: &str| Failure::new(format!("{}:{line}: {what}", file.display()));
        let table = DeTable::parse(&text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_of(span.start));
            at(line, &format!("not TOML: {}", error.message()))
        })?;
        let mut values = Vec::new();
        for (key, value) in table.get_ref() {
            let line = line_of(key.span().start);
            let written =
                setting(key.get_ref(), value.get_ref()).map_err(|what| at(line, &what))?;
            let key = key.get_ref().to_string();
            values.extend(written.map(|value| Setting { key, line, value }));
        }
        values.sort_by_key(|setting| setting.line);
        let line = |key: &str| values.iter().find(|setting| setting.key == key).map(|s| s.line);
        if let (Some(line), Some(other)) = (line("max-distance"), line("min-score")) {
            let what = format!("max-distance: line {other} has min-score; keep one of the two");
            return Err(at(line, &what));
        }
        Ok(Settings { file: file.to_owned(), values })
    }

    /// The command line with these settings as defaults, but for those that what was given rules out.
    fn under(&self, name: &str, given: &ArgMatches) -> Result<clap::Command, Failure> {
        let is_given = |key: &str| {
            let id = key.replace('-', "_");
            given.try_contains_id(&id).is_ok()
                && given.value_source(&id) == Some(ValueSource::CommandLine)
        };
        let recipe = given.try_get_one::<String>("recipe").ok().flatten();
        let asked = is_sketch(
            |key| is_given(key).then(|| method(given)).flatten(),
            recipe.filter(|_| is_given("recipe")).map(String::as_str),
            is_given,
        );
        let own = |key: &str| self.values.iter().find(|s| s.key == key).map(|s| s.value.as_str());
        let filed =
            is_sketch(|key| own(key).map(str::to_owned), own("recipe"), |k| own(k).is_some());
        let other_way = asked.is_some() && filed.is_some() && asked != filed;
        let ruled_out = |key: &str| {
            (other_way && HOW.contains(&key))
                || (key == "max-distance" && is_given("min-score"))
                || (key == "min-score" && is_given("max-distance"))
        };
        let mut unused = Vec::new();
        let mut command = Cli::command();
        let global: Vec<String> = command.get_arguments().map(|a| a.get_id().to_string()).collect();
        for Setting { key, value, .. } in &self.values {
            if ruled_out(key) {
                unused.push(key.as_str());
                continue;
            }
            let Some(arg) = option(name, key) else { continue };
            let id = arg.get_id().to_string();
            let value = value.clone();
            let with_default = |arg: Arg| arg.default_value(value);
            command = if global.contains(&id) {
                command.mut_arg(id, with_default)
            } else {
                command.mut_subcommand(name, |own| own.mut_arg(id, with_default))
            };
        }
        if given.try_get_one::<bool>("quiet").ok().flatten() == Some(&true) {
            be_quiet();
        }
        if !unused.is_empty() {
            let what = format!(
                "{}: {} not used: the command line asks for something else",
                self.file.display(),
                unused.join(", ")
            );
            tell(Severity::Note, &what);
        }
        Ok(command)
    }
}

/// What decides how near duplicates are found: of one method these settings mean nothing to the other.
const HOW: [&str; 10] = [
    "method",
    "recipe",
    "bits",
    "max-distance",
    "min-score",
    "verify",
    "idf",
    "user-dictionary",
    "stop-words",
    "levels",
];

/// The method that was given on the command line.
fn method(given: &ArgMatches) -> Option<String> {
    let method = given.try_get_raw("method").ok()??.next()?;
    Some(method.to_string_lossy().into_owned())
}

/// Whether settings ask for sketches or, `false`, for SimHash; `None` when they leave it open.
fn is_sketch(
    method: impl Fn(&str) -> Option<String>,
    recipe: Option<&str>,
    has: impl Fn(&str) -> bool,
) -> Option<bool> {
    match (method("method"), recipe) {
        (Some(method), _) => Some(method == "sketch"),
        (None, Some(recipe)) => Some(recipe == "sketch" || recipe.starts_with("sketch:")),
        (None, None) if has("max-distance") || has("bits") => Some(false),
        (None, None) if has("verify") => Some(true),
        (None, None) => None,
    }
}

/// The option of this long name.
fn option(command: &str, key: &str) -> Option<Arg> {
    let mut all = Cli::command();
    all.build();
    let found = all.find_subcommand(command)?.get_arguments();
    found
        .filter(|arg| arg.get_long() == Some(key))
        .find(|arg| !NOT_HERE.contains(&key) && !arg.is_positional())
        .cloned()
}

/// What the command line would have for a value; `None` for a flag that is not set.
fn setting(key: &str, value: &DeValue<'_>) -> Result<Option<String>, String> {
    let Some((command, arg)) = COMMANDS.into_iter().find_map(|c| Some((c, option(c, key)?))) else {
        return Err(unknown(key));
    };
    let expected = Expected::of(&arg);
    let wrong =
        || format!("{}: expected {}, found {}", escaped(key), expected.name(), found(value));
    let written = match (expected, value) {
        (Expected::Flag, DeValue::Boolean(set)) => return Ok(set.then(|| "true".to_owned())),
        (Expected::Text | Expected::Size | Expected::Choice, DeValue::String(text)) => {
            text.to_string()
        }
        (
            Expected::Whole | Expected::Number | Expected::Size | Expected::Choice,
            DeValue::Integer(n),
        ) => i64::from_str_radix(&n.as_str().replace('_', ""), n.radix())
            .map_err(|_| wrong())?
            .to_string(),
        (Expected::Number, DeValue::Float(number)) => number.as_str().replace('_', ""),
        _ => return Err(wrong()),
    };
    // Clap checks the value as it would check it on the command line.
    let alone =
        Cli::command().mut_subcommand(command, |own| own.mut_args(|arg| arg.required(false)));
    let mut line = vec!["nearsift".to_owned(), command.to_owned(), format!("--{key}={written}")];
    // An input is required unless a list of them is named.
    if key != INPUT_LIST && option(command, INPUT_LIST).is_some() {
        line.push(format!("--{INPUT_LIST}=-"));
    }
    match alone.try_get_matches_from(line) {
        Ok(_) => Ok(Some(written)),
        Err(error) => Err(format!("{}: {}", escaped(key), why(&error, &written))),
    }
}

/// What a value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Flag,
    Whole,
    Number,
    Size,
    /// Text, or a number that is one of several.
    Choice,
    Text,
}

impl Expected {
    fn of(arg: &Arg) -> Expected {
        let is = |id: TypeId| arg.get_value_parser().type_id() == id;
        let is_size =
            arg.get_value_names().is_some_and(|names| names.iter().any(|n| n.as_str() == "SIZE"));
        if matches!(arg.get_action(), ArgAction::SetTrue) {
            Expected::Flag
        } else if is_size {
            Expected::Size
        } else if is(TypeId::of::<u16>()) || is(TypeId::of::<u32>()) || is(TypeId::of::<u64>()) {
            Expected::Whole
        } else if is(TypeId::of::<f64>()) {
            Expected::Number
        } else if arg.get_possible_values().is_empty() {
            Expected::Text
        } else {
            Expected::Choice
        }
    }

    fn name(self) -> &'static str {
        match self {
            Expected::Flag => "true or false",
            Expected::Whole => "a whole number",
            Expected::Number => "a number",
            Expected::Size => "a size such as \"4GB\"",
            Expected::Choice | Expected::Text => "text in quotation marks",
        }
    }
}

fn found(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => {
            let start: String = text.chars().take(40).collect();
            format!("the text \"{}\"", escaped(&start))
        }
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(set) => set.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// A key that is no option, with the option that it looks most like.
fn unknown(key: &str) -> String {
    if NOT_HERE.contains(&key) {
        return format!("{key} belongs on the command line: take it out of the file");
    }
    let mut all = Cli::command();
    all.build();
    let options = COMMANDS.iter().filter_map(|c| all.find_subcommand(c));
    let names = options.flat_map(clap::Command::get_arguments).filter_map(Arg::get_long);
    let nearest = names
        .filter(|name| !NOT_HERE.contains(name))
        .min_by_key(|name| (strsim::damerau_levenshtein(key, name), *name))
        .unwrap_or_default();
    let key: String = key.chars().take(40).collect();
    format!("unknown key '{}': the nearest one is {nearest}", escaped(&key))
}

/// What clap says of a value, without the command line around it.
fn why(error: &clap::Error, value: &str) -> String {
    match (error.kind(), error.get(ContextKind::ValidValue), std::error::Error::source(error)) {
        (ErrorKind::InvalidValue, Some(ContextValue::Strings(valid)), _) => {
            format!("expected one of {}, found '{}'", valid.join(", "), escaped(value))
        }
        (_, _, Some(source)) => source.to_string(),
        _ => format!("'{}' is not a value of it", escaped(value)),
    }
}
