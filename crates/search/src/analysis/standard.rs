//! The grammar of Lucene's standard tokenizer: at each place the longest of these, the earlier one of equals.
//!
//! | kind | what |
//! | --- | --- |
//! | word | letters and digits |
//! | apostrophe | letters `'` letters ... |
//! | acronym | letter `.` letter `.` ... |
//! | company | letters `&` or `@` letters |
//! | e-mail | words joined by `.` `-` `_`, `@`, words joined by `.` `-` |
//! | host | words joined by `.`, and perhaps one more at the end, which does not count |
//! | number | words joined by `_` `-` `/` `.` `,`, every other one with a digit |
//! | character | one of Chinese or Japanese |

use super::characters::{is_digit, is_letter};

/// What a word is, as far as it matters afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Letters with apostrophes.
    Apostrophe,
    /// Letters with dots.
    Acronym,
    /// Anything else.
    Other,
}

/// Cuts a text into words.
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// UTF-16 units that a word may have.
    length_max: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str, length_max: usize) -> Scanner<'a> {
        Scanner { text, at: 0, length_max }
    }

    /// The next word: its kind, where it begins and ends. Words that are too long are left out.
    pub(super) fn next(&mut self) -> Option<(Kind, usize, usize)> {
        loop {
            // What stands between words is mostly ASCII too.
            let bytes = &self.text.as_bytes()[self.at..];
            self.at += bytes
                .iter()
                .position(|byte| !byte.is_ascii() || byte.is_ascii_alphanumeric())
                .unwrap_or(bytes.len());
            let rest = &self.text[self.at..];
            let first = rest.chars().next()?;
            if is_chinese_or_japanese(first) {
                let from = self.at;
                self.at += first.len_utf8();
                return Some((Kind::Other, from, self.at));
            }
            let word = self.word(self.at);
            if word == self.at {
                self.at += first.len_utf8();
                continue;
            }
            let from = self.at;
            let (kind, end, to) = self.longest(word);
            self.at = end;
            if to - from <= self.length_max || self.text[from..to].encode_utf16().count() <= self.length_max {
                return Some((kind, from, to));
            }
        }
    }

    /// The longest thing that begins here with a word that ends at `word`: its kind, where the text goes on, where it ends.
    fn longest(&self, word: usize) -> (Kind, usize, usize) {
        let from = self.at;
        // Most words stand alone.
        match self.byte(word) {
            Some(b'\'' | b'.' | b'&' | b'@' | b'-' | b'_' | b'/' | b',') => {}
            _ => return (Kind::Other, word, word),
        }
        let mut best = (Kind::Other, word, word);
        let mut consider = |kind, end: usize, to: usize| {
            if end > best.1 {
                best = (kind, end, to);
            }
        };
        let letters = self.letters(from);
        if let Some(end) = self.apostrophe(letters) {
            consider(Kind::Apostrophe, end, end);
        }
        if let Some(end) = self.acronym(from) {
            consider(Kind::Acronym, end, end);
        }
        if matches!(self.byte(letters), Some(b'&' | b'@')) {
            let end = self.letters(letters + 1);
            if letters > from && end > letters + 1 {
                consider(Kind::Other, end, end);
            }
        }
        if let Some(end) = self.mail(word) {
            consider(Kind::Other, end, end);
        }
        if let Some((end, to)) = self.host(word) {
            consider(Kind::Other, to, to);
            if let Some(end) = self.number(from, word) {
                consider(Kind::Other, end, end);
            }
            consider(Kind::Other, end, to);
        } else if let Some(end) = self.number(from, word) {
            consider(Kind::Other, end, end);
        }
        best
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    fn while_is(&self, from: usize, belongs: impl Fn(char) -> bool) -> usize {
        let rest = &self.text[from..];
        from + rest.find(|character| !belongs(character)).unwrap_or(rest.len())
    }

    fn word(&self, from: usize) -> usize {
        // Most words are ASCII.
        let rest = &self.text.as_bytes()[from..];
        let from = from + rest.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(rest.len());
        if self.byte(from).is_none_or(|byte| byte.is_ascii()) {
            return from;
        }
        self.while_is(from, |character| is_word_letter(character) || is_digit(character))
    }

    fn letters(&self, from: usize) -> usize {
        self.while_is(from, is_word_letter)
    }

    fn apostrophe(&self, mut end: usize) -> Option<usize> {
        let begin = end;
        while end > self.at && self.byte(end) == Some(b'\'') {
            let next = self.letters(end + 1);
            if next == end + 1 {
                break;
            }
            end = next;
        }
        (end > begin).then_some(end)
    }

    fn acronym(&self, from: usize) -> Option<usize> {
        let mut end = from;
        let mut count = 0;
        while let Some(letter) = self.text[end..].chars().next().filter(|&letter| is_word_letter(letter)) {
            if self.byte(end + letter.len_utf8()) != Some(b'.') {
                break;
            }
            end += letter.len_utf8() + 1;
            count += 1;
        }
        (count >= 2).then_some(end)
    }

    fn mail(&self, word: usize) -> Option<usize> {
        let mut end = word;
        while matches!(self.byte(end), Some(b'.' | b'-' | b'_')) {
            let next = self.word(end + 1);
            if next == end + 1 {
                return None;
            }
            end = next;
        }
        if self.byte(end) != Some(b'@') {
            return None;
        }
        let first = self.word(end + 1);
        if first == end + 1 {
            return None;
        }
        let mut end = first;
        while matches!(self.byte(end), Some(b'.' | b'-')) {
            let next = self.word(end + 1);
            if next == end + 1 {
                break;
            }
            end = next;
        }
        (end > first).then_some(end)
    }

    /// Where a host name ends, with and without the dot after it.
    fn host(&self, word: usize) -> Option<(usize, usize)> {
        let mut end = word;
        while self.byte(end) == Some(b'.') {
            let next = self.word(end + 1);
            if next == end + 1 {
                break;
            }
            end = next;
        }
        if end == word {
            return None;
        }
        Some((if self.byte(end) == Some(b'.') { end + 1 } else { end }, end))
    }

    fn number(&self, from: usize, word: usize) -> Option<usize> {
        let has_digit = |from: usize, to: usize| self.text[from..to].chars().any(is_digit);
        // Whether all parts so far at even, and at odd, places have a digit.
        let mut even = has_digit(from, word);
        let mut odd = true;
        let mut end = word;
        let mut parts = 1;
        while matches!(self.byte(end), Some(b'_' | b'-' | b'/' | b'.' | b',')) {
            let next = self.word(end + 1);
            if next == end + 1 {
                break;
            }
            let digit = has_digit(end + 1, next);
            if parts % 2 == 0 {
                even &= digit;
            } else {
                odd &= digit;
            }
            if !even && !odd {
                break;
            }
            end = next;
            parts += 1;
        }
        (parts > 1).then_some(end)
    }
}

/// Letters of words: all but Chinese and Japanese ones, and Thai signs.
fn is_word_letter(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_alphabetic();
    }
    matches!(character, '\u{e00}'..='\u{e59}') || (is_letter(character) && !is_chinese_or_japanese(character))
}

fn is_chinese_or_japanese(character: char) -> bool {
    matches!(character,
        '\u{3100}'..='\u{312f}' | '\u{3040}'..='\u{309f}' | '\u{30a0}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}'
        | '\u{3300}'..='\u{337f}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{ff65}'..='\u{ff9f}')
}
