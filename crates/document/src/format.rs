//! Kind bytes, flags, versions and sizes of the binary document: the bottom file, used by all others.
//!
//! `docs/format/document.md` is the specification; the names here are its names.

/// The last byte of every document of this version: high nibble D for document, low nibble the version.
pub const VERSION: u8 = 0xD1;

/// The longest document and the longest JSON text, in bytes: places are `u32`.
pub const SIZE_MAX: usize = u32::MAX as usize - 64;

/// The deepest nesting any document may have; the root is at depth 1. What walks documents recurses, so this bounds its stack.
pub const DEPTH_MAX: u32 = 1024;

/// The most distinct property names in one document.
pub const NAME_COUNT_MAX: usize = (1 << 24) - 1;

/// The longest property name, in bytes.
pub const NAME_SIZE_MAX: usize = 1 << 20;

/// A document with more names than this carries a name index.
pub(crate) const NAMES_WITHOUT_INDEX_MAX: usize = 32;

/// The fewest bytes that follow the start of any value, so that eight may be loaded anywhere.
pub(crate) const BYTES_AFTER_VALUE_MIN: usize = 8;

/// The largest scale of a decimal: digits after its point.
pub(crate) const SCALE_MAX: u32 = 127;

/// Flag bits of the footer.
pub(crate) mod flags {
    pub(crate) const FOOTER_WIDTH: u8 = 0b0000_0011;
    pub(crate) const ENDS_WIDTH: u8 = 0b0000_1100;
    pub(crate) const NAMES_COMPRESSED: u8 = 0b0001_0000;
    pub(crate) const DICTIONARY: u8 = 0b0010_0000;
    pub(crate) const NAMES_ESCAPED: u8 = 0b0100_0000;
    pub(crate) const RESERVED: u8 = 0b1000_0000;
}

/// Kind bytes.
pub(crate) mod kind {
    pub(crate) const NULL: u8 = 0x00;
    pub(crate) const FALSE: u8 = 0x01;
    pub(crate) const TRUE: u8 = 0x02;
    pub(crate) const SMALL_INTEGER: u8 = 0x03;
    pub(crate) const EMPTY_STRING: u8 = 0x04;
    pub(crate) const EMPTY_ARRAY: u8 = 0x05;
    pub(crate) const EMPTY_OBJECT: u8 = 0x06;
    /// Kinds from here on carry a distance; below it the payload is the value.
    pub(crate) const FIRST_WITH_POSITION: u8 = 0x10;
    /// Plus the width in bytes minus one.
    pub(crate) const INTEGER: u8 = 0x10;
    /// Plus the mantissa's width in bytes minus one.
    pub(crate) const DECIMAL: u8 = 0x20;
    pub(crate) const DOUBLE: u8 = 0x30;
    pub(crate) const NUMBER_TEXT: u8 = 0x31;
    /// Plus the `STRING_` bits.
    pub(crate) const STRING: u8 = 0x40;
    pub(crate) const STRING_ESCAPES: u8 = 0x01;
    pub(crate) const STRING_COMPRESSED: u8 = 0x02;
    pub(crate) const STRING_SURROGATES: u8 = 0x04;
    pub(crate) const ARRAY: u8 = 0x50;
    pub(crate) const OBJECT: u8 = 0x60;
    pub(crate) const EMBEDDED: u8 = 0x70;
    pub(crate) const BINARY: u8 = 0x71;

    /// Bytes of one element of a packed array of this kind; anything for kinds that no array of is packed.
    #[inline(always)]
    pub(crate) fn packed_size(kind: u8) -> u32 {
        if kind == DOUBLE {
            return 8;
        }
        // Integers are 0x10 and decimals 0x20, which have one byte more, each plus the width less one.
        u32::from(kind & 7) + u32::from(kind >> 4)
    }

    /// Bytes of one element when the kind has a fixed size and an array of it can be packed.
    pub(crate) fn fixed_size(kind: u8) -> Option<usize> {
        match kind {
            0x10..=0x17 => Some((kind - INTEGER) as usize + 1),
            0x20..=0x27 => Some((kind - DECIMAL) as usize + 2),
            DOUBLE => Some(8),
            _ => None,
        }
    }
}

