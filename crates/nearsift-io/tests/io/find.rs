use std::fs;
use std::path::{Path, PathBuf};

use nearsift_io::{Error, Format, Inputs, Links, ReadOptions, Reason, prepare_output};

use crate::support::{Folder, read};

fn resolve(arguments: &[PathBuf], format: Option<Format>) -> Result<Inputs, Error> {
    Inputs::resolve(arguments, ReadOptions { format, ..ReadOptions::default() })
}

#[test]
fn which_files_where_and_in_which_order() {
    let folder = Folder::new();
    for file in
        ["d/b.jsonl", "d/a/x.jsonl", "d/a-b/x.txt.gz", "d/c.bin", "e/b.jsonl", "e/noext", "f.json"]
    {
        folder.file(file, "");
    }
    let check = |arguments: &[&str], format, expect: &[&str], skipped| {
        let arguments: Vec<_> = arguments.iter().map(|a| folder.path(a)).collect();
        let inputs = resolve(&arguments, format).expect("inputs");
        let got: Vec<_> = inputs
            .files()
            .iter()
            .map(|f| {
                let below = f.name()[folder.0.path().as_os_str().len() + 1..].to_owned();
                format!("{below} > {}", inputs.output_path(f).display())
            })
            .collect();
        assert_eq!(got, expect, "{arguments:?}");
        assert_eq!(inputs.skipped().files, skipped);
    };
    // By the bytes of the whole path: `-` comes before `/`.
    check(
        &["d"],
        None,
        &["d/a-b/x.txt.gz > a-b/x.txt.gz", "d/a/x.jsonl > a/x.jsonl", "d/b.jsonl > b.jsonl"],
        1,
    );
    check(&["d"], Some(Format::JsonLines), &["d/a/x.jsonl > a/x.jsonl", "d/b.jsonl > b.jsonl"], 2);
    check(&["f.json"], None, &["f.json > f.json"], 0);
    check(&["f.json", "d/b.jsonl"], None, &["f.json > f.json", "d/b.jsonl > d/b.jsonl"], 0);
    check(&["e", "d/b.jsonl"], None, &["e/b.jsonl > e/b.jsonl", "d/b.jsonl > d/b.jsonl"], 1);
    check(
        &["d/b.jsonl", "d/a/x.jsonl"],
        None,
        &["d/b.jsonl > b.jsonl", "d/a/x.jsonl > a/x.jsonl"],
        0,
    );
    check(
        &["d/a", "d"],
        None,
        &["d/a/x.jsonl > a/x.jsonl", "d/a-b/x.txt.gz > a-b/x.txt.gz", "d/b.jsonl > b.jsonl"],
        1,
    );
    check(&["e/noext"], None, &["e/noext > noext"], 0);
    check(&["e/../f.json"], None, &["e/../f.json > f.json"], 0);
    check(&["d/*.jsonl"], None, &["d/b.jsonl > b.jsonl"], 0);
    check(&["d/**/*.jsonl"], None, &["d/a/x.jsonl > a/x.jsonl", "d/b.jsonl > b.jsonl"], 0);
    check(
        &["d/{a,a-b}/x.*"],
        None,
        &["d/a-b/x.txt.gz > a-b/x.txt.gz", "d/a/x.jsonl > a/x.jsonl"],
        0,
    );
    check(&["*/b.jsonl"], None, &["d/b.jsonl > d/b.jsonl", "e/b.jsonl > e/b.jsonl"], 0);
    check(&["e/n*"], Some(Format::JsonLines), &["e/noext > noext"], 0);
    // A name that exists is no pattern.
    folder.file("g/[a].jsonl", "");
    check(&["g/[a].jsonl"], None, &["g/[a].jsonl > [a].jsonl"], 0);
}

