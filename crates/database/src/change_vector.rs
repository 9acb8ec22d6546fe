//! Change vectors: which write of which database a document's present state includes.
//!
//! Text: entries `<tag>:<etag>-<database id>`, joined by `, `. The tag is the node that wrote (`A`), or `RAFT` for writes of cluster-wide
//! transactions, or `TRXN` for the transaction's index, which stands behind its `RAFT` entry with a comma and no blank. One database writing
//! alone has one entry, whose number is the document's etag: such a vector is not stored but made from the etag.

use std::borrow::Cow;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use crate::Etag;

/// The tag of writes by cluster-wide transactions.
pub(crate) const RAFT: &str = "RAFT";
/// The tag of the index of a cluster-wide transaction.
pub(crate) const TRXN: &str = "TRXN";

/// What a database is known by, wherever it is copied to: 16 random bytes, written as 22 characters of base64.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DatabaseId {
    bytes: [u8; 16],
    text: [u8; DatabaseId::TEXT_SIZE],
}

impl DatabaseId {
    /// The characters of its text.
    pub const TEXT_SIZE: usize = 22;

    /// The id of these bytes.
    pub fn new(bytes: [u8; 16]) -> DatabaseId {
        let mut text = [b'A'; DatabaseId::TEXT_SIZE];
        // 16 bytes make 22 characters without padding.
        let _ = STANDARD_NO_PAD.encode_slice(bytes, &mut text);
        DatabaseId { bytes, text }
    }

    /// A new one, from random bytes.
    pub fn random() -> DatabaseId {
        DatabaseId::new(crate::ids::random())
    }

    /// Its bytes.
    pub fn bytes(&self) -> [u8; 16] {
        self.bytes
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.text).unwrap_or_default()
    }
}

impl std::fmt::Debug for DatabaseId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A change vector as a document has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChangeVector<'a> {
    /// Only the database itself wrote: `tag:etag-database`.
    Own {
        /// The node's tag.
        tag: &'a str,
        /// The etag of the write.
        etag: Etag,
        /// The database.
        database: DatabaseId,
    },
    /// Any other, as its text.
    Text(Cow<'a, str>),
}

impl ChangeVector<'_> {
    /// Appends its text.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        match self {
            ChangeVector::Own { tag, etag, database } => {
                out.extend_from_slice(tag.as_bytes());
                out.push(b':');
                let mut buffer = [0; 20];
                out.extend_from_slice(jackdaw_document::etag::format_decimal(*etag, &mut buffer));
                out.push(b'-');
                out.extend_from_slice(database.as_str().as_bytes());
            }
            ChangeVector::Text(text) => out.extend_from_slice(text.as_bytes()),
        }
    }

    /// Whether a text from a client names this state. The order of entries does not matter, nor does the index of a transaction.
    pub fn is(&self, text: &str) -> bool {
        let own = self.to_string();
        own == text || {
            let (mut a, mut b) = (entries(&own), entries(text));
            a.sort_unstable();
            b.sort_unstable();
            !a.is_empty() && a == b
        }
    }
}

impl std::fmt::Display for ChangeVector<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = Vec::with_capacity(48);
        self.append_to(&mut out);
        f.write_str(&String::from_utf8_lossy(&out))
    }
}

/// The entries of a change vector's text, without those of transactions' indexes.
fn entries(text: &str) -> Vec<&str> {
    all_entries(text).filter(|entry| !is_transaction(entry)).collect()
}

fn all_entries(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

fn is_transaction(entry: &str) -> bool {
    entry.split_once(':').is_some_and(|(tag, _)| tag == TRXN)
}

/// A vector with the index of a cluster-wide transaction in place of any that it has. One that has that index already stays as it
/// is spelt, so that a document has the same vector however it is read.
pub(crate) fn with_transaction(text: &str, index: i64, cluster_transaction_id: &DatabaseId) -> String {
    if transaction_index(text) == Some(index) {
        return text.to_owned();
    }
    format!("{},{TRXN}:{index}-{}", entries(text).join(", "), cluster_transaction_id.as_str())
}

/// The vector after a write of this database to a document that had `before`: other writers' entries stay.
pub(crate) fn after_write(before: &str, tag: &str, etag: Etag, database: &DatabaseId) -> String {
    let mut text = format!("{tag}:{etag}-{}", database.as_str());
    for entry in all_entries(before) {
        let own = entry.rsplit_once('-').is_some_and(|(head, id)| {
            id == database.as_str() && head.split_once(':').is_some_and(|(t, _)| t == tag)
        });
        if !own {
            let _ = write!(text, ", {entry}");
        }
    }
    text
}

/// The index of the cluster-wide transaction that a vector ends with.
pub(crate) fn transaction_index(text: &str) -> Option<i64> {
    let (_, index) = all_entries(text).find(|entry| is_transaction(entry))?.split_once(':')?;
    index.split('-').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn own_vectors_print() {
        let database = DatabaseId::new([7; 16]);
        assert_eq!(database.as_str().len(), DatabaseId::TEXT_SIZE);
        let own = ChangeVector::Own { tag: "A", etag: 12, database };
        let text = format!("A:12-{}", database.as_str());
        assert_eq!(own.to_string(), text);
        assert!(own.is(&text));
        assert!(!own.is(""));
        assert!(!own.is("A:13-x"));
    }

    #[test]
    fn others_entries_stay() {
        let database = DatabaseId::new([7; 16]);
        let id = database.as_str();
        assert_eq!(after_write("", "A", 3, &database), format!("A:3-{id}"));
        assert_eq!(after_write(&format!("A:2-{id}"), "A", 3, &database), format!("A:3-{id}"));
        let cluster = format!("RAFT:1-{id},TRXN:9-abc");
        assert_eq!(after_write(&cluster, "A", 3, &database), format!("A:3-{id}, RAFT:1-{id}, TRXN:9-abc"));
        assert_eq!(with_transaction(&cluster, 11, &database), format!("RAFT:1-{id},TRXN:11-{id}"));
        let joined = format!("A:3-{id}, RAFT:1-{id}, TRXN:9-abc");
        assert_eq!(with_transaction(&joined, 9, &database), joined);
        assert_eq!(transaction_index(&cluster), Some(9));
        assert_eq!(transaction_index(id), None);
    }

    #[test]
    fn order_and_transaction_do_not_matter() {
        let vector = ChangeVector::Text("A:3-x, RAFT:1-y,TRXN:9-z".into());
        assert!(vector.is("RAFT:1-y, A:3-x"));
        assert!(!vector.is("A:3-x"));
    }
}
