//! The command line, and under it the environment and the settings file that `--config` names: their values stand in for the
//! defaults of the options, so that whatever the command line says wins.

use std::any::TypeId;
use std::collections::BTreeMap;
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
use crate::output::{Severity, be_quiet, escaped, explain, tell};
use crate::{chinese, environment, examples, language, other_names};

/// What the user asks for. A mistake on the command line ends the program here, as does `--help`.
///
/// # Errors
/// A settings file that cannot be read, or what is wrong in it or in the environment.
pub fn command_line(arguments: &[OsString]) -> Result<Cli, Failure> {
    let mut matches = command()
        .try_get_matches_from(arguments)
        .unwrap_or_else(|error| end(&with_remedy(error, arguments)));
    let (path, given) = called(&matches);
    let mut layers = vec![environment::settings(&path)?];
    let is_service = path.first().is_some_and(|name| name == "serve");
    if let (false, Ok(file)) = (is_service, given.try_get_one::<PathBuf>("config"))
        && let Some(file) = file.cloned().or_else(environment::config)
    {
        layers.push(file_settings(&file)?);
    }
    if layers.iter().any(|layer| !layer.values.is_empty()) {
        matches = with_layers(&path, given, layers).get_matches_from(arguments);
    }
    Cli::from_arg_matches(&matches).map_err(|error| error.exit())
}

