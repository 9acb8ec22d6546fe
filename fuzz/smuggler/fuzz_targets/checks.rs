//! What must hold for any input: nothing panics, memory stays bounded, and what is found does not depend on how the input is cut into pieces.
//!
//! The first byte of an input says how large the pieces are, the rest is the input proper.

use jackdaw_smuggler::{BulkInsertReader, Command, DumpReader, DumpStep, Form, Next, Splitter, Step};

/// Bytes of a value at most.
const VALUE_SIZE_MAX: usize = 4096;
/// Bytes of memory that a reader may hold with values no longer than that.
const MEMORY_MAX: usize = 4 << 20;

fn pieces(input: &[u8]) -> Option<(usize, &[u8])> {
    let (first, rest) = input.split_first()?;
    Some((usize::from(*first) + 1, rest))
}

/// The splitter, in all its forms.
pub fn splitter(input: &[u8]) {
    let Some((size, input)) = pieces(input) else { return };
    for form in [Form::Array, Form::OpenArray, Form::Sequence] {
        let whole = split(input, form, input.len().max(1));
        assert_eq!(split(input, form, size), whole);
    }
}

fn split(input: &[u8], form: Form, size: usize) -> (Vec<(u64, Vec<u8>)>, String) {
    let mut splitter = Splitter::new(form, VALUE_SIZE_MAX);
    let mut pieces = input.chunks(size);
    let mut found: Vec<(u64, Vec<u8>)> = Vec::new();
    loop {
        assert!(splitter.allocated() <= MEMORY_MAX.max(4 * input.len()));
        match splitter.step() {
            Ok(Step::Value { offset, text }) => {
                let start = offset as usize;
                assert_eq!(&input[start..start + text.len()], text);
                found.push((offset, text.to_vec()));
                // Every third value announces raw bytes.
                if found.len().is_multiple_of(3) {
                    splitter.expect_raw(found.len() as u64);
                }
            }
            Ok(Step::Raw(bytes)) => {
                if let Some((_, last)) = found.last_mut() {
                    last.extend_from_slice(bytes);
                }
            }
            Ok(Step::NeedMore) => match pieces.next() {
                Some(piece) => splitter.push(piece),
                None => splitter.end(),
            },
            Ok(Step::End) => return (found, "end".to_owned()),
            Err(error) => return (found, error.to_string()),
        }
    }
}

/// The reader of dumps.
pub fn dump(input: &[u8]) {
    let Some((size, input)) = pieces(input) else { return };
    let whole = read_dump(input, input.len().max(1));
    assert_eq!(read_dump(input, size), whole);
}

fn read_dump(input: &[u8], size: usize) -> (Vec<(String, u64, Vec<u8>)>, String) {
    let mut reader = DumpReader::new(VALUE_SIZE_MAX);
    let mut pieces = input.chunks(size);
    let mut found = Vec::new();
    loop {
        assert!(reader.allocated() <= MEMORY_MAX.max(4 * input.len()));
        match reader.step() {
            Ok(DumpStep::Item { section, offset, text }) => {
                found.push((section.to_string(), offset, text.to_vec()));
            }
            Ok(DumpStep::NeedMore) => match pieces.next() {
                Some(piece) => reader.push(piece),
                None => reader.end(),
            },
            Ok(DumpStep::End) => return (found, format!("end, passed over {:?}", reader.skipped())),
            Err(error) => return (found, error.to_string()),
        }
    }
}

/// The reader of bulk inserts.
pub fn bulk_insert(input: &[u8]) {
    let Some((size, input)) = pieces(input) else { return };
    let whole = read_commands(input, input.len().max(1));
    assert_eq!(read_commands(input, size), whole);
}

fn read_commands(input: &[u8], size: usize) -> (Vec<(String, Vec<u8>)>, String) {
    let mut reader = BulkInsertReader::new(VALUE_SIZE_MAX);
    let mut pieces = input.chunks(size);
    let mut found = Vec::new();
    loop {
        match reader.next() {
            Ok(Next::Command(Command::Put { id, document, .. })) => {
                found.push((id.into_owned(), document.to_vec()));
            }
            Ok(Next::Command(Command::HeartBeat)) => found.push((String::new(), Vec::new())),
            Ok(Next::NeedMore) => match pieces.next() {
                Some(piece) => reader.push(piece),
                None => reader.end(),
            },
            Ok(Next::End) => return (found, "end".to_owned()),
            Err(error) => return (found, error.to_string()),
        }
    }
}
