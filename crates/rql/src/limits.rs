//! How large and how deep a query may be.

/// Levels of nesting that no limit may exceed: the stack that parsing and printing need grows with it, and stays below a mebibyte.
pub const DEPTH_MAX: u32 = 250;

/// Bytes of query text that no limit may exceed: spans are 32 bits wide.
pub const TEXT_SIZE_MAX: usize = 1 << 30;

/// Bounds that parsing holds to. What exceeds one is refused with an error that names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of query text. Never more than [`TEXT_SIZE_MAX`].
    pub text_size_max: usize,
    /// Levels of nested parentheses, calls and negations. Never more than [`DEPTH_MAX`].
    pub depth_max: u32,
}

impl Default for Limits {
    /// 16 MiB of text, since lists of literals can be long, and 128 levels.
    fn default() -> Limits {
        Limits { text_size_max: 16 << 20, depth_max: 128 }
    }
}
