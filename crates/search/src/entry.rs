//! Index entries on their way in.

use jackdaw_document::date::Date;

use crate::query::Shape;

/// One index entry. A key may have many (fan-out); [`crate::Writer::delete`] removes them all.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The lower-cased document id, or the reduce key.
    pub key: &'a str,
    /// Names and values. A name may come several times; its values are those of all.
    pub fields: &'a [(&'a str, FieldValue<'a>)],
    /// Bytes kept with the entry and given back with each hit: what the caller stores for projections. Empty for none.
    pub stored: &'a [u8],
    /// Ids of other documents that the entry was made from, found again by [`crate::Query::Reference`].
    pub references: &'a [&'a str],
    /// Factor of the entry's score; 1 for none.
    pub boost: f32,
}

/// What a field of an entry holds. Terms follow RavenDB's rules on Lucene.
#[derive(Debug, Clone, Copy)]
pub enum FieldValue<'a> {
    /// An explicit null: the term `NULL_VALUE`.
    Null,
    /// Text: lower-cased as one term, kept as it is, or analyzed, as the field's options say. The empty text is the term
    /// `EMPTY_STRING`. Text that looks like a date becomes a date, but for fields that are analyzed.
    Text(&'a str),
    /// Text of a field that was not known beforehand, cut into words whatever the field's options.
    Words(&'a str),
    /// Text kept as it is, whatever the field's options.
    Exact(&'a str),
    /// An integer: a term of its digits, and a value in the domains of longs and doubles.
    Long(i64),
    /// A number with a fraction or too great for a long: a term of its text, its truncated value in the domain of longs, itself
    /// in that of doubles.
    Double {
        /// The number.
        value: f64,
        /// How it was written.
        text: &'a str,
    },
    /// `true` or `false`, as terms.
    Bool(bool),
    /// A date: a term of its ISO text with seven digits of a second.
    Date(Date),
    /// An object as JSON text: one term, lower-cased as text is.
    Json(&'a str),
    /// A point of a spatial field: latitude (or y), longitude (or x).
    Point {
        /// Latitude or y.
        latitude: f64,
        /// Longitude or x.
        longitude: f64,
    },
    /// A shape of a spatial field.
    Shape(&'a Shape),
    /// A value whose field counts so many times as much in this entry's scores.
    Boosted {
        /// The value.
        value: &'a FieldValue<'a>,
        /// The factor.
        boost: f32,
    },
    /// Several values: a term each. Arrays within arrays are flattened. An empty one indexes nothing, but the field exists.
    Array(&'a [FieldValue<'a>]),
}
