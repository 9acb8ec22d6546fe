//! One journal record: one committed transaction.
//!
//! ```text
//!  0       8         16            24              32            40     48      56            64        72     80
//!  ┌───────┬─────────┬─────────────┬───────────────┬─────────────┬──────┬───────┬─────────────┬─────────┬──────┬──────┐
//!  │ magic │ journal │ transaction │ previous hash │ stored size │ size │ flags │ environment │ durable │ hash │ body …
//!  └───────┴─────────┴─────────────┴───────────────┴─────────────┴──────┴───────┴─────────────┴─────────┴──────┴──────┘
//! ```
//! | offset | size | name | meaning |
//! |---|---|---|---|
//! | 0 | 8 | magic | [`MAGIC`] |
//! | 8 | 8 | journal | number of the journal file: a recycled file's old records are not taken for new ones |
//! | 16 | 8 | transaction | its id, one more than the record before |
//! | 24 | 8 | previous hash | the `hash` of the record before: the chain |
//! | 32 | 8 | stored size | bytes of the body as stored |
//! | 40 | 8 | size | bytes of the body uncompressed |
//! | 48 | 4 | flags | bit 0: the body is an LZ4 block |
//! | 56 | 8 | environment | the environment's identity |
//! | 64 | 8 | durable | the newest transaction known durable when this record was made: where an older one is unreadable, this tells loss from a torn write |
//! | 72 | 8 | hash | xxh3-64 of bytes 0..72 and the stored body |
//! | 80 | … | body | entries (see `changes`), then zeros up to a multiple of 4096 |

use xxhash_rust::xxh3::Xxh3;

use super::aligned::AlignedBuffer;
use crate::format::{TransactionId, read_u32, read_u64};

/// Starts every record.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"JDWRECD1");
/// Bytes before the body.
pub(crate) const HEADER_SIZE: usize = 80;
/// The largest body of a record, in bytes; a transaction that changes more is refused.
pub(crate) const BODY_SIZE_MAX: u64 = 4 << 30;

const JOURNAL_AT: usize = 8;
const TRANSACTION_AT: usize = JOURNAL_AT + 8;
const PREVIOUS_AT: usize = TRANSACTION_AT + 8;
const STORED_SIZE_AT: usize = PREVIOUS_AT + 8;
const SIZE_AT: usize = STORED_SIZE_AT + 8;
const FLAGS_AT: usize = SIZE_AT + 8;
const ENVIRONMENT_AT: usize = FLAGS_AT + 8;
const DURABLE_AT: usize = ENVIRONMENT_AT + 8;
const HASH_AT: usize = DURABLE_AT + 8;

const COMPRESSED: u32 = 1;

/// A record's header, read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub(crate) journal: u64,
    pub(crate) transaction: TransactionId,
    pub(crate) previous_hash: u64,
    pub(crate) stored_size: u64,
    pub(crate) size: u64,
    pub(crate) compressed: bool,
    pub(crate) environment: u64,
    pub(crate) durable: TransactionId,
    pub(crate) hash: u64,
}

impl RecordHeader {
    /// Reads a header; `None` when the bytes do not start one. Sizes are within limits, nothing else is checked.
    pub(crate) fn read(bytes: &[u8]) -> Option<RecordHeader> {
        if bytes.len() < HEADER_SIZE || read_u64(bytes, 0) != MAGIC {
            return None;
        }
        let header = RecordHeader {
            journal: read_u64(bytes, JOURNAL_AT),
            transaction: TransactionId(read_u64(bytes, TRANSACTION_AT)),
            previous_hash: read_u64(bytes, PREVIOUS_AT),
            stored_size: read_u64(bytes, STORED_SIZE_AT),
            size: read_u64(bytes, SIZE_AT),
            compressed: read_u32(bytes, FLAGS_AT) & COMPRESSED != 0,
            environment: read_u64(bytes, ENVIRONMENT_AT),
            durable: TransactionId(read_u64(bytes, DURABLE_AT)),
            hash: read_u64(bytes, HASH_AT),
        };
        let sound = header.size <= BODY_SIZE_MAX
            && header.stored_size <= header.size
            && (header.compressed || header.stored_size == header.size);
        sound.then_some(header)
    }

