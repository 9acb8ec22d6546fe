//! Memory for a request or a batch, and the caches that make the next document cheap.
//!
//! A [`Context`] belongs to one thread at a time. Documents parsed or built in it live in its arena until [`Context::reset`]; property names, their
//! predictions and all buffers stay, so that in a warm context a document costs no allocation. A [`ContextPool`] hands contexts out and takes them
//! back; one that has grown beyond its bound is let go instead of being kept.

use std::cell::{Cell, RefCell};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use bumpalo::Bump;

use crate::build::builder::Builder;
use crate::build::writer::{Mode, Writer};
use crate::dictionary::Dictionary;
use crate::error::Result;
use crate::limits::Limits;
use crate::read::{Document, Text};
use crate::text::parse::{self, Frame};

/// How much memory a pool keeps in one context between uses, unless told otherwise.
const KEPT_BYTES_MAX: usize = 16 << 20;

/// An arena for documents, with the caches for making them. See the module's text.
pub struct Context {
    arena: Bump,
    maker: RefCell<Maker>,
    text_buffer: Cell<Vec<u8>>,
    limits: Limits,
    dictionary: Option<Arc<Dictionary>>,
    peak: Cell<usize>,
    documents: Cell<u64>,
    resets: Cell<u64>,
}

/// What building a document needs; one at a time uses it.
pub(crate) struct Maker {
    pub(crate) writer: Writer,
    pub(crate) frames: Vec<Frame>,
}

impl Maker {
    pub(crate) fn new() -> Maker {
        Maker { writer: Writer::new(), frames: Vec::new() }
    }
}

/// What a context holds and has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextStatistics {
    /// Bytes held now, by the arena, the caches and the buffers.
    pub allocated_bytes: usize,
    /// The most bytes held at the end of any document so far.
    pub peak_bytes: usize,
    /// Documents made.
    pub documents: u64,
    /// Times the context was reset and used again.
    pub reuses: u64,
    /// Documents that had the very names of the one before, so that their name section was copied whole.
    pub name_sections_reused: u64,
}

impl Default for Context {
    fn default() -> Context {
        Context::new()
    }
}

impl Context {
    /// A context with default limits and the built-in dictionary.
    #[must_use]
    pub fn new() -> Context {
        Context::with_limits(Limits::default())
    }

    /// A context with these limits.
    #[must_use]
    pub fn with_limits(limits: Limits) -> Context {
        Context {
            arena: Bump::new(),
            maker: RefCell::new(Maker::new()),
            text_buffer: Cell::new(Vec::new()),
            limits: limits.within_format(),
            dictionary: None,
            peak: Cell::new(0),
            documents: Cell::new(0),
            resets: Cell::new(0),
        }
    }

    /// Uses a trained dictionary for documents made in [`Mode::Disk`] from here on.
    pub fn set_dictionary(&mut self, dictionary: Arc<Dictionary>) {
        self.maker.get_mut().writer.set_dictionary(Arc::clone(&dictionary));
        self.dictionary = Some(dictionary);
    }

    /// The limits that hold here.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Parses a JSON text into a document for use in memory.
    ///
    /// # Errors
    ///
    /// [`Error::Text`](crate::Error::Text) with line and column; [`Error::Limit`](crate::Error::Limit) if the document would be too large.
    pub fn parse(&self, text: impl AsRef<[u8]>) -> Result<Document<'_>> {
        self.parse_with(text.as_ref(), Mode::Memory)
    }

    /// Parses a JSON text.
    ///
    /// # Errors
    ///
    /// As [`Context::parse`].
    pub fn parse_with(&self, text: &[u8], mode: Mode) -> Result<Document<'_>> {
        self.make(|maker| parse::parse(&mut maker.writer, &mut maker.frames, text, mode, &self.limits))
    }

    /// Parses a JSON text into `out`, which is cleared first; for bytes that leave the context.
    ///
    /// # Errors
    ///
    /// As [`Context::parse`].
    pub fn parse_into(&self, text: &[u8], mode: Mode, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        self.with_maker(|maker| {
            parse::parse(&mut maker.writer, &mut maker.frames, text, mode, &self.limits)?;
            out.extend_from_slice(maker.writer.out.bytes());
            Ok(())
        })
    }

    /// Builds a document call by call.
    ///
    /// # Errors
    ///
    /// What `build` returns, and [`Error::Build`](crate::Error::Build) if its calls do not make one whole value.
    pub fn build(
        &self,
        mode: Mode,
        build: impl FnOnce(&mut Builder<'_>) -> Result<()>,
    ) -> Result<Document<'_>> {
        self.make(|maker| {
            let mut builder = Builder::new(&mut maker.writer, mode, &self.limits);
            build(&mut builder)?;
            builder.finish()
        })
    }

    /// Copies a document into the context, to outlive the bytes it was read from.
    ///
    /// # Errors
    ///
    /// As [`Document::open`].
    pub fn copy(&self, document: &Document<'_>) -> Result<Document<'_>> {
        self.open(self.arena.alloc_slice_copy(document.as_bytes()))
    }

    /// Lets go of all documents made here; keeps memory and caches for the next ones.
    pub fn reset(&mut self) {
        self.arena.reset();
        self.resets.set(self.resets.get() + 1);
    }

    /// What the context holds and has done.
    #[must_use]
    pub fn statistics(&self) -> ContextStatistics {
        let (allocated, reused) = self.with_maker(|maker| {
            (
                maker.writer.allocated() + maker.frames.capacity() * size_of::<Frame>(),
                maker.writer.names.sections_reused,
            )
        });
        let text = self.text_buffer.take();
        let text_capacity = text.capacity();
        self.text_buffer.set(text);
        let allocated_bytes = allocated + text_capacity + self.arena.allocated_bytes();
        ContextStatistics {
            allocated_bytes,
            peak_bytes: self.peak.get().max(allocated_bytes),
            documents: self.documents.get(),
            reuses: self.resets.get(),
            name_sections_reused: reused,
        }
    }

    fn open<'c>(&'c self, bytes: &'c [u8]) -> Result<Document<'c>> {
        match &self.dictionary {
            Some(dictionary) => Document::open_with(bytes, dictionary),
            None => Document::open(bytes),
        }
    }

    fn make(&self, make: impl FnOnce(&mut Maker) -> Result<()>) -> Result<Document<'_>> {
        let bytes: &[u8] = self.with_maker(|maker| {
            make(maker)?;
            Ok::<_, crate::Error>(self.arena.alloc_slice_copy(maker.writer.out.bytes()))
        })?;
        self.documents.set(self.documents.get() + 1);
        self.peak.set(self.peak.get().max(self.arena.allocated_bytes() + bytes.len()));
        self.open(bytes)
    }

    /// Lends the maker; building inside building gets one of its own.
    pub(crate) fn with_maker<T>(&self, action: impl FnOnce(&mut Maker) -> T) -> T {
        match self.maker.try_borrow_mut() {
            Ok(mut maker) => action(&mut maker),
            Err(_) => {
                let mut maker = Maker::new();
                if let Some(dictionary) = &self.dictionary {
                    maker.writer.set_dictionary(Arc::clone(dictionary));
                }
                action(&mut maker)
            }
        }
    }

    /// Copies a text into the arena, decompressed.
    pub(crate) fn keep_text(&self, text: &Text<'_>) -> &str {
        let mut buffer = self.take_text_buffer();
        text.append_to(&mut buffer);
        let kept = match std::str::from_utf8(&buffer) {
            Ok(plain) => self.arena.alloc_str(plain),
            Err(_) => self.arena.alloc_str(&text.to_str()),
        };
        self.return_text_buffer(buffer);
        kept
    }

    pub(crate) fn take_text_buffer(&self) -> Vec<u8> {
        let mut buffer = self.text_buffer.take();
        buffer.clear();
        buffer
    }

    pub(crate) fn return_text_buffer(&self, buffer: Vec<u8>) {
        self.text_buffer.set(buffer);
    }
}

