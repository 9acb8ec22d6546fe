//! The journal: what a commit waits for, and what recovery reads.
//!
//! One commit is one [`record`]: the changed parts of the changed pages ([`changes`]), compressed when that helps, hashed and
//! chained to the record before, written synchronously into a [`files`] whose blocks exist already.

pub(crate) mod aligned;
pub(crate) mod changes;
pub(crate) mod files;
pub(crate) mod record;
