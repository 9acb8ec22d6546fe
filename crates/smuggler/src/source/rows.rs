//! Rows of CSV: the crate `csv-core` finds their fields; rows that have more or fewer fields than the header are refused here.

use std::io::{self, Read};

use csv_core::ReadRecordResult as Found;

use super::{BLOCK_SIZE, Block, Records, Source};
use crate::csv::CsvOptions;
use crate::error::{Error, Result};
use crate::report::{Place, Refusal};

/// Bytes of input read at a time.
const INPUT_SIZE: usize = 128 << 10;
/// Rows of a block at most.
const ROWS_MAX: usize = 8192;
/// Refused rows of a block at most.
const REFUSED_MAX: usize = 1024;

/// Rows of the same number of fields.
#[derive(Default)]
pub(crate) struct RowBlock {
    /// The fields one behind the other, and room for more.
    bytes: Vec<u8>,
    size: usize,
    /// Where each field ends in `bytes`, and room for more.
    ends: Vec<usize>,
    field_count: usize,
    /// The line on which each row begins.
    lines: Vec<u64>,
}

impl RowBlock {
    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// A row's line and fields.
    pub(crate) fn row(&self, index: usize) -> (u64, Row<'_>) {
        let width = self.field_count / self.lines.len();
        let start = if index == 0 { 0 } else { self.ends[index * width - 1] };
        let ends = &self.ends[index * width..(index + 1) * width];
        (self.lines[index], Row { bytes: &self.bytes, start, ends })
    }
}

/// The fields of a row.
#[derive(Clone, Copy)]
pub(crate) struct Row<'b> {
    bytes: &'b [u8],
    start: usize,
    ends: &'b [usize],
}

impl<'b> Row<'b> {
    /// Bytes of all its fields.
    pub(crate) fn size(&self) -> usize {
        self.ends.last().map_or(0, |end| end - self.start)
    }

    /// A field; empty if there is none.
    pub(crate) fn field(&self, index: usize) -> &'b [u8] {
        let Some(end) = self.ends.get(index) else {
            return &[];
        };
        let start = if index == 0 { self.start } else { self.ends[index - 1] };
        &self.bytes[start..*end]
    }
}

/// Cuts a CSV file into blocks of rows.
pub(crate) struct Rows<R> {
    records: Reader<R>,
    headers: Vec<String>,
    failed: Option<Error>,
}

impl<R: Read + Send> Rows<R> {
    /// Reads the header.
    pub(crate) fn new(input: R, options: &CsvOptions, record_size_max: usize) -> Result<Rows<R>> {
        let mut records = Reader {
            input,
            buffer: vec![0; INPUT_SIZE],
            start: 0,
            end: 0,
            core: csv_core::ReaderBuilder::new().delimiter(options.delimiter).quote(options.quote).build(),
            blank_lines: 0,
            record_size_max,
        };
        records.skip_byte_order_mark()?;
        let headers = match &options.headers {
            Some(headers) => headers.clone(),
            None => {
                let mut first = RowBlock::default();
                if records.read(&mut first)?.is_none() {
                    return Err(Error::Options("the file is empty: it has no header".into()));
                }
                headers_of(&first)?
            }
        };
        Ok(Rows { records, headers, failed: None })
    }

    /// The names of the columns.
    pub(crate) fn headers(&self) -> &[String] {
        &self.headers
    }

    fn fill(&mut self, rows: &mut RowBlock, refused: &mut Vec<Refusal>) -> Result<()> {
        while rows.size < BLOCK_SIZE && rows.len() < ROWS_MAX && refused.len() < REFUSED_MAX {
            let before = (rows.size, rows.field_count);
            let Some(line) = self.records.read(rows)? else {
                break;
            };
            let fields = rows.field_count - before.1;
            if fields == self.headers.len() {
                rows.lines.push(line);
            } else {
                (rows.size, rows.field_count) = before;
                let reason = format!("it has {fields} fields, the header has {}", self.headers.len());
                refused.push(Refusal { place: Place::Line(line), reason });
            }
        }
        Ok(())
    }
}

