//! The values of an array, or of a sequence of values, one by one as their bytes arrive.

use super::scanner::Scanner;
use crate::error::SplitError;

/// How the values stand in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As the elements of one array; nothing but white space may follow it.
    Array,
    /// As [`Form::Array`], but the input may end behind an element, behind a comma, or before anything at all: a stream that a client leaves without closing its array.
    /// And where the array is closed, that is the end, whether or not more could arrive.
    OpenArray,
    /// One after another, with nothing but white space between them.
    Sequence,
}

/// Cuts JSON text into values without parsing them.
///
/// Bytes are pushed in pieces of any size, and [`Splitter::step`] is asked until it needs more. One value at a time is held, no longer than the limit. After a value the input may hold
/// raw bytes that are not JSON, as attachments do: [`Splitter::expect_raw`] says how many.
///
/// A value's extent is exact when it is JSON. What is not JSON may be cut anywhere; a parser refuses it then.
///
/// ```
/// use jackdaw_smuggler::{Form, Splitter, Step};
///
/// let mut splitter = Splitter::new(Form::Array, 1 << 20);
/// splitter.push(br#"[{"Name":"a"#);
/// assert_eq!(splitter.step()?, Step::NeedMore);
/// splitter.push(br#"b"},2]"#);
/// assert_eq!(splitter.step()?, Step::Value { offset: 1, text: br#"{"Name":"ab"}"# });
/// assert_eq!(splitter.step()?, Step::Value { offset: 15, text: b"2" });
/// splitter.end();
/// assert_eq!(splitter.step()?, Step::End);
/// # Ok::<(), jackdaw_smuggler::SplitError>(())
/// ```
pub struct Splitter {
    scanner: Scanner,
    form: Form,
    place: Place,
    /// Raw bytes still to be handed over before JSON goes on.
    raw: u64,
}

/// What comes next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The opening bracket.
    Start,
    /// The first element, or the end of an empty array.
    First,
    /// An element.
    Element,
    /// A comma, or the end.
    Behind,
    /// Nothing.
    End,
}

/// What [`Splitter::step`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// A whole value.
    Value {
        /// Where in the input its first byte lies.
        offset: u64,
        /// Its text, without white space around it.
        text: &'a [u8],
    },
    /// Some of the raw bytes that [`Splitter::expect_raw`] announced; never empty.
    Raw(&'a [u8]),
    /// More must arrive first.
    NeedMore,
    /// That was all.
    End,
}

impl Splitter {
    /// A splitter that refuses values of more than `value_size_max` bytes.
    #[must_use]
    pub fn new(form: Form, value_size_max: usize) -> Splitter {
        let place = if form == Form::Sequence { Place::Element } else { Place::Start };
        Splitter { scanner: Scanner::new(value_size_max), form, place, raw: 0 }
    }

    /// Takes the bytes that arrived next.
    pub fn push(&mut self, bytes: &[u8]) {
        self.scanner.push(bytes);
    }

    /// Room to read bytes into, never empty, which saves a copy; [`Splitter::filled`] must follow.
    pub fn room(&mut self) -> &mut [u8] {
        self.scanner.room()
    }

    /// Says that the first `count` bytes of the room were read into.
    pub fn filled(&mut self, count: usize) {
        self.scanner.filled(count);
    }

    /// Says that nothing more will arrive.
    pub fn end(&mut self) {
        self.scanner.end();
    }

    /// Says that the next `count` bytes after the value returned last are raw.
    pub fn expect_raw(&mut self, count: u64) {
        self.raw = count;
    }

    /// Where in the input the next unused byte lies.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.scanner.offset()
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn allocated(&self) -> usize {
        self.scanner.allocated()
    }

    /// The next value, or what there is instead.
    ///
    /// # Errors
    ///
    /// [`SplitError`] with the offset, when something else stands where a value, comma or bracket should, a value is too long, or the input ends too early. After an error every call
    /// returns it again or another.
    pub fn step(&mut self) -> Result<Step<'_>, SplitError> {
        if self.raw > 0 {
            return self.raw_step();
        }
        if self.form == Form::Sequence {
            if self.scanner.peek().is_none() && self.scanner.has_ended() {
                return Ok(Step::End);
            }
        } else if !self.reach_element()? {
            return self.without_element();
        }
        let open = self.form != Form::Sequence;
        match self.scanner.value()? {
            Some((offset, text)) => {
                if open {
                    self.place = Place::Behind;
                }
                Ok(Step::Value { offset, text })
            }
            None => Ok(Step::NeedMore),
        }
    }

    fn raw_step(&mut self) -> Result<Step<'_>, SplitError> {
        let error = self.scanner.unexpected_end();
        let ended = self.scanner.has_ended();
        let bytes = self.scanner.raw(self.raw);
        self.raw -= bytes.len() as u64;
        match (bytes.is_empty(), ended) {
            (false, _) => Ok(Step::Raw(bytes)),
            (true, false) => Ok(Step::NeedMore),
            (true, true) => Err(error),
        }
    }

    /// Passes brackets and commas until an element comes next. False: none does yet, or no more.
    fn reach_element(&mut self) -> Result<bool, SplitError> {
        if self.place == Place::End && self.form == Form::OpenArray {
            return Ok(false);
        }
        while let Some(byte) = self.scanner.peek() {
            self.place = match (self.place, byte) {
                (Place::Start, b'[') => Place::First,
                (Place::Start, _) => return Err(self.scanner.unexpected(byte, "'['")),
                (Place::First | Place::Behind, b']') => Place::End,
                (Place::First | Place::Element, _) => return Ok(true),
                (Place::Behind, b',') => Place::Element,
                (Place::Behind, _) => return Err(self.scanner.unexpected(byte, "',' or ']'")),
                (Place::End, _) => return Err(self.scanner.unexpected(byte, "the end of the input")),
            };
            self.scanner.skip_byte();
            if self.place == Place::End && self.form == Form::OpenArray {
                break;
            }
        }
        Ok(false)
    }

    fn without_element(&self) -> Result<Step<'static>, SplitError> {
        if self.place == Place::End && self.form == Form::OpenArray {
            return Ok(Step::End);
        }
        if !self.scanner.has_ended() {
            return Ok(Step::NeedMore);
        }
        if self.place == Place::End || self.form == Form::OpenArray {
            return Ok(Step::End);
        }
        Err(self.scanner.unexpected_end())
    }
}
