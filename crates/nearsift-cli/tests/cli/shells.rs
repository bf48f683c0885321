//! What the program writes for shells and for `man`, read by those programs.

use std::path::Path;
use std::process::Command;

use crate::support::{Folder, Run, skip};

/// The commands of the program, as its help lists them; those below others with both names.
pub fn commands(folder: &Folder) -> Vec<Vec<String>> {
    fn below(folder: &Folder, path: &[String], all: &mut Vec<Vec<String>>) {
        let help = folder.run([path, &["--help".to_owned()]].concat()).expect(0).stdout;
        let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
        let listed = listed.take_while(|line| !line.is_empty());
        let names = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
        for name in names.filter(|name| !name.is_empty() && *name != "help") {
            let own = [path, &[name.to_owned()]].concat();
            all.push(own.clone());
            below(folder, &own, all);
        }
    }
    let mut all = Vec::new();
    below(folder, &[], &mut all);
    assert!(all.len() > 30, "{all:?}");
    all
}

/// The long options in the help of a command.
fn options(folder: &Folder, path: &[String]) -> Vec<String> {
    let help = folder.run([path, &["--help".to_owned()]].concat()).expect(0).stdout;
    let options = help.lines().filter_map(|line| {
        let rest = line.trim_start();
        let rest = rest.split_once(", ").map_or(rest, |(short, long)| match short.len() {
            2 => long,
            _ => rest,
        });
        let name = rest.strip_prefix("--")?.split([' ', '=']).next()?;
        // An indented text may begin with the name of another option.
        (line.len() - line.trim_start().len() <= 6).then(|| format!("--{name}"))
    });
    options.collect()
}

fn works(program: &str, arguments: &[&str]) -> bool {
    let run = Command::new(program).args(arguments).output();
    let works = run.is_ok_and(|output| output.status.success());
    if !works {
        skip(&format!("no {program}"));
    }
    works
}

/// What a shell prints that reads a script from standard input and has nothing of the user's settings.
fn shell(folder: &Folder, program: &str, arguments: &[&str], script: &str) -> Run {
    let file = folder.file("script", script);
    let mut command = Command::new(program);
    command.args(arguments).arg(file).current_dir(folder.path("")).env("HOME", folder.path(""));
    Run::of(&command.output().expect("a shell"))
}

#[test]
fn bash_completes_commands_options_and_values() {
    if !works("bash", &["--version"]) {
        return;
    }
    let folder = Folder::new();
    let completions = folder.run(["completions", "bash"]).expect(0);
    assert_eq!(completions.stderr, "");
    folder.file("nearsift.bash", &completions.stdout);
    let all = commands(&folder);
    let mut asked: Vec<(String, Vec<String>)> = vec![
        ("nearsift de".to_owned(), vec!["dedup".to_owned(), "decontaminate".to_owned()]),
        ("nearsift index sn".to_owned(), vec!["snapshot".to_owned()]),
        ("nearsift dedup --min-s".to_owned(), vec!["--min-score".to_owned()]),
        ("nearsift dedup --method ".to_owned(), vec!["sketch".to_owned(), "simhash".to_owned()]),
        ("nearsift completions z".to_owned(), vec!["zsh".to_owned()]),
    ];
    if cfg!(unix) {
        let settings = ["--max-body", "--max-body-memory"].map(str::to_owned).to_vec();
        asked.push(("nearsift serve --max-bo".to_owned(), settings));
    }
    let exact = asked.len();
    for path in &all {
        let line = format!("nearsift {} --", path.join(" "));
        asked.push((line, options(&folder, path)));
    }
    // As bash does when Tab is pressed.
    let mut script = "source nearsift.bash\n\
         function=$(complete -p nearsift | sed 's/.* -F \\([^ ]*\\) .*/\\1/')\n"
        .to_owned();
    for (line, _) in &asked {
        let words: Vec<&str> = line.split(' ').collect();
        let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let [.., before, last] = &quoted[..] else { panic!("{line}") };
        script += &format!(
            "COMP_WORDS=({}); COMP_CWORD={}; COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; COMPREPLY=()\n\
             \"$function\" nearsift {last} {before}\n\
             echo \"${{COMPREPLY[*]}}\"\n",
            quoted.join(" "),
            words.len() - 1,
        );
    }
    let run = shell(&folder, "bash", &["--norc", "--noprofile"], &script).expect(0);
    assert_eq!(run.stderr, "");
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines.len(), asked.len());
    for (at, ((line, expected), reply)) in asked.iter().zip(lines).enumerate() {
        let mut reply: Vec<&str> = reply.split_whitespace().collect();
        let mut expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        reply.sort_unstable();
        expected.sort_unstable();
        if at < exact {
            assert_eq!(reply, expected, "{line}");
        } else {
            let missing: Vec<_> = expected.iter().filter(|o| !reply.contains(o)).collect();
            assert!(
                missing.is_empty() && expected.len() >= 6,
                "{line}: {missing:?} of {expected:?}"
            );
        }
    }
}

