//! The first pass: the rows of a file, one after another.

use std::collections::VecDeque;
use std::sync::Arc;

use super::column::{ListBounds, check, read_flat, read_lists, read_slots, typed};
use super::{CHUNK, NAME, Opened};
use crate::parse::{Plan, Slot};
use crate::source::{Origin, RATIO_FROM};
use crate::split::{Passed, Piece, Pieces};
use crate::{Limits, Reason};
use parquet::basic::{ConvertedType, LogicalType, Repetition};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::{Type, TypePtr};

/// From this many rows on, their number is held against the size of the file.
const ROWS_FROM: u64 = 1 << 20;

/// Where the fields of the plan are.
#[derive(Clone, Copy, Debug)]
enum Field {
    Absent,
    /// Not a single value a row.
    Nested(&'static str),
    Column(usize),
    /// A column of lists of single values, and the definition level from which on there is a member.
    List(usize, i16),
}

/// The rows of one file. A row's place is its number, from 1.
pub(crate) struct Rows {
    file: Opened,
    limits: Limits,
    /// The column of the text, if one is asked for, then those of the other paths of the plan.
    text: Option<usize>,
    fields: Vec<Field>,
    /// The next row group.
    next: usize,
    group: Option<Group>,
    /// What is decoded of it: the texts, and the fields of each.
    queue: VecDeque<(Option<ByteArray>, Vec<Slot<'static>>)>,
    notes: VecDeque<(Reason, u64)>,
    /// The number of the next row.
    row: u64,
    start: usize,
    passed: Passed,
    /// The digest of the pages of each row group that has been passed.
    digests: Vec<u64>,
    /// Bytes of text handed out, and of lists decoded.
    text_bytes: u64,
    /// Values looked at, those of all columns together.
    values: u64,
}

/// The row group that is read.
struct Group {
    text: Option<ColumnReaderImpl<ByteArrayType>>,
    /// One for each of [`Rows::fields`] that is a column.
    fields: Vec<Option<(usize, ColumnReader)>>,
    /// Rows that are not decoded yet.
    left: u64,
    /// The number of the row after the last one of the group.
    after: u64,
}

impl Rows {
    pub(crate) fn open(
        origin: &Origin,
        limits: &Limits,
        plan: &Plan,
        start: usize,
    ) -> std::result::Result<Self, Reason> {
        let file = Opened::open(origin, limits)?;
        let text = plan.text().map(|path| file.text(&path.full)).transpose()?;
        let fields = plan.paths.iter().skip(1).map(|path| file.field(&path.full)).collect();
        let passed = Passed { bytes: file.blocks.size(), ..Passed::default() };
        Ok(Self {
            file,
            limits: *limits,
            text,
            fields,
            next: 0,
            group: None,
            queue: VecDeque::new(),
            notes: VecDeque::new(),
            row: 1,
            start,
            passed,
            digests: Vec::new(),
            text_bytes: 0,
            values: 0,
        })
    }

    /// Looks at all columns of the next row group, and opens those that are wanted.
    fn next_group(&mut self) -> bool {
        if self.next >= self.file.groups().len() {
            return false;
        }
        let number = self.next;
        let declared = self.file.groups()[number].num_rows().max(0).cast_unsigned();
        self.next += 1;
        let allowed = self.file.blocks.size().saturating_mul(self.limits.ratio);
        let mut good = declared;
        let mut why = None;
        if self.row + declared > ROWS_FROM.max(allowed) {
            why = Some(Reason::Bomb { format: NAME });
            good = 0;
        }
        self.file.blocks.take_digest();
        for column in 0..self.file.groups()[number].num_columns() {
            let values = RATIO_FROM.max(allowed).saturating_sub(self.values);
            let open = || self.file.column(number, column);
            let schema = self.file.groups()[number].column(column).column_descr();
            let checked = check(open, schema, good, values);
            self.values += checked.values;
            // The first column to end says why.
            let error = match checked.error {
                Some(error) => error,
                None if checked.values > values => Reason::Bomb { format: NAME },
                None if checked.rows == good => continue,
                None if checked.rows > good && good < declared => continue,
                None => Reason::Damaged {
                    compression: NAME,
                    error: format!(
                        "the footer claims {declared} rows, a column has another number"
                    ),
                },
            };
            if checked.rows < good || why.is_none() {
                why = Some(error);
            }
            good = good.min(checked.rows);
        }
        self.digests.push(self.file.blocks.take_digest());
        if let Some(why) = why {
            let (rows, line) = (declared - good, self.row + good);
            self.notes.push_back((Reason::Rows { rows, why: Box::new(why) }, line));
        }
        self.passed.parts.push(0);
        match super::guarded(|| self.open_group(number)) {
            Ok((text, fields)) => {
                let after = self.row + declared;
                self.group = Some(Group { text, fields, left: good, after });
            }
            // The same calls have succeeded before, unless nothing of the group is good.
            Err(_) => self.row += declared,
        }
        true
    }

