//! Names from other programs are answered with what stands for them here.

use crate::support::{Folder, Run};

#[test]
fn options_of_other_programs_are_answered_with_those_of_this_one() {
    let folder = Folder::new();
    for (line, tip, in_chinese) in [
        ("dedup in -o out --threshold 0.8", "--min-score", "--min-score"),
        ("dedup in -o out --similarity=0.8", "--min-score", "--min-score"),
        ("pairs in --jaccard 0.8", "--min-score", "--min-score"),
        (
            "decontaminate in -o out --benchmarks b --threshold 0.8",
            "--min-coverage",
            "--min-coverage",
        ),
        ("dedup in -o out --num-perm 128", "there is none to choose", "无需选择"),
        ("dedup in -o out --num_perm 128", "there is none to choose", "无需选择"),
        ("dedup in -o out --bands 20", "there is none to choose", "无需选择"),
        ("dedup in -o out --ngram 5", "--recipe", "--recipe"),
        ("dedup in --output-dir out", "--output", "--output"),
        ("dedup in --out out", "--output", "--output"),
        ("tune in --out-dir out", "--output", "--output"),
        ("dedup --input in -o out", "inputs stand without an option", "输入不用选项"),
        ("compare a b --input in", "--in names", "--in"),
        ("dedup in -o out --column body", "--text-field", "--text-field"),
        ("index add seen in --id-column url", "--id-field", "--id-field"),
        ("dedup in -o out --workers 4", "--threads", "--threads"),
        ("fingerprint in --jobs 4", "--threads", "--threads"),
        ("fingerprint in -j 4", "--threads", "--threads"),
        ("dedup in -o out --verbose", "--progress json", "--progress json"),
        ("recipes -v", "unless --quiet", "--quiet"),
        ("serve data --workers 4 --port 80", "--listen", "--listen"),
        ("dedup in -o out --force", "--overwrite", "--overwrite"),
        ("deduplicate in", "`nearsift dedup`", "`nearsift dedup`"),
        ("query seen in", "`nearsift index query`", "`nearsift index query`"),
        // Nearly the name of an option.
        (
            "dedup in -o out --min-scor 0.8",
            "a similar argument exists: '--min-score'",
            "有相近的选项：'--min-score'",
        ),
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let english = folder.run(&args).expect(2);
        assert_eq!(english.stdout, "", "{line}");
        let shown = english.stderr.lines().find_map(|line| line.strip_prefix("  tip: "));
        assert!(shown.is_some_and(|shown| shown.contains(tip)), "{line}\n{}", english.stderr);
        let mut command = folder.command(&args);
        let chinese = command.env("NEARSIFT_LANGUAGE", "zh").output().expect("it runs");
        let chinese = Run::of(&chinese).expect(2).stderr;
        let shown = chinese.lines().find_map(|line| line.strip_prefix("  提示："));
        assert!(chinese.starts_with("错误：没有"), "{line}\n{chinese}");
        assert!(shown.is_some_and(|shown| shown.contains(in_chinese)), "{line}\n{chinese}");
    }
    // Nothing is suggested where nothing is known.
    let plain = folder.run(["dedup", "in", "-o", "out", "--zzz"]).expect(2).stderr;
    assert!(!plain.contains("tip: --"), "{plain}");
}
