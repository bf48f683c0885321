//! Cost against size: what each step allocates, how often, and how much it holds at once, for inputs of doubling size in the
//! shapes that somebody would send who wants the step to take long. A square shows at once.
//!
//! Memory is counted, so the test gives the same answer on every machine. Times decide nothing:
//! `cargo test --release -p nearsift --test growth -- --ignored --nocapture` prints them beside what is counted.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "the ignored test prints figures"
)]

use std::hint::black_box;
use std::time::Instant;

use nearsift::compare::differences;
use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::partial::Seeder;
use nearsift::recipe::Recipe;
use nearsift::text::decode::{Hints, decode};
use nearsift::text::extract::{Limits, extract};
use nearsift::text::normalise::normalise;
use nearsift::verify::{Profile, Verifier};
use testkit::allocations::{Counted, Counting, counted};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A name, and a text of about the given size.
type Shape = (&'static str, fn(usize) -> String);

fn repeat(unit: &str, bytes: usize) -> String {
    unit.repeat(bytes.div_ceil(unit.len()))
}

fn numbered(bytes: usize, unit: impl Fn(u32) -> String) -> String {
    let mut text = String::new();
    for number in 0.. {
        if text.len() >= bytes {
            break;
        }
        text.push_str(&unit(number));
    }
    text
}

const SHAPES: [Shape; 18] = [
    ("one letter", |n| repeat("a", n)),
    ("one Chinese character", |n| repeat("中", n)),
    ("Chinese, all different", |n| {
        let han = |i: u32| char::from_u32(0x4e00 + i.wrapping_mul(7919) % 20_000);
        numbered(n, |i| han(i).into_iter().collect())
    }),
    ("words, all different", |n| numbered(n, |i| format!("w{i} "))),
    ("nested tags", |n| repeat("<div><p>", n)),
    ("nested tags with text", |n| numbered(n, |i| format!("<div>word {i} of it."))),
    ("closed tags", |n| repeat("</div></table></a>", n)),
    ("formatting", |n| repeat("<b><i><a href=x>y<p>", n)),
    ("entities", |n| repeat("&amp;&#x4e2d;&notin;&", n)),
    ("attributes", |n| format!("<p {}>text</p>", numbered(n, |i| format!("a{i}=\"{i}\" ")))),
    ("open tag", |n| repeat("<a href='", n)),
    ("rows", |n| format!("<table>{}", numbered(n, |i| format!("<tr><td>cell {i}, of it<td>x")))),
    ("combining marks", |n| format!("a{}", repeat("\u{301}\u{316}", n))),
    ("joiners", |n| repeat("👩\u{200d}", n)),
    ("long words", |n| numbered(n, |i| format!("{}{i} ", "x".repeat(5000)))),
    ("bidi", |n| repeat("\u{202e}שלום \u{202c}abc ", n)),
    ("numbers", |n| numbered(n, |i| i.wrapping_mul(2_654_435_761).to_string())),
    ("ligatures", |n| repeat("\u{fdfa}", n)),
];

/// A name, and what is done with a text.
type Step = (&'static str, fn(&str));

fn fingerprint(recipe: &str, text: &str) {
    let recipe = Recipe::parse(recipe).expect("a recipe");
    let mut fingerprinter = recipe.fingerprinter().expect("complete");
    if recipe.is_sketch() {
        let _ = black_box(fingerprinter.sketch(text));
    } else {
        black_box(fingerprinter.fingerprint(text));
    }
    black_box(fingerprinter.text_key());
}

/// A text with every seventh word, or every seventh character of a long one, left out.
fn edited(text: &str) -> String {
    let kept = |(at, _): &(usize, &str)| at % 7 != 3;
    match text.split_whitespace().count() {
        0..7 => text.chars().enumerate().filter(|(at, _)| at % 7 != 3).map(|(_, c)| c).collect(),
        _ => text.split_inclusive(' ').enumerate().filter(kept).map(|(_, word)| word).collect(),
    }
}

fn verify(text: &str) {
    let table = DocumentFrequencies::shipped();
    let profile = |text: &str| {
        Profile::of(&normalise(text), |hash| table.idf_sixteenths(hash).into()).expect("short")
    };
    let backwards: String = text.chars().rev().collect();
    let own = profile(text);
    black_box(Verifier::new().compare(&own, &profile(&edited(text))));
    black_box(Verifier::new().compare(&own, &profile(&backwards)));
}

const STEPS: [Step; 13] = [
    ("decode", |text| _ = black_box(decode(text.as_bytes(), &Hints::default()))),
    ("decode, damaged", |text| {
        let mut bytes = text.as_bytes().to_vec();
        bytes.iter_mut().step_by(97).for_each(|byte| *byte ^= 0x80);
        black_box(decode(&bytes, &Hints::default()));
    }),
    ("extract", |text| _ = black_box(extract(text, &Limits::default()))),
    ("normalise", |text| _ = black_box(normalise(text))),
    ("sketch", |text| fingerprint("sketch", text)),
    ("simhash", |text| fingerprint("simhash64", text)),
    ("simhash, words", |text| fingerprint("simhash64:features=word2,weight=tf", text)),
    ("keywords", |text| fingerprint("keywords64", text)),
    ("explain", |text| {
        let recipe = Recipe::parse("keywords64").expect("a recipe");
        black_box(recipe.fingerprinter().expect("complete").explain(text));
    }),
    ("verify", verify),
    ("differences", |text| _ = black_box(differences(text, &edited(text)))),
    ("seeds", |text| _ = black_box(Seeder::default().seeds(text))),
    // A client of the service names a recipe.
    ("a recipe's name", |text| _ = black_box(Recipe::parse(&format!("simhash64:{text}")))),
];

/// What a step asks of the allocator, beside its input.
fn cost(step: fn(&str), text: &str) -> Counted {
    counted(|| step(text))
}

/// What a step may ask for and hold whatever it reads: tables that it makes each time, blocks of a fixed size.
const FIXED_BYTES: i64 = 16 << 20;
const FIXED_CALLS: i64 = 20_000;

/// For each byte of the input at most: bytes held at once, bytes asked for in all, and calls.
const HELD_A_BYTE: i64 = 400;
const BYTES_A_BYTE: i64 = 1600;
const CALLS_A_BYTE: i64 = 2;

/// Tables that live as long as the process are made before anything is counted.
fn make_tables() {
    STEPS.iter().for_each(|(_, step)| step("中文 and words 12 <p>of all kinds</p>"));
}

#[test]
fn what_a_step_allocates_grows_with_the_size_of_the_input() {
    make_tables();
    let mut wrong = Vec::new();
    for (name, step) in STEPS {
        for (shape, text) in SHAPES {
            let sizes = [1usize << 15, 1 << 16, 1 << 17];
            let costs = sizes.map(|bytes| cost(step, &text(bytes)));
            let grows = |of: fn(&Counted) -> i64, fixed: i64, a_byte: i64| {
                // Twice the input: at most three times as much, for a table may just have doubled, and a square were four.
                let steps_up = costs.windows(2).all(|two| of(&two[1]) <= 3 * of(&two[0]) + fixed);
                let most = of(&costs[2]) <= a_byte * sizes[2] as i64 + fixed;
                steps_up && most
            };
            let is_bounded = grows(|c| c.peak, FIXED_BYTES, HELD_A_BYTE)
                && grows(|c| c.bytes, FIXED_BYTES, BYTES_A_BYTE)
                && grows(|c| c.calls, FIXED_CALLS, CALLS_A_BYTE);
            if !is_bounded {
                wrong.push(format!("{name}, {shape}: {costs:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "prints figures, which decide nothing"]
fn figures() {
    make_tables();
    for (name, step) in STEPS {
        for (shape, text) in SHAPES {
            let sizes = [1usize << 16, 1 << 17, 1 << 18, 1 << 19];
            let times = sizes.map(|bytes| {
                let text = text(bytes);
                let run = |_| {
                    let begun = Instant::now();
                    step(&text);
                    begun.elapsed().as_secs_f64() * 1e3
                };
                (0..3).map(run).fold(f64::MAX, f64::min)
            });
            let growth = times[3] / times[0];
            let mark = if growth > 16.0 { "  <- more than n log n" } else { "" };
            let Counted { peak, bytes, calls, .. } = cost(step, &text(sizes[3]));
            let a_byte = |count: i64| count as f64 / sizes[3] as f64;
            println!(
                "{name:16} {shape:24} {times:9.3?} ms, x{growth:.1} for x8; held {:.1}, asked {:.1}, calls {:.3} a byte{mark}",
                a_byte(peak),
                a_byte(bytes),
                a_byte(calls),
            );
        }
    }
}
