//! Files that were forged: bytes that no store wrote, under checksums that fit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use testkit::random::Random;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

const PAGE: usize = 4096;
const TRAILER: usize = 56;
const LOG_HEADER: usize = 40;
const FRAME_HEADER: usize = 32;

pub type Files = BTreeMap<PathBuf, Vec<u8>>;

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn start_of(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_default().split('-').next().unwrap_or_default().to_owned()
}

/// Gives a manifest the checksum that fits.
pub fn seal_manifest(bytes: &mut [u8]) {
    let (len, end) = (bytes.len() as u32, bytes.len() - 8);
    bytes[12..16].copy_from_slice(&len.to_le_bytes());
    let checksum = xxh3_64(&bytes[..end]);
    put(bytes, end, checksum);
}

/// Gives a segment or tombstones the checksums that fit, and names the new seal in the manifest.
fn seal(files: &mut Files, path: &Path) {
    let bytes = files.get_mut(path).expect("a file");
    let trailer = bytes.len() - TRAILER;
    let pages = trailer / (PAGE + 8);
    let old = word(bytes, trailer + 32);
    let mut identity = bytes[trailer..trailer + 16].to_vec();
    identity.extend_from_slice(&bytes[trailer + 40..trailer + 44]);
    let seed = xxh3_64(&identity);
    for page in 0..pages {
        let content = &bytes[page * PAGE..(page + 1) * PAGE];
        let checksum = xxh3_64_with_seed(content, seed.wrapping_add(page as u64));
        put(bytes, pages * PAGE + 8 * page, checksum);
    }
    let table = xxh3_64(&bytes[pages * PAGE..trailer]);
    put(bytes, trailer + 24, table);
    let first = xxh3_64(&bytes[trailer..trailer + 32]);
    let new = xxh3_64_with_seed(&bytes[trailer + 40..], first);
    put(bytes, trailer + 32, new);
    let manifest = files.iter_mut().find(|(path, _)| start_of(path) == "MANIFEST");
    let (_, manifest) = manifest.expect("a manifest");
    let at = (16..manifest.len() - 15).find(|&at| word(manifest, at) == old);
    if let Some(at) = at {
        put(manifest, at, new);
        seal_manifest(manifest);
    }
}

/// Gives the frames of a log the checksums that fit, as far as their lengths say where they are.
fn seal_log(bytes: &mut [u8]) {
    let Some(header) = bytes.get(..LOG_HEADER) else { return };
    let seed = xxh3_64(header);
    let mut at = LOG_HEADER;
    while at + FRAME_HEADER <= bytes.len() {
        let len = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().expect("4 bytes")) as usize;
        let payload = at + FRAME_HEADER..(at + FRAME_HEADER + len).min(bytes.len());
        let number = word(bytes, at + 8);
        let checksum = xxh3_64_with_seed(&bytes[payload.clone()], seed.wrapping_add(number));
        put(bytes, at + 16, checksum);
        let checksum = xxh3_64_with_seed(&bytes[at..at + 24], seed);
        put(bytes, at + 24, checksum);
        at = payload.end;
    }
}

/// A number that is likely to be at a limit.
fn value(random: &mut Random, there: u64, documents: u64) -> u64 {
    match random.below(9) {
        0 => 0,
        1 => u64::MAX,
        2 => there.wrapping_add(1),
        3 => there.wrapping_sub(1),
        4 => documents,
        5 => documents.wrapping_sub(1),
        6 => random.below(1 << 16) as u64,
        7 => 1 << random.below(64),
        _ => random.next_u64(),
    }
}

/// Puts some numbers of 1 to 8 bytes in the place of others.
fn change(bytes: &mut [u8], range: std::ops::Range<usize>, random: &mut Random) {
    let documents = 40;
    for _ in 0..=random.below(3) {
        let size = [1, 2, 4, 5, 8][random.below(5)].min(range.len());
        let at = range.start + random.below(range.len() - size + 1);
        let mut there = [0; 8];
        there[..size].copy_from_slice(&bytes[at..at + size]);
        let new = value(random, u64::from_le_bytes(there), documents).to_le_bytes();
        bytes[at..at + size].copy_from_slice(&new[..size]);
    }
}

/// Forges one or two of the files of a store.
pub fn forge(files: &mut Files, random: &mut Random) {
    let paths: Vec<PathBuf> =
        files.keys().filter(|path| start_of(path) != "LOCK").cloned().collect();
    for _ in 0..=random.below(2) {
        let path = random.pick(&paths).clone();
        let bytes = files.get_mut(&path).expect("a file");
        match start_of(&path).as_str() {
            "MANIFEST" => {
                let end = bytes.len() - 8;
                // The schema makes all other files those of another store.
                let from = if random.below(4) == 0 { 16 } else { 60.min(end - 9) };
                change(bytes, from..end, random);
                seal_manifest(bytes);
            }
            "log" => {
                let end = bytes.len();
                if end > LOG_HEADER + FRAME_HEADER {
                    change(bytes, LOG_HEADER..end, random);
                    seal_log(bytes);
                }
            }
            _ => {
                let trailer = bytes.len() - TRAILER;
                let content = (word(bytes, trailer + 16) as usize).min(trailer);
                let range = match random.below(8) {
                    // The length of the content.
                    0 => trailer + 16..trailer + 24,
                    // The table of contents, the directories and numbers before it, and anything.
                    1 | 2 => content.saturating_sub(160)..content,
                    3 | 4 => content.saturating_sub(1200)..content,
                    _ => 0..content,
                };
                change(bytes, range, random);
                seal(files, &path);
            }
        }
    }
}
