//! Rows as JSON lines, put aside until all of them are known.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek, Write};
use std::path::Path;
use std::sync::Arc;

use super::columns::{Columns, Row, compact};
use super::{Conversion, output};
use crate::parse::{Body, Plan, json, rows, warc};
use crate::source::Content;
use crate::split::{Piece, Pieces, Splitter};
use crate::write::added::Adding;
use crate::write::target::{Encoder, Shared, Target};
use crate::write::{AddedColumn, Cell};
use crate::{Error, Format, ReadOptions, Reason};

#[cfg(all(feature = "arrow", feature = "parquet"))]
pub(in crate::write) use super::tables::Odd;

/// A row that cannot be converted.
#[cfg(not(all(feature = "arrow", feature = "parquet")))]
pub(in crate::write) struct Odd {
    pub(in crate::write) row: u64,
    pub(in crate::write) why: String,
}

/// What is kept, on its way to another format.
pub(in crate::write) struct RowSpool {
    conversion: Conversion,
    options: ReadOptions,
    plan: Arc<Plan>,
    folder: std::path::PathBuf,
    lines: BufWriter<File>,
    columns: Columns,
    count: u64,
    /// Numbers that JSON does not have, of records that became rows: they are null there.
    pub(super) nulls: u64,
    added: Vec<AddedColumn>,
    /// Records that have a field of the name of an added column.
    pub(super) unmarked: u64,
    /// A table that is converted as such, while it is all that there is, and the rows that are left out.
    table: Option<(Format, Shared, Vec<u64>)>,
    /// Where the rows go at once, if they need not wait for each other.
    direct: Option<Direct>,
    /// The bytes of rows that went there.
    bytes: u64,
}

/// An output whose rows are written as they come.
enum Direct {
    /// JSON lines, or the elements of a JSON array.
    Lines { out: Encoder, is_array: bool, has_rows: bool },
    #[cfg(all(feature = "arrow", feature = "parquet"))]
    Tables(Box<super::tables::Joined>),
}

impl Direct {
    fn row(&mut self, row: &[u8]) -> io::Result<()> {
        match self {
            Self::Lines { out, is_array: false, .. } => {
                out.write_all(row)?;
                out.write_all(b"\n")
            }
            Self::Lines { out, has_rows, .. } => {
                out.write_all(if std::mem::replace(has_rows, true) { b",\n" } else { b"[\n" })?;
                out.write_all(row)
            }
            #[cfg(all(feature = "arrow", feature = "parquet"))]
            Self::Tables(_) => Err(io::Error::other("a record among tables")),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Lines { mut out, is_array, has_rows } => {
                if is_array {
                    out.write_all(if has_rows { b"\n]\n" } else { b"[\n]\n" })?;
                }
                out.finish()
            }
            #[cfg(all(feature = "arrow", feature = "parquet"))]
            Self::Tables(joined) => joined.close(),
        }
    }
}