#[test]
fn output_paths_stay_inside() {
    let folder = Folder::new();
    let a = folder.file("a/x/f.jsonl", "");
    let b = folder.file("b/x/f.jsonl", "");
    let dotted = folder.path("a/../b/../a/x");
    let inputs = resolve(&[dotted, b.clone(), a], None).expect("inputs");
    let paths: Vec<_> = inputs.files().iter().map(|f| inputs.output_path(f)).collect();
    assert_eq!(paths, [Path::new("a/x/f.jsonl"), Path::new("b/x/f.jsonl")]);
    for path in paths {
        assert!(path.components().all(|c| matches!(c, std::path::Component::Normal(_))));
    }
    // The pipe has a name of its own, whatever the files are called.
    let named = folder.file("c/stdin.jsonl", "");
    let arguments = [named.as_os_str(), "-".as_ref(), "-".as_ref()];
    let inputs =
        Inputs::resolve_from(&arguments, ReadOptions::default(), &mut &b"{}"[..]).expect("inputs");
    let paths: Vec<_> = inputs.files().iter().map(|f| inputs.output_path(f)).collect();
    assert_eq!(paths, [Path::new("stdin.jsonl"), Path::new("stdin-2.jsonl")]);
    assert_eq!(inputs.notes().len(), 1);
}

#[test]
fn the_same_file_twice() {
    let folder = Folder::new();
    let a = folder.file("d/a.jsonl", "{\"text\":\"a\"}\n");
    let inputs = resolve(&[a.clone(), folder.path("d"), folder.path("d/../d/a.jsonl")], None)
        .expect("inputs");
    assert_eq!(read(&inputs).documents.len(), 1);
    let notes: Vec<_> =
        inputs.notes().iter().map(|n| (n.reason.clone(), n.reason.is_loss())).collect();
    assert_eq!(notes, [(Reason::NamedTwice, false), (Reason::NamedTwice, false)]);
}

#[test]
fn errors_name_the_place_and_the_remedy() {
    let folder = Folder::new();
    folder.file("d/a.bin", "");
    folder.file("unknown", b"\0\x01\x02");
    let check = |arguments: &[&str], parts: &[&str]| {
        let arguments: Vec<_> = arguments.iter().map(|a| folder.path(a)).collect();
        let message = resolve(&arguments, None).expect_err("refused").to_string();
        for part in parts {
            assert!(message.contains(part), "{message}");
        }
    };
    check(&["missing.jsonl"], &["missing.jsonl", "no such file", "check the spelling"]);
    check(&["d/*.jsonl"], &["d/*.jsonl", "no file matches"]);
    check(&["nowhere/*.jsonl"], &["nowhere/*.jsonl", "no file matches"]);
    check(&["d/[a"], &["d/[a", "not a valid pattern"]);
    check(
        &["d"],
        &["/d: no file to read, 1 of other formats skipped", ".jsonl .ndjson", "name the files"],
    );
    check(&["unknown"], &["unknown: unknown format", "`format`"]);
    let none: [&str; 0] = [];
    assert!(matches!(Inputs::resolve(&none, ReadOptions::default()), Err(Error::NoInput)));
}

#[cfg(unix)]
#[test]
fn links_and_folders_without_permission() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let folder = Folder::new();
    folder.file("d/a.jsonl", "{\"text\":\"a\"}\n");
    folder.file("other/b.jsonl", "{\"text\":\"b\"}\n");
    folder.file("d/locked/c.jsonl", "{\"text\":\"c\"}\n");
    symlink(folder.path("other"), folder.path("d/link")).expect("a link");
    symlink(folder.path("d"), folder.path("d/loop")).expect("a link");
    symlink(folder.path("gone"), folder.path("d/dangling.jsonl")).expect("a link");
    let locked = folder.path("d/locked");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).expect("permissions");
    // The superuser may list it all the same: the test is run again as nobody, where that can be done.
    let open = fs::read_dir(&locked).is_ok();
    if open {
        use std::os::unix::process::CommandExt;
        let myself = std::env::current_exe().expect("this program");
        let mut again = std::process::Command::new(myself);
        again.args(["--exact", "find::links_and_folders_without_permission"]);
        if let Ok(output) = again.uid(65534).gid(65534).output() {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        }
    }
    let inputs = resolve(&[folder.path("d")], None).expect("inputs");
    let named = resolve(std::slice::from_ref(&locked), None);
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o755)).expect("permissions");
    assert_eq!(read(&inputs).documents.len(), if open { 2 } else { 1 });
    // What is not in the folder is read when that is asked for.
    assert_eq!(inputs.skipped().links, 1);
    let followed = ReadOptions { links: Links::Followed, ..ReadOptions::default() };
    let followed = Inputs::resolve(&[folder.path("d")], followed).expect("inputs");
    assert_eq!(read(&followed).documents.len(), 3);
    let only_links = folder.path("only");
    fs::create_dir(&only_links).expect("a folder");
    symlink(folder.path("other"), only_links.join("out")).expect("a link");
    symlink(folder.path("other/b.jsonl"), only_links.join("out.jsonl")).expect("a link");
    let refused =
        resolve(std::slice::from_ref(&only_links), None).expect_err("nothing").to_string();
    assert!(refused.contains("`follow-links`"), "{refused}");
    symlink("out.jsonl", only_links.join("in.jsonl")).expect("a link");
    fs::remove_file(only_links.join("out.jsonl")).expect("removed");
    fs::write(only_links.join("out.jsonl"), "{\"text\":\"a\"}\n").expect("a file");
    let inside = resolve(std::slice::from_ref(&only_links), None).expect("inputs");
    assert_eq!((inside.files().len(), inside.skipped().links), (1, 1));
    let names = inputs.notes().iter().map(|n| n.file.rsplit('/').next().unwrap_or_default());
    let expect: &[&str] = if open {
        &["d", "dangling.jsonl", "loop"]
    } else {
        &["d", "dangling.jsonl", "locked", "loop"]
    };
    assert_eq!(names.collect::<Vec<_>>(), expect);
    assert!(matches!(inputs.notes()[0].reason, Reason::LinksOut { links: 1, .. }));
    assert!(inputs.notes()[1..].iter().all(|n| matches!(n.reason, Reason::Folder(_))));
    if !open {
        let message = named.expect_err("refused").to_string();
        assert!(message.contains("locked: cannot be read"), "{message}");
        assert!(message.contains("ask for permission"), "{message}");
    }
}

