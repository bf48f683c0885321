//! Files of the work folder: whole or absent, and known to be undamaged.
//!
//! A file is written under another name, reaches the disk, and then gets its own name; so what has the
//! name is complete, whenever the program or the machine stopped. Behind its content stands a checksum.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// The first bytes of every file; the digit is the version of what follows.
const MAGIC: &[u8; 8] = b"nsstate1";

/// Where the content of a file begins.
pub const CONTENT: u64 = MAGIC.len() as u64;

/// Writes a file in one step that either happens or does not.
///
/// # Errors
/// What the system says.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut writer = Writer::begin(path)?;
    writer.write(content)?;
    writer.finish()
}

/// A file that is written piece by piece: nothing has its name until it is finished.
pub struct Writer {
    path: PathBuf,
    file: File,
    checksum: Xxh3,
}

impl Writer {
    /// # Errors
    /// What the system says.
    pub fn begin(path: &Path) -> io::Result<Writer> {
        let mut file = File::create(partial(path))?;
        file.write_all(MAGIC)?;
        Ok(Writer { path: path.to_owned(), file, checksum: Xxh3::new() })
    }

    /// Appends to the content.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(&mut self, content: &[u8]) -> io::Result<()> {
        self.checksum.update(content);
        self.file.write_all(content)
    }

    /// Gives it its name, once it has reached the disk.
    ///
    /// # Errors
    /// What the system says.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.write_all(&self.checksum.digest().to_le_bytes())?;
        self.file.sync_all()?;
        drop(self.file);
        fs::rename(partial(&self.path), &self.path)?;
        sync_folder(&self.path)
    }
}

/// A file that is read piece by piece; whether it is undamaged is known at its end.
pub struct Reader {
    file: BufReader<File>,
    left: u64,
    checksum: Xxh3,
}

impl Reader {
    /// # Errors
    /// What the system says; [`io::ErrorKind::InvalidData`] for a file of something else.
    pub fn open(path: &Path) -> io::Result<Reader> {
        let file = File::open(path)?;
        let left = file.metadata()?.len().checked_sub(MAGIC.len() as u64 + 8);
        let mut file = BufReader::with_capacity(1 << 18, file);
        let mut magic = [0; MAGIC.len()];
        let left = left.ok_or(io::ErrorKind::InvalidData)?;
        file.read_exact(&mut magic)?;
        if magic != *MAGIC {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Reader { file, left, checksum: Xxh3::new() })
    }

    /// Bytes of the content that are not read yet.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// The next bytes of the content.
    ///
    /// # Errors
    /// What the system says; [`io::ErrorKind::UnexpectedEof`] when there are fewer.
    pub fn read(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        let left = self.left.checked_sub(bytes.len() as u64);
        self.left = left.ok_or(io::ErrorKind::UnexpectedEof)?;
        self.file.read_exact(bytes)?;
        self.checksum.update(bytes);
        Ok(())
    }

    /// Whether all of the content was read, and is what was written.
    ///
    /// # Errors
    /// What the system says.
    pub fn finish(mut self) -> io::Result<bool> {
        let mut checksum = [0; 8];
        if self.left > 0 {
            return Ok(false);
        }
        self.file.read_exact(&mut checksum)?;
        Ok(self.checksum.digest() == u64::from_le_bytes(checksum))
    }
}

/// What a file is called until it is whole.
pub fn partial(path: &Path) -> PathBuf {
    path.with_extension("partial")
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
pub struct ByteReader<'b>(pub &'b [u8]);

impl<'b> ByteReader<'b> {
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

    /// A number; NaN stands for none.
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
