//! The service under load: check-and-insert of Chinese documents of 4 KB over a store of millions, by a client on the same
//! machine, every success synced.

pub mod budget;
mod load;

use std::fs::File;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nearsift::recipe::{Recipe, Sketched};
use nearsift::sketch::{KEYS, Score, Sketch};
use nearsift_store::{IdKind, Kind, Metadata, Options, RecipeMark, Store, Value};
use rustix::process::{Pid, Signal, kill_process};
use testkit::random::Random;

use crate::Settings;
use crate::corpus::Corpus;
use crate::harness::{Report, Row};
use crate::process::{processor_time, program};
use crate::stolen::Watch;
use load::{Answers, Load};

/// What the collection `default` of a service finds near.
const MIN_SCORE: f64 = 0.4;

/// Documents of a batch when the store is filled.
const BATCH: u64 = 10_000;

/// Generated documents whose keys the stored ones have.
const BASE: usize = 20_000;

/// Bytes of a document's text.
const TEXT_BYTES: usize = 4_000;

/// Of 1,000 sentences so many are of those that documents have in common. Documents share keys then as news
/// of one source do: 557 Chinese articles of 1,160 characters had, by pairs, 49,000 entries in 10^7.
const COMMON: u32 = 130;

/// Characters of a sentence that is no other document's.
const SENTENCE: usize = 20;

/// Characters that texts are drawn from, each as often as it is there.
const CHARACTERS: usize = 1 << 15;

/// Of so many requests one is a near-duplicate of an earlier one.
const ONE_IN: u64 = 10;

/// Connections of the client: more than the service works on at a time.
const CONNECTIONS: usize = 1024;

/// Connections that find out how much the service can do.
const BUSY_CONNECTIONS: usize = 128;

/// Runs the benchmark.
pub fn run(settings: &Settings) -> Result<Report, String> {
    let mut report = Report::new(
        "serve",
        "POST /v1/check with \"insert\": true, Chinese documents of 4,000 bytes, one in ten an edit of the fifth before it, \
         at a fixed rate, timed from when each was due; client and service on this machine, the log written to a file. The stored \
         sketches are simulated: each key is that of one of 20,000 generated documents, so that a query shares keys with as \
         many as among generated documents; the bits are like no other's. They are merged before the service starts, as in a store \
         that had time to rest.",
    );
    let folder = settings.out.join(format!("serve-{}", settings.sketches));
    let requests = Requests::new(settings.seed);
    let recipe = Recipe::parse("sketch").map_err(|e| e.to_string())?;
    let base = Base::new(&recipe, &requests)?;
    report
        .fact("entries of 10^7 documents with a key of a query", format!("{:.0}", base.entries()));
    let before = prepare(&folder.join("default"), settings.sketches, &recipe, &base)?;
    let mut service = Service::start(&folder, &settings.out.join("serve.log"))?;
    report.set("stored", before);
    report.set("seconds", settings.seconds);
    report.set("rate", settings.rate);
    let mut sent = Sum::default();
    let time = Duration::from_secs(settings.seconds);
    let rate = settings.rate as f64;
    let short = time.div_f64(3.0);
    let open = |rate| Load { rate: Some(rate), time, connections: CONNECTIONS };

    // Files are opened, memory is taken and connections are made before anything is measured.
    let warm = Load { time: Duration::from_secs(2), ..open(rate / 2.0) };
    sent.add(&requests.send(&service, warm, 0)?.0);

    let watch = Watch::start();
    let (usual, row) = requests.send(&service, open(rate), 1)?;
    let stolen = watch.finish();
    sent.add(&usual);
    report.add(row.named("at the rate"));
    let known = usual.known as f64 / usual.good().max(1) as f64;
    report.goal_at_least("at the rate, answered 200 of 100", 100.0, "", percent(&usual));
    report.goal_at_most("at the rate, p99", 10.0, "ms", usual.quantile(0.99));
    // The goal counts all requests; this tells what of it is the machine's.
    let (undisturbed, share) = usual.quantile_undisturbed(0.99, &stolen);
    report.fact(
        "at the rate, time in which a processor was somebody else's",
        format!(
            "{:.2} s; p99 of the {share:.1} of 100 requests away from it {undisturbed:.1} ms",
            stolen.seconds
        ),
    );
    // An edit whose original was turned away is new.
    if usual.good() == usual.due {
        report.check_at_least("edits that were found, of 100 requests", 9.5, 100.0 * known);
    }

    let closed = Load { rate: None, time: short, connections: BUSY_CONNECTIONS };
    let (most, row) = requests.send(&service, closed, 2)?;
    sent.add(&most);
    report.add(row.named("as fast as it answers"));
    let capacity = most.good() as f64 / most.seconds;

    let (thrice, row) = requests.send(&service, Load { time: short, ..open(3.0 * rate) }, 3)?;
    sent.add(&thrice);
    report.add(row.named("at three times the rate"));
    let goodput = thrice.good() as f64 / thrice.seconds;
    let wanted = capacity.min(3.0 * rate);
    report.goal_at_least(
        "at three times the rate, goodput of what it can do",
        80.0,
        "of 100",
        100.0 * goodput / wanted,
    );

    let flood = Load { time: short, ..open(3.0 * capacity) };
    let (flooded, row) = requests.send(&service, flood, 4)?;
    sent.add(&flooded);
    report.add(row.named("at three times what it can do"));
    let goodput = flooded.good() as f64 / flooded.seconds;
    report.goal_at_least(
        "at three times what it can do, goodput of that",
        80.0,
        "of 100",
        100.0 * goodput / capacity,
    );

    for (others, example) in &sent.examples {
        report.fact(others, example);
    }
    report.check("answers that are neither 200 nor 503 with Retry-After", &0, &sent.others);
    report.check("requests without an answer", &0, &sent.lost);
    service.stop()?;
    let after = documents(&folder.join("default"))?;
    // What was not answered may have been stored or not.
    let unsaid = after.saturating_sub(before + sent.added).min(sent.lost);
    report.check(
        "stored documents, with those that were acknowledged",
        &(before + sent.added + unsaid),
        &after,
    );
    Ok(report)
}