/// Contexts that wait for their next use.
pub struct ContextPool {
    idle: Mutex<Vec<Context>>,
    limits: Limits,
    contexts_max: usize,
    kept_bytes_max: usize,
    statistics: Mutex<PoolStatistics>,
}

/// What a pool has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStatistics {
    /// Contexts made because none waited.
    pub made: u64,
    /// Contexts that were used again.
    pub reused: u64,
    /// Contexts let go because they had grown too large or too many waited.
    pub let_go: u64,
    /// Contexts waiting now.
    pub idle: usize,
}

impl ContextPool {
    /// A pool that keeps at most `contexts_max` idle contexts.
    #[must_use]
    pub fn new(contexts_max: usize) -> ContextPool {
        ContextPool::with_limits(contexts_max, KEPT_BYTES_MAX, Limits::default())
    }

    /// A pool that keeps at most `contexts_max` idle contexts of at most `kept_bytes_max` bytes each, all with these limits.
    #[must_use]
    pub fn with_limits(contexts_max: usize, kept_bytes_max: usize, limits: Limits) -> ContextPool {
        ContextPool {
            idle: Mutex::new(Vec::new()),
            limits,
            contexts_max,
            kept_bytes_max,
            statistics: Mutex::new(PoolStatistics::default()),
        }
    }

    /// A context, used before if one waits. It returns to the pool when dropped.
    #[must_use]
    pub fn take(&self) -> PooledContext<'_> {
        // A panic elsewhere leaves the list as it was: whole contexts.
        let waiting = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut statistics = self.statistics.lock().unwrap_or_else(PoisonError::into_inner);
        let context = match waiting {
            Some(context) => {
                statistics.reused += 1;
                context
            }
            None => {
                statistics.made += 1;
                Context::with_limits(self.limits)
            }
        };
        PooledContext { pool: self, context: Some(context) }
    }

    /// What the pool has done.
    #[must_use]
    pub fn statistics(&self) -> PoolStatistics {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).len();
        PoolStatistics { idle, ..*self.statistics.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    fn give_back(&self, mut context: Context) {
        context.reset();
        // One with a dictionary of its own would surprise its next user.
        if context.dictionary.is_none() && context.statistics().allocated_bytes <= self.kept_bytes_max {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.len() < self.contexts_max {
                idle.push(context);
                return;
            }
        }
        self.statistics.lock().unwrap_or_else(PoisonError::into_inner).let_go += 1;
    }
}

/// A context on loan from a [`ContextPool`].
pub struct PooledContext<'p> {
    pool: &'p ContextPool,
    /// There until the loan ends.
    context: Option<Context>,
}

impl Deref for PooledContext<'_> {
    type Target = Context;

    fn deref(&self) -> &Context {
        match &self.context {
            Some(context) => context,
            None => unreachable!("a context is there until its loan ends"),
        }
    }
}

impl DerefMut for PooledContext<'_> {
    fn deref_mut(&mut self) -> &mut Context {
        match &mut self.context {
            Some(context) => context,
            None => unreachable!("a context is there until its loan ends"),
        }
    }
}

impl Drop for PooledContext<'_> {
    fn drop(&mut self) {
        if let Some(context) = self.context.take() {
            self.pool.give_back(context);
        }
    }
}