    #[expect(clippy::type_complexity, reason = "the parts of a group")]
    fn open_group(
        &self,
        number: usize,
    ) -> Result<(Option<ColumnReaderImpl<ByteArrayType>>, Vec<Option<(usize, ColumnReader)>>)> {
        let text = self.text.map(|text| self.file.column(number, text)).transpose()?.map(typed);
        let field = |field: &Field| match field {
            Field::Column(column) | Field::List(column, _) => {
                Some(self.file.column(number, *column).map(|r| (*column, r)))
            }
            Field::Absent | Field::Nested(_) => None,
        };
        let fields = self.fields.iter().map(|f| field(f).transpose()).collect::<Result<_>>()?;
        Ok((text, fields))
    }

    /// Decodes the next rows of the group.
    fn fill(&mut self) -> Result<()> {
        let allowed = self.file.blocks.size().saturating_mul(self.limits.ratio);
        let Some(group) = &mut self.group else { return Ok(()) };
        let rows = usize::try_from(group.left).unwrap_or(usize::MAX).min(CHUNK);
        let schema = self.file.meta.file_metadata().schema_descr();
        let mut texts = Vec::with_capacity(rows);
        match (self.text, &mut group.text) {
            (Some(column), Some(text)) => {
                read_flat(text, &schema.column(column), rows, |value| texts.push(value.cloned()))?;
            }
            _ => texts.resize(rows, None),
        }
        let mut columns = Vec::with_capacity(self.fields.len());
        for (field, reader) in self.fields.iter().zip(&mut group.fields) {
            let slots = match (field, reader) {
                (Field::List(_, member), Some((column, reader))) => {
                    let bounds = ListBounds {
                        each: self.limits.record_bytes,
                        all: RATIO_FROM.max(allowed).saturating_sub(self.text_bytes),
                    };
                    let column = schema.column(*column);
                    let (slots, bytes) = read_lists(reader, &column, rows, *member, &bounds)?;
                    self.text_bytes += bytes;
                    slots
                }
                (_, Some((column, reader))) => read_slots(reader, &schema.column(*column), rows)?,
                (Field::Nested(kind), None) => vec![Slot::Other(kind); rows],
                (_, None) => vec![Slot::Missing; rows],
            };
            if slots.len() != rows {
                return Err(ParquetError::General("a column has too few rows".to_owned()));
            }
            columns.push(slots.into_iter());
        }
        for text in texts {
            let slots = columns.iter_mut().filter_map(Iterator::next).collect();
            self.queue.push_back((text, slots));
        }
        group.left -= rows as u64;
        Ok(())
    }

    fn row(
        &mut self,
        text: Option<&ByteArray>,
        mut slots: Vec<Slot<'static>>,
        buffer: &mut Vec<u8>,
        cells: &mut Vec<Slot<'static>>,
    ) -> Piece {
        let line = self.row;
        self.row += 1;
        if let Some(rows) = self.passed.parts.last_mut() {
            *rows += 1;
        }
        let from = buffer.len();
        cells.push(match text.map(ByteArray::data) {
            None => Slot::Null,
            Some(text) if text.len() > self.limits.record_bytes => Slot::TooLong(text.len() as u64),
            Some(text) => {
                buffer.extend_from_slice(text);
                self.text_bytes += text.len() as u64;
                Slot::IN_RECORD
            }
        });
        cells.append(&mut slots);
        self.start = buffer.len();
        Piece::Record { range: from..buffer.len(), line, closed: true }
    }
}

impl Pieces for Rows {
    fn next(&mut self, buffer: &mut Vec<u8>, cells: &mut Vec<Slot<'static>>) -> Option<Piece> {
        loop {
            if let Some((text, slots)) = self.queue.pop_front() {
                return Some(self.row(text.as_ref(), slots, buffer, cells));
            }
            let Some(group) = &self.group else {
                // What was found out about a group comes before its rows.
                if let Some((reason, line)) = self.notes.pop_front() {
                    return Some(Piece::Damage { reason, line });
                }
                if self.next_group() {
                    continue;
                }
                self.passed.digest = self.file.digest(&self.passed.parts, &self.digests);
                return None;
            };
            let (left, after) = (group.left, group.after);
            let allowed = self.file.blocks.size().saturating_mul(self.limits.ratio);
            let is_bomb = self.text_bytes > RATIO_FROM.max(allowed);
            let failed = if is_bomb && left > 0 {
                Some(Reason::Bomb { format: NAME })
            } else if left > 0 {
                let mut filled = Ok(());
                let outcome = super::guarded(|| {
                    filled = self.fill();
                    Ok(())
                });
                match (outcome, filled) {
                    (Ok(()), Ok(())) => continue,
                    (Err(reason), _) => Some(reason),
                    (_, Err(error)) => super::guarded::<()>(|| Err(error)).err(),
                }
            } else {
                None
            };
            if let Some(why) = failed {
                let rows = left;
                self.notes.push_back((Reason::Rows { rows, why: Box::new(why) }, self.row));
            }
            self.group = None;
            self.row = after;
        }
    }

    fn start(&self) -> usize {
        self.start
    }

    fn rebase(&mut self, by: usize) {
        self.start -= by;
    }

