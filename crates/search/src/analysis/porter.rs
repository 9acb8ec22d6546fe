//! Porter's algorithm (1980), which cuts English words down to stems, with the two changes that all programs of it share: `bli` becomes `ble`, and `logi` becomes `log`.
//!
//! A word is seen as runs of consonants and vowels, `[C](VC)^m[V]`; how long what is left of an ending must be is said by `m`. Words of one or two characters stay, and whatever
//! is no lower-case vowel counts as a consonant.

/// Cuts a word down to its stem.
pub(super) fn stem(word: &mut String) {
    let mut stem = Stem { letters: Vec::new(), consonants: Vec::new(), kept: 0 };
    word.chars().for_each(|letter| stem.push(letter));
    if stem.letters.len() <= 2 {
        return;
    }
    stem.plurals_and_past();
    stem.final_y();
    stem.replace_first(LONG_ENDINGS);
    stem.replace_first(MIDDLE_ENDINGS);
    stem.drop_endings();
    stem.final_e();
    word.clear();
    word.extend(stem.letters);
}

const LONG_ENDINGS: &[(&str, &str)] = &[
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
    ("logi", "log"),
];

const MIDDLE_ENDINGS: &[(&str, &str)] = &[
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
];

/// The longer of two that fit comes first.
const DROPPED_ENDINGS: &[&str] = &[
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism",
    "ate", "iti", "ous", "ive", "ize",
];

struct Stem {
    letters: Vec<char>,
    /// Which of them are consonants.
    consonants: Vec<bool>,
    /// Letters before the ending that was found last.
    kept: usize,
}

impl Stem {
    fn push(&mut self, letter: char) {
        self.consonants.push(match letter {
            'a' | 'e' | 'i' | 'o' | 'u' => false,
            // A vowel behind a consonant.
            'y' => !self.consonants.last().copied().unwrap_or(false),
            _ => true,
        });
        self.letters.push(letter);
    }

    fn cut(&mut self, length: usize) {
        self.letters.truncate(length);
        self.consonants.truncate(length);
    }

    fn cut_last(&mut self) {
        self.cut(self.letters.len().saturating_sub(1));
    }

    fn is_consonant(&self, at: usize) -> bool {
        self.consonants[at]
    }

    /// The `m` of what is kept.
    fn measure(&self) -> usize {
        let mut measure = 0;
        let mut is_after_vowel = false;
        for at in 0..self.kept {
            let is_consonant = self.is_consonant(at);
            if is_consonant && is_after_vowel {
                measure += 1;
            }
            is_after_vowel = !is_consonant;
        }
        measure
    }

    fn keeps_a_vowel(&self) -> bool {
        (0..self.kept).any(|at| !self.is_consonant(at))
    }

    /// Whether the letters before `end` end with a consonant twice.
    fn ends_double(&self, end: usize) -> bool {
        end >= 2 && self.letters[end - 1] == self.letters[end - 2] && self.is_consonant(end - 1)
    }

    /// Whether the letters before `end` end with consonant, vowel and a consonant that is not `w`, `x` or `y`.
    fn ends_short(&self, end: usize) -> bool {
        end >= 3
            && self.is_consonant(end - 1)
            && !self.is_consonant(end - 2)
            && self.is_consonant(end - 3)
            && !matches!(self.letters[end - 1], 'w' | 'x' | 'y')
    }

    /// Whether the word ends so; what is before it is kept then.
    fn ends(&mut self, ending: &str) -> bool {
        let length = ending.chars().count();
        let Some(kept) = self.letters.len().checked_sub(length) else { return false };
        if !self.letters[kept..].iter().copied().eq(ending.chars()) {
            return false;
        }
        self.kept = kept;
        true
    }

    fn set_ending(&mut self, ending: &str) {
        self.cut(self.kept);
        ending.chars().for_each(|letter| self.push(letter));
    }

    fn plurals_and_past(&mut self) {
        if self.letters.ends_with(&['s']) {
            if self.ends("sses") || self.ends("ies") {
                let length = self.letters.len();
                self.cut(length - 2);
            } else if self.letters.len() < 2 || self.letters[self.letters.len() - 2] != 's' {
                self.cut_last();
            }
        }
        if self.ends("eed") {
            if self.measure() > 0 {
                self.cut_last();
            }
            return;
        }
        if !((self.ends("ed") || self.ends("ing")) && self.keeps_a_vowel()) {
            return;
        }
        self.cut(self.kept);
        let length = self.letters.len();
        if self.ends("at") || self.ends("bl") || self.ends("iz") {
            self.push('e');
        } else if self.ends_double(length) {
            if !matches!(self.letters[length - 1], 'l' | 's' | 'z') {
                self.cut_last();
            }
        } else {
            self.kept = length;
            if self.measure() == 1 && self.ends_short(length) {
                self.push('e');
            }
        }
    }

    fn final_y(&mut self) {
        if self.ends("y") && self.keeps_a_vowel() {
            self.set_ending("i");
        }
    }

    /// Replaces the first ending of a list that fits, when enough is before it.
    fn replace_first(&mut self, endings: &[(&str, &str)]) {
        for (ending, becomes) in endings {
            if self.ends(ending) {
                if self.measure() > 0 {
                    self.set_ending(becomes);
                }
                return;
            }
        }
    }

    fn drop_endings(&mut self) {
        for ending in DROPPED_ENDINGS {
            if !self.ends(ending) {
                continue;
            }
            if *ending == "ion" && !(self.kept > 0 && matches!(self.letters[self.kept - 1], 's' | 't')) {
                continue;
            }
            if self.measure() > 1 {
                self.cut(self.kept);
            }
            return;
        }
    }

    fn final_e(&mut self) {
        if self.ends("e") {
            let measure = self.measure();
            if measure > 1 || measure == 1 && !self.ends_short(self.kept) {
                self.cut(self.kept);
            }
        }
        let length = self.letters.len();
        self.kept = length;
        if self.letters.ends_with(&['l', 'l']) && self.measure() > 1 {
            self.cut_last();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    /// Words and the stems that RavenDB 5.4's index gave for them, through Lucene.Net's `PorterStemFilter`.
    #[test]
    fn stems_are_those_of_the_reference() {
        let cases = include_str!("../../tests/data/porter.txt");
        let mut failures = Vec::new();
        for line in cases.lines() {
            let (word, expected) = line.split_once(' ').unwrap();
            let mut found = word.to_owned();
            stem(&mut found);
            if found != expected {
                failures.push(format!("{word}: {found}, not {expected}"));
            }
        }
        assert!(failures.is_empty(), "{}", failures.join("\n"));
        assert!(cases.lines().count() > 5000);
    }

    #[test]
    fn every_second_y_of_a_run_is_a_vowel() {
        let mut word = "y".repeat(16_000);
        stem(&mut word);
        assert_eq!(word, "y".repeat(15_999) + "i");
    }
}
