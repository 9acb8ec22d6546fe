//! What makes few results of many.

use jackdaw_document::Document;

use super::error::{Error, Result};
use super::pack::{append_document, documents};

/// Why a reduce function failed, in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReduceError(pub String);

impl From<Error> for ReduceError {
    fn from(error: Error) -> ReduceError {
        ReduceError(error.to_string())
    }
}

/// Reduces packs of results that have one key. It is applied again to what it made, so it must be associative: reducing parts and then their
/// reductions gives what reducing everything gives.
///
/// Each thread that reduces makes one of its own ([`Reducer`]), so that it may keep memory from call to call.
pub trait Reduction {
    /// Appends the reduction of `packs` (at least one, in the order of their entries) to `out`. What it appends is a pack itself, which may
    /// be empty: the key has no result then.
    ///
    /// Errors: what the function says. What was appended is then ignored, and the key has no result until one of these packs changes.
    fn reduce(&mut self, key: &[u8], packs: &[&[u8]], out: &mut Vec<u8>) -> Result<(), ReduceError>;

    /// Whether results that are added to a leaf may be reduced with the leaf's reduction, instead of with all that it was made of. Always right
    /// where the reduction is associative; a function written by hand may not be (it counts what it is given), and then is at least
    /// right for keys with one leaf.
    fn is_incremental(&self) -> bool {
        false
    }
}

/// Makes reductions for the threads that reduce: one for each, in a batch.
pub trait Reducer: Sync {
    /// A reduction for the calling thread.
    fn reduction(&self) -> Box<dyn Reduction + '_>;
}

impl<F, R> Reducer for F
where
    F: Fn() -> R + Sync,
    R: Reduction + 'static,
{
    fn reduction(&self) -> Box<dyn Reduction + '_> {
        Box::new(self())
    }
}

/// A function over documents as a [`Reduction`]: it is given the documents of all packs and hands each result to its second argument, as the bytes
/// of a document.
pub struct DocumentReduction<F>(pub F);

impl<F> Reduction for DocumentReduction<F>
where
    F: FnMut(&mut dyn Iterator<Item = Document<'_>>, &mut dyn FnMut(&[u8])) -> Result<(), ReduceError>,
{
    fn reduce(&mut self, _key: &[u8], packs: &[&[u8]], out: &mut Vec<u8>) -> Result<(), ReduceError> {
        let mut damage = None;
        let mut all = packs.iter().flat_map(|pack| documents(pack)).map_while(|document| match document {
            Ok(document) => Some(document),
            Err(error) => {
                damage = Some(error);
                None
            }
        });
        (self.0)(&mut all, &mut |result| append_document(out, result))?;
        match damage {
            None => Ok(()),
            Some(error) => Err(error.into()),
        }
    }
}
