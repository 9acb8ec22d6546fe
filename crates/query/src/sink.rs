//! Where answers go.

use std::ops::ControlFlow;

/// What is known of an answer before its first result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Stays the same as long as the answer does.
    pub etag: i64,
}

/// Takes an answer while it is made.
pub trait Sink {
    /// The answer begins.
    fn begin(&mut self, head: Head);

    /// Looks at what is written so far after each result, and may take it. Breaks when nobody wants the rest.
    fn written(&mut self, out: &mut Vec<u8>) -> ControlFlow<()>;
}

/// Takes the whole answer at once.
#[derive(Debug, Default)]
pub struct Whole {
    /// Of the answer; 0 before it begins.
    pub etag: i64,
}

impl Sink for Whole {
    fn begin(&mut self, head: Head) {
        self.etag = head.etag;
    }

    fn written(&mut self, _: &mut Vec<u8>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
