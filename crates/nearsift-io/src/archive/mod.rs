//! Archives: files that hold files of documents.
//!
//! Both passes go over the members in the order in which they are stored, and over each as over a file of its own. Nothing is
//! ever written to a disk by the name of a member, so that names which lead out of a folder are names like others.
//!
//! Memory: the directory of a zip archive; of a member what its format takes. A member of a format that is read back and
//! forth (Parquet, Arrow, WARC) is copied to a nameless file first.

mod members;
mod sparse;
mod tar;
mod zip;

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use crate::inputs::format_by_name;
use crate::source::{self, Content, Origin};
use crate::{Format, Limits, ReadOptions, Reason};

pub(crate) use members::Members;
pub(crate) use tar::{Header as TarHeader, is_tar};
pub(crate) use zip::Header as ZipHeader;

/// An archive, from its first member on.
pub(crate) enum Archive {
    Tar(Box<tar::Tar>),
    Zip(Box<zip::Zip>),
}

/// One member.
pub(crate) struct Member {
    /// Its name as text.
    pub(crate) name: String,
    /// Whether it has content, as folders and links have not.
    pub(crate) is_file: bool,
    /// Why a file that may hold documents is not read.
    pub(crate) unread: Option<&'static str>,
    pub(crate) header: Header,
}

/// What an archive says about a member.
pub(crate) enum Header {
    Tar(Box<TarHeader>),
    Zip(ZipHeader),
}

/// What a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Documents(Format),
    Archive,
    /// It may hold documents, and is not read.
    Unread(&'static str),
    Other,
}

/// The bytes of a member.
pub(crate) type Stream = Box<dyn Read + Send>;

impl Archive {
    pub(crate) fn open(origin: &Origin, format: Format, limits: &Limits) -> Result<Self, Reason> {
        Ok(match format {
            Format::Zip => Self::Zip(Box::new(zip::Zip::open(origin, limits)?)),
            _ => Self::Tar(Box::new(tar::Tar::open(origin, limits)?)),
        })
    }

    /// The next member, or something that is wrong between two of them; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<Result<Member, Reason>> {
        match self {
            Self::Tar(tar) => tar.next(),
            Self::Zip(zip) => zip.next(),
        }
    }

    /// The bytes of the member that came last.
    pub(crate) fn content(&mut self, member: &Member) -> Result<Stream, Reason> {
        match (self, &member.header) {
            (Self::Tar(tar), Header::Tar(header)) => Ok(tar.content(header)),
            (Self::Zip(zip), Header::Zip(header)) => zip.content(header),
            _ => Err(Reason::Archive { error: "another archive" }),
        }
    }

    /// The same as it is stored, where that is something else.
    pub(crate) fn stored(&mut self, member: &Member) -> Result<Stream, Reason> {
        match self {
            Self::Tar(tar) => Ok(tar.stored()),
            Self::Zip(_) => self.content(member),
        }
    }

    /// Bytes taken from the file so far.
    pub(crate) fn consumed(&self) -> u64 {
        match self {
            Self::Tar(tar) => tar.consumed(),
            Self::Zip(zip) => zip.consumed(),
        }
    }

    /// The number and the digest of the bytes that tell what the archive holds.
    pub(crate) fn digest(&self) -> (u64, u64) {
        match self {
            Self::Tar(tar) => tar.digest(),
            Self::Zip(zip) => zip.digest(),
        }
    }

    /// What stands between the parts of the archive's name and the member's.
    pub(crate) fn full_name(archive: &str, member: &Member) -> Arc<str> {
        format!("{archive}!{}", member.name).into()
    }
}

impl Member {
    /// What it is, told by its name as files in a searched folder are.
    pub(crate) fn kind(&self, options: &ReadOptions) -> Kind {
        let path = Path::new(&self.name);
        // The second half that macOS stores beside a file has its name and none of its content.
        let is_shadow = self.name.starts_with("__MACOSX/")
            || path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("._"));
        if !self.is_file || is_shadow {
            return Kind::Other;
        }
        if let Some(error) = self.unread {
            return Kind::Unread(error);
        }
        match format_by_name(path) {
            Some(format) if format.is_archive() => Kind::Archive,
            Some(format) if options.format.is_none_or(|asked| asked == format) => {
                Kind::Documents(format)
            }
            _ => Kind::Other,
        }
    }
}

/// The bytes of a member as its format wants them, and why they end early if that is known already.
pub(crate) fn prepare(
    mut stream: Stream,
    format: Format,
    options: &ReadOptions,
) -> Result<(Content, Option<Reason>), Reason> {
    if !matches!(format, Format::Parquet | Format::Arrow | Format::Warc) {
        return Ok((Content::Stream(stream), None));
    }
    let folder = options.spool_folder.clone().unwrap_or_else(std::env::temp_dir);
    let aside = |e: io::Error| {
        Reason::Read(format!("it cannot be copied aside to {}: {e}", folder.display()))
    };
    let mut copy = tempfile::tempfile_in(&folder).map_err(aside)?;
    let mut buffer = vec![0; 64 << 10];
    let damage = loop {
        match stream.read(&mut buffer) {
            Ok(0) => break None,
            Ok(n) => io::Write::write_all(&mut copy, &buffer[..n]).map_err(aside)?,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => {
                let reason = source::carried(&e);
                break Some(reason.unwrap_or_else(|| Reason::Read(e.to_string())));
            }
        }
    };
    Ok((Content::Origin(Origin::Spool(Arc::new(copy))), damage))
}
