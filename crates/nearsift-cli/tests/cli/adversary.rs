//! Corpora that are nothing but copies, texts of several kinds in one corpus, and pages that are made to look different
//! or alike.

use std::collections::BTreeSet;

use testkit::random::Random;

use crate::support::{Folder, Results, line};

/// A word of two to four syllables.
fn word(random: &mut Random) -> String {
    const SYLLABLES: [&str; 20] = [
        "ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu",
        "va", "we", "xi", "yo", "zu",
    ];
    (0..2 + random.below(3)).map(|_| *random.pick(&SYLLABLES)).collect()
}

/// Prose of a number of words, most of them frequent.
fn prose(random: &mut Random, words: usize) -> Vec<String> {
    const FREQUENT: [&str; 16] = [
        "the", "of", "and", "to", "in", "a", "is", "that", "for", "it", "was", "on", "with", "as",
        "by", "at",
    ];
    (0..words)
        .map(|_| match random.below(5) {
            0 | 1 => (*random.pick(&FREQUENT)).to_owned(),
            _ => word(random),
        })
        .collect()
}

fn dedup(documents: &[(String, String)]) -> (Results, Folder) {
    let folder = Folder::new();
    let lines: String = documents.iter().map(|(id, text)| line(id, text)).collect();
    folder.file("in.jsonl", lines);
    folder.dedup(&["in.jsonl"], "out", &["-q"]).expect(0);
    (folder.results("out"), folder)
}

fn removed(results: &Results) -> BTreeSet<String> {
    results.removed_ids().into_iter().collect()
}

/// Of a corpus of copies alone one stays; nothing counts as a form, and `tune` forecasts the same.
#[test]
fn of_copies_alone_one_stays() {
    let mut random = Random::new(3);
    let text = prose(&mut random, 200);
    let documents: Vec<(String, String)> = (0..300)
        .map(|number| {
            let mut text = text.clone();
            // Every other one as it is, the others with one to four words replaced.
            for _ in 0..number % 2 * (1 + number % 4) {
                let at = random.below(text.len());
                text[at] = word(&mut random);
            }
            (format!("copy-{number:03}"), text.join(" "))
        })
        .collect();
    let (results, folder) = dedup(&documents);
    assert_eq!(removed(&results).len(), 299);
    assert!(results.summary()["same_form_together"].is_null());
    let run = folder.run(["tune", "in.jsonl", "--json", "-q"]).expect(0);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    let forecast = |of: &str| report["forecast"][of]["value"].as_u64().expect("a number");
    assert_eq!(forecast("removed_same_text") + forecast("removed_near"), 299, "{report}");
}

/// In one corpus of prose, code, and pages with examples, only copies of the same kind go.
#[test]
fn prose_and_code_in_one_corpus() {
    let mut random = Random::new(9);
    let mut function = || {
        let [name, field, other] = [0; 3].map(|_| word(&mut random));
        format!(
            "def {name}_of(client, request, timeout={}):\n    \"\"\"Return the {field} of a ship.\"\"\"\n    response = client.send(request, timeout=timeout)\n    if response.status != 200:\n        raise ServiceError(response.status, \"{other}\")\n    record = response.json()\n    return record[\"{field}\"]\n",
            10 + random.below(90)
        )
    };
    let functions: Vec<String> = (0..20).map(|_| function()).collect();
    let mut random = Random::new(10);
    let mut documents = Vec::new();
    let mut copies = BTreeSet::new();
    for (number, function) in functions.iter().enumerate() {
        let mut text = || prose(&mut random, 120).join(" ");
        let (article, before, after) = (text(), text(), text());
        let page = format!("{before}\n\n{function}\n{after}\n");
        let mut push = |kind: &str, text: String| {
            documents.push((format!("{kind}-{number:02}"), text));
        };
        push("article", article.clone());
        push("function", function.clone());
        push("page", page.clone());
        if number % 4 == 0 {
            push("article-copy", format!("From our correspondent. {article} (Agency)"));
            push("function-copy", format!("# Taken from the harbour's own sources.\n{function}"));
            push("page-copy", format!("Last changed on Monday.\n{page}"));
            for kind in ["article", "function", "page"] {
                copies.insert(format!("{kind}-copy-{number:02}"));
            }
        }
    }
    let (results, _folder) = dedup(&documents);
    assert_eq!(removed(&results), copies);
}

/// Rare words that are added hide no copy, and a victim's words in a text of one's own make no copy of it.
#[test]
fn rare_words_hide_no_copy_and_make_none() {
    let mut random = Random::new(17);
    let mut documents: Vec<(String, String)> = Vec::new();
    let mut copies = BTreeSet::new();
    for number in 0..24 {
        let victim = prose(&mut random, 200);
        documents.push((format!("victim-{number:02}"), victim.join(" ")));
        let mut push = |documents: &mut Vec<_>, kind: &str, text: &[String], is_copy: bool| {
            let id = format!("{kind}-{number:02}");
            documents.push((id.clone(), text.join(" ")));
            if is_copy {
                copies.insert(id);
            }
        };
        // One attack on each victim: copies stand near each other, too.
        match number % 4 {
            0 => {
                let mut appended = victim.clone();
                appended.extend((0..victim.len() / 2).map(|_| word(&mut random)));
                push(&mut documents, "appended", &appended, true);
            }
            1 => {
                let mut scattered = victim.clone();
                for _ in 0..victim.len() * 3 / 10 {
                    let at = random.below(scattered.len());
                    scattered.insert(at, word(&mut random));
                }
                push(&mut documents, "scattered", &scattered, true);
            }
            2 => {
                let mut replaced = victim.clone();
                for _ in 0..victim.len() / 10 {
                    let at = random.below(replaced.len());
                    replaced[at] = word(&mut random);
                }
                push(&mut documents, "replaced", &replaced, true);
            }
            _ => {
                // All that is rare in the victim, in another order, after a text of its own.
                let mut stolen: Vec<String> =
                    victim.iter().filter(|word| word.len() > 4).cloned().collect();
                for last in (1..stolen.len()).rev() {
                    stolen.swap(last, random.below(last + 1));
                }
                let mut own = prose(&mut random, 100);
                own.extend(stolen);
                push(&mut documents, "stolen", &own, false);
            }
        }
    }
    let (results, _folder) = dedup(&documents);
    assert_eq!(removed(&results), copies);
}
