use std::fs;

use nearsift_io::{Decision, Inputs, ReadOptions};
use proptest::prelude::*;

use crate::support::{Folder, both, gz, inputs, read, zst};

/// Anything that can be in a file: half JSON, half not.
fn file() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        Just(b"{\"text\":\"a\"}".to_vec()),
        Just(b"{\"text\":\"\\ud800\",\"id\":1}".to_vec()),
        Just("\u{feff}".as_bytes().to_vec()),
        "[\\[\\]{},\":a \r\n]{0,6}".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..4),
        Just(b"\n".to_vec()),
        Just(b"id,text\n1,\"x\ny\"\r\n".to_vec()),
    ];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn batches_of_any_size_give_the_same(bytes in file(), size in 1_usize..200, name in "a\\.(jsonl|json|csv|txt)") {
        let folder = Folder::new();
        let path = folder.file(&name, bytes);
        let whole = read(&inputs(&path));
        let options = ReadOptions { batch_bytes: size, ..ReadOptions::default() };
        prop_assert_eq!(read(&Inputs::resolve(&[path], options).expect("inputs")), whole);
    }

    #[test]
    fn all_kept_is_the_input(bytes in file(), name in "a\\.(jsonl|csv|tsv|txt|html)") {
        let folder = Folder::new();
        let (read, written, output) = both(&inputs(folder.file(&name, &bytes)), |_| Some(Decision::Keep));
        prop_assert_eq!(fs::read(output.path().join("kept").join(&name)).expect("kept"), bytes);
        prop_assert_eq!(written.kept as usize, read.decisions.len());
        prop_assert!(!output.path().join("unreadable").exists());
    }

    #[test]
    fn compression_changes_nothing(bytes in file(), name in "a\\.(jsonl|json|csv)") {
        let folder = Folder::new();
        let plain = read(&inputs(folder.file(&name, &bytes)));
        for (name, bytes) in [(format!("{name}.gz"), gz(&bytes)), (format!("{name}.zst"), zst(&bytes))] {
            let got = read(&inputs(folder.file(&name, bytes)));
            prop_assert_eq!(&got.decisions, &plain.decisions);
            prop_assert_eq!(got.codes(), plain.codes());
        }
    }

    #[test]
    fn nothing_is_lost(bytes in file(), seed in any::<u64>()) {
        let folder = Folder::new();
        let decide = |index: u64| match (seed >> (index % 32)) & 1 {
            0 => Some(Decision::Keep),
            _ => Some(Decision::Unreadable),
        };
        let (_, _, output) = both(&inputs(folder.file("a.jsonl", &bytes)), decide);
        let read = |tree: &str| fs::read(output.path().join(tree).join("a.jsonl")).unwrap_or_default();
        let marked = bytes.starts_with(b"\xef\xbb\xbf");
        let lines = |bytes: &[u8]| -> Vec<Vec<u8>> {
            let bytes = if marked { bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes) } else { bytes };
            let mut lines: Vec<_> = bytes
                .split_inclusive(|b| *b == b'\n')
                .filter(|l| !l.trim_ascii().is_empty())
                .map(<[u8]>::to_vec)
                .collect();
            lines.sort();
            lines
        };
        let mut both = [lines(&read("kept")), lines(&read("unreadable"))].concat();
        both.sort();
        prop_assert_eq!(both, lines(&bytes));
    }

    #[test]
    fn a_json_array_stays_one(keep in prop::collection::vec(any::<bool>(), 0..8), pretty in any::<bool>()) {
        let values: Vec<_> = (0..keep.len()).map(|n| serde_json::json!({ "text": n.to_string() })).collect();
        let text = if pretty { serde_json::to_string_pretty(&values) } else { serde_json::to_string(&values) };
        let folder = Folder::new();
        let decide = |i: u64| Some(if keep[i as usize] { Decision::Keep } else { Decision::Drop });
        let (_, _, output) = both(&inputs(folder.file("a.json", text.expect("JSON"))), decide);
        let got = fs::read(output.path().join("kept/a.json")).expect("kept");
        let got: Vec<serde_json::Value> = serde_json::from_slice(&got).expect("JSON");
        let expect: Vec<_> = values.into_iter().zip(&keep).filter(|(_, k)| **k).map(|(v, _)| v).collect();
        prop_assert_eq!(got, expect);
    }
}
