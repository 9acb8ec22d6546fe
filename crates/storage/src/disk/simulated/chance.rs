//! The simulated disk's source of chance: SplitMix64 (Steele, Lea and Flood, 2014), the same on every machine for ever, so
//! that a seed names one history.

/// A deterministic sequence of numbers.
#[derive(Clone, Debug)]
pub(super) struct Chance {
    state: u64,
}

impl Chance {
    pub(super) fn new(seed: u64) -> Chance {
        Chance { state: seed }
    }

    pub(super) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not 0. The bias of the remainder is far below what a test could notice.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(super) fn coin(&mut self) -> bool {
        self.next() & 1 == 1
    }

    /// Another sequence that does not depend on how far this one is read.
    pub(super) fn fork(&self, salt: u64) -> Chance {
        Chance::new(Chance::new(self.state ^ salt.wrapping_mul(0xD6E8_FEB8_6659_FD93)).next())
    }
}
