//! Documents on their way out: JSON text with what the database knows about them in `@metadata`.

use jackdaw_document::{Object, Style, Value, append_json_string};

use crate::clock::append_date;
use crate::metadata::{CHANGE_VECTOR, FLAGS, ID, LAST_MODIFIED, METADATA};
use crate::snapshot::StoredDocument;

/// What of a document is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Fields {
    /// All of it.
    #[default]
    All,
    /// `@metadata` alone.
    Metadata,
}

/// Appends a document as JSON text, `@metadata` last and completed.
pub fn print_document(document: &StoredDocument<'_>, fields: Fields, out: &mut Vec<u8>) {
    out.reserve(document.document.as_bytes().len() * 3 / 2 + 192);
    out.push(b'{');
    let mut metadata = None;
    if let Some(object) = document.document.object() {
        for (name, value) in object.iter() {
            if name == METADATA {
                metadata = value.as_object();
            } else if fields == Fields::All {
                Value::Text(name).print_to(out, Style::Compact);
                out.push(b':');
                value.print_to(out, Style::Compact);
                out.push(b',');
            }
        }
    }
    out.extend_from_slice(b"\"@metadata\":");
    print_metadata(document, metadata.as_ref(), out);
    out.push(b'}');
}

/// Appends a document's metadata: what is stored, then what the database knows.
pub fn print_metadata(document: &StoredDocument<'_>, stored: Option<&Object<'_>>, out: &mut Vec<u8>) {
    out.push(b'{');
    for (name, value) in stored.iter().flat_map(|object| object.iter()) {
        Value::Text(name).print_to(out, Style::Compact);
        out.push(b':');
        value.print_to(out, Style::Compact);
        out.push(b',');
    }
    let name = |out: &mut Vec<u8>, name: &str| {
        out.push(b'"');
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
    };
    name(out, CHANGE_VECTOR);
    out.push(b'"');
    document.change_vector.append_to(out);
    out.extend_from_slice(b"\",");
    if !document.flags.is_none() {
        name(out, FLAGS);
        out.push(b'"');
        out.extend_from_slice(document.flags.to_string().as_bytes());
        out.extend_from_slice(b"\",");
    }
    name(out, ID);
    append_json_string(document.id, out);
    out.push(b',');
    name(out, LAST_MODIFIED);
    out.push(b'"');
    append_date(document.last_modified, out);
    out.extend_from_slice(b"\"}");
}