impl<R: Read + Send> Source for Rows<R> {
    fn next_block(&mut self) -> Result<Option<Block>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let (mut rows, mut refused) = (RowBlock::default(), Vec::new());
        let outcome = self.fill(&mut rows, &mut refused);
        if rows.len() == 0 && refused.is_empty() {
            return outcome.map(|()| None);
        }
        self.failed = outcome.err();
        Ok(Some(Block { records: Records::Rows(rows), refused }))
    }
}

fn headers_of(first: &RowBlock) -> Result<Vec<String>> {
    let mut headers: Vec<String> = Vec::with_capacity(first.field_count);
    let row = Row { bytes: &first.bytes, start: 0, ends: &first.ends[..first.field_count] };
    for i in 0..first.field_count {
        let name = simdutf8::basic::from_utf8(row.field(i))
            .map_err(|_| Error::Options(format!("the name of column {} is not UTF-8", i + 1)))?
            .trim();
        if name.is_empty() {
            return Err(Error::Options(format!("column {} has no name", i + 1)));
        }
        if headers.iter().any(|other| other == name) {
            return Err(Error::Options(format!("two columns are named {name:?}")));
        }
        headers.push(name.to_owned());
    }
    Ok(headers)
}

/// Reads records one by one.
struct Reader<R> {
    input: R,
    /// `buffer[start..end]` was read and is not yet used.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    core: csv_core::Reader,
    /// Line feeds between records, which the core did not see.
    blank_lines: u64,
    record_size_max: usize,
}

impl<R: Read> Reader<R> {
    /// Appends the fields of the next record, and returns the line on which it begins; none at the end.
    ///
    /// A record longer than the limit is an error that ends the reading: a quote that is never closed makes all that follows one field.
    fn read(&mut self, rows: &mut RowBlock) -> Result<Option<u64>> {
        let (first_byte, first_end) = (rows.size, rows.field_count);
        let (mut bytes, mut ends) = (first_byte, first_end);
        self.skip_blank_lines()?;
        let line = self.blank_lines + self.core.line();
        let found = loop {
            if self.start == self.end {
                self.refill()?;
            }
            if rows.bytes.len() == bytes {
                rows.bytes.resize(bytes + bytes.clamp(INPUT_SIZE, 16 * INPUT_SIZE), 0);
            }
            if rows.ends.len() == ends {
                rows.ends.resize(ends + ends.max(4096), 0);
            }
            let input = &self.buffer[self.start..self.end];
            let (found, used, written, ended) =
                self.core.read_record(input, &mut rows.bytes[bytes..], &mut rows.ends[ends..]);
            self.start += used;
            bytes += written;
            ends += ended;
            if bytes - first_byte > self.record_size_max {
                let reason =
                    format!("is longer than {} bytes; is a quote never closed?", self.record_size_max);
                return Err(Error::Record { line, reason });
            }
            match found {
                Found::InputEmpty | Found::OutputFull | Found::OutputEndsFull => {}
                Found::Record => break Some(line),
                Found::End => break None,
            }
        };
        (rows.size, rows.field_count) = (bytes, ends);
        // The core counts from the record's start.
        rows.ends[first_end..ends].iter_mut().for_each(|end| *end += first_byte);
        Ok(found)
    }

    fn skip_byte_order_mark(&mut self) -> Result<()> {
        let mut first = Vec::new();
        let read = (&mut self.input).take(3).read_to_end(&mut first);
        self.end = read.map_err(Error::io("the input cannot be read"))?;
        self.buffer[..self.end].copy_from_slice(&first);
        self.start = if first == b"\xEF\xBB\xBF" { self.end } else { 0 };
        Ok(())
    }

