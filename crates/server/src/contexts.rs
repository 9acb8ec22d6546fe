//! Memory for documents on each thread that serves requests.

use std::cell::RefCell;

use jackdaw_document::Context;

/// A context that holds more than this after a request is let go of.
const KEPT_BYTES_MAX: usize = 8 << 20;

/// Bodies of more bytes are parsed where no connection waits for the thread.
const INLINE_SIZE_MAX: usize = 256 << 10;

thread_local! {
    static CONTEXT: RefCell<Option<Context>> = const { RefCell::new(None) };
}

/// Lends the thread's context, with its caches warm. Documents made in it end with the call.
pub(crate) fn with_context<T>(work: impl FnOnce(&Context) -> T) -> T {
    // One that calls another finds none and gets its own.
    let mut context = CONTEXT.with(|slot| slot.borrow_mut().take()).unwrap_or_default();
    let result = work(&context);
    context.reset();
    if context.statistics().allocated_bytes <= KEPT_BYTES_MAX {
        CONTEXT.with(|slot| *slot.borrow_mut() = Some(context));
    }
    result
}

/// As [`with_context`], for work on `size` bytes: when they are many, the thread's other tasks go on elsewhere meanwhile.
pub(crate) fn with_context_for<T>(size: usize, work: impl FnOnce(&Context) -> T) -> T {
    if size > INLINE_SIZE_MAX {
        tokio::task::block_in_place(|| with_context(work))
    } else {
        with_context(work)
    }
}