#[test]
fn zsh_and_fish_read_their_scripts() {
    let folder = Folder::new();
    let script = |shell: &str| folder.run(["completions", shell]).expect(0).stdout;
    for (name, check) in [("zsh", "-n"), ("fish", "-n")] {
        if works(name, &["--version"]) {
            let run = shell(&folder, name, &[check], &script(name)).expect(0);
            assert_eq!(run.shown(), "status 0\n--- stdout\n--- stderr\n", "{name}");
        }
    }
    if works("fish", &["--version"]) {
        folder.file("nearsift.fish", script("fish"));
        let asked =
            "source nearsift.fish\ncomplete -C 'nearsift de'\ncomplete -C 'nearsift index sn'\n";
        let run = shell(&folder, "fish", &["--no-config"], asked).expect(0);
        let names: Vec<&str> =
            run.stdout.lines().filter_map(|line| line.split('\t').next()).collect();
        for name in ["dedup", "decontaminate", "snapshot"] {
            assert!(names.contains(&name), "{name}: {}", run.stdout);
        }
    }
    if works("zsh", &["--version"]) {
        folder.file("functions/_nearsift", script("zsh"));
        // The function is found and defined by the completion system of zsh.
        let asked = "fpath=($PWD/functions $fpath)\nautoload -Uz compinit\ncompinit -u -D\n\
             print -r -- ${_comps[nearsift]}\nautoload -Uz +X _nearsift && print -r -- loaded\n";
        let run = shell(&folder, "zsh", &["-f"], asked).expect(0);
        assert_eq!(run.stdout, "_nearsift\nloaded\n", "{}", run.stderr);
    }
    for other in ["powershell", "elvish"] {
        let script = script(other);
        assert!(script.contains("decontaminate") && script.contains("--min-score"), "{other}");
    }
    let wrong = folder.run(["completions", "csh"]).expect(2).stderr;
    assert!(wrong.contains("[possible values: bash, elvish, fish, powershell, zsh]"), "{wrong}");
}

/// The pages of a folder, made by the program.
fn pages(folder: &Folder, language: &str) -> Vec<std::path::PathBuf> {
    let mut command = folder.command(["man", "--output", language]);
    let run = Run::of(&command.env("NEARSIFT_LANGUAGE", language).output().expect("it runs"));
    assert_eq!(run.expect(0).shown(), "status 0\n--- stdout\n--- stderr\n");
    let entries = std::fs::read_dir(folder.path(language)).expect("a folder");
    let mut pages: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    pages.sort();
    pages
}

#[test]
fn every_command_has_a_manual_page_that_man_reads() {
    let folder = Folder::new();
    let all = commands(&folder);
    for language in ["en", "zh"] {
        let pages = pages(&folder, language);
        let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
        let names: Vec<String> = pages.iter().map(|path| name(path)).collect();
        for path in &all {
            let expected = format!("nearsift-{}.1", path.join("-"));
            assert!(names.contains(&expected), "{expected}: {names:?}");
        }
        assert!(names.contains(&"nearsift.1".to_owned()));
        let has_groff = works("groff", &["--version"]);
        for page in &pages {
            let text = std::fs::read_to_string(page).expect("a page");
            assert!(text.contains(".SH SYNOPSIS"), "{}", page.display());
            if !has_groff {
                continue;
            }
            let mut groff = Command::new("groff");
            // With the rules for breaking lines of Chinese, as `man` has them.
            let rules: &[&str] = if language == "zh" { &["-mzh"] } else { &[] };
            groff.arg("-man").args(rules).args(["-Tutf8", "-Kutf8", "-ww"]).arg(page);
            let run = Run::of(&groff.output().expect("groff")).expect(0);
            assert_eq!(run.stderr, "", "{}", page.display());
            // An example stands there as it is typed.
            let example = "$ nearsift why out title-pool-b\n";
            let has_it = run.stdout.contains(example);
            assert_eq!(has_it, page.ends_with("nearsift-why.1"), "{}", run.stdout);
        }
    }
    // A second time they are replaced.
    folder.run(["man", "--output", "en"]).expect(0);
    folder.file("file", "");
    let error = folder.run(["man", "--output", "file"]).expect(2).stderr;
    assert!(error.starts_with("error: file: cannot create: "), "{error}");
}
