//! Files of the work folder: whole or absent, and known to be undamaged.
//!
//! A file is written under another name, reaches the disk, and then gets its own name; so what has the
//! name is complete, whenever the program or the machine stopped. Behind its content stands a checksum.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

/// The first bytes of every file; the digit is the version of what follows.
const MAGIC: &[u8; 8] = b"nsstate1";

/// Where the content of a file begins.
pub const CONTENT: u64 = MAGIC.len() as u64;

/// Writes a file in one step that either happens or does not.
///
/// # Errors
/// What the system says.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let partial = path.with_extension("partial");
    let mut file = File::create(&partial)?;
    file.write_all(MAGIC)?;
    file.write_all(content)?;
    file.write_all(&xxh3_64(content).to_le_bytes())?;
    file.sync_all()?;
    drop(file);
    fs::rename(&partial, path)?;
    sync_folder(path)
}

/// The name itself must reach the disk too.
#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// The content of a file; `None` when there is none of the name, or it is damaged.
///
/// # Errors
/// When the file is there and cannot be read.
pub fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    let Some((rest, checksum)) = bytes.split_last_chunk::<8>() else { return Ok(None) };
    let Some(content) = rest.strip_prefix(MAGIC) else { return Ok(None) };
    if xxh3_64(content) != u64::from_le_bytes(*checksum) {
        return Ok(None);
    }
    bytes.truncate(bytes.len() - 8);
    bytes.drain(..MAGIC.len());
    Ok(Some(bytes))
}

/// Reads values of fixed width off the front of some bytes.
#[derive(Debug)]
pub struct Taken<'b>(pub &'b [u8]);

impl<'b> Taken<'b> {
    pub fn bytes(&mut self, count: usize) -> Option<&'b [u8]> {
        let (first, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(first)
    }

    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn u128(&mut self) -> Option<u128> {
        self.array().map(u128::from_le_bytes)
    }

    pub fn f32(&mut self) -> Option<f32> {
        self.array().map(f32::from_le_bytes)
    }

    /// A number of which NaN stands for none.
    pub fn value(&mut self) -> Option<Option<f64>> {
        let value = f64::from_le_bytes(self.array()?);
        Some(Some(value).filter(|value| !value.is_nan()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_whole_or_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.columns");
        assert_eq!(read(&path).expect("no file"), None);
        for content in [&b""[..], b"some bytes"] {
            write(&path, content).expect("written");
            assert_eq!(read(&path).expect("read").as_deref(), Some(content));
            assert!(!path.with_extension("partial").exists());
        }
        let whole = fs::read(&path).expect("read");
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            fs::write(&path, &damaged).expect("written");
            assert_eq!(read(&path).expect("read"), None, "byte {at}");
            fs::write(&path, &whole[..at]).expect("written");
            assert_eq!(read(&path).expect("read"), None, "{at} bytes");
        }
    }
}
