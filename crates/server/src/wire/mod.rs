//! The shapes of JSON that go over the wire, in the official clients' spelling. Nothing outside this folder and `endpoints` spells them.

pub(crate) mod changes;
pub(crate) mod client_configuration;
pub(crate) mod database_record;
pub(crate) mod indexes;
pub(crate) mod size;
pub(crate) mod smuggler;