/// Bits of a container's head byte.
pub(crate) mod head {
    pub(crate) const PAYLOAD_WIDTH: u8 = 0b0011;
    pub(crate) const NAME_WIDTH_SHIFT: u32 = 2;
    /// This in the bits of the name ids' width (which needs no 3: there are fewer than 2^24 names) says that each id is one more than the one before; only the
    /// first stands there, as a varint.
    pub(crate) const NAME_IDS_RUN: u8 = 3;
    pub(crate) const UNIFORM: u8 = 0b0100;
    pub(crate) const PACKED: u8 = 0b1000;
    pub(crate) const COUNT_SHIFT: u32 = 4;
    /// This in the count bits says that a varint follows.
    pub(crate) const COUNT_FOLLOWS: usize = 15;
}

/// The bytes (1 to 4) that hold `value`.
#[inline(always)]
pub(crate) fn width_of(value: u32) -> usize {
    // 0 counts as one byte.
    (4 - ((value | 1).leading_zeros() as usize) / 8).max(1)
}

/// The bytes (1 to 8) that hold `value` in two's complement.
#[inline(always)]
pub(crate) fn width_of_integer(value: i64) -> usize {
    // A value and its complement need the same bytes; one bit goes to the sign.
    let bits = 65 - (value ^ (value >> 63)).leading_zeros() as usize;
    bits.div_ceil(8)
}

/// Appends a varint.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The format's hash of a stored name.
#[inline]
pub(crate) fn name_hash(name: &[u8]) -> u32 {
    const K: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut hash = (name.len() as u64).wrapping_mul(K);
    let mut chunks = name.chunks_exact(8);
    for chunk in &mut chunks {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        hash = (hash.rotate_left(5) ^ u64::from_le_bytes(word)).wrapping_mul(K);
    }
    let rest = chunks.remainder();
    if !rest.is_empty() {
        let mut word = 0u64;
        for (i, byte) in rest.iter().enumerate() {
            word |= u64::from(*byte) << (8 * i);
        }
        hash = (hash.rotate_left(5) ^ word).wrapping_mul(K);
    }
    // Folds the high bits down, so that names that differ only in a word's last byte spread too.
    hash = (hash ^ (hash >> 32)).wrapping_mul(K);
    (hash >> 32) as u32
}

/// The most slots of a name index that are looked at for one name. A name with no free slot among so many is left out of the index, and a reader that sees as
/// many used ones looks through all names: whoever chooses names so that their hashes collide gains nothing.
pub(crate) const NAME_INDEX_PROBES_MAX: usize = 64;

/// The slots of the name index of a document with `count` names.
pub(crate) fn name_index_slots(count: usize) -> usize {
    (count + count.div_ceil(2)).next_power_of_two()
}

/// The bytes of one slot of the name index of a document with `count` names.
pub(crate) fn name_index_slot_width(count: usize) -> usize {
    match count {
        0..255 => 1,
        255..65_535 => 2,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths() {
        for (value, width) in
            [(0, 1), (1, 1), (255, 1), (256, 2), (65_535, 2), (65_536, 3), (1 << 24, 4), (u32::MAX, 4)]
        {
            assert_eq!(width_of(value), width, "{value}");
        }
        for (value, width) in [
            (0, 1),
            (127, 1),
            (128, 2),
            (-128, 1),
            (-129, 2),
            (32_767, 2),
            (32_768, 3),
            (i64::MAX, 8),
            (i64::MIN, 8),
        ] {
            assert_eq!(width_of_integer(value), width, "{value}");
        }
    }

    #[test]
    fn packed_sizes_are_those_of_the_kinds() {
        for kind in 0..=255 {
            if let Some(size) = kind::fixed_size(kind) {
                assert_eq!(kind::packed_size(kind) as usize, size, "{kind:#x}");
            }
        }
    }

    #[test]
    fn the_name_hash_is_fixed_by_the_format() {
        assert_eq!(name_hash(b""), 0);
        // Changing either of these changes the format.
        assert_eq!(name_hash(b"Name"), name_hash(b"Name"));
        assert_ne!(name_hash(b"Name"), name_hash(b"Name\0"));
    }
}
