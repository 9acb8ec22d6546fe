//! Takes whole values, single bytes and raw bytes off JSON text as it arrives.
//!
//! A [`Scanner`] does no input of its own: bytes are pushed into it (or written into its room), and each question is answered with `None` while the
//! answer has not yet arrived. Asked again after more has come, it looks on where it stopped, so that no byte is looked at twice. It holds at
//! most one value, bounded by a limit, plus what arrived behind it.

use super::extent::{Extent, is_space};
use super::window::Window;
use crate::error::{SplitError, SplitErrorKind as Kind};

/// See the module's text.
pub(crate) struct Scanner {
    window: Window,
    /// The value whose end is being looked for, and how many of its bytes were already seen.
    open: Option<(Extent, usize)>,
    /// Bytes of the next value, when its end was found and it was not taken yet; else 0.
    known: usize,
    /// Bytes of a value at most.
    value_size_max: usize,
    ended: bool,
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

impl Scanner {
    /// A scanner that refuses values of more than `value_size_max` bytes.
    pub(crate) fn new(value_size_max: usize) -> Scanner {
        Scanner { window: Window::default(), open: None, known: 0, value_size_max, ended: false }
    }

    /// Takes bytes that arrived.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.window.push(bytes);
    }

    /// Room to read into; [`Scanner::filled`] says how much was read.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        self.window.room()
    }

    /// Says that `count` bytes were read into the room.
    pub(crate) fn filled(&mut self, count: usize) {
        self.window.filled(count);
    }

    /// Says that nothing more will arrive.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// Whether [`Scanner::end`] was called.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Where in the input the next unused byte lies.
    pub(crate) fn offset(&self) -> u64 {
        self.window.offset()
    }

    /// Bytes of memory held.
    pub(crate) fn allocated(&self) -> usize {
        self.window.allocated()
    }

    /// The next byte that is not white space; it stays. None: it has not arrived, or the input ended.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        if self.window.offset() == 0 && self.window.bytes().first() == Some(&BYTE_ORDER_MARK[0]) {
            // Three bytes that some editors put in front of UTF-8.
            let bytes = self.window.bytes();
            if bytes.len() < BYTE_ORDER_MARK.len() && !self.ended {
                return None;
            }
            if bytes.starts_with(BYTE_ORDER_MARK) {
                self.window.take(BYTE_ORDER_MARK.len());
            }
        }
        let bytes = self.window.bytes();
        let spaces = bytes.iter().position(|byte| !is_space(*byte)).unwrap_or(bytes.len());
        self.window.take(spaces);
        self.window.bytes().first().copied()
    }

    /// Uses up the byte that [`Scanner::peek`] returned.
    pub(crate) fn skip_byte(&mut self) {
        self.window.take(1.min(self.window.bytes().len()));
    }

    /// The whole next value, with its offset. None: its end has not arrived, or the input ended before it began.
    pub(crate) fn value(&mut self) -> Result<Option<(u64, &[u8])>, SplitError> {
        let Some(size) = self.value_size()? else {
            return Ok(None);
        };
        let offset = self.window.offset();
        Ok(Some((offset, self.window.take(size))))
    }

    /// Whether the whole next value has arrived.
    pub(crate) fn has_value(&mut self) -> Result<bool, SplitError> {
        let size = self.value_size()?;
        self.known = size.unwrap_or(0);
        Ok(size.is_some())
    }

    /// The value that [`Scanner::has_value`] found, with its offset; it stays.
    pub(crate) fn peek_value(&self) -> (u64, &[u8]) {
        (self.window.offset(), &self.window.bytes()[..self.known])
    }

    /// The size of the next value, when its end has arrived.
    fn value_size(&mut self) -> Result<Option<usize>, SplitError> {
        if self.known > 0 {
            return Ok(Some(std::mem::take(&mut self.known)));
        }
        let Some((mut extent, mut seen)) = self.begin()? else {
            return Ok(None);
        };
        let bytes = &self.window.bytes()[seen..];
        let end = extent.advance(bytes);
        seen += end.unwrap_or(bytes.len());
        if seen > self.value_size_max {
            return Err(self.error(Kind::TooLong { limit: self.value_size_max }));
        }
        if end.is_none() && !(self.ended && extent.may_end_with_input()) {
            self.open = Some((extent, seen));
            return if self.ended { Err(self.unexpected_end()) } else { Ok(None) };
        }
        self.open = None;
        Ok(Some(seen))
    }

    /// The value being looked at, or the one that begins now.
    fn begin(&mut self) -> Result<Option<(Extent, usize)>, SplitError> {
        if self.open.is_none() {
            let Some(first) = self.peek() else {
                return Ok(None);
            };
            let Some(extent) = Extent::begin(first) else {
                return Err(self.unexpected(first, "a value"));
            };
            self.open = Some((extent, 0));
        }
        Ok(self.open)
    }

    /// Passes over the next value, however long, without holding it. False: its end has not arrived.
    pub(crate) fn skip_value(&mut self) -> Result<bool, SplitError> {
        let Some((mut extent, seen)) = self.begin()? else {
            return Ok(false);
        };
        self.window.take(seen);
        let bytes = self.window.bytes();
        let end = extent.advance(bytes);
        let count = end.unwrap_or(bytes.len());
        self.window.take(count);
        if end.is_none() && !(self.ended && extent.may_end_with_input()) {
            self.open = Some((extent, 0));
            return if self.ended { Err(self.unexpected_end()) } else { Ok(false) };
        }
        self.open = None;
        Ok(true)
    }

    /// The next bytes whatever they are, at most `count_max`; empty if none has arrived.
    pub(crate) fn raw(&mut self, count_max: u64) -> &[u8] {
        let arrived = self.window.bytes().len();
        self.window.take(usize::try_from(count_max).map_or(arrived, |count| count.min(arrived)))
    }

    /// The error that this byte, at the scanner's place, is not what was expected.
    #[cold]
    pub(crate) fn unexpected(&self, found: u8, expected: &'static str) -> SplitError {
        self.error(Kind::Unexpected { found, expected })
    }

    /// The error that the input ended too early.
    #[cold]
    pub(crate) fn unexpected_end(&self) -> SplitError {
        SplitError {
            offset: self.window.offset() + self.window.bytes().len() as u64,
            kind: Kind::UnexpectedEnd,
        }
    }

    /// An error at the scanner's place.
    #[cold]
    pub(crate) fn error(&self, kind: Kind) -> SplitError {
        SplitError { offset: self.window.offset(), kind }
    }
}
