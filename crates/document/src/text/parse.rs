//! JSON text to a binary document, in one pass.
//!
//! The loop below walks the text once: strings are copied to the document while their end is looked for, a block at a time; property names
//! are predicted from the document before (see `build::names`); numbers never become doubles. What is accepted is RFC 8259,
//! no more: see `tests/json_cases.rs` for each decision. Of a name that an object repeats the last value counts, in the last one's place; lone
//! surrogates in strings are kept.

use crate::build::names::{NO_NAME, NameIndex};
use crate::build::writer::{Mode, Writer};
use crate::error::{Error, TextError, TextErrorKind as Kind};
use crate::format::kind;
use crate::limits::Limits;
#[cfg(any(test, miri, not(target_arch = "x86_64")))]
use crate::simd::Portable;
use crate::simd::{Simd, WIDTH_MAX};
use crate::text::number::{self, Parsed};

/// An open container.
pub(crate) struct Frame {
    /// Where its entries start on the writer's stack.
    first: usize,
    /// The name under which it lies.
    owner: NameIndex,
    /// For an object, its last name.
    last: NameIndex,
    is_object: bool,
}

/// Parses `text` into `writer`, which then holds the document. `frames` is scratch.
pub(crate) fn parse(
    writer: &mut Writer,
    frames: &mut Vec<Frame>,
    text: &[u8],
    mode: Mode,
    limits: &Limits,
) -> Result<(), Error> {
    let limits = limits.within_format();
    if text.len() > limits.text_size_max {
        let kind = Kind::Limit { what: "JSON text's size in bytes", limit: limits.text_size_max };
        return Err(TextError { kind, offset: limits.text_size_max, line: 1, column: 1 }.into());
    }
    if simdutf8::basic::from_utf8(text).is_err() {
        let offset = std::str::from_utf8(text).err().map_or(0, |error| error.valid_up_to());
        return Err(TextError::at(text, offset, Kind::Utf8).into());
    }
    writer.begin(mode, limits.document_size_max);
    // The document is seldom longer than the text; growing is checked where it happens.
    writer.out.reserve(text.len() + WIDTH_MAX);
    frames.clear();
    run(writer, frames, text, &limits).map_err(|failure| match failure {
        Failure::Text(offset, kind) => TextError::at(text, offset, kind).into(),
        Failure::Other(error) => error,
    })?;
    writer.finish()?;
    Ok(())
}

