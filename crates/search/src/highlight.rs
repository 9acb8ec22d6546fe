//! Fragments of a text around the terms that a query looks for, as Lucene's vector highlighter cuts them.

use crate::analysis::Analyzer;
use crate::compile::{Piece, is_like, pieces, wildcard_matches};
use crate::error::Result;
use crate::layout::Place;
use crate::query::{Query, Value};
use crate::request::Highlight;
use crate::searcher::Searcher;

/// Shorter fragments are asked for in vain.
const FRAGMENT_LENGTH_MIN: usize = 18;

/// The colours of successive terms.
const COLOURS: [&str; 20] = [
    "yellow",
    "lawngreen",
    "aquamarine",
    "magenta",
    "palegreen",
    "coral",
    "wheat",
    "khaki",
    "lime",
    "deepskyblue",
    "deeppink",
    "salmon",
    "peachpuff",
    "violet",
    "mediumpurple",
    "palegoldenrod",
    "darkkhaki",
    "springgreen",
    "turquoise",
    "powderblue",
];

impl Searcher {
    /// The fragments of a text of `request.field` in which terms of the query are marked, in the text's order; none when there
    /// are no such terms.
    pub fn highlight(&self, query: &Query, request: &Highlight, text: &str) -> Result<Vec<String>> {
        let place = self.snapshot.layout.place(&request.field);
        let mut wanted = Vec::new();
        gather(query, &place, &mut wanted);
        let marks = find_marks(&place, &wanted, text);
        Ok(fragments(request, text, &marks))
    }
}

/// What a query looks for in a text.
enum Wanted {
    /// These words, one after the other.
    Words(Vec<String>),
    /// A word that matches.
    Pattern(String),
    /// A word of which a part matches.
    Regex(regex::Regex),
    /// A word that is so like this.
    Like(Vec<char>, f32),
}

/// A part of the text to mark: from, to, and by which of the wanted.
type Mark = (usize, usize, usize);

fn gather(query: &Query, place: &Place, wanted: &mut Vec<Wanted>) {
    let mut words = |text: &str| {
        let words: Vec<String> = place.analyzer.terms(text).into_iter().map(|token| token.text).collect();
        if !words.is_empty() {
            wanted.push(Wanted::Words(words));
        }
    };
    match query {
        Query::Term { field, value: Value::Text(text), .. } if *field == place.name => words(text),
        Query::In { field, values, .. } | Query::AllIn { field, values, .. } if *field == place.name => {
            for value in values {
                if let Value::Text(text) = value {
                    words(text);
                }
            }
        }
        Query::Proximity { field, text, .. } if *field == place.name => {
            // Words that may be apart are marked one by one.
            place
                .analyzer
                .terms(text)
                .into_iter()
                .for_each(|token| wanted.push(Wanted::Words(vec![token.text])));
        }
        Query::Search { field, text, .. } if *field == place.name => from_pieces(text, place, wanted),
        Query::Lucene { field, text, .. } if *field == place.name => {
            let text: String = text
                .split_whitespace()
                .filter(|word| !matches!(*word, "AND" | "OR" | "NOT" | "&&" | "||"))
                .filter(|word| !word.starts_with(['-', '!']))
                .map(|word| {
                    let word = word.trim_start_matches(['+', '(']).trim_end_matches(')');
                    let word = word.rsplit_once(':').map_or(word, |(_, after)| after);
                    let end = word.find(['^', '~']).unwrap_or(word.len());
                    format!("{} ", &word[..end])
                })
                .collect();
            from_pieces(&text, place, wanted);
        }
        Query::Prefix { field, text, exact } if *field == place.name => {
            wanted.push(Wanted::Pattern(format!("{}*", place.fold(text, *exact))));
        }
        Query::Suffix { field, text, exact } if *field == place.name => {
            wanted.push(Wanted::Pattern(format!("*{}", place.fold(text, *exact))));
        }
        Query::Wildcard { field, pattern, exact } if *field == place.name => {
            wanted.push(Wanted::Pattern(place.fold(pattern, *exact)));
        }
        Query::Regex { field, pattern } if *field == place.name => {
            // A pattern that is none was refused when the query ran.
            if let Ok(regex) =
                regex::RegexBuilder::new(pattern).case_insensitive(true).size_limit(1 << 20).build()
            {
                wanted.push(Wanted::Regex(regex));
            }
        }
        Query::Fuzzy { field, text, similarity } if *field == place.name => {
            wanted.push(Wanted::Like(place.fold(text, false).chars().collect(), *similarity));
        }
        Query::Boost(inner, _) => gather(inner, place, wanted),
        Query::And(parts) | Query::Or(parts) | Query::Intersect(parts) => {
            parts.iter().for_each(|part| gather(part, place, wanted));
        }
        _ => {}
    }
}