fn percent(answers: &Answers) -> f64 {
    100.0 * answers.good() as f64 / answers.due.max(1) as f64
}

/// What all loads together were answered.
#[derive(Default)]
struct Sum {
    added: u64,
    others: u64,
    lost: u64,
    examples: Vec<(String, String)>,
}

impl Sum {
    fn add(&mut self, answers: &Answers) {
        self.added += answers.added;
        self.others += answers.others;
        self.lost += answers.lost;
        self.examples.extend(answers.example.iter().map(|a| ("an answer".to_owned(), a.clone())));
    }
}

/// What the collection `default` of a service holds.
fn collection(recipe: &Recipe, ids: IdKind) -> nearsift_store::Settings {
    nearsift_store::Settings {
        kind: Kind::Sketches { min_score: Score::at_least(MIN_SCORE) },
        ids,
        recipe: RecipeMark::of(recipe),
        hash_key: None,
        texts: None,
    }
}

/// A store with so many simulated sketches, made unless it is there, and merged; and how many it has.
fn prepare(dir: &Path, stored: u64, recipe: &Recipe, base: &Base) -> Result<u64, String> {
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let options = Options::default().with_threads(threads);
    let store = match reopened(dir, stored, &options)? {
        Some(store) => store,
        None => {
            std::fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
            let settings = collection(recipe, IdKind::Texts);
            let store = Store::create_with(dir, &settings, options).map_err(|e| e.to_string())?;
            fill(&store, stored, base)?;
            store
        }
    };
    let begun = Instant::now();
    let stats = store.stats();
    if stats.segments.len() > 1 || stats.fresh > 0 {
        store.compact().map_err(|e| e.to_string())?;
        println!("merged in {:.1} s", begun.elapsed().as_secs_f64());
    }
    store.close().map_err(|e| e.to_string())?;
    // What waits to be written would take the disk from those that are measured.
    rustix::fs::sync();
    Ok(stats.documents)
}