impl RowSpool {
    pub(super) fn new(
        folder: &Path,
        conversion: &Conversion,
        options: &ReadOptions,
        plan: &Arc<Plan>,
        added: &[AddedColumn],
    ) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let lines = BufWriter::with_capacity(64 << 10, tempfile::tempfile_in(folder)?);
        Ok(Self {
            conversion: *conversion,
            options: options.clone(),
            plan: Arc::clone(plan),
            folder: folder.to_owned(),
            lines,
            columns: Columns::default(),
            count: 0,
            nulls: 0,
            added: added.to_vec(),
            unmarked: 0,
            table: None,
            direct: None,
            bytes: 0,
        })
    }

    /// Writes rows to the target as they come, where that can be: to JSON, and from tables alone to a table.
    pub(super) fn into_target(mut self, target: &mut Target, of_tables: bool) -> io::Result<Self> {
        let Conversion { format, codec, .. } = self.conversion;
        self.direct = match format {
            Format::JsonLines | Format::Json => {
                let packing = target.packing(codec.compression());
                let out = Encoder::new(packing, target.create()?)?;
                Some(Direct::Lines { out, is_array: format == Format::Json, has_rows: false })
            }
            #[cfg(all(feature = "arrow", feature = "parquet"))]
            Format::Parquet | Format::Arrow if of_tables => {
                let joined = super::tables::Joined::new(&self.conversion, target.create()?);
                Some(Direct::Tables(Box::new(joined)))
            }
            _ => None,
        };
        #[cfg(not(all(feature = "arrow", feature = "parquet")))]
        let _ = of_tables;
        Ok(self)
    }

    /// Adds the records of a file, which is in this format and not compressed, with the cells of added columns where it is
    /// no table. Returns the rows of a table that cannot be converted, which are left out.
    pub(in crate::write) fn add(
        &mut self,
        made: Shared,
        format: Format,
        name: &str,
        cells: Vec<Vec<Cell>>,
    ) -> io::Result<Vec<Odd>> {
        if let Some((format, table, odd)) = self.table.take() {
            // Its rows are those that JSON has no way to write, or could not be read at all.
            let found = self.add_table(table, format)?;
            if found.iter().map(|odd| odd.row).ne(odd) {
                return Err(io::Error::other("a table beside others has rows that cannot be JSON"));
            }
        }
        if !matches!(format, Format::Parquet | Format::Arrow) {
            return self.add_records(made, format, name, cells).map(|()| Vec::new());
        }
        #[cfg(all(feature = "arrow", feature = "parquet"))]
        if let Some(Direct::Tables(joined)) = &mut self.direct {
            let table = super::tables::Table::open(made.file(&self.folder)?, format)?;
            return joined.add(&table, name);
        }
        let is_first = self.count == 0 && self.columns.len() == 0;
        if is_first && matches!(self.conversion.format, Format::Parquet | Format::Arrow) {
            return self.hold_table(made, format);
        }
        self.add_table(made, format)
    }

    fn add_records(
        &mut self,
        made: Shared,
        format: Format,
        name: &str,
        cells: Vec<Vec<Cell>>,
    ) -> io::Result<()> {
        let mut cells = cells.into_iter();
        let content = Content::Stream(Box::new(made));
        let options = self.options.clone();
        let lost = |reason: Reason| io::Error::other(reason);
        let mut splitter = Splitter::open(content, format, &options, 0).map_err(lost)?;
        let mut buffer = Vec::new();
        let mut header: Vec<String> = Vec::new();
        let mut delimiter = b',';
        // Lines that stay lines stay as they are.
        let is_verbatim = self.direct.is_some()
            && (format, self.conversion.format) == (Format::JsonLines, Format::JsonLines)
            && self.plan.encoding().is_none();
        while let Some(piece) = splitter.next(&mut buffer, &mut Vec::new()) {
            match piece {
                Piece::Header { range, delimiter: found } => {
                    delimiter = found;
                    header = unique(rows::fields(&buffer[range], delimiter, &self.plan));
                    for name in &header {
                        self.columns.declare(name);
                    }
                }
                Piece::Record { range, .. } if is_verbatim => {
                    self.push_line(buffer[range].trim_ascii_end(), cells.next())?;
                }
                Piece::Record { range, line, .. } => {
                    let bytes = &buffer[range];
                    let row = match format {
                        Format::JsonLines | Format::Json => {
                            let (text, nulls) = json::clean(bytes, &self.plan);
                            self.nulls += nulls;
                            compact(&text)
                        }
                        Format::Csv | Format::Tsv => {
                            let values = rows::fields(bytes, delimiter, &self.plan);
                            object(header.iter().map(String::as_str).zip(values))
                        }
                        Format::Warc => self.archived(bytes, name, line)?,
                        Format::Html => {
                            let body = Body::Html { bytes: bytes.into(), charset: None };
                            self.one_document(name, body)
                        }
                        _ => {
                            let body = Body::Plain { bytes: bytes.into(), charset: None };
                            self.one_document(name, body)
                        }
                    };
                    let row = self.with_cells(row, cells.next());
                    self.push(&row)?;
                }
                Piece::Damage { reason, .. } => return Err(lost(reason)),
                _ => {}
            }
            let done = splitter.start();
            if done >= 4 << 20 {
                buffer.drain(..done);
                splitter.rebase(done);
            }
        }
        Ok(())
    }

    /// A row with the cells of the added columns; as it is where it has a field of such a name.
    fn with_cells(&mut self, row: String, cells: Option<Vec<Cell>>) -> String {
        let Some(cells) = cells else { return row };
        let adding = Adding {
            columns: &self.added,
            format: Format::JsonLines,
            encoding: None,
            delimiter: b',',
        };
        let with = adding.record(row.as_bytes(), &cells).ok();
        let with = with.and_then(|with| String::from_utf8(with).ok());
        self.unmarked += u64::from(with.is_none());
        with.unwrap_or(row)
    }

    /// Writes a line as it is, with the cells of the added columns unless it has a field of such a name.
    fn push_line(&mut self, line: &[u8], cells: Option<Vec<Cell>>) -> io::Result<()> {
        let adding = Adding {
            columns: &self.added,
            format: Format::JsonLines,
            encoding: None,
            delimiter: b',',
        };
        let with = cells.map(|cells| adding.record(line, &cells));
        self.unmarked += u64::from(matches!(with, Some(Err(_))));
        let with = with.and_then(Result::ok);
        self.put(with.as_deref().unwrap_or(line))
    }

    /// Writes a row where it goes at once.
    fn put(&mut self, row: &[u8]) -> io::Result<()> {
        self.count += 1;
        self.bytes += row.len() as u64 + 1;
        self.direct.as_mut().map_or(Ok(()), |direct| direct.row(row))
    }

    fn one_document(&self, name: &str, body: Body<'_>) -> String {
        let text = self.text(body);
        object([("id", name.to_owned()), ("text", text)])
    }

    /// A record of a WARC file: its id, its text, and its header.
    fn archived(&self, bytes: &[u8], name: &str, line: u64) -> io::Result<String> {
        let limits = &self.options.limits;
        let (fields, body) = warc::fields(bytes, limits).map_err(io::Error::other)?;
        let id = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("WARC-Record-ID"));
        let id = id.map_or_else(|| format!("{name}:{line}"), |(_, id)| id.clone());
        let first = [("id", id), ("text", self.text(body))];
        let others = fields.iter().map(|(name, value)| (name.as_str(), value.clone()));
        Ok(object(first.into_iter().chain(others)))
    }

    fn text(&self, body: Body<'_>) -> String {
        (self.conversion.text)(body, self.options.encoding.as_deref())
    }

    #[cfg(all(feature = "arrow", feature = "parquet"))]
    fn add_table(&mut self, made: Shared, format: Format) -> io::Result<Vec<Odd>> {
        let table = super::tables::Table::open(made.file(&self.folder)?, format)?;
        for name in unique(table.schema().fields().iter().map(|field| field.name().clone())) {
            self.columns.declare(&name);
        }
        let mut failed = Ok(());
        let odd = table.each(&mut |batch| {
            let lines = super::encode::lines(batch).map_err(io::Error::other)?;
            for line in lines.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
                if failed.is_ok() {
                    failed = self.push(&String::from_utf8_lossy(line));
                }
            }
            Ok(())
        })?;
        failed.map(|()| odd)
    }

    /// Holds a table that is converted as such.
    #[cfg(all(feature = "arrow", feature = "parquet"))]
    fn hold_table(&mut self, mut made: Shared, format: Format) -> io::Result<Vec<Odd>> {
        let table = super::tables::Table::open(made.clone().file(&self.folder)?, format)?;
        let odd = table.check(self.conversion.format)?;
        made.rewind()?;
        self.table = Some((format, made, odd.iter().map(|odd| odd.row).collect()));
        Ok(odd)
    }

    #[cfg(not(all(feature = "arrow", feature = "parquet")))]
    fn add_table(&mut self, _: Shared, _: Format) -> io::Result<Vec<Odd>> {
        Err(io::Error::other("this program was built without tables in both formats"))
    }

    #[cfg(not(all(feature = "arrow", feature = "parquet")))]
    fn hold_table(&mut self, made: Shared, format: Format) -> io::Result<Vec<Odd>> {
        self.add_table(made, format)
    }

    /// Adds one row, which is an object on one line.
    fn push(&mut self, row: &str) -> io::Result<()> {
        if self.direct.is_some() {
            return self.put(row.as_bytes());
        }
        let fields: Row<'_> = serde_json::from_str(row)?;
        self.columns.meet(&fields);
        self.count += 1;
        self.lines.write_all(row.as_bytes())?;
        self.lines.write_all(b"\n")
    }

    /// Writes all rows. Returns their length as JSON lines.
    pub(super) fn write(self, target: &mut Target) -> Result<u64, Error> {
        let Self { conversion, columns, mut lines, table, folder, direct, bytes, .. } = self;
        let work = || {
            if let Some(direct) = direct {
                return direct.finish().map(|()| bytes);
            }
            lines.flush()?;
            let bytes = lines.get_mut().stream_position()?;
            lines.get_mut().rewind()?;
            let raw = target.create()?;
            #[cfg(all(feature = "arrow", feature = "parquet"))]
            if let Some((format, table, odd)) = table {
                let table = super::tables::Table::open(table.file(&folder)?, format)?;
                table.write(&odd, &conversion, raw)?;
                return Ok(bytes);
            }
            #[cfg(not(all(feature = "arrow", feature = "parquet")))]
            drop((table, folder));
            let packing = target.packing(conversion.codec.compression());
            output::write(BufReader::new(lines.get_ref()), &columns, &conversion, packing, raw)?;
            Ok(bytes)
        };
        let done: io::Result<u64> = work();
        done.map_err(|e| target.error(e))
    }
}

impl Shared {
    /// The same as a file of its own.
    #[cfg(all(feature = "arrow", feature = "parquet"))]
    fn file(mut self, folder: &Path) -> io::Result<File> {
        let mut file = tempfile::tempfile_in(folder)?;
        self.rewind()?;
        io::copy(&mut self, &mut file)?;
        file.rewind()?;
        Ok(file)
    }
}

/// A JSON object of texts.
fn object<'a>(fields: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let mut out = "{".to_owned();
    for (name, value) in fields {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(&serde_json::Value::from(name).to_string());
        out.push(':');
        out.push_str(&serde_json::Value::from(value).to_string());
    }
    out.push('}');
    out
}

/// Names of columns that all differ: the second of a name is numbered.
pub(super) fn unique(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut known: Vec<String> = Vec::new();
    for name in names {
        let mut free = name.clone();
        for number in 2.. {
            if !known.contains(&free) {
                break;
            }
            free = format!("{name}_{number}");
        }
        known.push(free);
    }
    known
}
