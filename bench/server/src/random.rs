//! Random numbers, YCSB's key choosers and YCSB's documents: 10 fields of 100 characters, ids in hashed order.

/// xorshift64*: fast, seedable, good enough for choosing keys and filling fields.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(hash(seed) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// FNV-1a of the number's bytes, as YCSB scatters its keys.
pub(crate) fn hash(n: u64) -> u64 {
    n.to_le_bytes()
        .iter()
        .fold(0xCBF2_9CE4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01B3))
}

/// Zipfian ranks 0..n with YCSB's constant 0.99 (Gray et al., "Quickly generating billion-record synthetic databases").
pub(crate) struct Zipf {
    n: f64,
    zeta: f64,
    eta: f64,
}

const THETA: f64 = 0.99;

impl Zipf {
    pub(crate) fn new(n: u64) -> Zipf {
        let zeta: f64 = (1..=n).map(|i| (i as f64).powf(-THETA)).sum();
        let n = n as f64;
        let eta = (1.0 - (2.0 / n).powf(1.0 - THETA)) / (1.0 - (1.0 + 0.5f64.powf(THETA)) / zeta);
        Zipf { n, zeta, eta }
    }

    pub(crate) fn rank(&self, random: &mut Random) -> u64 {
        let u = random.unit();
        let uz = u * self.zeta;
        if uz < 1.0 {
            return 0;
        }
        if uz < 1.0 + 0.5f64.powf(THETA) {
            return 1;
        }
        let rank = self.n * (self.eta * u - self.eta + 1.0).powf(1.0 / (1.0 - THETA));
        (rank as u64).min(self.n as u64 - 1)
    }
}

/// The id of YCSB record `n`.
pub(crate) fn key(n: u64) -> String {
    format!("user{}", hash(n))
}

/// Appends a YCSB document of about 1.1 KB.
pub(crate) fn document(out: &mut Vec<u8>, random: &mut Random) {
    const CHARACTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 +";
    for field in b'0'..=b'9' {
        out.extend_from_slice(if field == b'0' { b"{\"field" } else { b"\",\"field" });
        out.push(field);
        out.extend_from_slice(b"\":\"");
        for _ in 0..10 {
            let mut bits = random.next();
            for _ in 0..10 {
                out.push(CHARACTERS[(bits & 63) as usize]);
                bits >>= 6;
            }
        }
    }
    out.extend_from_slice(b"\",\"@metadata\":{\"@collection\":\"usertable\"}}");
}
