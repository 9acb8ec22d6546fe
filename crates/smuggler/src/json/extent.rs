//! Where a JSON value ends, found without parsing it.
//!
//! An [`Extent`] is given the bytes from a value's first on, in pieces of any size, and tells which is the first that no longer belongs to it. For an object or
//! array it counts brackets outside strings; that is exact for JSON, and for what is not JSON the end it finds does not matter, since the parser refuses what lies before it.
//! Nothing recurses, so depth costs no stack.

use jackdaw_document::structure::{self, BLOCK};

/// A value whose end is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// An object or an array.
    Container(Container),
    /// A string: whether its opening quote was seen, and whether a backslash came just before.
    Text {
        /// The opening quote was seen.
        open: bool,
        /// A backslash came just before.
        escaped: bool,
    },
    /// A number, `true`, `false` or `null`; it ends where something else begins.
    Scalar,
}

/// How deep the bytes seen so far have led.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Container {
    depth: u64,
    in_string: bool,
    escaped: bool,
}

/// Whether a byte is JSON white space.
#[inline(always)]
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

impl Extent {
    /// The value that begins with this byte, if one can. The byte itself is not yet taken.
    pub(crate) fn begin(first: u8) -> Option<Extent> {
        match first {
            b'{' | b'[' => Some(Extent::Container(Container { depth: 0, in_string: false, escaped: false })),
            b'"' => Some(Extent::Text { open: false, escaped: false }),
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => Some(Extent::Scalar),
            _ => None,
        }
    }

    /// Whether the end of the input ends the value: so it is with numbers and names.
    pub(crate) fn may_end_with_input(&self) -> bool {
        matches!(self, Extent::Scalar)
    }

    /// Looks on at `bytes`, which follow those seen before. Some(n): the value ends before `bytes[n]`. None: all of them belong to it.
    #[inline]
    pub(crate) fn advance(&mut self, bytes: &[u8]) -> Option<usize> {
        match self {
            Extent::Container(container) => container.advance(bytes),
            Extent::Text { open, escaped } => advance_text(open, escaped, bytes),
            Extent::Scalar => bytes.iter().position(|byte| {
                is_space(*byte) || matches!(byte, b',' | b':' | b'"' | b'{' | b'}' | b'[' | b']')
            }),
        }
    }
}

fn advance_text(open: &mut bool, escaped: &mut bool, bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    if !*open {
        bytes.first()?;
        *open = true;
        at = 1;
    }
    if *escaped && at < bytes.len() {
        *escaped = false;
        at += 1;
    }
    while let Some(found) = memchr::memchr2(b'"', b'\\', &bytes[at..]) {
        at += found;
        if bytes[at] == b'"' {
            return Some(at + 1);
        }
        if at + 1 == bytes.len() {
            *escaped = true;
            return None;
        }
        at += 2;
    }
    None
}

impl Container {
    fn advance(&mut self, bytes: &[u8]) -> Option<usize> {
        let (blocks, rest) = bytes.as_chunks::<BLOCK>();
        for (i, block) in blocks.iter().enumerate() {
            if let Some(end) = self.block(block) {
                return Some(i * BLOCK + end);
            }
        }
        let end = self.each(rest)?;
        Some(blocks.len() * BLOCK + end)
    }

    #[inline(always)]
    fn block(&mut self, block: &[u8; BLOCK]) -> Option<usize> {
        let masks = structure::masks(block);
        let (escaped, next_escaped) = structure::escaped(masks.backslashes, self.escaped);
        let strings = structure::parity(masks.quotes & !escaped) ^ if self.in_string { u64::MAX } else { 0 };
        let opens = masks.opens & !strings;
        let closes = masks.closes & !strings;
        let close_count = u64::from(closes.count_ones());
        if close_count < self.depth {
            self.depth += u64::from(opens.count_ones());
            self.depth -= close_count;
        } else {
            // The end may lie here: bracket by bracket.
            let mut brackets = opens | closes;
            while brackets != 0 {
                let at = brackets.trailing_zeros();
                if opens >> at & 1 == 1 {
                    self.depth += 1;
                } else {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(at as usize + 1);
                    }
                }
                brackets &= brackets - 1;
            }
        }
        self.in_string = strings >> 63 != 0;
        self.escaped = next_escaped;
        None
    }

    /// What [`Container::block`] does, byte by byte.
    fn each(&mut self, bytes: &[u8]) -> Option<usize> {
        for (at, byte) in bytes.iter().enumerate() {
            let escaped = std::mem::replace(&mut self.escaped, false);
            match byte {
                b'\\' => self.escaped = !escaped,
                b'"' if !escaped => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Finds the end of the value at the start of `text`, given in pieces of these sizes over and over.
    fn find(text: &[u8], sizes: &[usize]) -> Option<usize> {
        let mut extent = Extent::begin(*text.first()?)?;
        let mut at = 0;
        for size in sizes.iter().cycle() {
            let piece = &text[at..(at + size).min(text.len())];
            if let Some(end) = extent.advance(piece) {
                return Some(at + end);
            }
            at += piece.len();
            if at == text.len() {
                return extent.may_end_with_input().then_some(at);
            }
        }
        None
    }

    #[test]
    fn values_end_where_json_says() {
        let check = |value: &str| {
            for behind in ["", " ", ",1", "]", "}", "\"", ":"] {
                let text = format!("{value}{behind}");
                for size in 1..text.len() + 2 {
                    assert_eq!(find(text.as_bytes(), &[size]), Some(value.len()), "{text} by {size}");
                }
            }
        };
        check("{}");
        check("[]");
        check(r#"{"a":[{"b":"}]"},"\"}",["\\"]]}"#);
        check(r#""text \" with \\""#);
        check(r#""\\\\\\\"""#);
        check("-1.5e+10");
        check("true");
        check("null");
        check(&"[".repeat(300).chars().chain("]".repeat(300).chars()).collect::<String>());
    }

    #[test]
    fn open_values_have_no_end_yet() {
        for text in ["{", "[1,2", r#"{"a":"}"#, r#"""#, r#""a\""#, r#"["\\\"]"#] {
            assert_eq!(find(text.as_bytes(), &[3]), None, "{text}");
        }
        assert_eq!(Extent::begin(b'}'), None);
        assert_eq!(Extent::begin(b'x'), None);
    }

    proptest! {
        /// Blocks and single bytes agree on any bytes at all, JSON or not.
        #[test]
        fn pieces_of_any_size_agree(
            bytes in prop::collection::vec(prop::sample::select(b"{}[]\"\\ a,".to_vec()), 1..400),
            sizes in prop::collection::vec(1..200usize, 1..6),
        ) {
            prop_assert_eq!(find(&bytes, &sizes), find(&bytes, &[1]));
            prop_assert_eq!(find(&bytes, &[usize::MAX / 2]), find(&bytes, &[1]));
        }
    }
}
