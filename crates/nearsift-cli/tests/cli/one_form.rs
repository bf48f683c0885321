//! Documents of one form: what they say decides, and not what they are written in.

use std::collections::BTreeSet;

use testkit::random::Random;

use crate::answers;
use crate::support::{Folder, Results, Run, line};

const TOWNS: [&str; 12] = [
    "Alderby",
    "Brackwater",
    "Corvale",
    "Dunmoor",
    "Esterly",
    "Fallowick",
    "Grimsand",
    "Hathersby",
    "Inverlow",
    "Jutland Cross",
    "Kestrel Bay",
    "Lorrimer",
];
const GOODS: [&str; 10] = [
    "barley",
    "wool",
    "copper wire",
    "salted fish",
    "timber",
    "paper",
    "oranges",
    "lamp oil",
    "glass",
    "bricks",
];
const SHIPS: [&str; 11] = [
    "Morning Star",
    "Good Hope",
    "Albatross",
    "Queen Ann",
    "Petrel",
    "Providence",
    "Sea Otter",
    "Marigold",
    "North Wind",
    "Fidelity",
    "Swallow",
];

/// A ship's arrival, by one template.
fn arrival(random: &mut Random) -> String {
    let mut of = |names: &[&str]| names[random.below(names.len())].to_owned();
    let (ship, from, to, goods) = (of(&SHIPS), of(&TOWNS), of(&TOWNS), of(&GOODS));
    let mut number = |below: usize| random.below(below) + 2;
    format!(
        "The {ship} from {from} came in at {} hours with {} tons of {goods} on board and tied up at pier {}. She was {} days at sea under a crew of {}. Harbour dues of {} marks were paid at the office, where the papers may be seen, and she leaves for {to} when the tide allows. The harbour master asks all owners of small boats to keep clear of the channel while she turns, and reminds the public that the quay is closed to carriages after dark.",
        number(22),
        number(900),
        number(40),
        number(80),
        number(60),
        number(4000)
    )
}

fn dedup(documents: &[(String, String)], options: &[&str]) -> (Results, Run, Folder) {
    let folder = Folder::new();
    let lines: String = documents.iter().map(|(id, text)| line(id, text)).collect();
    folder.file("in.jsonl", lines);
    let run = folder.dedup(&["in.jsonl"], "out", options).expect(0);
    let results = folder.results("out");
    (results, run, folder)
}

#[test]
fn reports_of_one_template_stay_and_their_reprints_go() {
    let mut random = Random::new(11);
    let mut documents: Vec<(String, String)> =
        (0..60).map(|n| (format!("report{n:02}"), arrival(&mut random))).collect();
    for n in (0..60).step_by(6) {
        let reprint = format!("By our harbour correspondent. {} (Agency)", documents[n].1);
        documents.push((format!("reprint{n:02}"), reprint));
    }
    let (results, run, _folder) = dedup(&documents, &[]);
    let removed: BTreeSet<String> = results.removed_ids().into_iter().collect();
    let reprints: BTreeSet<String> = (0..60).step_by(6).map(|n| format!("reprint{n:02}")).collect();
    assert_eq!(removed, reprints);
    // What was kept apart is said, with an example.
    answers::ONE_FORM.check(&run);
    assert!(results.count("/same_form_apart/pairs") > 60);
    assert!(results.count("/same_form_apart/differ") > 5);

    // In another order, with a rule for what stays that does not look at the order.
    for last in (1..documents.len()).rev() {
        documents.swap(last, random.below(last + 1));
    }
    let (shuffled, _, _folder) = dedup(&documents, &["--keep", "longest"]);
    let originals: BTreeSet<String> = (0..60).step_by(6).map(|n| format!("report{n:02}")).collect();
    assert_eq!(shuffled.removed_ids().into_iter().collect::<BTreeSet<_>>(), originals);
}

/// A removal tells in how many values the document and its representative agree and differ, as their pair does.
#[test]
fn removals_have_the_facts_of_their_pairs() {
    let mut random = Random::new(21);
    let mut documents: Vec<(String, String)> =
        (0..40).map(|n| (format!("report{n:02}"), arrival(&mut random))).collect();
    for n in 0..10 {
        let corrected = documents[n].1.replacen("pier ", "pier 9", 1);
        documents.push((format!("corrected{n}"), corrected.replacen("crew of ", "crew of 1", 1)));
    }
    let (results, _, _folder) = dedup(&documents, &[]);
    let of = |line: &serde_json::Value, names: [&str; 2]| {
        let mut ids = names.map(|name| line[name].as_str().expect("an id").to_owned());
        ids.sort();
        (ids, [line["agree"].as_u64(), line["differ"].as_u64()])
    };
    let pairs: Vec<_> = results.lines("pairs.jsonl").iter().map(|l| of(l, ["a", "b"])).collect();
    let removed = results.lines("removed.jsonl");
    assert!(removed.len() >= 10, "{removed:?}");
    for line in &removed {
        let (ids, facts) = of(line, ["id", "representative"]);
        let of_pair = pairs.iter().find(|(of_pair, _)| *of_pair == ids).expect("its pair");
        assert_eq!(facts, of_pair.1, "{line}");
    }
    assert!(removed.iter().any(|line| line["differ"].as_u64() > Some(0)), "{removed:?}");
}