    fn skip_blank_lines(&mut self) -> Result<()> {
        loop {
            if self.start == self.end && self.refill()? == 0 {
                return Ok(());
            }
            match self.buffer[self.start] {
                b'\n' => self.blank_lines += 1,
                b'\r' => {}
                _ => return Ok(()),
            }
            self.start += 1;
        }
    }

    fn refill(&mut self) -> Result<usize> {
        self.start = 0;
        self.end = 0;
        self.end = loop {
            match self.input.read(&mut self.buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => break outcome.map_err(Error::io("the input cannot be read"))?,
            }
        };
        Ok(self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row's line and fields.
    type Found = (u64, Vec<String>);

    fn read(input: &[u8], options: &CsvOptions) -> Result<(Vec<Found>, Vec<Refusal>)> {
        let mut source = Rows::new(io::Cursor::new(input.to_vec()), options, 1 << 20)?;
        let width = source.headers().len();
        let (mut found, mut refused) = (Vec::new(), Vec::new());
        while let Some(block) = source.next_block()? {
            refused.extend(block.refused);
            if let Records::Rows(rows) = block.records {
                for i in 0..rows.len() {
                    let (line, row) = rows.row(i);
                    let fields = (0..width).map(|i| String::from_utf8_lossy(row.field(i)).into_owned());
                    found.push((line, fields.collect()));
                }
            }
        }
        Ok((found, refused))
    }

    fn row(line: u64, fields: &[&str]) -> Found {
        (line, fields.iter().map(|field| (*field).to_owned()).collect())
    }

    #[test]
    fn fields_quotes_and_ragged_rows() {
        let input = "\u{feff}\"a\", b\n1,2\n\"x \"\"y\"\",\n z\",\n\n1,2,3\n4\n5,6\r\n7,8";
        let (found, refused) = read(input.as_bytes(), &CsvOptions::default()).unwrap();
        assert_eq!(
            found,
            [row(2, &["1", "2"]), row(3, &["x \"y\",\n z", ""]), row(8, &["5", "6"]), row(9, &["7", "8"])]
        );
        let refused: Vec<_> = refused.iter().map(ToString::to_string).collect();
        assert_eq!(
            refused,
            ["line 6: it has 3 fields, the header has 2", "line 7: it has 1 fields, the header has 2"]
        );
    }

    #[test]
    fn other_delimiters_and_given_headers() {
        let options = CsvOptions {
            delimiter: b';',
            headers: Some(vec!["x".into(), "y".into()]),
            ..CsvOptions::default()
        };
        assert_eq!(read(b"1;2,3\n", &options).unwrap().0, [row(1, &["1", "2,3"])]);
    }

    #[test]
    fn headers_must_make_sense() {
        for input in ["", "a,,b\n", "a,a\n"] {
            assert!(
                matches!(read(input.as_bytes(), &CsvOptions::default()), Err(Error::Options(_))),
                "{input:?}"
            );
        }
        assert!(matches!(read(b"\xff,b\n", &CsvOptions::default()), Err(Error::Options(_))));
    }

    #[test]
    fn a_quote_that_is_never_closed_ends_the_reading() {
        let mut input = b"a,b\n1,2\n3,\"".to_vec();
        input.resize(5 << 20, b'x');
        let mut source = Rows::new(io::Cursor::new(input), &CsvOptions::default(), 1 << 20).unwrap();
        // What came before it is handed over first.
        assert!(
            matches!(source.next_block(), Ok(Some(Block { records: Records::Rows(rows), .. })) if rows.len() == 1)
        );
        assert!(matches!(source.next_block(), Err(Error::Record { line: 3, .. })));
    }

    #[test]
    fn many_rows_come_in_blocks() {
        let input = [b"a,b\n".to_vec(), b"12345,67890\n".repeat(100_000)].concat();
        let (found, _) = read(&input, &CsvOptions::default()).unwrap();
        assert_eq!(found.len(), 100_000);
        assert_eq!(found[99_999], row(100_001, &["12345", "67890"]));
    }
}
