//! Single stages against their peers, and reports of the benchmarks that measure by themselves.

use gaoya::simhash::{SimHash, SimSipHasher64};
use gaoya::text::shingle_text;
use nearsift::feature::hash_token;
use nearsift::feature::shingle::char_shingles;
use nearsift::fingerprint::{Bits, votes::simhash};
use nearsift::recipe::Recipe;

use crate::corpus::Corpus;
use crate::harness::{Contest, Report, Row, Work};
use crate::votes::Weights;
use crate::{Settings, join, votes, words};

/// The text that stages are measured on is cut after this many bytes.
const TEXT_BYTES: usize = 7_000_000;

/// Character 3-grams without normalisation, as the peer takes them.
const THREE_GRAMS: &str =
    "simhash64:features=char3,weight=tf,normalise=none,punctuation=keep,min-features=1";

/// Fingerprints of character 3-grams against gaoya, and the default recipe beside them.
pub fn fingerprints(settings: &Settings) -> Result<Report, String> {
    let mut report = Report::new(
        "fingerprints",
        "Text to 64-bit SimHash on one core. The first row and gaoya 0.2 (`SimHash` with `SimSipHasher64` \
         over `shingle_text`) take every character 3-gram of the same text; gaoya hashes with SipHash. \
         The default recipe normalises too.",
    );
    let texts = chinese_text(settings, &mut report)?;
    let recipe = |written| Recipe::parse(written).map_err(|e| e.to_string());
    let (grams, default) = (recipe(THREE_GRAMS)?, recipe("simhash64")?);
    let mut grams = grams.fingerprinter().map_err(|e| e.to_string())?;
    let mut default = default.fingerprinter().map_err(|e| e.to_string())?;
    let peer = SimHash::<SimSipHasher64, u64, 64>::new(SimSipHasher64::new(1, 2));

    let mut by_recipe = |text: &str| grams.fingerprint(text).fingerprint().map(|f| f.words()[0]);
    let mut by_default = |text: &str| default.fingerprint(text).fingerprint().map(|f| f.words()[0]);
    let by_peer = |text: &str| Some(peer.create_signature(shingle_text(text, 3)));
    let naive = |text: &str| {
        let mut hashes = Vec::new();
        char_shingles(text, 3, |gram| hashes.push(hash_token(gram)));
        simhash(Bits::B64, &hashes, &vec![1; hashes.len()]).map(|f| f.words()[0])
    };
    let expected = digest(&texts, naive);
    let (own, others) = (digest(&texts, &mut by_default), digest(&texts, by_peer));
    Contest::new(Work::Bytes(bytes(&texts)))
        .add("nearsift, 3-grams", expected, || digest(&texts, &mut by_recipe))
        // Nobody else computes these two: they must be the same in every round.
        .add("gaoya, 3-grams", others, || digest(&texts, by_peer))
        .add("nearsift simhash64", own, || digest(&texts, &mut by_default))
        .run(settings.rounds as usize, &mut report);
    let speed = report.figure("nearsift, 3-grams", "MB/s").expect("measured above");
    report.goal_at_least("3-grams", 400.0, "MB/s", speed);
    let ratio = report.figure("gaoya, 3-grams", "ratio").expect("measured above");
    report.goal_at_least("3-grams", 6.0, "times gaoya", ratio);
    Ok(report)
}

/// One number of all fingerprints, in their order.
fn digest(texts: &[String], mut fingerprint: impl FnMut(&str) -> Option<u64>) -> u64 {
    texts.iter().fold(0u64, |sum, text| {
        sum.rotate_left(1).wrapping_add(fingerprint(text).unwrap_or(0x9e37_79b9_7f4a_7c15))
    })
}