#[test]
fn a_story_with_many_reprints_stays_one_group() {
    let mut random = Random::new(5);
    let story = [arrival(&mut random), arrival(&mut random)].join(" ");
    let words: Vec<&str> = story.split(' ').collect();
    let other: Vec<&str> = TOWNS.into_iter().chain(GOODS).chain(SHIPS).collect();
    // Each with a twentieth of its words replaced, any two with a tenth.
    let documents: Vec<(String, String)> = (0..300)
        .map(|n| {
            let mut words = words.clone();
            for _ in 0..words.len() / 20 {
                let at = random.below(words.len());
                words[at] = other[random.below(other.len())];
            }
            (format!("{n:03}"), words.join(" "))
        })
        .collect();
    let (results, _, _folder) = dedup(&documents, &[]);
    let groups = results.groups();
    assert!(groups.iter().map(Vec::len).max() >= Some(295), "{:?}", groups.iter().map(Vec::len));
}

#[test]
fn records_of_few_fields_are_not_one_without_a_warning() {
    let mut random = Random::new(3);
    let mut of = |names: &[&str]| names[random.below(names.len())].to_owned();
    let mut documents: Vec<(String, String)> = Vec::new();
    for n in 0..40 {
        let (ship, town, goods) = (of(&SHIPS), of(&TOWNS), of(&GOODS));
        let text = format!(
            "Ship: {ship}\nHome port: {town}\nLast cargo: {goods}\nTelegraph: +00 31 {} {}\nNotes: pays at the office, asks for pier {}, has been here before.",
            1000 + n * 97 % 8999,
            1000 + n * 613 % 8999,
            n % 7
        );
        documents.push((format!("{n:02}"), text));
    }
    let (results, run, _folder) = dedup(&documents, &[]);
    let shown = run.shown();
    let removed = results.removed_ids().len();
    let told = results.summary()["same_form_together"]["documents"].as_u64().unwrap_or(0);
    assert!(told >= removed as u64, "{removed} of 40 went, {told} told");
    assert_eq!(removed > 0, shown.contains("may have only a form in common"), "{shown}");
}

#[test]
fn one_text_in_frames_of_other_sites_is_found() {
    let frames = [
        [
            "Harbour News\nHome Ships Weather Tides Notices Archive Subscribe\nThe paper of the coast since the first lighthouse.\n",
            "\nShare this page with friends. About us. Terms of use. Write to the editor. All rights reserved by the printers.",
        ],
        [
            "coastwatch\nSign in Register Forum Maps Live view Photos\nYou read an item of our open board; volunteers look after it every day.\n",
            "\nComments are closed. Rules of the board. Privacy. Report an item that you think is wrong.",
        ],
    ];
    let mut random = Random::new(8);
    let mut documents = Vec::new();
    for n in 0..20 {
        let text = arrival(&mut random);
        for (site, [before, after]) in frames.iter().enumerate() {
            documents.push((format!("{n:02}-{site}"), format!("{before}{text}{after}")));
        }
    }
    let (results, _, _folder) = dedup(&documents, &[]);
    let removed: BTreeSet<String> = results.removed_ids().into_iter().collect();
    for n in 0..20 {
        let of_text = [0, 1].map(|site| removed.contains(&format!("{n:02}-{site}")));
        assert_eq!(of_text.into_iter().filter(|&is_removed| is_removed).count(), 1, "{removed:?}");
    }
}

#[test]
fn code_is_compared_as_code() {
    let licence = "# Copyright of the harbour board.\n# You may use this file under the terms of the board, which come with it,\n# and you may not take this notice away.\n\n";
    let function = |name: &str, field: &str, limit: u32| {
        format!(
            "def {name}(client, request, timeout={limit}):\n    \"\"\"Return the {field} of a ship.\n\n    The request is sent as it is; errors of the service are raised.\n    \"\"\"\n    response = client.send(request, timeout=timeout)\n    if response.status != 200:\n        raise ServiceError(response.status, response.text)\n    record = response.json()\n    return record[\"{field}\"]\n"
        )
    };
    let other = "class Tide:\n    def __init__(self, table):\n        self.table = sorted(table)\n\n    def at(self, hour):\n        for (start, level) in reversed(self.table):\n            if start <= hour:\n                return level\n        return None\n";
    let documents = [
        ("cargo-1", licence.to_owned() + &function("cargo_of", "cargo", 30)),
        ("cargo-2", licence.replace("harbour", "river") + &function("cargo_of", "cargo", 60)),
        ("master", licence.to_owned() + &function("get_master_name", "master_name", 30)),
        ("tide", licence.to_owned() + other),
    ];
    let documents = documents.map(|(id, text)| (id.to_owned(), text));
    let (results, _, _folder) = dedup(&documents, &[]);
    assert_eq!(results.removed_ids(), ["cargo-2"]);
}
