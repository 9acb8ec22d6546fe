//! Answers that list documents: whole when they are small, streamed when they are not.
//!
//! Their etag is the change vector of the database: any write may add to a list or take from it.

use std::ops::ControlFlow;

use jackdaw_database::{Snapshot, StoredDocument, print_document};

use crate::endpoints::paging::{Paging, fields};
use crate::error::{ErrorKind, Result, WireError};
use crate::query_string::Query;
use crate::request::DatabaseRequest;
use crate::response::{ClientGone, PieceSender, PieceWriter, Response};

/// A listing of more bytes is streamed.
const WHOLE_SIZE_MAX: usize = 4 << 20;

/// Where a walk hands over the documents that it finds; breaks when no more are wanted.
pub(crate) type List<'l> = dyn FnMut(&StoredDocument<'_>) -> ControlFlow<()> + 'l;

/// Answers with the page of the documents found by `walk` that the request asks for. Walks on a thread that may block; answers when it is
/// done or has begun to stream.
pub(crate) async fn list_documents(
    request: DatabaseRequest,
    walk: impl FnOnce(&Snapshot, &mut List<'_>) -> jackdaw_database::Result<()> + Send + 'static,
) -> Result<Response> {
    let query = request.query();
    let mut paging = Paging::of(query)?;
    let fields = fields(query)?;
    let known = request.if_none_match().map(str::to_owned);
    let database = request.database.clone();
    let (answer, response) = tokio::sync::oneshot::channel();
    tokio::task::spawn_blocking(move || {
        let mut listing = Listing::new(answer);
        let walked = (|| {
            let snapshot = database.read()?;
            listing.etag = snapshot.change_vector()?;
            if !listing.etag.is_empty() && known.as_deref() == Some(&*listing.etag) {
                listing.answer(Ok(Response::not_modified()));
                return Ok(());
            }
            walk(&snapshot, &mut |document| {
                paging.page(|| listing.add(|out| print_document(document, fields, out)))
            })
        })();
        match walked {
            Ok(()) => listing.finish(),
            Err(error) => listing.fail(error.into()),
        }
    });
    let gone = |_| Err(ErrorKind::Internal.error("the listing ended unexpectedly"));
    response.await.unwrap_or_else(gone)
}

/// An answer `{"Results":[...]}` in the making.
struct Listing {
    etag: String,
    is_first: bool,
    /// What is written as long as it is not streamed.
    whole: Vec<u8>,
    stream: Option<PieceWriter>,
    /// Who waits for the answer, until it is given.
    answer: Option<tokio::sync::oneshot::Sender<Result<Response>>>,
}

impl Listing {
    fn new(answer: tokio::sync::oneshot::Sender<Result<Response>>) -> Listing {
        let whole = b"{\"Results\":[".to_vec();
        Listing { etag: String::new(), is_first: true, whole, stream: None, answer: Some(answer) }
    }

    fn with_etag(&self, response: Response) -> Response {
        if self.etag.is_empty() { response } else { response.etag(&self.etag) }
    }

    fn answer(&mut self, answer: Result<Response>) {
        if let Some(waiting) = self.answer.take() {
            // A client that is gone needs no answer, and shows when it is sent a piece.
            let _ = waiting.send(answer);
        }
    }

    /// Adds an element. Breaks when the client is gone.
    fn add(&mut self, print: impl FnOnce(&mut Vec<u8>)) -> ControlFlow<()> {
        let is_first = std::mem::take(&mut self.is_first);
        let element = |out: &mut Vec<u8>| {
            if !is_first {
                out.push(b',');
            }
            print(out);
        };
        if let Some(stream) = &mut self.stream {
            return ClientGone::breaks(stream.print(element));
        }
        element(&mut self.whole);
        if self.whole.len() > WHOLE_SIZE_MAX {
            let (sender, response) = Response::stream_json();
            self.stream = Some(PieceWriter::following(sender, std::mem::take(&mut self.whole)));
            self.answer(Ok(self.with_etag(response)));
        }
        ControlFlow::Continue(())
    }

    /// Ends the listing, if it was not answered otherwise.
    fn finish(mut self) {
        let end = |out: &mut Vec<u8>| out.extend_from_slice(b"]}");
        if let Some(mut stream) = self.stream.take() {
            // Nobody reads the end when the client is gone.
            let _ = stream.print(end).and_then(|()| stream.end()).map(PieceSender::finish);
        } else if self.answer.is_some() {
            end(&mut self.whole);
            let whole = std::mem::take(&mut self.whole);
            self.answer(Ok(self.with_etag(Response::json(whole))));
        }
    }

    fn fail(mut self, error: WireError) {
        if self.stream.is_some() {
            // Dropped without its end, the answer is broken off.
            tracing::warn!(%error, "a listing was broken off");
        }
        self.answer(Err(error));
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
