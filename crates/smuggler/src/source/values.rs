//! JSON values of a file: the elements of one array, or values one after another.

use std::io::Read;

use super::{BLOCK_SIZE, Block, Records, Source};
use crate::error::{Error, Result};
use crate::json::splitter::{Form, Splitter, Step};

/// Cuts an input into blocks of JSON values. One that begins with `[` is an array of documents, all others are sequences.
pub(crate) struct Values<R> {
    input: R,
    /// There from the first byte on that is no white space.
    splitter: Option<Splitter>,
    value_size_max: usize,
    /// What ended the input, once the values before it have been handed over.
    failed: Option<Error>,
}

impl<R: Read + Send> Values<R> {
    pub(crate) fn new(input: R, value_size_max: usize) -> Values<R> {
        Values { input, splitter: None, value_size_max, failed: None }
    }

    /// Reads up to the first byte that tells the form.
    fn start(&mut self) -> Result<Splitter> {
        let mut first = Vec::new();
        loop {
            let read = (&mut self.input).take(4096).read_to_end(&mut first);
            let read = read.map_err(Error::io("the input cannot be read"))?;
            let text = first.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&first).trim_ascii_start();
            if read == 0 || !text.is_empty() {
                let form = if text.starts_with(b"[") { Form::Array } else { Form::Sequence };
                let mut splitter = Splitter::new(form, self.value_size_max);
                splitter.push(&first);
                return Ok(splitter);
            }
        }
    }
}

impl<R: Read + Send> Source for Values<R> {
    fn next_block(&mut self) -> Result<Option<Block>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut splitter = match self.splitter.take() {
            Some(splitter) => splitter,
            None => self.start()?,
        };
        let (mut bytes, mut ends) = (Vec::with_capacity(BLOCK_SIZE), Vec::new());
        let outcome = fill(&mut self.input, &mut splitter, &mut bytes, &mut ends);
        self.splitter = Some(splitter);
        match outcome {
            Err(error) if ends.is_empty() => Err(error),
            Ok(()) if ends.is_empty() => Ok(None),
            outcome => {
                self.failed = outcome.err();
                Ok(Some(Block { records: Records::Values { bytes, ends }, refused: Vec::new() }))
            }
        }
    }
}

/// Collects values until a block is full or the input ends.
fn fill(
    input: &mut impl Read,
    splitter: &mut Splitter,
    bytes: &mut Vec<u8>,
    ends: &mut Vec<(usize, u64)>,
) -> Result<()> {
    while bytes.len() < BLOCK_SIZE {
        match splitter.step()? {
            Step::Value { offset, text } => {
                bytes.extend_from_slice(text);
                ends.push((bytes.len(), offset));
            }
            Step::Raw(_) | Step::NeedMore => {
                match input.read(splitter.room()).map_err(Error::io("the input cannot be read"))? {
                    0 => splitter.end(),
                    read => splitter.filled(read),
                }
            }
            Step::End => break,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &str) -> (Vec<(u64, String)>, Option<String>) {
        let mut source = Values::new(std::io::Cursor::new(input.as_bytes().to_vec()), 1 << 20);
        let mut found = Vec::new();
        loop {
            match source.next_block() {
                Ok(Some(Block { records: Records::Values { bytes, ends }, .. })) => {
                    let mut start = 0;
                    for (end, offset) in ends {
                        found.push((offset, String::from_utf8_lossy(&bytes[start..end]).into_owned()));
                        start = end;
                    }
                }
                Ok(Some(_)) => unreachable!("values come as values"),
                Ok(None) => return (found, None),
                Err(error) => return (found, Some(error.to_string())),
            }
        }
    }

    #[test]
    fn arrays_and_sequences() {
        let value = |offset, text: &str| (offset, text.to_owned());
        assert_eq!(read(" [{\"a\":1}, {}]\n"), (vec![value(2, "{\"a\":1}"), value(11, "{}")], None));
        assert_eq!(read("{\"a\":\n1}\n{}"), (vec![value(0, "{\"a\":\n1}"), value(9, "{}")], None));
        assert_eq!(read(""), (vec![], None));
        assert_eq!(read("  "), (vec![], None));
        assert_eq!(read("[]"), (vec![], None));
        let many = "{\"Name\":\"x\"} ".repeat(100_000);
        assert_eq!(read(&many).0.len(), 100_000);
    }

    #[test]
    fn faults_end_the_input() {
        let (found, error) = read("{} x {}");
        assert_eq!((found.len(), error.as_deref()), (1, Some("expected a value, found 'x' at byte 3")));
        assert!(read("[{}").1.is_some());
    }
}
