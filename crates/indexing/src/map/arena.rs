//! Memory of what is made while one document is mapped.

use std::cell::OnceCell;

use bumpalo::Bump;
use jackdaw_search::Shape;

/// Text and lists in an arena, and shapes, which own memory and so cannot lie in one: a chain that only grows.
#[derive(Default)]
pub(crate) struct Arena {
    pub(crate) bump: Bump,
    shapes: OnceCell<Box<Link>>,
}

struct Link {
    shape: Shape,
    next: OnceCell<Box<Link>>,
}

impl Arena {
    /// Keeps a shape as long as the arena is not reset.
    pub(crate) fn shape(&self, shape: Shape) -> &Shape {
        let mut end = &self.shapes;
        while let Some(link) = end.get() {
            end = &link.next;
        }
        &end.get_or_init(|| Box::new(Link { shape, next: OnceCell::new() })).shape
    }

    /// Lets go of all.
    pub(crate) fn reset(&mut self) {
        self.bump.reset();
        // One after the other: a long chain must not be a deep recursion.
        let mut next = self.shapes.take();
        while let Some(mut link) = next {
            next = link.next.take();
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        self.reset();
    }
}
