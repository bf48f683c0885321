//! Golden vectors: fingerprints that no later version may change.

#![allow(clippy::print_stderr, reason = "tests say on standard error why they skip")]

use nearsift::recipe::Recipe;
use nearsift::recipe::compat::Compat;
use nearsift::recipe::vectors::{Case, check_reader, evaluate};
use std::collections::BTreeSet;
use std::path::Path;

/// Checks a file and returns the number of its vectors.
#[track_caller]
fn check(path: &Path) -> u64 {
    let report = check_reader(testkit::read(path).as_slice(), &evaluate).unwrap();
    assert_eq!(report.failed(), 0, "{}:\n{report}", path.display());
    report.passed
}

#[test]
fn the_committed_vectors_pass() {
    let path = testkit::repository().join("crates/nearsift/tests/vectors/compat.jsonl");
    assert!(check(&path) >= 100);
}

#[test]
fn the_native_recipes_have_the_fingerprints_they_always_had() {
    let path = testkit::repository().join("crates/nearsift/tests/vectors/native.jsonl");
    assert!(check(&path) >= 780);
}

/// A digest changes when a parameter, a default or a dictionary does: then fingerprints of before
/// and after must not be compared, and this test says so.
#[test]
fn digests_are_pinned() {
    let check = |recipe: &str, digest: &str| {
        let recipe = Recipe::parse(recipe).unwrap();
        assert_eq!(format!("{:016x}", recipe.digest()), digest, "{recipe}");
    };
    check("simhash64", "8630283f68bbdad6");
    check("keywords64", "9d78a31f48bbe782");
    check("leonsim", "6b632336b4f48493");
}

#[test]
fn the_committed_vectors_have_every_recipe_and_parameter() {
    let path = testkit::repository().join("crates/nearsift/tests/vectors/compat.jsonl");
    let mut seen = BTreeSet::new();
    for line in testkit::read(&path).split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let case = Case::parse(line).unwrap();
        seen.extend(case.params.into_iter().map(|(name, _)| format!("{}:{name}", case.recipe)));
        seen.insert(case.recipe);
    }
    for description in Compat::ALL {
        assert!(seen.contains(description.name), "{}", description.name);
        for parameter in description.parameters {
            let name = format!("{}:{}", description.name, parameter.name);
            assert!(seen.contains(&name), "{name}");
        }
    }
}

#[test]
fn vectors_of_the_evaluation_data_pass() {
    let path = testkit::repository().join("../shared/vectors/compat.jsonl");
    if path.is_file() {
        check(&path);
    } else {
        eprintln!("SKIPPED: no vectors at {}", path.display());
    }
}