    /// Bytes of the record in the file, padding included.
    pub(crate) fn record_size(&self) -> u64 {
        (HEADER_SIZE as u64 + self.stored_size).next_multiple_of(super::aligned::ALIGNMENT as u64)
    }

    /// Whether the hash fits header and body; `record` holds at least the stored size behind the header.
    pub(crate) fn verify(&self, record: &[u8]) -> bool {
        record_hash(&record[..HEADER_SIZE + self.stored_size as usize]) == self.hash
    }

    /// The body, decompressed into `buffer` when it needs to be. An error says why it cannot be.
    pub(crate) fn body<'a>(&self, record: &'a [u8], buffer: &'a mut Vec<u8>) -> Result<&'a [u8], String> {
        let stored = &record[HEADER_SIZE..HEADER_SIZE + self.stored_size as usize];
        if !self.compressed {
            return Ok(stored);
        }
        // LZ4 cannot expand more than 255-fold: a header that says otherwise must not make us allocate.
        if self.size > self.stored_size.saturating_mul(256) {
            return Err(format!("{} bytes cannot decompress to {}", self.stored_size, self.size));
        }
        buffer.resize(self.size as usize, 0);
        let got = lz4_flex::block::decompress_into(stored, buffer).map_err(|e| e.to_string())?;
        if got as u64 != self.size {
            return Err(format!("its body decompresses to {got} bytes, not {}", self.size));
        }
        Ok(buffer)
    }
}

fn record_hash(record: &[u8]) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(&record[..HASH_AT]);
    hash.update(&record[HEADER_SIZE..]);
    hash.digest()
}

/// Room for the header; entries follow.
pub(crate) fn begin(out: &mut AlignedBuffer) {
    out.set_len(0);
    out.extend(&[0; HEADER_SIZE]);
}

/// Decides whether trying to compress is worth its time: where bodies did not shrink lately, it is tried ever more rarely.
#[derive(Debug, Default)]
pub(crate) struct Compression {
    skip: u32,
    failures: u32,
}

impl Compression {
    /// Bodies up to this many bytes take two blocks in the file: writing one less saves less time than compressing takes.
    const SIZE_MIN: usize = 2 * super::aligned::ALIGNMENT - HEADER_SIZE;
    /// After this many failures in a row (powers of two of records) the attempts are no longer spaced further.
    const FAILURES_MAX: u32 = 7;

