//! Heads: how slotted pages find a key without touching the key.
//!
//! A page of keys keeps their common prefix once. Of what remains of a key behind that prefix, the first four bytes lie in
//! the slot, as a number: its *head*. Heads order as the bytes do (big-endian, a short key padded with zeros), so a
//! search compares numbers that lie side by side and looks into a cell only where heads are equal. What follows the head is
//! the *rest*; two keys with equal heads order by their rests, then by length (`"a"` and `"a\0"` have the same head and no
//! rest).

use std::cmp::Ordering;

/// Bytes of a key that lie in its slot.
pub(crate) const HEAD_SIZE: usize = 4;

/// The head of what remains of a key behind its page's prefix.
#[inline(always)]
pub(crate) fn head(key: &[u8]) -> u32 {
    match key.first_chunk::<HEAD_SIZE>() {
        Some(bytes) => u32::from_be_bytes(*bytes),
        None => {
            let mut head = 0;
            for (i, &byte) in key.iter().enumerate() {
                head |= u32::from(byte) << (24 - 8 * i);
            }
            head
        }
    }
}

/// What follows the head.
#[inline(always)]
pub(crate) fn rest(key: &[u8]) -> &[u8] {
    key.get(HEAD_SIZE..).unwrap_or(&[])
}

/// Bytes of the rest of a key that has `size` bytes behind the prefix.
#[inline(always)]
pub(crate) fn rest_size(size: usize) -> usize {
    size.saturating_sub(HEAD_SIZE)
}

/// Orders two keys whose heads are equal, by rest and by size behind the prefix.
#[inline(always)]
pub(crate) fn compare_behind_head(
    rest: &[u8],
    size: usize,
    other_rest: &[u8],
    other_size: usize,
) -> Ordering {
    rest.cmp(other_rest).then(size.cmp(&other_size))
}

/// Appends what remains of a key behind the prefix to `key`.
#[inline(always)]
pub(crate) fn extend_key(key: &mut Vec<u8>, head: u32, size: usize, rest: &[u8]) {
    key.extend_from_slice(&head.to_be_bytes()[..size.min(HEAD_SIZE)]);
    key.extend_from_slice(rest);
}

/// The head in a slot: its first four bytes.
#[inline(always)]
pub(crate) fn of_slot<const N: usize>(slot: &[u8; N]) -> u32 {
    u32::from_le_bytes([slot[0], slot[1], slot[2], slot[3]])
}

/// The first of the slots, which are in order, whose head is not less than `head`. Three slots are looked at in each step,
/// which do not wait for each other when they are not in the cache, and no branch can be mispredicted but the last.
#[inline(always)]
pub(crate) fn first_not_less<const N: usize>(slots: &[[u8; N]], head: u32) -> usize {
    let less = |i: usize| usize::from(of_slot(&slots[i]) < head);
    // What is looked for is in `base..=base + size`.
    let (mut base, mut size) = (0, slots.len());
    while size >= 4 {
        let quarter = size / 4;
        let before = less(base + quarter - 1) + less(base + 2 * quarter - 1) + less(base + 3 * quarter - 1);
        base += before * quarter;
        size -= 3 * quarter;
    }
    base + (base..base + size).map(less).sum::<usize>()
}

/// How many bytes two keys have in common at the front.
#[inline]
pub(crate) fn common_prefix_size(a: &[u8], b: &[u8]) -> usize {
    let (a_chunks, b_chunks) = (a.as_chunks::<8>().0, b.as_chunks::<8>().0);
    let mut size = 0;
    for (x, y) in a_chunks.iter().zip(b_chunks) {
        let differ = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if differ != 0 {
            return size + (differ.trailing_zeros() / 8) as usize;
        }
        size += 8;
    }
    size + a[size..].iter().zip(&b[size..]).take_while(|(x, y)| x == y).count()
}

/// The largest number that [`write_number`] can write.
pub(crate) const NUMBER_MAX: usize = (1 << 14) - 1;

/// Bytes that a number takes in a cell: one below 128, else two.
#[inline(always)]
pub(crate) fn number_size(number: usize) -> usize {
    1 + usize::from(number >= 0x80)
}