/// The names of the command that was called, and what it was given.
fn called(matches: &ArgMatches) -> (Vec<String>, &ArgMatches) {
    let (mut path, mut own) = (Vec::new(), matches);
    while let Some((name, below)) = own.subcommand() {
        path.push(name.to_owned());
        own = below;
    }
    (path, own)
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
            if let Some(ContextValue::StyledStrs(tips)) = error.get(ContextKind::Suggested) {
                tips.iter().for_each(|tip| explain(&format!("\n  提示：{tip}")));
            }
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
pub fn command() -> clap::Command {
    let language = language::of_environment();
    let command = examples::add(Cli::command(), language);
    match language {
        PageLanguage::English => command,
        PageLanguage::Chinese => chinese::translate(command),
    }
}

/// An option or command that is unknown here and known elsewhere is answered with what does its work.
fn with_remedy(mut error: clap::Error, arguments: &[OsString]) -> clap::Error {
    let language = language::of_environment();
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let tip = match error.kind() {
        ErrorKind::UnknownArgument => text(ContextKind::InvalidArg).and_then(|given| {
            other_names::of_option(&given, &named(arguments), language)
                .map(str::to_owned)
                .or_else(|| similar(text(ContextKind::SuggestedArg), language))
        }),
        ErrorKind::InvalidSubcommand => text(ContextKind::InvalidSubcommand)
            .and_then(|given| other_names::of_command(&given, language)),
        _ => None,
    };
    if let Some(tip) = tip {
        for kind in [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand] {
            error.remove(kind);
        }
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// In Chinese, what clap says in English of an option with nearly the name.
fn similar(option: Option<String>, language: PageLanguage) -> Option<String> {
    match language {
        PageLanguage::English => None,
        PageLanguage::Chinese => option.map(|option| format!("有相近的选项：'{option}'")),
    }
}

/// The command that the arguments name, with the options of all commands.
fn named(arguments: &[OsString]) -> clap::Command {
    let mut program = Cli::command();
    program.build();
    let mut own = &program;
    for argument in arguments.iter().skip(1).filter_map(|argument| argument.to_str()) {
        own = own.find_subcommand(argument).unwrap_or(own);
    }
    own.clone()
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

/// Settings of one place, checked value by value.
pub struct Layer {
    pub place: Place,
    pub values: Vec<Setting>,
}

/// Where settings stand, beside the command line.
pub enum Place {
    Environment,
    File(PathBuf),
}

impl Place {
    /// How a message names some settings of the place.
    fn naming(&self, keys: &[&str]) -> String {
        match self {
            Place::Environment => {
                let names: Vec<String> =
                    keys.iter().map(|key| environment::variable(key)).collect();
                names.join(", ")
            }
            Place::File(file) => format!("{}: {}", file.display(), keys.join(", ")),
        }
    }
}

pub struct Setting {
    /// The long name of the option.
    pub key: String,
    /// As the command line would have it.
    pub value: String,
}

/// The settings of a file.
fn file_settings(file: &Path) -> Result<Layer, Failure> {
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
    let at = |line: usize, what: &str| Failure::new(format!("{}:{line}: {what}", file.display()));
    let table = DeTable::parse(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(span.start));
        at(line, &format!("not TOML: {}", error.message()))
    })?;
    let mut values = Vec::new();
    for (key, value) in table.get_ref() {
        let line = line_of(key.span().start);
        let written = setting(key.get_ref(), value.get_ref()).map_err(|what| at(line, &what))?;
        let key = key.get_ref().to_string();
        values.extend(written.map(|value| (line, Setting { key, value })));
    }
    values.sort_by_key(|(line, _)| *line);
    let line = |key: &str| values.iter().find(|(_, s)| s.key == key).map(|(line, _)| *line);
    if let (Some(line), Some(other)) = (line("max-distance"), line("min-score")) {
        let what = format!("max-distance: line {other} has min-score; keep one of the two");
        return Err(at(line, &what));
    }
    let values = values.into_iter().map(|(_, setting)| setting).collect();
    Ok(Layer { place: Place::File(file.to_owned()), values })
}

/// The command line with the settings of the layers as defaults, but for those that a higher place rules out: the command line, then one
/// layer after another.
fn with_layers(path: &[String], given: &ArgMatches, layers: Vec<Layer>) -> clap::Command {
    let mut command = Cli::command();
    let global: Vec<String> = command.get_arguments().map(|a| a.get_id().to_string()).collect();
    let own = environment::at(&command, path);
    let mut above: BTreeMap<String, String> = own
        .get_arguments()
        .filter(|arg| {
            let id = arg.get_id().as_str();
            given.try_contains_id(id).is_ok()
                && given.value_source(id) == Some(ValueSource::CommandLine)
        })
        .filter_map(|arg| {
            let raw = given.try_get_raw(arg.get_id().as_str()).ok()??.next()?;
            Some((arg.get_long()?.to_owned(), raw.to_string_lossy().into_owned()))
        })
        .collect();
    let mut asks = "the command line";
    let mut notes = Vec::new();
    for layer in layers {
        let values: BTreeMap<_, _> =
            layer.values.iter().map(|s| (s.key.clone(), s.value.clone())).collect();
        let (asked, own_way) = (is_sketch(&above), is_sketch(&values));
        let is_other_way = asked.is_some() && own_way.is_some() && asked != own_way;
        let is_ruled_out = |key: &str| {
            let others: &[&str] = match key {
                "max-distance" => &["min-score", "preset"],
                "min-score" => &["max-distance", "preset"],
                "preset" => &["max-distance", "min-score"],
                _ => &[],
            };
            is_other_way && HOW.contains(&key)
                || others.iter().any(|other| above.contains_key(*other))
        };
        let unused: Vec<&str> =
            layer.values.iter().map(|s| s.key.as_str()).filter(|key| is_ruled_out(key)).collect();
        if !unused.is_empty() {
            let settings = layer.place.naming(&unused);
            notes.push(format!("{settings} not used: {asks} asks for something else"));
        }
        let used: Vec<&Setting> = layer.values.iter().filter(|s| !is_ruled_out(&s.key)).collect();
        for Setting { key, value } in &used {
            let Some(arg) = own.get_arguments().find(|arg| arg.get_long() == Some(key)) else {
                continue;
            };
            if above.contains_key(key.as_str()) {
                continue;
            }
            let id = arg.get_id().to_string();
            let value = value.clone();
            let with_default = |arg: Arg| arg.default_value(value);
            command = if global.contains(&id) {
                command.mut_arg(id, with_default)
            } else {
                mut_below(command, path, Box::new(|own| own.mut_arg(id, with_default)))
            };
        }
        let used: Vec<_> = used.iter().map(|s| (s.key.clone(), s.value.clone())).collect();
        for (key, value) in used {
            above.entry(key).or_insert(value);
        }
        if !layer.values.is_empty() {
            asks = "the environment or the command line";
        }
    }
    if above.get("quiet").is_some_and(|set| set == "true") {
        be_quiet();
    }
    notes.iter().for_each(|note| tell(Severity::Note, note));
    command
}

/// Changes a command below others.
fn mut_below(
    command: clap::Command,
    path: &[String],
    change: Box<dyn FnOnce(clap::Command) -> clap::Command>,
) -> clap::Command {
    match path {
        [] => change(command),
        [name, rest @ ..] => command.mut_subcommand(name, |own| mut_below(own, rest, change)),
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

/// Whether settings ask for sketches or, `false`, for SimHash; `None` when they leave it open.
fn is_sketch(settings: &BTreeMap<String, String>) -> Option<bool> {
    let has = |key: &str| settings.contains_key(key);
    match (settings.get("method"), settings.get("recipe")) {
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
