//! Table states decoded before, for the transactions to come: opening a table that nobody changed since costs a comparison, and one
//! that changed does not decode its schema again.
//!
//! A state is found by the table's name and the bytes that the catalog has for it, so it is never another state than those bytes would
//! decode to, whichever snapshot or write transaction asks.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::table::TableState;

/// At most so many tables; then all are forgotten.
const TABLES_MAX: usize = 1024;

/// See the module's header.
#[derive(Default)]
pub(crate) struct TableCache(RwLock<HashMap<Box<[u8]>, Decoded>>);

struct Decoded {
    bytes: Box<[u8]>,
    state: Arc<TableState>,
}

impl TableCache {
    /// The state of these bytes, decoded by `decode` when nothing here helps; `None` when it returns that.
    pub(crate) fn get(
        &self,
        name: &[u8],
        bytes: &[u8],
        decode: impl FnOnce() -> Option<TableState>,
    ) -> Option<Arc<TableState>> {
        let mut like = None;
        if let Some(known) = self.0.read().get(name) {
            if *known.bytes == *bytes {
                return Some(Arc::clone(&known.state));
            }
            like = known.state.decode_like(&known.bytes, bytes);
        }
        let state = Arc::new(like.or_else(decode)?);
        // Not worth waiting for.
        if let Some(mut tables) = self.0.try_write() {
            if tables.len() >= TABLES_MAX && !tables.contains_key(name) {
                tables.clear();
            }
            tables.insert(name.into(), Decoded { bytes: bytes.into(), state: Arc::clone(&state) });
        }
        Some(state)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::format::PageNumber;
    use crate::table::Schema;

    fn state(schema: Schema, root: u64) -> TableState {
        let mut state = TableState::new("t", schema).unwrap();
        state.set_primary_for_test(PageNumber(root));
        state
    }

    #[test]
    fn a_state_is_the_one_that_its_bytes_decode_to() {
        let cache = TableCache::default();
        let schema = || Schema::new(3, 0..1).etag("e", 1).unique("u", 2..3);
        let other = Schema::new(3, 0..1).etag("f", 1).unique("u", 2..3);
        let [old, new, other] =
            [state(schema(), 5), state(schema(), 6), state(other, 5)].map(|state| state.encode());
        let get = |bytes: &[u8], may_decode: bool| {
            let decode = || {
                assert!(may_decode, "decoded again");
                TableState::decode("t", bytes)
            };
            cache.get(b"t", bytes, decode)
        };
        let first = get(&old, true).unwrap();
        assert!(Arc::ptr_eq(&first, &get(&old, false).unwrap()));
        for bytes in [&new, &old, &new] {
            assert_eq!(get(bytes, false).unwrap().encode(), *bytes); // the schema is known
        }
        for bytes in [&other, &old] {
            assert_eq!(get(bytes, true).unwrap().encode(), *bytes);
        }
        for cut in 0..old.len() {
            assert!(get(&old[..cut], true).is_none(), "{cut}");
        }
        assert!(get(&old, false).is_some(), "damage has taken the place of a good state");
    }

    #[test]
    fn many_tables_do_not_stay() {
        let cache = TableCache::default();
        let bytes = state(Schema::new(1, 0..1), 5).encode();
        for i in 0..3 * TABLES_MAX {
            cache.get(&i.to_le_bytes(), &bytes, || TableState::decode("t", &bytes)).unwrap();
            assert!(cache.0.read().len() <= TABLES_MAX);
        }
    }
}