/// Writes a number at the front of `cell` and returns its size: seven bits, low ones first; the top bit says that
/// another byte follows.
#[inline(always)]
pub(crate) fn write_number(cell: &mut [u8], number: usize) -> usize {
    debug_assert!(number <= NUMBER_MAX);
    if number < 0x80 {
        cell[0] = number as u8;
        1
    } else {
        cell[0] = number as u8 | 0x80;
        cell[1] = (number >> 7) as u8;
        2
    }
}

/// Reads the number at `at`; returns it and where it ends. Panics behind the page's end: for cells already validated.
#[inline(always)]
pub(crate) fn read_number(page: &[u8], at: usize) -> (usize, usize) {
    let low = page[at] as usize;
    if low < 0x80 { (low, at + 1) } else { (low & 0x7f | (page[at + 1] as usize) << 7, at + 2) }
}

/// As [`read_number`], for bytes that nobody has validated: `None` behind the end, or for a number in a longer form than
/// it needs.
pub(crate) fn read_number_checked(page: &[u8], at: usize) -> Option<(usize, usize)> {
    let low = *page.get(at)? as usize;
    if low < 0x80 {
        return Some((low, at + 1));
    }
    let number = low & 0x7f | (*page.get(at + 1)? as usize) << 7;
    (0x80..=NUMBER_MAX).contains(&number).then_some((number, at + 2))
}

/// Which bytes of a page are taken, one bit each: finds cells that overlap.
pub(crate) struct TakenBytes([u64; crate::format::PAGE_SIZE / 64]);

impl TakenBytes {
    /// None are taken.
    pub(crate) fn new() -> TakenBytes {
        TakenBytes([0; crate::format::PAGE_SIZE / 64])
    }

    /// Takes the bytes `from..to` of the page; false when one of them was taken before.
    pub(crate) fn take(&mut self, from: usize, to: usize) -> bool {
        let mut free = true;
        let mut at = from;
        while at < to {
            let bits = (64 - at % 64).min(to - at);
            let mask = (u64::MAX >> (64 - bits)) << (at % 64);
            free &= self.0[at / 64] & mask == 0;
            self.0[at / 64] |= mask;
            at += bits;
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_then_rests_then_sizes_order_as_the_keys_do() {
        let mut keys: Vec<Vec<u8>> = vec![vec![]];
        for size in 1..=6 {
            for bits in 0..1u32 << size {
                keys.push((0..size).map(|i| (bits >> i & 1) as u8).collect());
            }
        }
        for a in &keys {
            for b in &keys {
                let order = head(a)
                    .cmp(&head(b))
                    .then_with(|| compare_behind_head(rest(a), a.len(), rest(b), b.len()));
                assert_eq!(order, a.cmp(b), "{a:?} {b:?}");
                let common = a.iter().zip(b).take_while(|(x, y)| x == y).count();
                assert_eq!(common_prefix_size(a, b), common);
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too slow")]
    fn the_first_slot_not_less_is_found() {
        for count in 0..70u32 {
            let slots: Vec<[u8; 6]> = (0..count)
                .map(|i| {
                    let h = (10 * i + 10).to_le_bytes();
                    [h[0], h[1], h[2], h[3], 0, 0]
                })
                .collect();
            for head in 0..10 * count + 20 {
                let expected = slots.partition_point(|s| of_slot(s) < head);
                assert_eq!(first_not_less(&slots, head), expected);
            }
        }
    }

    #[test]
    fn numbers_go_round_and_long_forms_are_refused() {
        let mut cell = [0; 3];
        for number in 0..=NUMBER_MAX {
            let size = write_number(&mut cell, number);
            assert_eq!(size, number_size(number));
            assert_eq!(read_number(&cell, 0), (number, size));
            assert_eq!(read_number_checked(&cell, 0), Some((number, size)));
        }
        assert_eq!(read_number_checked(&[0x85, 0x00], 0), None, "5 in two bytes");
        assert_eq!(read_number_checked(&[0x80, 0x80], 0), None, "a third byte");
        assert_eq!(read_number_checked(&[0x80], 0), None);
        assert_eq!(read_number_checked(&[], 0), None);
    }

    #[test]
    fn bytes_are_taken_once() {
        let mut taken = TakenBytes::new();
        assert!(taken.take(100, 300));
        assert!(taken.take(300, 364));
        assert!(!taken.take(299, 300));
        assert!(!taken.take(0, 101));
        assert!(taken.take(8128, 8192));
        assert!(!taken.take(8191, 8192));
    }
}
