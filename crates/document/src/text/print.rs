//! Binary documents to JSON text.
//!
//! A plain string is copied between the places that must be escaped, which the document holds, so nothing is searched; compressed text is decompressed
//! to where it belongs and then looked through. Escapes come out in one spelling: `\"`, `\\`, `\b`, `\f`, `\n`, `\r`, `\t`, else `\u00xx`; all other characters stand
//! as themselves; a lone surrogate is `\udxxx`.

use std::io;

use super::append::Tail;
use super::number;
use crate::format::{DEPTH_MAX, kind};
use crate::read::{Array, Document, Number, Object, Text, Value};

/// How JSON text is laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Style {
    /// No white space.
    #[default]
    Compact,
    /// Two blanks a level, a line an entry.
    Indented,
}

impl<'a> Value<'a> {
    /// Appends the value's JSON text to `out`. Allocates only if `out` must grow.
    pub fn print_to(&self, out: &mut Vec<u8>, style: Style) {
        // Every value is printed with the comma that would follow it.
        let mut tail = Tail::new(out);
        match style {
            Style::Compact => print_value::<false>(self, &mut tail, 0),
            Style::Indented => print_value::<true>(self, &mut tail, 0),
        }
        tail.step_back();
    }

    /// The value's JSON text.
    #[must_use]
    pub fn to_json(&self, style: Style) -> String {
        let mut out = Vec::new();
        self.print_to(&mut out, style);
        // What is printed is UTF-8 unless an unchecked document lied about its text.
        String::from_utf8(out).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

impl<'a> Document<'a> {
    /// Appends the document's JSON text to `out`. Allocates only if `out` must grow.
    pub fn print_to(&self, out: &mut Vec<u8>, style: Style) {
        // Most text is somewhat longer than its document; asking once saves copies of a growing vector.
        out.reserve(self.as_bytes().len() + self.as_bytes().len() / 2);
        self.root().print_to(out, style);
    }

    /// The document's JSON text.
    #[must_use]
    pub fn to_json(&self, style: Style) -> String {
        self.root().to_json(style)
    }

    /// Writes the document's JSON text, a chunk at a time.
    ///
    /// # Errors
    ///
    /// Those of `target`.
    pub fn write_to(&self, target: &mut impl io::Write, style: Style) -> io::Result<()> {
        const CHUNK_SIZE: usize = 64 << 10;
        let mut printer = ChunkPrinter::new(*self, style);
        let mut chunk = Vec::with_capacity(CHUNK_SIZE + CHUNK_SIZE / 4);
        while printer.fill(&mut chunk, CHUNK_SIZE) {
            target.write_all(&chunk)?;
            chunk.clear();
        }
        target.write_all(&chunk)
    }
}

/// Prints a document piece by piece, for a stream that takes so much at a time.
pub struct ChunkPrinter<'a> {
    style: Style,
    /// The root, until it is printed.
    root: Option<Value<'a>>,
    open: Vec<Open<'a>>,
}

enum Open<'a> {
    Object(Object<'a>, usize),
    Array(Array<'a>, usize),
}

impl<'a> ChunkPrinter<'a> {
    /// A printer at the start of `document`.
    #[must_use]
    pub fn new(document: Document<'a>, style: Style) -> ChunkPrinter<'a> {
        ChunkPrinter { style, root: Some(document.root()), open: Vec::new() }
    }

    /// Appends text to `out` until it holds at least `size` bytes or the document ends; returns whether there is more. A chunk is
    /// longer than `size` by at most one string or number.
    pub fn fill(&mut self, out: &mut Vec<u8>, size: usize) -> bool {
        if let Some(root) = self.root.take() {
            self.begin(root, out);
        }
        while out.len() < size {
            let depth = self.open.len();
            let (close, count, next) = match self.open.last_mut() {
                None => return false,
                Some(Open::Object(object, index)) => {
                    let next = object.at_index(*index).map(|(name, value)| (*index, Some(name), value));
                    *index += 1;
                    (b'}', object.len(), next)
                }
                Some(Open::Array(array, index)) => {
                    let next = array.get(*index).map(|value| (*index, None, value));
                    *index += 1;
                    (b']', array.len(), next)
                }
            };
            match next {
                Some((index, name, value)) => {
                    if index > 0 {
                        out.push(b',');
                    }
                    new_line(out, self.style, depth);
                    if let Some(name) = name {
                        print_name(&name, out, self.style);
                    }
                    self.begin(value, out);
                }
                None => {
                    self.open.pop();
                    if count > 0 {
                        new_line(out, self.style, depth - 1);
                    }
                    out.push(close);
                }
            }
        }
        !self.open.is_empty()
    }

    /// Prints a scalar, or opens a container.
    fn begin(&mut self, value: Value<'a>, out: &mut Vec<u8>) {
        let value = match value {
            Value::Document(document) => document.root(),
            other => other,
        };
        if self.open.len() > DEPTH_MAX as usize {
            // Damaged bytes only.
            out.extend_from_slice(b"null");
            return;
        }
        match value {
            Value::Object(object) => {
                out.push(b'{');
                self.open.push(Open::Object(object, 0));
            }
            Value::Array(array) => {
                out.push(b'[');
                self.open.push(Open::Array(array, 0));
            }
            scalar => scalar.print_to(out, self.style),
        }
    }
}

#[inline(always)]
fn new_line(out: &mut Vec<u8>, style: Style, depth: usize) {
    if style == Style::Indented {
        out.push(b'\n');
        out.resize(out.len() + 2 * depth, b' ');
    }
}

/// Starts the line of an entry of a container at `depth`.
#[inline(always)]
fn tail_line<const INDENTED: bool>(tail: &mut Tail<'_>, depth: u32) {
    if INDENTED {
        tail.put(*b"\n", 1);
        tail.put_times(b' ', 2 * depth as usize);
    }
}

/// Prints a value and a comma, as all functions here do: the comma goes out with the value's last bytes, and who prints the last value takes it back.
fn print_value<const INDENTED: bool>(value: &Value<'_>, tail: &mut Tail<'_>, depth: u32) {
    match value {
        Value::Null => tail.put(*b"null,", 5),
        Value::Bool(true) => tail.put(*b"true,", 5),
        Value::Bool(false) => tail.put(*b"false,", 6),
        Value::Number(Number::Integer(value)) => tail.put_integer(*value, b','),
        Value::Number(Number::Decimal { mantissa, scale }) => print_decimal(*mantissa, *scale, tail),
        Value::Number(number) => with_comma(tail, |out| number.append_to(out)),
        Value::Text(text) => with_comma(tail, |out| print_text(text, out)),
        Value::Array(array) if array.is_empty() => tail.put(*b"[],", 3),
        Value::Object(object) if object.is_empty() => tail.put(*b"{},", 3),
        Value::Array(array) => print_array::<INDENTED>(&array.document, array.position, tail, depth),
        Value::Object(object) => print_object::<INDENTED>(&object.document, object.position, tail, depth),
        Value::Document(document) => print_value::<INDENTED>(&document.root(), tail, depth),
        Value::Binary(bytes) => with_comma(tail, |out| print_binary(bytes, out)),
    }
}

/// Prints what is too rare or too long to count.
#[inline(never)]
fn with_comma(tail: &mut Tail<'_>, print: impl FnOnce(&mut Vec<u8>)) {
    tail.with_vector(|out| {
        print(out);
        out.push(b',');
    });
}

#[inline(always)]
fn print_decimal(mantissa: i64, scale: u32, tail: &mut Tail<'_>) {
    if (1..=number::SHORT_SCALE_MAX).contains(&scale) {
        tail.put_short_decimal(mantissa, scale, b',');
    } else {
        with_comma(tail, |out| Number::Decimal { mantissa, scale }.append_to(out));
    }
}

#[inline(always)]
fn print_decimal_at(document: &Document<'_>, kind: u8, position: u32, tail: &mut Tail<'_>) {
    let width = u32::from(kind & 7) + 1;
    let scale = document.bytes.byte(position.wrapping_add(width));
    print_decimal(document.bytes.signed(position, width), u32::from(scale), tail);
}

#[inline(always)]
fn print_entry<const INDENTED: bool>(
    document: &Document<'_>,
    kind: u8,
    payload: u32,
    tail: &mut Tail<'_>,
    depth: u32,
) {
    match kind {
        kind::STRING => {
            let (size, _) = document.bytes.varint(payload);
            tail.put_quoted(document.bytes.0, payload.wrapping_sub(size), size, *b"\",  ", 2);
        }
        kind::OBJECT => print_object::<INDENTED>(document, payload, tail, depth),
        kind::ARRAY => print_array::<INDENTED>(document, payload, tail, depth),
        kind::NULL => tail.put(*b"null,   ", 5),
        kind::TRUE => tail.put(*b"true,   ", 5),
        kind::FALSE => tail.put(*b"false,  ", 6),
        kind::SMALL_INTEGER => tail.put_integer(i64::from(payload), b','),
        kind::EMPTY_STRING => tail.put(*b"\"\", ", 3),
        kind::EMPTY_ARRAY => tail.put(*b"[], ", 3),
        kind::EMPTY_OBJECT => tail.put(*b"{}, ", 3),
        0x10..=0x17 => {
            tail.put_integer(document.bytes.signed(payload, u32::from(kind - kind::INTEGER) + 1), b',');
        }
        0x20..=0x27 => print_decimal_at(document, kind, payload, tail),
        _ => print_value::<INDENTED>(&Value::at(*document, kind, payload), tail, depth),
    }
}

/// By its place and not by what is known of it, which would go through memory from one level to the next.
fn print_object<const INDENTED: bool>(
    document: &Document<'_>,
    position: u32,
    tail: &mut Tail<'_>,
    depth: u32,
) {
    let document = *document;
    let object = Object::at(document, position);
    if depth > DEPTH_MAX {
        // Damaged bytes only.
        tail.put(*b"null,", 5);
        return;
    }
    tail.put(*b"{", 1);
    let plain_names = !document.names_compressed() && !document.names_escaped();
    for index in 0..object.len() as u32 {
        tail_line::<INDENTED>(tail, depth + 1);
        let id = object.name_id(index);
        if plain_names {
            let (start, end) = document.name_range(id);
            let after_size = if INDENTED { 3 } else { 2 };
            tail.put_quoted(document.bytes.0, start, end.wrapping_sub(start), *b"\":  ", after_size);
        } else {
            let style = if INDENTED { Style::Indented } else { Style::Compact };
            tail.with_vector(|out| print_name(&document.name(id), out, style));
        }
        let (kind, payload) = object.entry(index);
        print_entry::<INDENTED>(&document, kind, payload, tail, depth + 1);
    }
    close::<INDENTED>(tail, b'}', object.is_empty(), depth);
}

/// Ends a container: the last comma goes.
#[inline(always)]
fn close<const INDENTED: bool>(tail: &mut Tail<'_>, bracket: u8, empty: bool, depth: u32) {
    if !empty {
        tail.step_back();
        tail_line::<INDENTED>(tail, depth);
    }
    tail.put([bracket, b','], 2);
}

fn print_array<const INDENTED: bool>(
    document: &Document<'_>,
    position: u32,
    tail: &mut Tail<'_>,
    depth: u32,
) {
    let document = *document;
    let array = Array::at(document, position);
    if depth > DEPTH_MAX {
        tail.put(*b"null,", 5);
        return;
    }
    tail.put(*b"[", 1);
    for index in 0..array.len() as u32 {
        tail_line::<INDENTED>(tail, depth + 1);
        let (kind, payload) = array.entry(index);
        if kind & !7 == kind::DECIMAL {
            // Much of what is large is coordinates and measurements.
            print_decimal_at(&document, kind, payload, tail);
        } else {
            print_entry::<INDENTED>(&document, kind, payload, tail, depth + 1);
        }
    }
    close::<INDENTED>(tail, b']', array.is_empty(), depth);
}

fn print_name(name: &Text<'_>, out: &mut Vec<u8>, style: Style) {
    print_text(name, out);
    out.push(b':');
    if style == Style::Indented {
        out.push(b' ');
    }
}

fn print_text(text: &Text<'_>, out: &mut Vec<u8>) {
    out.push(b'"');
    if text.escapes_unknown() {
        let start = out.len();
        text.append_to(out);
        escape_from(out, start);
    } else if text.bits() & kind::STRING_ESCAPES == 0 {
        out.extend_from_slice(text.stored());
    } else {
        let stored = text.stored();
        let mut done = 0;
        for place in text.escape_places() {
            out.extend_from_slice(stored.get(done..place).unwrap_or(&[]));
            if stored[place] == 0xED {
                print_surrogate(&stored[place..], out);
                done = place + 3;
            } else {
                out.extend_from_slice(escape_of(stored[place], &mut [0; 6]));
                done = place + 1;
            }
        }
        out.extend_from_slice(stored.get(done..).unwrap_or(&[]));
    }
    out.push(b'"');
}

fn print_surrogate(bytes: &[u8], out: &mut Vec<u8>) {
    let (Some(second), Some(third)) = (bytes.get(1), bytes.get(2)) else {
        return;
    };
    let unit = 0xD000 | u32::from(second & 0x3F) << 6 | u32::from(third & 0x3F);
    out.extend_from_slice(b"\\u");
    for shift in [12, 8, 4, 0] {
        out.push(HEXADECIMAL[(unit >> shift & 0xF) as usize]);
    }
}

const HEXADECIMAL: &[u8; 16] = b"0123456789abcdef";

/// The escape of a byte that needs one.
fn escape_of(byte: u8, buffer: &mut [u8; 6]) -> &[u8] {
    match byte {
        b'"' => b"\\\"",
        b'\\' => b"\\\\",
        b'\n' => b"\\n",
        b'\r' => b"\\r",
        b'\t' => b"\\t",
        0x08 => b"\\b",
        0x0C => b"\\f",
        _ => {
            *buffer = *b"\\u0000";
            buffer[4] = HEXADECIMAL[usize::from(byte >> 4 & 0xF)];
            buffer[5] = HEXADECIMAL[usize::from(byte & 0xF)];
            buffer
        }
    }
}

#[inline(always)]
fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Appends a text as a JSON string, in quotes and escaped.
pub fn append_json_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let start = out.len();
    out.extend_from_slice(text.as_bytes());
    escape_from(out, start);
    out.push(b'"');
}

/// Escapes what lies in `out` from `start` on, in place.
pub(crate) fn escape_from(out: &mut Vec<u8>, start: usize) {
    // Counted without branches, so that the usual case, none, is fast.
    let special = out[start..].iter().map(|byte| usize::from(needs_escape(*byte))).sum::<usize>();
    if special == 0 {
        return;
    }
    let mut buffer = [0; 6];
    let more: usize = out[start..]
        .iter()
        .filter(|byte| needs_escape(**byte))
        .map(|byte| escape_of(*byte, &mut buffer).len() - 1)
        .sum();
    let mut from = out.len();
    out.resize(from + more, 0);
    let mut to = out.len();
    // From the back, so that nothing is overwritten before it is moved; done when both ends meet.
    while from < to {
        from -= 1;
        let byte = out[from];
        if needs_escape(byte) {
            let escape = escape_of(byte, &mut buffer);
            to -= escape.len();
            out[to..to + escape.len()].copy_from_slice(escape);
        } else {
            to -= 1;
            out[to] = byte;
        }
    }
}

/// Appends the shortest text that reads back as the same double, with an exponent from 1E+16 on and below 1E-05, written as .NET writes
/// exponents, so that answers read as RavenDB's.
pub(crate) fn append_double(value: f64, out: &mut Vec<u8>) {
    use io::Write as _;
    if !value.is_finite() {
        // Damaged bytes only: neither building nor parsing lets one in.
        out.extend_from_slice(b"null");
        return;
    }
    let start = out.len();
    // Writing to a vector does not fail.
    let _ = write!(out, "{value:?}");
    if let Some(at) = out[start..].iter().position(|&byte| byte == b'e') {
        let digits = str::from_utf8(&out[start + at + 1..]).unwrap_or_default();
        let exponent: i32 = digits.parse().unwrap_or_default();
        out.truncate(start + at);
        let _ = write!(out, "E{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs());
    }
}

fn print_binary(bytes: &[u8], out: &mut Vec<u8>) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    out.push(b'"');
    for chunk in bytes.chunks(3) {
        let word = u32::from(chunk[0]) << 16
            | u32::from(chunk.get(1).copied().unwrap_or(0)) << 8
            | u32::from(chunk.get(2).copied().unwrap_or(0));
        for i in 0..4 {
            if i <= chunk.len() {
                out.push(ALPHABET[(word >> (18 - 6 * i) & 0x3F) as usize]);
            } else {
                out.push(b'=');
            }
        }
    }
    out.push(b'"');
}
