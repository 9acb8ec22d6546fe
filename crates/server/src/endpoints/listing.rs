//! Answers that list documents: whole when they are small, streamed when they are not.
//!
//! Their etag is the change vector of the database: any write may add to a list or take from it.

use std::ops::ControlFlow;

use crate::error::{ErrorKind, Result, WireError};
use crate::query_string::Query;
use crate::response::{PieceSender, Response};

/// A listing of more bytes is streamed.
const WHOLE_SIZE_MAX: usize = 4 << 20;

/// The size of a streamed piece.
const PIECE_SIZE: usize = 64 << 10;

/// An answer `{"Results":[...]}` in the making.
pub(crate) struct Listing {
    name: &'static str,
    /// The etag of what the client has.
    known: Option<String>,
}

/// Where the listed elements go.
pub(crate) struct ListingWriter {
    out: Vec<u8>,
    known: Option<String>,
    etag: String,
    is_first: bool,
    answer: Option<tokio::sync::oneshot::Sender<Result<Response>>>,
    stream: Option<PieceSender>,
}

impl Listing {
    pub(crate) fn new(name: &'static str, known: Option<String>) -> Listing {
        Listing { name, known }
    }

    /// Runs `list` on a thread that may block; answers when it is done or has begun to stream.
    pub(crate) async fn run(
        self,
        list: impl FnOnce(&mut ListingWriter) -> Result<()> + Send + 'static,
    ) -> Result<Response> {
        let (answer, response) = tokio::sync::oneshot::channel();
        tokio::task::spawn_blocking(move || {
            let mut out = Vec::with_capacity(4096);
            out.extend_from_slice(format!("{{\"{}\":[", self.name).as_bytes());
            let (known, answer) = (self.known, Some(answer));
            let mut writer =
                ListingWriter { out, known, etag: String::new(), is_first: true, answer, stream: None };
            if let Err(error) = list(&mut writer) {
                writer.fail(error);
            }
        });
        let gone = |_| Err(ErrorKind::Internal.error("the listing ended unexpectedly"));
        response.await.unwrap_or_else(gone)
    }
}

impl ListingWriter {
    /// Sets the answer's etag. When the client has just that already, this is the answer, and there is nothing to list.
    pub(crate) fn is_known(&mut self, etag: String) -> bool {
        self.etag = etag;
        let is_known = !self.etag.is_empty() && self.known.as_deref() == Some(&*self.etag);
        if let Some(answer) = self.answer.take_if(|_| is_known) {
            // A client that is gone needs no answer.
            let _ = answer.send(Ok(Response::not_modified()));
        }
        is_known
    }

    fn with_etag(&self, response: Response) -> Response {
        if self.etag.is_empty() { response } else { response.etag(&self.etag) }
    }

    /// Adds an element. Breaks when the client is gone.
    pub(crate) fn add(&mut self, print: impl FnOnce(&mut Vec<u8>)) -> ControlFlow<()> {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
        print(&mut self.out);
        if self.stream.is_none() && self.out.len() > WHOLE_SIZE_MAX {
            let (sender, response) = Response::stream_json();
            self.stream = Some(sender);
            if let Some(answer) = self.answer.take() {
                // A client that is gone shows when the first piece is sent.
                let _ = answer.send(Ok(self.with_etag(response)));
            }
        }
        match &self.stream {
            Some(stream) if self.out.len() >= PIECE_SIZE => {
                let piece = std::mem::replace(&mut self.out, Vec::with_capacity(PIECE_SIZE + PIECE_SIZE / 4));
                match stream.send_blocking(piece) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                }
            }
            _ => ControlFlow::Continue(()),
        }
    }

    /// Ends the listing.
    pub(crate) fn finish(&mut self) {
        self.out.extend_from_slice(b"]}");
        let out = std::mem::take(&mut self.out);
        if let Some(stream) = self.stream.take() {
            if stream.send_blocking(out).is_ok() {
                stream.finish();
            }
        } else if let Some(answer) = self.answer.take() {
            // As above.
            let _ = answer.send(Ok(self.with_etag(Response::json(out))));
        }
    }

    fn fail(mut self, error: WireError) {
        if self.stream.is_some() {
            // Dropped without its end, the answer is broken off.
            tracing::warn!(%error, "a listing was broken off");
        } else if let Some(answer) = self.answer.take() {
            // As above.
            let _ = answer.send(Err(error));
        }
    }
}

/// Which ids of a prefix are wanted and which are not: `matches` and `exclude`, lists of patterns with `*` and `?`.
pub(crate) struct Wildcards {
    matches: Vec<String>,
    excludes: Vec<String>,
}

impl Wildcards {
    pub(crate) fn of(query: Query<'_>) -> Result<Wildcards> {
        let list = |name: &'static str| -> Result<Vec<String>> {
            let list = query.get_filled(name)?.unwrap_or_default();
            Ok(list.split('|').filter(|each| !each.is_empty()).map(str::to_lowercase).collect())
        };
        Ok(Wildcards { matches: list("matches")?, excludes: list("exclude")? })
    }

    /// Whether the rest of an id behind its prefix is wanted.
    pub(crate) fn matches(&self, rest: &str) -> bool {
        if self.matches.is_empty() && self.excludes.is_empty() {
            return true;
        }
        let rest = rest.to_lowercase();
        (self.matches.is_empty() || self.matches.iter().any(|pattern| is_match(pattern, &rest)))
            && !self.excludes.iter().any(|pattern| is_match(pattern, &rest))
    }
}

/// `*` stands for any text, `?` for one character.
fn is_match(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    t = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a*b?d", "axxbcd", true),
            ("a*b?d", "axxbd", false),
            ("*b*b", "abcb", true),
            ("1*", "1-a", true),
            ("?", "ä", true),
        ] {
            assert_eq!(is_match(pattern, text), expected, "{pattern} {text}");
        }
    }
}