#[cfg(unix)]
#[test]
fn pipes_are_copied() {
    let folder = Folder::new();
    let pipe = folder.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|s| s.success()) {
        return;
    }
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::write(pipe, "{\"text\":\"a\"}\n").expect("a reader")
    });
    let inputs = resolve(&[pipe], None).expect("inputs");
    writer.join().expect("written");
    for _ in 0..2 {
        assert_eq!(read(&inputs).documents.len(), 1);
    }
    let output = inputs.output_path(&inputs.files()[0]);
    assert_eq!(output, Path::new("pipe.jsonl"));
}

#[test]
fn a_spool_folder_that_is_not_there() {
    let folder = Folder::new();
    let options = ReadOptions { spool_folder: Some(folder.path("none")), ..ReadOptions::default() };
    let error = Inputs::resolve_from(&["-"], options, &mut &b"x"[..]).expect_err("refused");
    assert!(matches!(error, Error::Spool { .. }), "{error}");
}

#[test]
fn output_folders() {
    let folder = Folder::new();
    let file = folder.file("in/d/a.jsonl", "");
    folder.file("full/x", "");
    fs::create_dir_all(folder.path("empty")).expect("a folder");
    #[cfg(unix)]
    std::os::unix::fs::symlink(folder.path("in"), folder.path("link")).expect("a link");
    let check = |input: &Path, output: &str, expect: &str| {
        let inputs = resolve(&[input.to_owned()], None).expect("inputs");
        let path = folder.path(output);
        let existed = path.exists();
        let got = match prepare_output(&path, &inputs) {
            Ok(_) => "fine".to_owned(),
            Err(Error::OutputOverlaps { relation, .. }) => relation.to_owned(),
            Err(Error::OutputNotEmpty { .. }) => "not empty".to_owned(),
            Err(Error::OutputNotFolder { .. }) => "a file".to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(got, expect, "{output}");
        // A refusal makes nothing.
        assert_eq!(path.exists(), existed || expect == "fine");
        if expect == "fine" && !existed {
            fs::remove_dir(&path).expect("an empty folder");
        }
    };
    let input = folder.path("in");
    check(&input, "out", "fine");
    check(&input, "empty", "fine");
    check(&input, "full", "not empty");
    check(&input, "full/x", "a file");
    check(&input, "in", "is");
    check(&input, "", "contains");
    check(&input, "in/d/new", "lies inside");
    check(&input, "empty/../in/new", "lies inside");
    check(&input, "new/../in", "is");
    check(&file, "in/d", "contains");
    check(&file, "in", "contains");
    check(&file, "in/d/out", "fine");
    #[cfg(unix)]
    {
        check(&input, "link", "is");
        check(&input, "link/new", "lies inside");
        check(&folder.path("link"), "in/new", "lies inside");
    }
}