    fn consumed(&self) -> u64 {
        let size = |i: usize| self.file.groups()[i].compressed_size().max(0).cast_unsigned();
        let done: u64 = (0..self.next).map(size).fold(0, u64::saturating_add);
        let left = match &self.group {
            Some(group) => {
                let declared = self.file.groups()[self.next - 1].num_rows().max(1).cast_unsigned();
                let share = group.left.min(declared) as f64 / declared as f64;
                (size(self.next - 1) as f64 * share) as u64
            }
            None if self.next == self.file.groups().len() => return self.file.blocks.size(),
            None => 0,
        };
        done.saturating_sub(left).min(self.file.blocks.size())
    }

    fn passed(&self) -> Passed {
        self.passed.clone()
    }
}

impl Opened {
    /// The column of the text.
    pub(super) fn text(&self, path: &str) -> std::result::Result<usize, Reason> {
        let wrong = |got| Err(Reason::WrongType { field: path.to_owned(), got });
        match self.field(path) {
            Field::Column(column) if self.is_bytes(column) => Ok(column),
            Field::Column(_) => wrong("numbers"),
            Field::List(..) => wrong("a list"),
            Field::Nested(got) => wrong(got),
            Field::Absent => {
                Err(Reason::NoColumn { field: path.to_owned(), columns: self.names() })
            }
        }
    }

    fn field(&self, path: &str) -> Field {
        let schema = self.meta.file_metadata().schema_descr();
        let columns = schema.columns();
        if let Some(found) = columns.iter().position(|c| c.path().string() == path) {
            return match columns[found].max_rep_level() {
                0 => Field::Column(found),
                _ => self.list(found, path),
            };
        }
        let is_inside =
            |inner: &str| inner.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
        match columns.iter().position(|c| is_inside(&c.path().string())) {
            Some(inner) if columns[inner].max_rep_level() > 0 => self.list(inner, path),
            Some(_) => Field::Nested("a group of columns"),
            None => Field::Absent,
        }
    }

    /// The list whose members a column has, if its path is the list's, and they are single values.
    ///
    /// # References
    /// Apache Parquet, `LogicalTypes.md`, "Lists": a group that is annotated as a list has one repeated field, which either
    /// is the member or a group that has it; and an unannotated repeated field is a list by itself.
    fn list(&self, column: usize, path: &str) -> Field {
        let nested = Field::Nested("a list");
        let schema = self.meta.file_metadata().schema_descr();
        let leaf = schema.column(column);
        if leaf.max_rep_level() != 1 {
            return nested;
        }
        let mut node = schema.get_column_root_ptr(column);
        let mut above = 0;
        let mut name = node.name().to_owned();
        while name != path {
            let below = leaf.path().parts().get(above + 1);
            let inner = below.and_then(|below| child(&node, below));
            let Some(inner) = inner else { return nested };
            node = inner;
            name = format!("{name}.{}", node.name());
            above += 1;
        }
        let repeated = if node.is_primitive() { Some(Arc::clone(&node)) } else { members(&node) };
        let Some(repeated) = repeated.filter(|r| is_repeated(r)) else { return nested };
        let member = match &*repeated {
            Type::PrimitiveType { .. } => Some(Arc::clone(&repeated)),
            Type::GroupType { fields, .. } => {
                let is_member = matches!(repeated.name(), "array")
                    || repeated.name() == format!("{}_tuple", node.name());
                fields.first().filter(|_| fields.len() == 1 && !is_member).cloned()
            }
        };
        let leaf_type = leaf.self_type_ptr();
        match member {
            Some(member) if Arc::ptr_eq(&member, &leaf_type) => {
                // Of all levels of the column the highest may say that a member is there and null.
                let nulls = i16::from(!is_repeated(&member) && member.is_optional());
                Field::List(column, leaf.max_def_level() - nulls)
            }
            _ => nested,
        }
    }

    fn is_bytes(&self, column: usize) -> bool {
        let schema = self.meta.file_metadata().schema_descr();
        schema.column(column).physical_type() == parquet::basic::Type::BYTE_ARRAY
    }

    fn names(&self) -> String {
        let columns = self.meta.file_metadata().schema_descr().columns().iter();
        crate::parse::list_of_names(columns.map(|c| c.path().string()))
    }
}

fn child(group: &Type, name: &str) -> Option<TypePtr> {
    match group {
        Type::GroupType { fields, .. } => fields.iter().find(|f| f.name() == name).cloned(),
        Type::PrimitiveType { .. } => None,
    }
}

/// The repeated field of a group that is annotated as a list.
fn members(group: &Type) -> Option<TypePtr> {
    let info = group.get_basic_info();
    let is_list = matches!(info.logical_type_ref(), Some(LogicalType::List))
        || info.converted_type() == ConvertedType::LIST;
    match group {
        Type::GroupType { fields, .. } if is_list && fields.len() == 1 => fields.first().cloned(),
        _ => None,
    }
}

fn is_repeated(node: &Type) -> bool {
    let info = node.get_basic_info();
    info.has_repetition() && info.repetition() == Repetition::REPEATED
}
