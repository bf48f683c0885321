//! Options from the environment: `NEARSIFT_MIN_SCORE` is `--min-score`, of every command that has it.

use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory};

use crate::args::Cli;
use crate::failure::Failure;
use crate::settings::{Layer, Place, Setting};

/// Options with a value that the environment does not have: they name what one run reads and writes, or are read elsewhere.
const NOT_HERE: &[&str] = &[
    "against",
    "benchmarks",
    "bounds",
    // Read by `config`.
    "config",
    "date",
    "decisions",
    "files-from",
    "html",
    "in",
    // Read by the module `language`.
    "language",
    "like",
    "new-key",
    "output",
    "output-file",
    "pairs",
    "review",
    "save-index",
    "seen",
    "substrings",
    "truth",
];
/// Options without a value that the environment has: all others say what a run does.
const FLAGS: &[&str] = &["follow-links", "json", "quiet"];

/// The variable of an option.
pub fn variable(option: &str) -> String {
    format!("NEARSIFT_{}", option.replace('-', "_").to_ascii_uppercase())
}

/// What a variable is set to. An empty one counts as none.
pub fn get(variable: &str) -> Option<String> {
    std::env::var_os(variable)
        .filter(|value| !value.is_empty())
        .map(|value| value.to_string_lossy().into_owned())
}

/// The settings file that the environment names.
pub fn config() -> Option<PathBuf> {
    std::env::var_os(variable("config")).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// A command below others, with the options of all commands.
pub fn at(program: &Command, path: &[String]) -> Command {
    let mut program = program.clone();
    program.build();
    let mut own = &program;
    for name in path {
        own = own.find_subcommand(name).unwrap_or(own);
    }
    own.clone()
}

/// The options of a command that the environment has.
fn options(path: &[String]) -> Vec<Arg> {
    let is_service = path.first().is_some_and(|name| name == "serve");
    let command = at(&Cli::command(), path);
    let here = command.get_arguments().filter(|arg| {
        let Some(long) = arg.get_long() else { return false };
        match arg.get_action().takes_values() {
            // The service reads its settings itself.
            true if is_service => long == "color",
            true => !NOT_HERE.contains(&long),
            false => FLAGS.contains(&long),
        }
    });
    here.cloned().collect()
}

/// What the environment says about the options of a command.
///
/// # Errors
/// A value that the option does not take.
pub fn settings(path: &[String]) -> Result<Layer, Failure> {
    let mut values = Vec::new();
    for arg in options(path) {
        let Some(key) = arg.get_long() else { continue };
        let name = variable(key);
        let Some(value) = get(&name) else { continue };
        let value = match arg.get_action().takes_values() {
            true => Some(value),
            false => set(&name, &value)?,
        };
        let Some(value) = value else { continue };
        check(path, key, &name, &value)?;
        values.push(Setting { key: key.to_owned(), value });
    }
    let has = |key: &str| values.iter().any(|setting: &Setting| setting.key == key);
    if has("max-distance") && has("min-score") {
        let [distance, score] = ["max-distance", "min-score"].map(variable);
        return Err(Failure::new(format!("{distance}: {score} is set, too; keep one of the two")));
    }
    Ok(Layer { place: Place::Environment, values })
}

/// Whether a flag is set, as the command line would have it.
fn set(name: &str, value: &str) -> Result<Option<String>, Failure> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(Some("true".to_owned())),
        "0" | "false" | "no" | "off" => Ok(None),
        _ => Err(Failure::new(format!(
            "invalid value '{value}' for '{name}' [possible values: true, false]"
        ))),
    }
}

/// Checks a value as it would be checked on the command line.
fn check(path: &[String], key: &str, name: &str, value: &str) -> Result<(), Failure> {
    let mut line = vec!["nearsift".to_owned()];
    line.extend(path.iter().cloned());
    line.push(match value {
        "true" if FLAGS.contains(&key) => format!("--{key}"),
        value => format!("--{key}={value}"),
    });
    let Err(error) = Cli::command().try_get_matches_from(line) else { return Ok(()) };
    let why = match (error.kind(), error.get(ContextKind::ValidValue)) {
        // What else the command needs is no matter of this option.
        (ErrorKind::InvalidValue, Some(ContextValue::Strings(valid))) => {
            format!(" [possible values: {}]", valid.join(", "))
        }
        (ErrorKind::InvalidValue | ErrorKind::ValueValidation, _) => {
            let source = std::error::Error::source(&error);
            source.map(|source| format!(": {source}")).unwrap_or_default()
        }
        _ => return Ok(()),
    };
    Err(Failure::new(format!("invalid value '{value}' for '{name}'{why}")))
}

// Some commands are on Unix alone.
#[cfg(all(test, unix))]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn paths(command: &Command, path: &[String], all: &mut Vec<Vec<String>>) {
        if path.is_empty() || !command.has_subcommands() || command.get_name() == "bench" {
            all.push(path.to_vec());
        }
        for own in command.get_subcommands() {
            paths(own, &[path, &[own.get_name().to_owned()]].concat(), all);
        }
    }

    fn all_paths() -> Vec<Vec<String>> {
        let mut all = Vec::new();
        paths(&Cli::command(), &[], &mut all);
        all.retain(|path| !path.is_empty());
        all
    }

    #[test]
    fn what_is_left_out_is_there() {
        let longs: BTreeSet<String> = all_paths()
            .iter()
            .flat_map(|path| {
                let command = at(&Cli::command(), path);
                let longs = command.get_arguments().filter_map(Arg::get_long);
                longs.map(str::to_owned).collect::<Vec<_>>()
            })
            .collect();
        for name in NOT_HERE.iter().chain(FLAGS) {
            assert!(longs.contains(*name), "{name}");
        }
        // None of a run could have a default.
        for path in all_paths() {
            for arg in options(&path) {
                assert!(!arg.is_required_set(), "{path:?}: {arg}");
            }
        }
    }

    /// The page has every variable, with the commands that read it.
    #[test]
    fn the_page_lists_every_variable() {
        let mut commands: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let all = all_paths();
        for path in &all {
            for arg in options(path) {
                let long = arg.get_long().unwrap_or_default().to_owned();
                commands.entry(long).or_default().push(path.join(" "));
            }
        }
        let mut rows = "| variable | option | commands |\n|---|---|---|\n".to_owned();
        for (option, of) in &commands {
            let all_but_service = all.len() - 1;
            let of = match of.len() {
                n if n == all.len() => "all".to_owned(),
                n if n == all_but_service => "all but `serve`".to_owned(),
                _ => of.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
            };
            rows.push_str(&format!("| `{}` | `--{option}` | {of} |\n", variable(option)));
        }
        let path = testkit::repository().join("docs/use/environment.md");
        let page = std::fs::read_to_string(&path).expect("docs/use/environment.md");
        assert!(
            page.contains(&rows),
            "docs/use/environment.md has not exactly these rows:\n{rows}"
        );
    }
}
