//! Input that may be compressed: which way is told by its first bytes, never by its name.
//!
//! Decompression is a stream, so that an input that expands without end costs no memory; two bounds stop it from costing time and disk.

use std::io::{self, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use crate::error::{Error, Result};

const GZIP: [u8; 2] = [0x1F, 0x8B];
const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// Bytes read from the input at a time.
const READ_SIZE: usize = 128 << 10;

/// An input may expand this far whatever its ratio.
const RATIO_FREE: u64 = 64 << 20;

/// How an input is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// One gzip member, or several.
    Gzip,
    /// One Zstandard frame, or several.
    Zstd,
}

impl Compression {
    /// The compression of what begins with these bytes; four are enough.
    #[must_use]
    pub fn of(first: &[u8]) -> Compression {
        if first.starts_with(&GZIP) {
            Compression::Gzip
        } else if first.starts_with(&ZSTD) {
            Compression::Zstd
        } else {
            Compression::None
        }
    }
}

/// How far an input may expand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expansion {
    /// Bytes it may become in all.
    pub size_max: u64,
    /// How many times its own size it may become, once it has become more than 64 MiB.
    pub ratio_max: u64,
}

impl Default for Expansion {
    /// Any size, five hundred times its own: real documents stay below a hundred.
    fn default() -> Expansion {
        Expansion { size_max: u64::MAX, ratio_max: 500 }
    }
}

/// Bytes of input read so far, as stored; what a progress bar shows.
#[derive(Clone, Debug, Default)]
pub struct ReadCount(Arc<AtomicU64>);

impl ReadCount {
    /// The bytes read so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

struct Counted<R> {
    input: R,
    count: ReadCount,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.count.0.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// The content of an input, decompressed as its first bytes say.
///
/// # Errors
///
/// [`Error::Io`] when the first bytes cannot be read. Reading returns `InvalidData` when the input is damaged or expands beyond its bounds, `UnexpectedEof`
/// when it ends too early.
pub fn decompressed(
    input: impl Read + Send + 'static,
    expansion: Expansion,
    count: &ReadCount,
) -> Result<Box<dyn Read + Send>> {
    decompressed_until(input, expansion, count, LastFrame::Ended)
}

/// What is expected of the last Zstandard frame of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastFrame {
    /// It ends.
    Ended,
    /// It may be left open: official servers write dumps so. Whether a dump is whole is told by its JSON.
    MayBeOpen,
}

/// As [`decompressed`], with a word on the end.
pub(crate) fn decompressed_until(
    input: impl Read + Send + 'static,
    expansion: Expansion,
    count: &ReadCount,
    last_frame: LastFrame,
) -> Result<Box<dyn Read + Send>> {
    let mut input = Counted { input, count: count.clone() };
    let mut first = Vec::with_capacity(ZSTD.len());
    // A pipe may bring them one by one.
    input
        .by_ref()
        .take(ZSTD.len() as u64)
        .read_to_end(&mut first)
        .map_err(Error::io("the input cannot be read"))?;
    let compression = Compression::of(&first);
    let input = BufReader::with_capacity(READ_SIZE, Cursor::new(first).chain(input));
    let decoder: Box<dyn Read + Send> = match compression {
        Compression::None => return Ok(Box::new(input)),
        Compression::Gzip => Box::new(MultiGzDecoder::new(input)),
        Compression::Zstd => Box::new(
            zstd::stream::read::Decoder::with_buffer(input)
                .map_err(Error::io("zstd cannot be decompressed"))?,
        ),
    };
    let may_end_early = compression == Compression::Zstd && last_frame == LastFrame::MayBeOpen;
    Ok(Box::new(Bounded { input: decoder, expansion, count: count.clone(), size: 0, may_end_early }))
}

struct Bounded {
    input: Box<dyn Read + Send>,
    expansion: Expansion,
    count: ReadCount,
    size: u64,
    may_end_early: bool,
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match self.input.read(buffer) {
            Err(error) if self.may_end_early && error.kind() == io::ErrorKind::UnexpectedEof => 0,
            outcome => outcome?,
        };
        self.size += read as u64;
        let Expansion { size_max, ratio_max } = self.expansion;
        if self.size > size_max {
            return Err(refused(format!("the input expands to more than {size_max} bytes")));
        }
        if self.size > RATIO_FREE && self.size / ratio_max > self.count.bytes() {
            return Err(refused(format!("the input expands to more than {ratio_max} times its size")));
        }
        Ok(read)
    }
}

fn refused(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn read(input: Vec<u8>, expansion: Expansion) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        decompressed(Cursor::new(input), expansion, &ReadCount::default()).unwrap().read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn what_it_is_is_told_by_its_first_bytes() {
        let text = b"{\"Name\":1}\n".repeat(1000);
        let twice = [text.clone(), text.clone()].concat();
        assert_eq!(read(text.clone(), Expansion::default()).unwrap(), text);
        assert_eq!(read(gzip(&text), Expansion::default()).unwrap(), text);
        assert_eq!(read([gzip(&text), gzip(&text)].concat(), Expansion::default()).unwrap(), twice);
        let zstd = zstd::encode_all(&text[..], 1).unwrap();
        assert_eq!(read(zstd.clone(), Expansion::default()).unwrap(), text);
        assert_eq!(read([zstd.clone(), zstd].concat(), Expansion::default()).unwrap(), twice);
        for short in [&b""[..], b"1", b"\x1F", b"[1]"] {
            assert_eq!(read(short.to_vec(), Expansion::default()).unwrap(), short);
        }
    }

    #[test]
    fn damage_and_early_ends_are_errors() {
        let text: Vec<u8> = (0..100_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for whole in [gzip(&text), zstd::encode_all(&text[..], 1).unwrap()] {
            for size in [4, 5, 20, whole.len() / 2, whole.len() - 1] {
                assert!(read(whole[..size].to_vec(), Expansion::default()).is_err(), "{size}");
            }
            let mut damaged = whole.clone();
            let middle = whole.len() / 2;
            damaged[middle..middle + 40].fill(0xFF);
            // Stored blocks are found out by their checksum; zstd frames of this encoder have none.
            if let Ok(found) = read(damaged, Expansion::default()) {
                assert_ne!(found, text);
            }
        }
    }

    #[test]
    fn the_last_frame_of_a_dump_may_be_left_open() {
        let text = b"{\"Docs\":[]}".repeat(1000);
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        encoder.write_all(&text).unwrap();
        encoder.flush().unwrap();
        let open = encoder.get_ref().clone();
        assert!(read(open.clone(), Expansion::default()).is_err());
        let count = ReadCount::default();
        let mut out = Vec::new();
        decompressed_until(Cursor::new(open), Expansion::default(), &count, LastFrame::MayBeOpen)
            .unwrap()
            .read_to_end(&mut out)
            .unwrap();
        assert_eq!(out, text);
    }

    #[test]
    fn bombs_are_refused() {
        let bomb = zstd::encode_all(&vec![b' '; 100 << 20][..], 1).unwrap();
        let error = read(bomb, Expansion::default()).unwrap_err();
        assert!(error.to_string().contains("500 times"), "{error}");
        let bomb = gzip(&vec![b' '; 8 << 20]);
        let expansion = Expansion { size_max: 1 << 20, ..Expansion::default() };
        let error = read(bomb, expansion).unwrap_err();
        assert!(error.to_string().contains("1048576 bytes"), "{error}");
    }
}
