//! What a document may be at most, as chosen by whoever reads it.

use crate::format;

/// Bounds that parsing, building and validating hold to. What exceeds one is refused with an error that names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of JSON text in one document.
    pub text_size_max: usize,
    /// Bytes of a binary document.
    pub document_size_max: usize,
    /// Levels of nesting; the root is level 1. Never more than [`format::DEPTH_MAX`].
    pub depth_max: u32,
    /// Bytes of a property name.
    pub name_size_max: usize,
    /// Distinct property names in a document.
    pub name_count_max: usize,
}

impl Limits {
    /// The widest limits the format allows.
    pub const WIDEST: Limits = Limits {
        text_size_max: format::SIZE_MAX,
        document_size_max: format::SIZE_MAX,
        depth_max: format::DEPTH_MAX,
        name_size_max: format::NAME_SIZE_MAX,
        name_count_max: format::NAME_COUNT_MAX,
    };

    /// These limits, none wider than the format allows.
    #[must_use]
    pub fn within_format(self) -> Limits {
        let widest = Limits::WIDEST;
        Limits {
            text_size_max: self.text_size_max.min(widest.text_size_max),
            document_size_max: self.document_size_max.min(widest.document_size_max),
            depth_max: self.depth_max.min(widest.depth_max),
            name_size_max: self.name_size_max.min(widest.name_size_max),
            name_count_max: self.name_count_max.min(widest.name_count_max),
        }
    }
}

impl Default for Limits {
    /// 512 MiB of text and as much of document, 512 levels, names of 64 KiB, a million names.
    fn default() -> Limits {
        Limits {
            text_size_max: 512 << 20,
            document_size_max: 512 << 20,
            depth_max: 512,
            name_size_max: 64 << 10,
            name_count_max: 1 << 20,
        }
    }
}