/// The store of an earlier run, if it has about so many documents. Another one is taken away.
fn reopened(dir: &Path, stored: u64, options: &Options) -> Result<Option<Store>, String> {
    if !dir.exists() {
        return Ok(None);
    }
    let store = Store::open_with(dir, options.clone()).map_err(|e| e.to_string())?;
    // Runs add to it: a store that has grown by a tenth is another one.
    if (stored..=stored + stored / 10 + 1_000).contains(&store.stats().documents) {
        return Ok(Some(store));
    }
    store.close().map_err(|e| e.to_string())?;
    std::fs::remove_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    Ok(None)
}

fn fill(store: &Store, stored: u64, base: &Base) -> Result<(), String> {
    let begun = Instant::now();
    let mut batch = store.batch();
    let metadata = Metadata { length: Some(1_300), ..Metadata::default() };
    for number in 0..stored {
        let value: Value = base.document(&mut Random::of_item(1, number)).into();
        let id = format!("http://stored.example/{number}");
        batch.insert(id.as_str().into(), &value, &metadata).map_err(|e| e.to_string())?;
        if batch.len() as u64 == BATCH || number + 1 == stored {
            store.write(&batch).map_err(|e| e.to_string())?;
            batch.clear();
        }
    }
    println!("{stored} sketches stored in {:.1} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// Sketches of generated documents, whose keys the stored ones have.
struct Base {
    keys: Vec<[u32; KEYS]>,
}

impl Base {
    fn new(recipe: &Recipe, requests: &Requests) -> Result<Base, String> {
        let mut fingerprinter = recipe.fingerprinter().map_err(|e| e.to_string())?;
        let mut text = Vec::new();
        let mut keys = Vec::with_capacity(BASE);
        for number in 0..BASE as u64 {
            text.clear();
            requests.push_text(&mut Random::of_item(2, number), &mut text);
            let text = std::str::from_utf8(&text).map_err(|e| e.to_string())?;
            let sketched = fingerprinter.sketch(text).map_err(|e| e.to_string())?;
            keys.push(sketched.keys);
        }
        Ok(Base { keys })
    }

    /// A document each of whose keys is that of some generated document: a query shares keys with as many of them as if each
    /// were generated. Its bits are like no other's.
    fn document(&self, random: &mut Random) -> Sketched {
        let keys = std::array::from_fn(|t| random.pick(&self.keys)[t]);
        let sketch = Sketch::from_words(std::array::from_fn(|_| random.next_u64()));
        Sketched { sketch, keys, features: 1_300 }
    }

    /// With how many entries of 10^7 documents a generated document shares a key, on average.
    fn entries(&self) -> f64 {
        let mut same = 0;
        for t in 0..KEYS {
            let mut keys: Vec<u32> = self.keys.iter().map(|keys| keys[t]).collect();
            keys.sort_unstable();
            let groups = keys.chunk_by(|a, b| a == b).map(|group| group.len() as u64);
            same += groups.map(|n| n * (n - 1) / 2).sum::<u64>();
        }
        let pairs = self.keys.len() as f64 * (self.keys.len() as f64 - 1.0) / 2.0;
        1e7 * same as f64 / pairs
    }
}

fn documents(dir: &Path) -> Result<u64, String> {
    let options = Options { access: nearsift_store::Access::ReadOnly, ..Options::default() };
    let store = Store::open_with(dir, options).map_err(|e| e.to_string())?;
    Ok(store.stats().documents)
}

/// The service as a process.
struct Service {
    child: Child,
    address: SocketAddr,
}

impl Service {
    fn start(folder: &Path, log: &Path) -> Result<Service, String> {
        let shown = |e: std::io::Error| format!("{}: {e}", log.display());
        let file = File::create(log).map_err(shown)?;
        let begun = Instant::now();
        let mut child = Command::new(program()?)
            .arg("serve")
            .arg(folder)
            .args(["--listen", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .map_err(|e| format!("nearsift serve: {e}"))?;
        loop {
            let text = std::fs::read_to_string(log).map_err(shown)?;
            let url = text.split_once("url=http://").map(|(_, rest)| rest);
            if let Some(Ok(address)) =
                url.and_then(|rest| rest.split_whitespace().next()).map(str::parse)
            {
                println!("the service listens after {:.2} s", begun.elapsed().as_secs_f64());
                return Ok(Service { child, address });
            }
            if child.try_wait().map_err(shown)?.is_some() {
                return Err(format!("the service ended: {text}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn cpu_seconds(&self) -> f64 {
        processor_time(self.child.id()).unwrap_or_default().as_secs_f64()
    }

    fn stop(&mut self) -> Result<(), String> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).map_err(|e| format!("the service: {e}"))?;
        let status = self.child.wait().map_err(|e| format!("the service: {e}"))?;
        if status.success() { Ok(()) } else { Err(format!("the service ended with {status}")) }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _has_ended = self.child.kill();
        let _has_ended = self.child.wait();
    }
}

/// Requests of a run.
struct Requests {
    /// What documents have in common.
    sentences: Vec<String>,
    /// What the rest of them is made of, as often as they stand in those.
    characters: Vec<char>,
    /// Sets the documents of this run apart from those of others.
    run: u64,
}

impl Requests {
    fn new(seed: u64) -> Requests {
        let corpus = Corpus::new(crate::corpus::Settings {
            documents: 10_000,
            seed,
            chinese_per_mille: 1_000,
            duplicates_per_mille: 0,
        });
        let mut text = String::new();
        for index in 0..3_000 {
            corpus.push_text(index, &mut text);
        }
        let sentences = text.split_inclusive('。').map(str::to_owned).collect();
        let all: Vec<char> = text.chars().filter(|c| c.is_alphanumeric()).collect();
        // Few enough for the cache: the client shares the machine with the service.
        let characters = (0..CHARACTERS).map(|i| all[i * all.len() / CHARACTERS]).collect();
        let run = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_nanos() as u64);
        Requests { sentences, characters, run }
    }

    fn push_text(&self, random: &mut Random, text: &mut Vec<u8>) {
        while text.len() < TEXT_BYTES {
            if random.per_mille(COMMON) {
                text.extend_from_slice(random.pick(&self.sentences).as_bytes());
                continue;
            }
            for _ in 0..SENTENCE {
                let character = random.pick(&self.characters);
                text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            text.extend_from_slice("。".as_bytes());
        }
    }

    /// Writes request `number` of a part of the run.
    fn push(&self, address: SocketAddr, part: u64, number: u64, to: &mut Vec<u8>) {
        use std::io::Write;
        let is_edit = number % ONE_IN == ONE_IN - 1;
        let source = if is_edit { number - ONE_IN / 2 } else { number };
        let mut random = Random::of_item(self.run ^ part, source);
        let mut text = Vec::with_capacity(TEXT_BYTES + 512);
        self.push_text(&mut random, &mut text);
        if is_edit {
            text.extend_from_slice("本文有改动。".as_bytes());
        }
        let id = format!("http://{:x}.example/{part}/{number}", self.run);
        let length = text.len() + id.len() + "{'id':'','text':'','insert':true}".len();
        write!(
            to,
            "POST /v1/check HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{{\"id\":\"{id}\",\"text\":\""
        )
        .expect("memory takes all");
        to.extend_from_slice(&text);
        to.extend_from_slice(b"\",\"insert\":true}");
    }

    fn send(&self, service: &Service, load: Load, part: u64) -> Result<(Answers, Figures), String> {
        let cpu = service.cpu_seconds();
        let address = service.address;
        let answers = load::run(address, load, |number, to| self.push(address, part, number, to))?;
        let cpu = service.cpu_seconds() - cpu;
        let row = Row::new("")
            .with("due/s", answers.due as f64 / load.time.as_secs_f64())
            .with("200/s", answers.good() as f64 / answers.seconds)
            .with("503/s", answers.shed as f64 / answers.seconds)
            .with("others", (answers.others + answers.lost) as f64)
            .with("p50 ms", answers.quantile(0.5))
            .with("p90 ms", answers.quantile(0.9))
            .with("p99 ms", answers.quantile(0.99))
            .with("p99.9 ms", answers.quantile(0.999))
            .with("worst ms", answers.quantile(1.0))
            .with("503 p99 ms", answers.shed_quantile(0.99))
            .with("service cores", cpu / answers.seconds)
            .with("client cores", answers.cpu_seconds / answers.seconds);
        Ok((answers, Figures(row)))
    }
}

/// A row that has no name yet.
struct Figures(Row);

impl Figures {
    fn named(self, name: &str) -> Row {
        Row { contestant: name.to_owned(), ..self.0 }
    }
}
