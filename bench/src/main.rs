//! Benchmarks.
#![allow(clippy::print_stdout)]

mod words;

fn main() {
    let data = testkit::data_dir().expect("the evaluation data");
    for set in ["derived/zh_news.jsonl.zst", "derived/en_news.jsonl.zst"] {
        let texts = testkit::texts(&data.join(set));
        println!("{:?}", words::segmentation(&texts));
        println!("{:?}", words::keywords(&texts));
    }
}
