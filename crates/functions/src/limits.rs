//! What one run of a function may use.

/// What one run of a function may use. A run that needs more ends with [`RuntimeError::Limit`](crate::RuntimeError::Limit) and leaves nothing behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Steps of work: elements that loops, lambdas and queries go over.
    pub steps_max: u64,
    /// Bytes of values computed in one run.
    pub memory_bytes_max: usize,
    /// Entries that one run may return.
    pub entries_max: usize,
}

impl Default for Limits {
    /// 50 million steps, which take some seconds; 256 MB; a million entries.
    fn default() -> Limits {
        Limits { steps_max: 50_000_000, memory_bytes_max: 256 << 20, entries_max: 1_000_000 }
    }
}
