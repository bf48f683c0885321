use std::fs::{self, File};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::{ReadOptions, Reader};

/// How many bytes the next files may hold together.
static ROOM: AtomicUsize = AtomicUsize::new(0);

/// A file on a disk that gets full.
struct OnFullDisk(File);

impl Write for OnFullDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Short writes happen too.
        let room = ROOM.load(Ordering::Relaxed);
        let n = bytes.len().min(room).min(7);
        if n == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        ROOM.store(room - n, Ordering::Relaxed);
        self.0.write(&bytes[..n])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl io::Seek for OnFullDisk {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

#[test]
fn a_disk_that_gets_full_at_every_byte() {
    let folder = tempfile::tempdir().expect("a folder");
    let plain = b"id,text\n1,a\n2\n3,c\n".to_vec();
    let zstd = zstd::encode_all(&plain[..], 1).expect("memory");
    let tar = {
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(plain.len() as u64);
        header.set_cksum();
        tar.append_data(&mut header, "a.csv", &plain[..]).expect("memory");
        tar.into_inner().expect("memory")
    };
    let zip = {
        let mut zip = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
        zip.start_file("a.csv", zip::write::SimpleFileOptions::default()).expect("memory");
        zip.write_all(&plain).expect("memory");
        zip.finish().expect("memory").into_inner()
    };
    for (name, bytes) in [("a.csv", plain), ("a.csv.zst", zstd), ("a.tar", tar), ("a.zip", zip)] {
        let input = folder.path().join(name);
        fs::write(&input, bytes).expect("an input");
        let inputs = Inputs::resolve(&[&input], ReadOptions::default()).expect("inputs");
        let mut reader = Reader::new(&inputs);
        while reader.next_batch().expect("a batch").is_some() {}
        let output = folder.path().join("out");
        let mut writer = KeptWriter::new(&inputs, output.join("kept"), output.join("unreadable"));
        writer.making.create = |path| Ok(Box::new(OnFullDisk(File::create_new(path)?)));
        let decide = |place: Place| match place.index {
            1 => Decision::Unreadable,
            _ => Decision::Keep,
        };
        let files = || {
            let files = walkdir::WalkDir::new(&output).into_iter().filter_map(Result::ok);
            files.filter(|f| f.file_type().is_file()).count()
        };
        let mut room = 0;
        loop {
            ROOM.store(room, Ordering::Relaxed);
            match writer.write_all(decide) {
                Ok(written) => {
                    assert_eq!((written.kept, written.unreadable), (2, 1));
                    break;
                }
                Err(error) => {
                    assert!(matches!(error, Error::Write { .. }), "{error}");
                    assert!(error.to_string().contains("free some space"), "{error}");
                    assert_eq!(files(), 0, "no half file after {room} bytes");
                }
            }
            room += 1;
        }
        assert_eq!(files(), 2);
        assert!(room >= 20);
        fs::remove_dir_all(&output).expect("removed");
    }
}

/// Keeps every other record, on any thread.
#[derive(Clone, Copy)]
struct EveryOther;

impl Decide for EveryOther {
    fn decide(&mut self, place: Place) -> Decision {
        if place.index.is_multiple_of(2) { Decision::Keep } else { Decision::Unreadable }
    }

    fn deciders(&self) -> Option<Deciders<'_>> {
        Some(Box::new(|| Box::new(EveryOther)))
    }
}

#[test]
fn a_disk_that_gets_full_under_several_threads() {
    /// The room of this test alone.
    static ROOM: AtomicUsize = AtomicUsize::new(0);
    struct Filling(File);
    impl Write for Filling {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let took = ROOM.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |room| {
                room.checked_sub(bytes.len())
            });
            took.map_err(|_| io::ErrorKind::StorageFull)?;
            self.0.write_all(bytes).map(|()| bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            self.0.flush()
        }
    }
    impl io::Seek for Filling {
        fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("a.jsonl");
    let lines = "{\"text\":\"a\"}\n".repeat(60);
    fs::write(&input, &lines).expect("an input");
    let options = ReadOptions { batch_bytes: 400, ..ReadOptions::default() };
    let inputs = Inputs::resolve(&[&input], options).expect("inputs");
    let ahead = std::num::NonZeroUsize::MIN;
    let mut reader = Reader::in_background(&inputs, 0..1, ahead).expect("a thread");
    while reader.next_batch().expect("a batch").is_some() {}
    for room in (0..).step_by(7) {
        let output = tempfile::tempdir().expect("a folder");
        let [kept, unreadable] = ["kept", "unreadable"].map(|name| output.path().join(name));
        let mut writer = KeptWriter::new(&inputs, &kept, &unreadable).copying_sections(4);
        writer.making.create = |path| Ok(Box::new(Filling(File::create_new(path)?)));
        ROOM.store(room, Ordering::Relaxed);
        let written = writer.write_file_by(0, &mut EveryOther);
        let files = walkdir::WalkDir::new(output.path()).into_iter().filter_map(Result::ok);
        let files = files.filter(|file| file.file_type().is_file()).count();
        match written {
            Ok(written) => {
                assert_eq!((written.kept, written.unreadable, files), (30, 30, 2));
                assert!(room >= lines.len(), "{room} bytes do");
                break;
            }
            Err(error) => {
                assert!(matches!(error, Error::Write { .. }), "{error}");
                assert_eq!(files, 0, "no half file after {room} bytes");
            }
        }
    }
}

#[test]
fn any_number_of_threads_makes_the_same_frame() {
    let folder = tempfile::tempdir().expect("a folder");
    let line = |n: u64| {
        let number = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!("{{\"id\":{n},\"text\":\"{number:x} of {:x}\"}}\n", number.rotate_left(20))
    };
    // Several of the parts that zstd works on at a time, and what is kept without a thread.
    for lines in [400_000, 1000] {
        let plain: String = (0..lines).map(line).collect();
        let input = folder.path().join(format!("{lines}.jsonl.zst"));
        fs::write(&input, zstd::encode_all(plain.as_bytes(), 1).expect("memory"))
            .expect("an input");
        let inputs = Inputs::resolve(&[&input], ReadOptions::default()).expect("inputs");
        let mut reader = Reader::new(&inputs);
        while reader.next_batch().expect("a batch").is_some() {}
        let written = [0, 1, 2, 4].map(|threads| {
            let output = folder.path().join(format!("{lines} {threads}"));
            let writer = KeptWriter::new(&inputs, output.join("kept"), output.join("unreadable"));
            let written = writer.compressing_by(threads).write_all(|_| Decision::Keep);
            assert_eq!(written.expect("written").kept, lines);
            fs::read(output.join("kept").join(format!("{lines}.jsonl.zst"))).expect("a file")
        });
        assert!(zstd::decode_all(&written[0][..]).expect("a frame") == plain.as_bytes());
        assert!(written.iter().all(|other| *other == written[0]));
        // One frame: what follows it would be another.
        let len = zstd::zstd_safe::find_frame_compressed_size(&written[0]).expect("a frame");
        assert_eq!(len, written[0].len());
    }
}
