//! Compression of answers, as `Accept-Encoding` allows: gzip, or zstd where it is listed.
//!
//! Small answers are left as they are: they fit into one packet anyway. Levels are the cheapest ones, because most clients sit on
//! the same machine or network, where time counts more than bytes. An answer that is streamed is compressed as it goes; whenever its
//! source has nothing more to give, what was compressed is flushed, so that the reader is never behind.

use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use flate2::write::GzEncoder;
use futures_util::Stream;
use http::HeaderValue;

/// Answers of fewer bytes are not compressed.
pub(crate) const COMPRESSED_SIZE_MIN: usize = 2048;

const GZIP_LEVEL: u32 = 1;
const ZSTD_LEVEL: i32 = 1;

/// A coding of an answer's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Gzip,
    Zstd,
}

impl Coding {
    /// The best coding that `Accept-Encoding` lists; a weight of zero forbids one.
    pub(crate) fn accepted(accept_encoding: &str) -> Option<Coding> {
        let mut found = None;
        for item in accept_encoding.split(',') {
            let (name, parameters) = item.split_once(';').unwrap_or((item, ""));
            let weight =
                parameters.trim().strip_prefix("q=").map_or(1.0, |q| q.trim().parse().unwrap_or(0.0));
            if weight <= 0.0 {
                continue;
            }
            match name.trim() {
                name if name.eq_ignore_ascii_case("zstd") => return Some(Coding::Zstd),
                name if name.eq_ignore_ascii_case("gzip") => found = Some(Coding::Gzip),
                _ => {}
            }
        }
        found
    }

    /// The value of `Content-Encoding`.
    pub(crate) fn name(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Coding::Gzip => "gzip",
            Coding::Zstd => "zstd",
        })
    }

    /// Compresses what is in memory as a whole.
    pub(crate) fn compress(self, bytes: &[u8]) -> io::Result<Bytes> {
        let mut encoder = Encoder::new(self, bytes.len() / 4)?;
        encoder.write_all(bytes)?;
        Ok(encoder.finish()?.into())
    }
}

/// The two encoders, writing to memory.
enum Encoder {
    Gzip(GzEncoder<Vec<u8>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Encoder {
    fn new(coding: Coding, capacity: usize) -> io::Result<Encoder> {
        let out = Vec::with_capacity(capacity);
        Ok(match coding {
            Coding::Gzip => Encoder::Gzip(GzEncoder::new(out, flate2::Compression::new(GZIP_LEVEL))),
            Coding::Zstd => Encoder::Zstd(zstd::stream::write::Encoder::new(out, ZSTD_LEVEL)?),
        })
    }

    /// What was compressed since the last call.
    fn take(&mut self) -> Bytes {
        let out = match self {
            Encoder::Gzip(encoder) => encoder.get_mut(),
            Encoder::Zstd(encoder) => encoder.get_mut(),
        };
        std::mem::take(out).into()
    }

    fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Encoder::Gzip(encoder) => encoder.finish(),
            Encoder::Zstd(encoder) => encoder.finish(),
        }
    }
}

impl Write for Encoder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Encoder::Gzip(encoder) => encoder.write(bytes),
            Encoder::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Encoder::Gzip(encoder) => encoder.flush(),
            Encoder::Zstd(encoder) => encoder.flush(),
        }
    }
}

/// A stream of pieces, compressed.
pub(crate) struct CompressedStream<S> {
    source: S,
    /// `None` after the end.
    encoder: Option<Encoder>,
    /// Whether something was written since the last flush.
    holds_back: bool,
}

impl<S> CompressedStream<S> {
    pub(crate) fn new(coding: Coding, source: S) -> io::Result<CompressedStream<S>> {
        Ok(CompressedStream { source, encoder: Some(Encoder::new(coding, 0)?), holds_back: false })
    }
}

impl<S: Stream<Item = io::Result<Bytes>> + Unpin> Stream for CompressedStream<S> {
    type Item = io::Result<Bytes>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let this = self.get_mut();
        loop {
            let Some(encoder) = &mut this.encoder else { return Poll::Ready(None) };
            match Pin::new(&mut this.source).poll_next(context) {
                Poll::Ready(Some(Ok(piece))) => {
                    if let Err(error) = encoder.write_all(&piece) {
                        return Poll::Ready(Some(Err(error)));
                    }
                    this.holds_back = true;
                    let out = encoder.take();
                    if !out.is_empty() {
                        return Poll::Ready(Some(Ok(out)));
                    }
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => {
                    let end = this.encoder.take().map(Encoder::finish);
                    return Poll::Ready(end.map(|end| end.map(Bytes::from)));
                }
                Poll::Pending if this.holds_back => {
                    this.holds_back = false;
                    if let Err(error) = encoder.flush() {
                        return Poll::Ready(Some(Err(error)));
                    }
                    let out = encoder.take();
                    if !out.is_empty() {
                        return Poll::Ready(Some(Ok(out)));
                    }
                    return Poll::Pending;
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn the_best_listed_coding_is_taken() {
        for (accept, expected) in [
            ("gzip, deflate", Some(Coding::Gzip)),
            ("gzip, deflate, br, zstd", Some(Coding::Zstd)),
            ("GZIP", Some(Coding::Gzip)),
            ("gzip;q=0, zstd;q=0.0", None),
            ("gzip; q=0.5", Some(Coding::Gzip)),
            ("identity", None),
            ("", None),
        ] {
            assert_eq!(Coding::accepted(accept), expected, "{accept:?}");
        }
    }

    #[test]
    fn both_codings_give_the_bytes_back() {
        let bytes = br#"{"Results":[]}"#.repeat(500);
        let gzip = Coding::Gzip.compress(&bytes).expect("in memory");
        let mut back = Vec::new();
        flate2::read::GzDecoder::new(&gzip[..]).read_to_end(&mut back).expect("gzip");
        assert_eq!(back, bytes);
        let zstd = Coding::Zstd.compress(&bytes).expect("in memory");
        assert_eq!(zstd::stream::decode_all(&zstd[..]).expect("zstd"), bytes);
        assert!(gzip.len() < bytes.len() / 10 && zstd.len() < bytes.len() / 10);
    }

    /// Gives one piece, then nothing for a while.
    struct Halting(Vec<Option<&'static [u8]>>);

    impl Stream for Halting {
        type Item = io::Result<Bytes>;

        fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
            if self.0.is_empty() {
                return Poll::Ready(None);
            }
            match self.0.remove(0) {
                Some(piece) => Poll::Ready(Some(Ok(Bytes::from_static(piece)))),
                None => {
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
            }
        }
    }

    #[test]
    fn a_stream_that_halts_is_flushed() {
        let source = Halting(vec![Some(b"first"), None, None, Some(b" second"), None, None]);
        let mut stream = CompressedStream::new(Coding::Gzip, source).expect("an encoder");
        let mut context = Context::from_waker(std::task::Waker::noop());
        let (mut compressed, mut seen) = (Vec::new(), Vec::new());
        loop {
            match Pin::new(&mut stream).poll_next(&mut context) {
                Poll::Ready(Some(piece)) => compressed.extend_from_slice(&piece.expect("in memory")),
                Poll::Ready(None) => break,
                Poll::Pending => {
                    let mut decoder = flate2::read::GzDecoder::new(&compressed[..]);
                    let mut text = vec![0; 100];
                    let size = decoder.read(&mut text).expect("what was flushed can be read");
                    seen.push(String::from_utf8_lossy(&text[..size]).into_owned());
                }
            }
        }
        assert!(seen.contains(&"first".to_owned()) && seen.contains(&"first second".to_owned()), "{seen:?}");
    }
}
