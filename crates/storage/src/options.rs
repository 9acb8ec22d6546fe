//! How an environment behaves.

use std::time::Duration;

/// Settings of [`crate::Environment::open`]. The defaults suit a server; all sizes are in bytes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Make the environment when the directory holds none (default), instead of [`crate::Error::NotFound`].
    pub create: bool,
    /// Refuse write transactions and write nothing, not even to recover: what the journal holds is applied in memory. The
    /// directory is locked all the same.
    pub read_only: bool,
    /// Flush, sync and prepare journal files on threads of their own (default). Without it the committing thread does
    /// that work when it falls due, and everything happens in an order that a test can repeat.
    pub background: bool,
    /// The most scratch memory that changed pages may take. A flush begins at half of it; writers are slowed from three
    /// quarters on. One transaction cannot change more than this. Default: a sixteenth of the machine's memory, between
    /// 64 MiB and 1 GiB.
    pub scratch_size_max: u64,
    /// Flush when this much was written to the journal since the last flush: bounds the time that recovery takes and the disk
    /// space of the journal. Default 512 MiB.
    pub journal_size_before_flush: u64,
    /// The size of the first journal file; each next one is twice as large. Default 1 MiB.
    pub journal_file_size_min: u64,
    /// The size that journal files grow to. Default 32 MiB. (A larger transaction gets a larger file.)
    pub journal_file_size_max: u64,
    /// New journal files are filled with zeros ahead of use, which makes synchronous writes to them fast, until files of this many
    /// bytes were made; after that they are only allocated. Bounds what a burst of writes into a new environment writes twice.
    /// Default 96 MiB.
    pub journal_zeroed_max: u64,
    /// Flush when nothing was written for this long, so that the next open has nothing to recover and idle environments hold
    /// no memory. Default one second.
    pub flush_after_idle: Duration,
    /// Address space reserved for the data file at first; more is reserved when it grows beyond. Default 64 GiB. Takes no
    /// memory.
    pub map_reserve: u64,
    /// Warn (in the log and in [`crate::Stats`]) about a snapshot that is this many transactions old while it keeps scratch
    /// memory from being flushed. Default 100,000.
    pub reader_lag_warning: u64,
}

impl Default for Options {
    fn default() -> Options {
        let memory = memory_size();
        Options {
            create: true,
            read_only: false,
            background: true,
            scratch_size_max: (memory / 16).clamp(64 << 20, 1 << 30),
            journal_size_before_flush: 512 << 20,
            journal_file_size_min: 1 << 20,
            journal_file_size_max: 32 << 20,
            journal_zeroed_max: 96 << 20,
            flush_after_idle: Duration::from_secs(1),
            map_reserve: 64 << 30,
            reader_lag_warning: 100_000,
        }
    }
}

impl Options {
    /// The defaults; the same as [`Options::default`].
    pub fn new() -> Options {
        Options::default()
    }

    /// Sets [`Options::create`].
    pub fn create(mut self, create: bool) -> Options {
        self.create = create;
        self
    }

    /// Sets [`Options::read_only`].
    pub fn read_only(mut self, read_only: bool) -> Options {
        self.read_only = read_only;
        self
    }

    /// Sets [`Options::background`].
    pub fn background(mut self, background: bool) -> Options {
        self.background = background;
        self
    }

    /// Sets [`Options::scratch_size_max`].
    pub fn scratch_size_max(mut self, bytes: u64) -> Options {
        self.scratch_size_max = bytes;
        self
    }

    /// Sets [`Options::journal_size_before_flush`].
    pub fn journal_size_before_flush(mut self, bytes: u64) -> Options {
        self.journal_size_before_flush = bytes;
        self
    }

    /// Sets [`Options::journal_file_size_min`] and [`Options::journal_file_size_max`].
    pub fn journal_file_sizes(mut self, min: u64, max: u64) -> Options {
        self.journal_file_size_min = min;
        self.journal_file_size_max = max;
        self
    }

    /// Sets [`Options::journal_zeroed_max`].
    pub fn journal_zeroed_max(mut self, bytes: u64) -> Options {
        self.journal_zeroed_max = bytes;
        self
    }

    /// Sets [`Options::flush_after_idle`].
    pub fn flush_after_idle(mut self, after: Duration) -> Options {
        self.flush_after_idle = after;
        self
    }

    /// Sets [`Options::map_reserve`].
    pub fn map_reserve(mut self, bytes: u64) -> Options {
        self.map_reserve = bytes;
        self
    }

    /// Sets [`Options::reader_lag_warning`].
    pub fn reader_lag_warning(mut self, transactions: u64) -> Options {
        self.reader_lag_warning = transactions;
        self
    }
}

/// The machine's memory; where the system does not tell, a gigabyte.
fn memory_size() -> u64 {
    let info = rustix::system::sysinfo();
    #[allow(clippy::useless_conversion, reason = "the field has 32 bits on some machines")]
    let units = u64::try_from(info.totalram);
    match units {
        Ok(units) if units > 0 => units.saturating_mul(u64::from(info.mem_unit.max(1))),
        _ => 1 << 30,
    }
}
