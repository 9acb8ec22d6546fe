//! JSON text that arrives in chunks.

use crate::build::Mode;
use crate::context::Context;
use crate::error::{Result, TextError, TextErrorKind};
use crate::read::Document;

/// Gathers a JSON text that arrives in chunks, and parses it when it is whole. The chunks may end anywhere, also inside a character.
///
/// It does not build the document chunk by chunk: the parser takes a gigabyte a second and more because it sees whole blocks and never has to stop inside a
/// string or a number, and a document of ordinary size has long arrived before that would matter. So a stream needs memory for the text besides that for the
/// document; whoever takes texts of hundreds of megabytes from strangers sets the limit accordingly.
///
/// The text is kept until then (it is bounded by [`Limits::text_size_max`](crate::Limits), checked as chunks arrive), in a buffer that the context uses again.
pub struct TextStream<'c> {
    context: &'c Context,
    text: Vec<u8>,
}

impl<'c> TextStream<'c> {
    /// An empty stream whose document will live in `context`.
    #[must_use]
    pub fn new(context: &'c Context) -> TextStream<'c> {
        TextStream { context, text: context.take_text_buffer() }
    }

    /// Takes the next chunk.
    ///
    /// # Errors
    ///
    /// When the text exceeds its limit; the chunk is then not taken.
    pub fn push(&mut self, chunk: &[u8]) -> Result<()> {
        let limit = self.context.limits().text_size_max;
        if self.text.len() + chunk.len() > limit {
            let kind = TextErrorKind::Limit { what: "JSON text's size in bytes", limit };
            return Err(TextError::at(&self.text, self.text.len(), kind).into());
        }
        self.text.extend_from_slice(chunk);
        Ok(())
    }

    /// The bytes taken so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether nothing has been taken yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Parses the whole text.
    ///
    /// # Errors
    ///
    /// As [`Context::parse`].
    pub fn finish(self, mode: Mode) -> Result<Document<'c>> {
        self.context.parse_with(&self.text, mode)
    }
}

impl Drop for TextStream<'_> {
    fn drop(&mut self) {
        self.context.return_text_buffer(std::mem::take(&mut self.text));
    }
}