fn from_pieces(text: &str, place: &Place, wanted: &mut Vec<Wanted>) {
    for piece in pieces(text) {
        match piece {
            Piece::Word(word) if word.contains(['*', '?']) => {
                wanted.push(Wanted::Pattern(place.analyzer.fold(word)));
            }
            Piece::Word(word) | Piece::Phrase(word) => {
                let words: Vec<String> =
                    place.analyzer.terms(word).into_iter().map(|token| token.text).collect();
                if !words.is_empty() {
                    wanted.push(Wanted::Words(words));
                }
            }
        }
    }
}

fn find_marks(place: &Place, wanted: &[Wanted], text: &str) -> Vec<Mark> {
    // A text that is one term is marked by its words all the same.
    let analyzer = if place.analyzer.is_keyword() { Analyzer::Standard } else { place.analyzer.clone() };
    let mut tokens = analyzer.terms(text);
    if place.analyzer.is_keyword() {
        tokens.extend(place.analyzer.terms(text));
    }
    let mut marks: Vec<Mark> = Vec::new();
    let mut row = Vec::new();
    for at in 0..tokens.len() {
        for (number, wanted) in wanted.iter().enumerate() {
            let token = &tokens[at];
            let last = match wanted {
                Wanted::Words(words) => {
                    let follow = tokens[at..].iter().map(|token| &token.text).take(words.len()).eq(words);
                    follow.then(|| at + words.len() - 1)
                }
                Wanted::Pattern(pattern) => wildcard_matches(pattern, &token.text).then_some(at),
                Wanted::Regex(regex) => regex.is_match(&token.text).then_some(at),
                Wanted::Like(like, similarity) => {
                    is_like(like, &token.text, *similarity, &mut row).then_some(at)
                }
            };
            if let Some(last) = last {
                marks.push((token.offset_from, tokens[last].offset_to, number));
                break;
            }
        }
    }
    marks.sort_unstable();
    // What overlaps the one before is part of it.
    marks.dedup_by(|next, before| next.0 < before.1);
    marks
}

fn fragments(request: &Highlight, text: &str, marks: &[Mark]) -> Vec<String> {
    let length = request.fragment_length.max(FRAGMENT_LENGTH_MIN);
    let mut fragments = Vec::new();
    let mut rest = marks;
    let mut floor = 0;
    while let Some((first, _)) = rest.split_first() {
        if fragments.len() == request.fragment_count {
            break;
        }
        // As many marks as fit, and the text around them shared between both sides.
        let count = rest.iter().take_while(|mark| mark.1 <= first.0 + length).count().max(1);
        let (within, after) = rest.split_at(count);
        let marked = within[count - 1].1 - first.0;
        let margin = length.saturating_sub(marked) / 2;
        let from = boundary_before(text, first.0.saturating_sub(margin).max(floor));
        let mut to = boundary_before(text, (from + length.max(within[count - 1].1 - from)).min(text.len()));
        // A word that would be cut is left out.
        if to < text.len()
            && !text[to..].starts_with(char::is_whitespace)
            && let Some(space) = text[within[count - 1].1..to].rfind(char::is_whitespace)
        {
            to = within[count - 1].1 + space;
        }
        to = to.max(within[count - 1].1);
        fragments.push(marked_text(request, &text[from..to], from, within).trim_end().to_owned());
        floor = to;
        rest = after;
    }
    fragments
}

fn boundary_before(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn marked_text(request: &Highlight, fragment: &str, begin: usize, marks: &[Mark]) -> String {
    let mut out = String::with_capacity(fragment.len() + marks.len() * 40);
    let mut at = 0;
    for &(from, to, number) in marks {
        let (from, to) = (from - begin, to - begin);
        out.push_str(&fragment[at..from]);
        match request.pre_tags.as_slice() {
            [] => {
                out.push_str("<b style=\"background:");
                out.push_str(COLOURS[number % COLOURS.len()]);
                out.push_str("\">");
            }
            tags => out.push_str(&tags[number % tags.len()]),
        }
        out.push_str(&fragment[from..to]);
        match request.post_tags.as_slice() {
            [] => out.push_str("</b>"),
            tags => out.push_str(&tags[number % tags.len()]),
        }
        at = to;
    }
    out.push_str(&fragment[at..]);
    out
}