/// Word segmentation and keywords against jieba-rs.
pub fn words(settings: &Settings) -> Result<Report, String> {
    let mut report = Report::new(
        "words",
        "Word segmentation (hidden Markov model off) and the ten best words by TF-IDF, on one core, \
         against jieba-rs 0.11 on the same text. Every text's words are compared first.",
    );
    let texts = chinese_text(settings, &mut report)?;
    for (comparison, least) in [(words::segmentation(&texts), 2.2), (words::keywords(&texts), 3.0)]
    {
        let words::Comparison { name, peer, mb_per_second, peer_mb_per_second, ratio, .. } =
            comparison;
        let row = |who: &str, speed, ratio| {
            Row::new(format!("{who}, {name}")).with("MB/s", speed).with("ratio", ratio)
        };
        report.add(row("nearsift", mb_per_second, 1.0));
        report.add(row(peer, peer_mb_per_second, ratio));
        report.goal_at_least(name, least, "times jieba-rs", ratio);
    }
    Ok(report)
}

/// Every vote kernel of this machine.
pub fn votes(settings: &Settings) -> Result<Report, String> {
    let mut report = Report::new(
        "votes",
        "Votes of hashed features to a fingerprint, by kernel, on one core. The kernels' fingerprints \
         are compared in every round.",
    );
    report.set("rounds", u64::from(settings.rounds));
    for result in votes::run(settings.rounds as usize) {
        let votes::VotesResult { kernel, bits, weights, features, ns_per_feature } = result;
        let kind = match weights {
            Weights::Weighted => "weighted",
            Weights::Unweighted => "unweighted",
        };
        let name = format!("{kernel}, {bits} bits, {kind}, {features} features");
        report.add(Row::new(name).with("ns/feature", ns_per_feature));
        let classic = bits == 64 && weights == Weights::Weighted && features == 256;
        match kernel {
            "portable" if classic => {
                report.goal_at_most("portable kernel", 5.0, "ns a feature", ns_per_feature);
            }
            "avx512" if classic => {
                report.goal_at_most("AVX-512 kernel", 1.5, "ns a feature", ns_per_feature);
            }
            _ => {}
        }
    }
    Ok(report)
}

