//! The list of targets, the files of cargo-fuzz and its manifest agree.

use fuzz_oracles::TARGETS;
use testkit::repository;

#[test]
fn every_target_has_a_file_and_a_binary_and_no_other_exists() {
    let mut expected: Vec<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    expected.sort();

    let mut files: Vec<String> = std::fs::read_dir(repository().join("fuzz/fuzz_targets"))
        .unwrap()
        .map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    files.sort();
    assert_eq!(files, expected, "files of fuzz/fuzz_targets");

    let manifest = std::fs::read_to_string(repository().join("fuzz/Cargo.toml")).unwrap();
    let mut binaries: Vec<String> = manifest
        .split("[[bin]]")
        .skip(1)
        .filter_map(|bin| bin.split('"').nth(1).map(str::to_owned))
        .collect();
    binaries.sort();
    assert_eq!(binaries, expected, "binaries of fuzz/Cargo.toml");
}

#[test]
fn the_document_lists_every_target() {
    let document = std::fs::read_to_string(repository().join("docs/operate/fuzzing.md")).unwrap();
    for target in TARGETS {
        let row = format!("| `{}` | {} |", target.name, target.about);
        assert!(document.contains(&row), "docs/operate/fuzzing.md has no line {row}");
    }
}