    /// Compresses the record's body into `spare` and swaps the buffers when that saves an eighth or more. Returns the body's
    /// uncompressed size when it did.
    pub(crate) fn compress(&mut self, record: &mut AlignedBuffer, spare: &mut AlignedBuffer) -> Option<u64> {
        let size = record.len() - HEADER_SIZE;
        if size <= Self::SIZE_MIN {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        spare.set_len(HEADER_SIZE + lz4_flex::block::get_maximum_output_size(size));
        let stored = lz4_flex::block::compress_into(
            &record.bytes()[HEADER_SIZE..],
            &mut spare.bytes_mut()[HEADER_SIZE..],
        );
        match stored {
            Ok(stored) if stored <= size - size / 8 => {
                self.failures = 0;
                spare.set_len(HEADER_SIZE + stored);
                std::mem::swap(record, spare);
                Some(size as u64)
            }
            _ => {
                self.failures = (self.failures + 1).min(Self::FAILURES_MAX);
                self.skip = (1 << self.failures) - 1;
                None
            }
        }
    }
}

/// What [`seal`] puts into the header beside the sizes.
pub(crate) struct Identity {
    pub(crate) journal: u64,
    pub(crate) transaction: TransactionId,
    pub(crate) previous_hash: u64,
    pub(crate) environment: u64,
    pub(crate) durable: TransactionId,
}

/// Writes the header of the finished record and pads it. `uncompressed` is the body's size before compression, if any.
/// Returns the record's hash.
pub(crate) fn seal(out: &mut AlignedBuffer, identity: &Identity, uncompressed: Option<u64>) -> u64 {
    let stored = (out.len() - HEADER_SIZE) as u64;
    let header = &mut out.bytes_mut()[..HEADER_SIZE];
    let mut put = |at: usize, value: u64| header[at..at + 8].copy_from_slice(&value.to_le_bytes());
    put(0, MAGIC);
    put(JOURNAL_AT, identity.journal);
    put(TRANSACTION_AT, identity.transaction.0);
    put(PREVIOUS_AT, identity.previous_hash);
    put(STORED_SIZE_AT, stored);
    put(SIZE_AT, uncompressed.unwrap_or(stored));
    put(FLAGS_AT, if uncompressed.is_some() { u64::from(COMPRESSED) } else { 0 });
    put(ENVIRONMENT_AT, identity.environment);
    put(DURABLE_AT, identity.durable.0);
    let hash = record_hash(out.bytes());
    out.bytes_mut()[HASH_AT..HASH_AT + 8].copy_from_slice(&hash.to_le_bytes());
    out.pad();
    hash
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    /// Bytes that no compressor makes shorter.
    fn noise(size: u64) -> Vec<u8> {
        (0..size).map(|i| xxhash_rust::xxh3::xxh3_64(&i.to_le_bytes()) as u8).collect()
    }

    fn record(body: &[u8], compression: &mut Compression) -> AlignedBuffer {
        let (mut out, mut spare) = (AlignedBuffer::default(), AlignedBuffer::default());
        begin(&mut out);
        out.extend(body);
        let uncompressed = compression.compress(&mut out, &mut spare);
        let identity = Identity {
            journal: 3,
            transaction: TransactionId(9),
            previous_hash: 77,
            environment: 5,
            durable: TransactionId(8),
        };
        seal(&mut out, &identity, uncompressed);
        out
    }

    #[test]
    fn compressible_and_incompressible_bodies_come_back() {
        let plain = noise(20_000);
        for (body, compressed) in
            [(vec![1; 20_000], true), (plain, false), (vec![2; 10], false), (vec![], false)]
        {
            let out = record(&body, &mut Compression::default());
            let header = RecordHeader::read(out.bytes()).unwrap();
            assert_eq!((header.compressed, header.record_size()), (compressed, out.len() as u64));
            assert_eq!((header.journal, header.transaction, header.previous_hash), (3, TransactionId(9), 77));
            assert!(header.verify(out.bytes()));
            assert_eq!(header.body(out.bytes(), &mut Vec::new()).unwrap(), &body[..]);
            for at in
                [9, 30, HEADER_SIZE - 9, HEADER_SIZE].into_iter().filter(|&at| at < HEADER_SIZE + body.len())
            {
                let mut bad = out.bytes().to_vec();
                bad[at] ^= 1;
                assert!(RecordHeader::read(&bad).is_none_or(|h| !h.verify(&bad)), "a flipped bit at {at}");
            }
        }
    }

    #[test]
    fn attempts_at_the_incompressible_become_rare() {
        let body = noise(10_000);
        let mut compression = Compression::default();
        let mut attempts = 0;
        for _ in 0..1000 {
            attempts += u32::from(compression.skip == 0);
            record(&body, &mut compression);
        }
        assert!(attempts < 20, "{attempts}");
        compression.skip = 0;
        assert!(RecordHeader::read(record(&[0; 10_000], &mut compression).bytes()).unwrap().compressed);
        assert_eq!(compression.skip, 0);
    }
}