/// The exact self-join of 64-bit fingerprints.
pub fn join(settings: &Settings) -> Result<Report, String> {
    let mut report = Report::new(
        "join",
        "All pairs of 64-bit fingerprints within a distance, on one thread and two: grouping equal \
         values, then all pairs in order; the faster of two runs where the first took less than 7 s. Counts \
         are compared with those of comparing all. The last rows \
         are of distinct values, on one thread beside all-pairs-hamming 0.1 and simhash (leonsim), whose time \
         is computed from building its index and 200 queries.",
    );
    let mut uniform = Vec::new();
    for case in join::CASES {
        for threads in [1, 2] {
            let found = join::measure(case, threads);
            let name = format!(
                "{} {}, distance {}, {threads} threads, {}",
                found.data.name(),
                found.n,
                found.max_distance,
                found.plan
            );
            let (seconds, links) = (found.pairs_seconds, found.links_seconds);
            let about = format!("{} {}, distance {}", case.data.name(), case.n, case.max_distance);
            match (case.data, case.n, case.max_distance, threads) {
                (join::Data::Uniform, n, k, 1) => uniform.push(((n, k), links)),
                (join::Data::Skewed, n, k, 1) => {
                    let same = uniform.iter().find(|(key, _)| *key == (n, k));
                    let even = same.expect("even values are measured first").1;
                    let unit = "times as long as evenly spread, links";
                    report.goal_at_most(&about, 2.0, unit, links / even);
                }
                (join::Data::Distinct, _, 3, 2) => {
                    report.goal_at_most(&about, 0.5, "s on 2 threads", seconds);
                }
                (join::Data::Distinct, _, 6, 2) => {
                    report.goal_at_most(&about, 2.0, "s on 2 threads", seconds);
                }
                (join::Data::Distinct, _, 8, 2) => {
                    report.goal_at_most(&about, 15.0, "s on 2 threads", seconds);
                }
                _ => {}
            }
            let row = Row::new(&name)
                .with("s", seconds)
                .with("pairs cpu s", found.pairs_cpu_seconds.unwrap_or(f64::NAN))
                .with("links s", links)
                .with("links cpu s", found.links_cpu_seconds.unwrap_or(f64::NAN))
                .with("expected s", found.expected_seconds)
                .with("pairs", found.pairs as f64)
                .with("comparisons", found.comparisons as f64);
            report.add(row);
            report.check(
                &format!("pairs are those of comparing all, {name}"),
                &true,
                &found.correct,
            );
        }
    }
    let close = |case: &&join::Case| {
        let peers = case.data != join::Data::Distinct && case.n >= 1_000_000;
        peers && case.max_distance == 3
    };
    for case in join::CASES.iter().filter(close) {
        let name = format!("{} {}, distance {}", case.data.name(), case.n, case.max_distance);
        let mut own = f64::NAN;
        for peer in join::against_peers(case) {
            let join::Peer { name: who, seconds, own_seconds, agrees } = peer;
            let ratio = seconds / own_seconds;
            own = own_seconds;
            let first =
                Row::new(format!("{name}, distinct values, 1 threads")).with("s", own_seconds);
            let other = Row::new(format!("{name}, distinct values, {who}")).with("s", seconds);
            report.add(first);
            report.add(other.with("ratio", ratio));
            report.check(&format!("as many pairs as {who}, {name}"), &true, &agrees);
            if case.data == join::Data::Uniform {
                report.goal_at_least(&name, 12.0, &format!("times {who}"), ratio);
            }
        }
        // On skewed values its buckets of strings take minutes.
        if case.data == join::Data::Uniform {
            match join::simhash_seconds(case, &settings.out) {
                Ok(seconds) => {
                    let who = "simhash (leonsim), computed";
                    let row =
                        Row::new(format!("{name}, distinct values, {who}")).with("s", seconds);
                    report.add(row.with("ratio", seconds / own));
                    report.goal_at_least(&name, 12.0, &format!("times {who}"), seconds / own);
                }
                Err(message) => report.fact("simhash (leonsim)", format!("left out: {message}")),
            }
        }
    }
    let large = if settings.large { join::LARGE_CASES } else { &[] };
    for case in large {
        let name = format!("{} {}, distance {}", case.data.name(), case.n, case.max_distance);
        let found = join::measure_large(case, 2);
        let seconds = found.seconds;
        let mut row = Row::new(format!("{name}, 2 threads"))
            .with("s", seconds)
            .with("pairs", found.pairs as f64);
        if let Some(bytes) = found.peak_bytes {
            row = row.with("peak bytes", bytes as f64);
        }
        report.add(row);
        report.check(&format!("the pairs of other blocks, {name}"), &true, &found.correct);
        let most = if case.n > 100_000_000 { 40.0 } else { 4.5 };
        report.goal_at_most(&name, most, "s on 2 threads", seconds);
        if let (Some(bytes), true) = (found.peak_bytes, case.n > 100_000_000) {
            report.goal_at_most(&name, 12e9, "bytes at the peak", bytes as f64);
        }
    }
    Ok(report)
}

/// Chinese news of the evaluation data where it is at hand, else Chinese documents of the generated
/// corpus.
fn chinese_text(settings: &Settings, report: &mut Report) -> Result<Vec<String>, String> {
    let news = testkit::data_dir().map(|dir| dir.join("derived/zh_news.jsonl.zst"));
    let mut texts = match news.filter(|path| path.is_file()) {
        Some(path) => {
            report.fact("text", "derived/zh_news of the evaluation data");
            testkit::texts(&path)
        }
        None => {
            report.fact("text", "Chinese documents of the generated corpus");
            let all = crate::corpus::Settings { chinese_per_mille: 1_000, ..settings.corpus() };
            let corpus = Corpus::new(all);
            (0..settings.documents.min(7_500))
                .map(|index| {
                    let mut text = String::new();
                    corpus.push_text(index, &mut text);
                    text
                })
                .collect()
        }
    };
    let mut left = TEXT_BYTES;
    texts.retain(|text| {
        let fits = text.len() <= left;
        left -= if fits { text.len() } else { 0 };
        fits
    });
    report.set("bytes", bytes(&texts));
    report.set("texts", texts.len() as u64);
    report.set("rounds", u64::from(settings.rounds));
    Ok(texts)
}

fn bytes(texts: &[String]) -> u64 {
    texts.iter().map(|text| text.len() as u64).sum()
}
