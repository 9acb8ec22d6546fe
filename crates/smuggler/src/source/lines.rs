//! Lines of JSON: blocks end behind a line feed, and nothing else is looked at here.

use std::io::Read;

use super::{BLOCK_SIZE, Block, Records, Source};
use crate::error::{Error, Result};
use crate::report::{Place, Refusal};

/// Cuts an input into blocks of whole lines. A line that is longer than the limit is refused, and the next one goes on.
pub(crate) struct Lines<R> {
    input: R,
    /// The beginning of a line whose end was not yet read.
    rest: Vec<u8>,
    /// The number of the next block's first line, from 1.
    line: u64,
    line_size_max: usize,
    ended: bool,
}

impl<R: Read + Send> Lines<R> {
    pub(crate) fn new(input: R, line_size_max: usize) -> Lines<R> {
        Lines { input, rest: Vec::new(), line: 1, line_size_max, ended: false }
    }

    /// Appends what can be read now; zero bytes mean the end.
    fn read(&mut self, bytes: &mut Vec<u8>) -> Result<usize> {
        let read = (&mut self.input).take(BLOCK_SIZE as u64).read_to_end(bytes);
        read.map_err(Error::io("the input cannot be read"))
    }

    /// Passes over the rest of a line that is too long, which leaves the beginning of what follows.
    fn skip_line(&mut self, bytes: &mut Vec<u8>) -> Result<Refusal> {
        loop {
            bytes.clear();
            if self.read(bytes)? == 0 {
                self.ended = true;
                break;
            }
            if let Some(end) = memchr::memchr(b'\n', bytes) {
                bytes.drain(..=end);
                break;
            }
        }
        let place = Place::Line(self.line);
        self.line += 1;
        Ok(Refusal { place, reason: format!("the line is longer than {} bytes", self.line_size_max) })
    }
}

impl<R: Read + Send> Source for Lines<R> {
    fn next_block(&mut self) -> Result<Option<Block>> {
        let mut refused = Vec::new();
        let mut bytes = Vec::with_capacity(2 * BLOCK_SIZE);
        bytes.append(&mut self.rest);
        let mut searched = 0;
        let whole = loop {
            if let Some(end) = memchr::memrchr(b'\n', &bytes[searched..]) {
                break searched + end + 1;
            }
            searched = bytes.len();
            if self.ended {
                break bytes.len();
            }
            if bytes.len() > self.line_size_max {
                refused.push(self.skip_line(&mut bytes)?);
                searched = 0;
            } else if self.read(&mut bytes)? == 0 {
                self.ended = true;
            }
        };
        if bytes.is_empty() && refused.is_empty() {
            return Ok(None);
        }
        self.rest.extend_from_slice(&bytes[whole..]);
        bytes.truncate(whole);
        let first_line = self.line;
        self.line += memchr::memchr_iter(b'\n', &bytes).count() as u64;
        Ok(Some(Block { records: Records::Lines { bytes, first_line }, refused }))
    }
}

/// The lines of a block with their numbers, without white space around them; empty ones are left out.
pub(crate) fn lines(bytes: &[u8], first_line: u64) -> impl Iterator<Item = (u64, &[u8])> {
    let mut rest = bytes;
    let mut number = first_line;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let mut line = &rest[..end];
            rest = rest.get(end + 1..).unwrap_or_default();
            if number == 1 {
                line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
            }
            number += 1;
            let line = line.trim_ascii();
            if !line.is_empty() {
                return Some((number - 1, line));
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An input that brings a few bytes at a time.
    struct Drip(Vec<u8>, usize, usize);

    impl Read for Drip {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let count = self.2.min(buffer.len()).min(self.0.len() - self.1);
            buffer[..count].copy_from_slice(&self.0[self.1..self.1 + count]);
            self.1 += count;
            Ok(count)
        }
    }

    fn read(input: &str, step: usize, line_size_max: usize) -> (Vec<(u64, String)>, Vec<Refusal>) {
        let mut source = Lines::new(Drip(input.as_bytes().to_vec(), 0, step), line_size_max);
        let (mut found, mut refused) = (Vec::new(), Vec::new());
        while let Some(block) = source.next_block().unwrap() {
            refused.extend(block.refused);
            if let Records::Lines { bytes, first_line } = block.records {
                found.extend(
                    lines(&bytes, first_line)
                        .map(|(number, line)| (number, String::from_utf8_lossy(line).into_owned())),
                );
            }
        }
        (found, refused)
    }

    #[test]
    fn lines_have_their_numbers() {
        let input = "\u{feff}{\"a\":1}\r\n\n  \n{}\n last";
        let expected = vec![(1, "{\"a\":1}".to_owned()), (4, "{}".to_owned()), (5, "last".to_owned())];
        for step in [1, 3, 1000] {
            assert_eq!(read(input, step, 1000), (expected.clone(), vec![]));
        }
        assert_eq!(read("", 1, 10), (vec![], vec![]));
        assert_eq!(read("\n\n", 1, 10), (vec![], vec![]));
    }

    #[test]
    fn too_long_lines_are_refused_and_reading_goes_on() {
        let long = "x".repeat(3 * BLOCK_SIZE);
        let input = format!("a\n{long}\nb\n{long}{long}\nc\n{long}");
        let (found, refused) = read(&input, 1000, BLOCK_SIZE / 2);
        assert_eq!(found, [(1, "a".to_owned()), (3, "b".to_owned()), (5, "c".to_owned())]);
        let places: Vec<_> = refused.iter().map(|refusal| refusal.place).collect();
        assert_eq!(places, [Place::Line(2), Place::Line(4), Place::Line(6)]);
        let (found, refused) = read(&input, 100_000, 100 * BLOCK_SIZE);
        assert_eq!((found.len(), refused.len()), (6, 0));
    }
}