enum Failure {
    Text(usize, Kind),
    Other(Error),
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn run(writer: &mut Writer, frames: &mut Vec<Frame>, text: &[u8], limits: &Limits) -> Result<(), Failure> {
    use crate::simd::x86::{self, Avx2, Avx512, Sse2};

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn run_avx512(w: &mut Writer, f: &mut Vec<Frame>, t: &[u8], l: &Limits) -> Result<(), Failure> {
        run_with::<Avx512>(w, f, t, l)
    }

    #[target_feature(enable = "avx2,bmi1")]
    unsafe fn run_avx2(w: &mut Writer, f: &mut Vec<Frame>, t: &[u8], l: &Limits) -> Result<(), Failure> {
        run_with::<Avx2>(w, f, t, l)
    }

    if x86::has_avx512() {
        // SAFETY: all the instruction sets that the function names are there.
        unsafe { run_avx512(writer, frames, text, limits) }
    } else if x86::has_avx2() {
        // SAFETY: the instruction set is there.
        unsafe { run_avx2(writer, frames, text, limits) }
    } else {
        run_with::<Sse2>(writer, frames, text, limits)
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn run(writer: &mut Writer, frames: &mut Vec<Frame>, text: &[u8], limits: &Limits) -> Result<(), Failure> {
    run_with::<Portable>(writer, frames, text, limits)
}

#[inline(always)]
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// The first place from `at` on that is no white space; the text's length if there is none.
#[inline(always)]
fn skip_space<S: Simd>(text: &[u8], mut at: usize) -> usize {
    match text.get(at) {
        Some(byte) if is_space(*byte) => at += 1,
        _ => return at,
    }
    match text.get(at) {
        Some(byte) if is_space(*byte) => at += 1,
        _ => return at,
    }
    while text.len() - at >= S::WIDTH {
        // SAFETY: a whole block is left.
        let mask = unsafe { S::not_space(text.as_ptr().add(at)) };
        if mask != 0 {
            return at + mask.trailing_zeros() as usize;
        }
        at += S::WIDTH;
    }
    while text.get(at).is_some_and(|byte| is_space(*byte)) {
        at += 1;
    }
    at
}

#[cold]
fn unexpected(text: &[u8], at: usize, expected: &'static str) -> Failure {
    match text.get(at) {
        Some(found) => Failure::Text(at, Kind::Unexpected { found: *found, expected }),
        None => Failure::Text(text.len(), Kind::UnexpectedEnd),
    }
}

#[inline(always)]
fn run_with<S: Simd>(
    writer: &mut Writer,
    frames: &mut Vec<Frame>,
    text: &[u8],
    limits: &Limits,
) -> Result<(), Failure> {
    if text.starts_with(b"\xEF\xBB\xBF") {
        return Err(Failure::Text(0, Kind::ByteOrderMark));
    }
    let depth_max = limits.depth_max as usize;
    let mut at = skip_space::<S>(text, 0);
    // The name of the value being parsed, in the cache and in the document.
    let mut name = NO_NAME;
    let mut name_id = 0u32;
    'value: loop {
        // A value begins at `at`.
        let Some(byte) = text.get(at).copied() else {
            return Err(Failure::Text(text.len(), Kind::UnexpectedEnd));
        };
        match byte {
            b'"' => {
                at += 1;
                let start = writer.out.len();
                at += writer.out.put_plain::<S>(&text[at..]);
                if text.get(at) == Some(&b'"') {
                    at += 1;
                    writer.finish_string(name_id, start, false);
                } else {
                    let surrogates;
                    (at, surrogates) = rest_of_string::<S>(writer, text, at, start)?;
                    writer.finish_string(name_id, start, surrogates);
                }
            }
            b'{' => {
                if frames.len() >= depth_max {
                    return Err(Failure::Text(at, Kind::Limit { what: "depth", limit: depth_max }));
                }
                at = skip_space::<S>(text, at + 1);
                if text.get(at) == Some(&b'}') {
                    at += 1;
                    writer.push(kind::EMPTY_OBJECT, name_id, 0);
                } else {
                    frames.push(Frame {
                        first: writer.entries.len(),
                        owner: name,
                        last: NO_NAME,
                        is_object: true,
                    });
                    let predicted = writer.names.get(name).first;
                    let owner = name;
                    (at, name) = property_name::<S>(writer, text, at, predicted, limits)?;
                    if name != predicted {
                        writer.names.get_mut(owner).first = name;
                    }
                    name_id = new_name_id(writer, name, limits, at)?;
                    if let Some(frame) = frames.last_mut() {
                        frame.last = name;
                    }
                    continue 'value;
                }
            }
            b'[' => {
                if frames.len() >= depth_max {
                    return Err(Failure::Text(at, Kind::Limit { what: "depth", limit: depth_max }));
                }
                at = skip_space::<S>(text, at + 1);
                if text.get(at) == Some(&b']') {
                    at += 1;
                    writer.push(kind::EMPTY_ARRAY, name_id, 0);
                } else {
                    frames.push(Frame {
                        first: writer.entries.len(),
                        owner: name,
                        last: NO_NAME,
                        is_object: false,
                    });
                    name_id = 0;
                    continue 'value;
                }
            }
            b'-' | b'0'..=b'9' => {
                let (parsed, len) =
                    number::parse(&text[at..]).map_err(|offset| Failure::Text(at + offset, Kind::Number))?;
                match parsed {
                    Parsed::Integer(value) => writer.push_integer(name_id, value),
                    Parsed::Decimal { mantissa, scale } => writer.push_decimal(name_id, mantissa, scale),
                    Parsed::Text => writer.push_number_text(name_id, &text[at..at + len]),
                }
                at += len;
            }
            b't' if text[at..].starts_with(b"true") => {
                writer.push(kind::TRUE, name_id, 0);
                at += 4;
            }
            b'f' if text[at..].starts_with(b"false") => {
                writer.push(kind::FALSE, name_id, 0);
                at += 5;
            }
            b'n' if text[at..].starts_with(b"null") => {
                writer.push(kind::NULL, name_id, 0);
                at += 4;
            }
            _ => return Err(unexpected(text, at, "a value")),
        }
        // A value has ended at `at`: what follows it belongs to the innermost open container.
        loop {
            let Some(frame) = frames.last_mut() else {
                at = skip_space::<S>(text, at);
                if at < text.len() {
                    return Err(Failure::Text(at, Kind::Trailing));
                }
                return Ok(());
            };
            at = skip_space::<S>(text, at);
            let byte = text.get(at).copied();
            if frame.is_object {
                if byte == Some(b',') {
                    at = skip_space::<S>(text, at + 1);
                    let last = frame.last;
                    let predicted = writer.names.get(last).next;
                    (at, name) = property_name::<S>(writer, text, at, predicted, limits)?;
                    frame.last = name;
                    if name != predicted {
                        writer.names.get_mut(last).next = name;
                    }
                    name_id = new_name_id(writer, name, limits, at)?;
                    continue 'value;
                }
                if byte != Some(b'}') {
                    return Err(unexpected(text, at, "a comma or a closing brace"));
                }
            } else {
                if byte == Some(b',') {
                    at = skip_space::<S>(text, at + 1);
                    // Elements lie under the array's own name: that predicts the first names of objects in it.
                    name = frame.owner;
                    name_id = 0;
                    continue 'value;
                }
                if byte != Some(b']') {
                    return Err(unexpected(text, at, "a comma or a closing bracket"));
                }
            }
            at += 1;
            let (first, owner, is_object) = (frame.first, frame.owner, frame.is_object);
            frames.pop();
            let (kind, position) =
                if is_object { writer.close_object(first) } else { writer.close_array(first) };
            if writer.too_large() {
                return Err(Failure::Other(writer.size_error()));
            }
            // Only an element of an object needs its name's id again; in an array it is not looked at.
            let id = match frames.last() {
                Some(parent) if parent.is_object => writer.names.id(owner),
                _ => 0,
            };
            writer.push(kind, id, position);
        }
    }
}

#[inline(always)]
fn new_name_id(writer: &mut Writer, name: NameIndex, limits: &Limits, at: usize) -> Result<u32, Failure> {
    let id = writer.names.id(name);
    if id as usize >= limits.name_count_max {
        return Err(Failure::Text(
            at,
            Kind::Limit { what: "number of distinct names", limit: limits.name_count_max },
        ));
    }
    Ok(id)
}

/// Reads a property name and its colon at `at`; returns where the value begins, and the name.
#[inline(always)]
fn property_name<S: Simd>(
    writer: &mut Writer,
    text: &[u8],
    mut at: usize,
    predicted: NameIndex,
    limits: &Limits,
) -> Result<(usize, NameIndex), Failure> {
    if text.get(at) != Some(&b'"') {
        return Err(unexpected(text, at, "a property name"));
    }
    at += 1;
    let rest = &text[at..];
    let mut name = predicted;
    let hit = if rest.len() >= 32 { writer.names.matches::<S>(predicted, rest) } else { None };
    match hit {
        Some(len) => at += len,
        None => (at, name) = unpredicted_name::<S>(writer, text, at, limits)?,
    }
    if text.get(at) != Some(&b':') {
        at = skip_space::<S>(text, at);
        if text.get(at) != Some(&b':') {
            return Err(unexpected(text, at, "a colon"));
        }
    }
    Ok((skip_space::<S>(text, at + 1), name))
}

/// The name that begins at `at`, after its opening quote; returns where its closing quote ends.
#[inline(always)]
fn unpredicted_name<S: Simd>(
    writer: &mut Writer,
    text: &[u8],
    at: usize,
    limits: &Limits,
) -> Result<(usize, NameIndex), Failure> {
    let end = at + plain_length::<S>(&text[at..]);
    if text.get(end) == Some(&b'"') {
        let raw = &text[at..end];
        if raw.len() > limits.name_size_max {
            return Err(name_too_long(at, limits));
        }
        return Ok((end + 1, writer.intern(raw).map_err(Failure::Other)?));
    }
    escaped_name(writer, text, at, limits)
}

#[cold]
fn name_too_long(at: usize, limits: &Limits) -> Failure {
    Failure::Text(at, Kind::Limit { what: "size of a property name in bytes", limit: limits.name_size_max })
}

#[cold]
#[inline(never)]
fn escaped_name(
    writer: &mut Writer,
    text: &[u8],
    mut at: usize,
    limits: &Limits,
) -> Result<(usize, NameIndex), Failure> {
    let start = at;
    let mut name = writer.names.take_scratch();
    loop {
        match text.get(at) {
            Some(b'"') => break,
            Some(b'\\') => {
                let escape = unescape(text, at)?;
                if escape.surrogate {
                    return Err(Failure::Text(at, Kind::SurrogateInName));
                }
                name.extend_from_slice(&escape.bytes[..escape.size]);
                at = escape.end;
            }
            Some(byte) if *byte < 0x20 => return Err(Failure::Text(at, Kind::ControlCharacter(*byte))),
            Some(byte) => {
                name.push(*byte);
                at += 1;
            }
            None => return Err(Failure::Text(text.len(), Kind::UnexpectedEnd)),
        }
    }
    if name.len() > limits.name_size_max {
        return Err(name_too_long(start, limits));
    }
    let index = writer.intern(&name).map_err(Failure::Other);
    writer.names.return_scratch(name);
    Ok((at + 1, index?))
}

/// How many bytes of `text` come before the first special one.
#[inline(always)]
fn plain_length<S: Simd>(text: &[u8]) -> usize {
    let mut at = 0;
    while text.len() - at >= S::WIDTH {
        // SAFETY: a whole block is left.
        let mask = unsafe { S::special(text.as_ptr().add(at)) };
        if mask != 0 {
            return at + mask.trailing_zeros() as usize;
        }
        at += S::WIDTH;
    }
    while text.get(at).is_some_and(|byte| *byte >= 0x20 && *byte != b'"' && *byte != b'\\') {
        at += 1;
    }
    at
}

/// Goes on with a string at its first byte that is neither plain nor the closing quote. Its text so far lies in the document from `start` on.
/// Returns where the closing quote ends, and whether there are lone surrogates.
#[inline(always)]
fn rest_of_string<S: Simd>(
    writer: &mut Writer,
    text: &[u8],
    mut at: usize,
    start: usize,
) -> Result<(usize, bool), Failure> {
    let mut surrogates = false;
    loop {
        match text.get(at) {
            Some(b'"') => return Ok((at + 1, surrogates)),
            Some(b'\\') => {
                let escape = unescape(text, at)?;
                let byte = escape.bytes[0];
                if escape.surrogate || byte < 0x20 || byte == b'"' || byte == b'\\' {
                    surrogates |= escape.surrogate;
                    writer.escapes.push((writer.out.len() - start) as u32);
                }
                writer.out.put(&escape.bytes[..escape.size]);
                at = escape.end;
            }
            Some(byte) if *byte < 0x20 => return Err(Failure::Text(at, Kind::ControlCharacter(*byte))),
            Some(_) => at += writer.out.put_plain::<S>(&text[at..]),
            None => return Err(Failure::Text(text.len(), Kind::UnexpectedEnd)),
        }
    }
}

struct Escape {
    bytes: [u8; 4],
    size: usize,
    /// Where the escape ends in the text.
    end: usize,
    /// It is half of a pair whose other half is not there.
    surrogate: bool,
}

/// Reads the escape whose backslash stands at `at`.
#[inline(always)]
fn unescape(text: &[u8], at: usize) -> Result<Escape, Failure> {
    let byte = match text.get(at + 1) {
        Some(b'n') => b'\n',
        Some(byte @ (b'"' | b'\\' | b'/')) => *byte,
        Some(b't') => b'\t',
        Some(b'r') => b'\r',
        Some(b'b') => 0x08,
        Some(b'f') => 0x0C,
        Some(b'u') => return unescape_unicode(text, at),
        Some(_) => return Err(Failure::Text(at, Kind::Escape)),
        None => return Err(Failure::Text(text.len(), Kind::UnexpectedEnd)),
    };
    Ok(Escape { bytes: [byte, 0, 0, 0], size: 1, end: at + 2, surrogate: false })
}

#[inline(never)]
fn unescape_unicode(text: &[u8], at: usize) -> Result<Escape, Failure> {
    let unit = hexadecimal(text, at)?;
    let mut end = at + 6;
    let mut bytes = [0; 4];
    if (0xD800..0xDC00).contains(&unit) && text[end..].starts_with(b"\\u") {
        let second = hexadecimal(text, end)?;
        if (0xDC00..0xE000).contains(&second) {
            end += 6;
            let code = 0x10000 + ((unit - 0xD800) << 10 | (second - 0xDC00));
            bytes = [
                0xF0 | (code >> 18) as u8,
                0x80 | (code >> 12 & 0x3F) as u8,
                0x80 | (code >> 6 & 0x3F) as u8,
                0x80 | (code & 0x3F) as u8,
            ];
            return Ok(Escape { bytes, size: 4, end, surrogate: false });
        }
    }
    let size = match unit {
        0..0x80 => {
            bytes[0] = unit as u8;
            1
        }
        0x80..0x800 => {
            bytes[0] = 0xC0 | (unit >> 6) as u8;
            bytes[1] = 0x80 | (unit & 0x3F) as u8;
            2
        }
        // Surrogates too: three bytes in the manner of UTF-8.
        _ => {
            bytes[0] = 0xE0 | (unit >> 12) as u8;
            bytes[1] = 0x80 | (unit >> 6 & 0x3F) as u8;
            bytes[2] = 0x80 | (unit & 0x3F) as u8;
            3
        }
    };
    Ok(Escape { bytes, size, end, surrogate: (0xD800..0xE000).contains(&unit) })
}

/// The four digits of the `\u` at `at`.
fn hexadecimal(text: &[u8], at: usize) -> Result<u32, Failure> {
    let Some(digits) = text.get(at + 2..at + 6) else {
        return Err(Failure::Text(text.len(), Kind::UnexpectedEnd));
    };
    let mut value = 0;
    for digit in digits {
        let Some(digit) = char::from(*digit).to_digit(16) else {
            return Err(Failure::Text(at, Kind::Escape));
        };
        value = value << 4 | digit;
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The document of a text, or nothing where it is refused, by one instruction set.
    fn with<S: Simd>(text: &[u8]) -> Option<Vec<u8>> {
        std::str::from_utf8(text).ok()?;
        let mut writer = Writer::new();
        writer.begin(Mode::Memory, crate::format::SIZE_MAX);
        run_with::<S>(&mut writer, &mut Vec::new(), text, &Limits::default()).ok()?;
        writer.finish().ok().map(<[u8]>::to_vec)
    }

    /// Strings, names and white space of every length around the widths of blocks, with something special at every place.
    #[test]
    fn all_instruction_sets_agree() {
        for size in (0..140).chain([200, 255, 256, 257]) {
            for special in ["", "\\n", "\\\"", "\\u00e9", "é", "\\", "\"", "\u{1}"] {
                for place in [0, size / 2, size] {
                    let body = format!("{}{special}{}", "x".repeat(place), "y".repeat(size - place));
                    let space = " ".repeat(size);
                    for text in [
                        format!("[\"{body}\"]"),
                        format!("{{\"{body}\":1,\"{body}\":[2]}}"),
                        format!("{space}[{space}1,{space}\"{body}\"{space}]{space}"),
                    ] {
                        let portable = with::<Portable>(text.as_bytes());
                        let good = !matches!(special, "\\" | "\"" | "\u{1}");
                        if good {
                            assert!(portable.is_some(), "{text}");
                        }
                        #[cfg(all(target_arch = "x86_64", not(miri)))]
                        {
                            use crate::simd::x86;
                            assert_eq!(with::<x86::Sse2>(text.as_bytes()), portable, "{text}");
                            if x86::has_avx2() {
                                assert_eq!(with::<x86::Avx2>(text.as_bytes()), portable, "{text}");
                            }
                            if x86::has_avx512() {
                                assert_eq!(with::<x86::Avx512>(text.as_bytes()), portable, "{text}");
                            }
                        }
                    }
                }
            }
        }
    }
}
