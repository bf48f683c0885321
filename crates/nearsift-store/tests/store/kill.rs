//! A process that writes is killed at random moments. The ledger of what it was told is durable is kept
//! outside of it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nearsift_store::disk::RealDisk;
use nearsift_store::{Maintenance, Options, Store, verify};
use testkit::random::Random;

use crate::support::{ALL, Hands, Model, Op, Shape, contents, count, random_op, say, small, write};

const FOLDER: &str = "NEARSIFT_KILL_FOLDER";
const FIRST: &str = "NEARSIFT_KILL_FIRST";

fn shape() -> Shape {
    ALL[1]
}

fn options() -> Options {
    let hands = Hands::at(1000);
    Options { maintenance: Maintenance::Background, ..small(Arc::new(RealDisk), 150, &hands) }
}

/// What batch `number` does, whoever asks.
fn batch(number: u64) -> Vec<Op> {
    let mut random = Random::of_item(77, number);
    (0..=random.below(60)).map(|_| random_op(&shape(), &mut random, 3000, 1000)).collect()
}

/// The process that is killed: writes batches, and says the number of each when it is durable.
#[test]
#[ignore = "started by the test below"]
#[expect(clippy::print_stdout, reason = "the ledger is kept by whoever reads it")]
fn child() {
    let (Ok(folder), first) = (std::env::var(FOLDER), count(FIRST, 0)) else { return };
    let store = Store::open_with(Path::new(&folder), options()).expect("opened");
    println!("open");
    for number in first.. {
        write(&store, &batch(number)).expect("written");
        println!("{number}");
        if number % 40 == 39 {
            store.compact().expect("merged");
        }
        if number % 25 == 24 {
            let copy = Path::new(&folder).with_extension(format!("copy{number}"));
            store.snapshot(&copy).expect("copied");
            std::fs::remove_dir_all(copy).expect("removed");
        }
    }
}

#[test]
fn what_was_acknowledged_survives_kill_9() {
    let cycles = count("NEARSIFT_KILL_CYCLES", 25);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    drop(Store::create_with(&path, &shape().settings(), options()).expect("made"));
    let mut model = Model::default();
    let (mut next, mut kept, mut killed_opening) = (0u64, 0u64, 0u64);
    let mut random = Random::new(count("NEARSIFT_KILL_SEED", 1));
    for cycle in 0..cycles {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "kill::child", "--ignored", "--nocapture", "--quiet"])
            .env(FOLDER, &path)
            .env(FIRST, next.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("started");
        let stdout = child.stdout.take().expect("a pipe");
        // Some are killed while they open the store, the others a little later.
        let opening = random.below(5) == 0;
        let (said, told) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if said.send(line).is_err() {
                    return;
                }
            }
        });
        let mut acknowledged = None;
        if opening {
            std::thread::sleep(Duration::from_micros(random.below(12_000) as u64));
        } else {
            while told.recv().expect("it opens the store") != "open" {}
            std::thread::sleep(Duration::from_micros(random.below(150_000) as u64));
        }
        child.kill().expect("killed");
        child.wait().expect("ended");
        reader.join().expect("read");
        let mut opened = !opening;
        for line in told.try_iter() {
            opened |= line == "open";
            acknowledged = line.parse::<u64>().ok().or(acknowledged);
        }
        killed_opening += u64::from(!opened);
        let until = acknowledged.map_or(next, |last| last + 1);
        for number in next..until {
            model.apply(shape().kind, &batch(number), 1000);
        }
        kept += until - next;
        let verified = verify(&path, &options()).expect("looked at");
        assert!(verified.problems.is_empty(), "cycle {cycle}: {:?}", verified.problems);
        let store = Store::open_with(&path, options()).expect("opened");
        let found = contents(&store);
        next = until;
        if found != model.seen(1000) {
            // The batch after the last that was acknowledged may be there, all of it.
            model.apply(shape().kind, &batch(until), 1000);
            assert!(found == model.seen(1000), "cycle {cycle}: after batch {until}");
            next += 1;
        }
    }
    say(&format!(
        "{cycles} kills, {killed_opening} while opening, {kept} acknowledged batches, all there"
    ));
}
