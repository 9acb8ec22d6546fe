//! Where the parts of an index's fields are kept in tantivy's schema.
//!
//! Each field named in the [`Schema`] has tantivy fields of its own: `t7` for its terms (with positions and norms when
//! words are cut from text, else only postings), columns `l7` (longs), `d7` (doubles), `w7` (dates, in ticks), and for spatial ones `x7`, `y7`
//! (coordinates) and `g7` (shapes). There is no column of texts: the order of terms is read off the inverted index when a query first needs it
//! (`segment`), which costs the writer nothing.
//!
//! All other fields share the tantivy fields `terms` or `words`, where a term is the field's name, a zero byte, and the text,
//! and the JSON column field `columns`, where paths are made of the field's name. There, too, are the columns that few fields have: boosts, and
//! places of fields that are not spatial. Terms and columns of its own cost a field half as much as shared ones to write, and nothing to find.
//!
//! Hidden fields: `key` and `reference` (terms), `truncated` (the integral part of numbers that have a fraction, so that `n = 2`
//! finds 2.5 as Lucene's long domain does), `order` (a counter, which tells older segments from newer ones), `boost`, and
//! `stored` (key and the caller's bytes).

use std::collections::HashMap;
use std::sync::Arc;

use tantivy::schema::{
    BytesOptions, FAST, Field, IndexRecordOption, JsonObjectOptions, NumericOptions, Schema as TantivySchema,
    SchemaBuilder, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::{Token, TokenStream, Tokenizer, TokenizerManager};

use crate::analysis::{Analyzer, FieldTokenizer, Words, lower};
use crate::error::Result;
use crate::options::{FieldOptions, Indexing, Schema};

/// What separates a shared term's field name from its text.
pub(crate) const SEPARATOR: char = '\0';

/// What queries call the keys of the entries, to search them as a field that is not cut into words.
pub const KEY_FIELD: &str = "id()";

/// The places of all fields.
pub(crate) struct Layout {
    pub(crate) schema: Schema,
    pub(crate) tantivy: TantivySchema,
    pub(crate) key: Field,
    pub(crate) reference: Field,
    pub(crate) truncated: Field,
    pub(crate) order: Field,
    pub(crate) boost: Field,
    pub(crate) stored: Field,
    pub(crate) terms: Field,
    pub(crate) words: Field,
    pub(crate) columns: Field,
    shared_analyzer: Analyzer,
    fields: HashMap<String, Arc<Place>>,
}

/// The place of one field.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) options: FieldOptions,
    pub(crate) analyzer: Analyzer,
    /// The tantivy field of its terms.
    pub(crate) terms: Field,
    /// What its terms begin with: nothing for fields of their own.
    pub(crate) prefix: String,
    /// Columns by [`Part`].
    pub(crate) columns: [Column; PARTS],
}

/// How a column of a field is addressed.
#[derive(Debug)]
pub(crate) enum Column {
    /// A tantivy field of its own.
    Own(Field),
    /// A path in the shared field.
    Shared(String),
}

impl Default for Column {
    fn default() -> Column {
        Column::Shared(String::new())
    }
}

/// The columns of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    Long,
    Double,
    Date,
    Longitude,
    Latitude,
    Shape,
    Boost,
}

pub(crate) const PARTS: usize = 7;
const PART_LETTERS: [char; PARTS] = ['l', 'd', 'w', 'x', 'y', 'g', 'b'];

impl Place {
    /// The text of a query as RavenDB looks for it without analysis: in lower case, but for fields that keep case.
    pub(crate) fn fold(&self, text: &str, exact: bool) -> String {
        if exact || self.options.indexing == Indexing::Exact { text.to_owned() } else { lower(text) }
    }

    /// The column's name, as tantivy's readers take it.
    pub(crate) fn column_name(&self, layout: &Layout, part: Part) -> String {
        match &self.columns[part as usize] {
            Column::Own(field) => layout.tantivy.get_field_name(*field).to_owned(),
            Column::Shared(path) => format!("columns.{path}"),
        }
    }

    /// The bytes of a term of this field in tantivy's dictionary.
    pub(crate) fn term(&self, text: &str) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.prefix.len() + text.len());
        bytes.extend_from_slice(self.prefix.as_bytes());
        bytes.extend_from_slice(text.as_bytes());
        bytes
    }
}

impl Layout {
    pub(crate) fn new(schema: Schema) -> Result<Layout> {
        let mut builder = TantivySchema::builder();
        let key = builder.add_text_field("key", keyword_options());
        let reference = builder.add_text_field("reference", keyword_options());
        let truncated = builder.add_text_field("truncated", keyword_options());
        let order = builder.add_u64_field("order", FAST);
        let boost = builder.add_f64_field("boost", FAST);
        let stored = builder.add_bytes_field("stored", BytesOptions::default().set_stored());
        let terms = builder.add_text_field("terms", keyword_options());
        let words = builder.add_text_field("words", words_options("shared"));
        let columns = builder.add_json_field("columns", JsonObjectOptions::default().set_fast("raw"));
        let shared_analyzer = Analyzer::of("__all_fields", &schema.all_fields, &schema)?;
        let mut fields = HashMap::new();
        for (number, (name, options)) in schema.fields.iter().enumerate() {
            let analyzer = Analyzer::of(name, options, &schema)?;
            let place = own_place(&mut builder, number, name, options, analyzer);
            fields.insert(name.clone(), Arc::new(place));
        }
        let tantivy = builder.build();
        Ok(Layout {
            schema,
            tantivy,
            key,
            reference,
            truncated,
            order,
            boost,
            stored,
            terms,
            words,
            columns,
            shared_analyzer,
            fields,
        })
    }

    /// Whether a field was known beforehand.
    pub(crate) fn is_known(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// The place of a field, whether it was known beforehand or not.
    pub(crate) fn place(&self, name: &str) -> Arc<Place> {
        if let Some(place) = self.fields.get(name) {
            return Arc::clone(place);
        }
        let options = self.schema.all_fields.clone();
        let analyzer = self.shared_analyzer.clone();
        Arc::new(Place {
            name: name.to_owned(),
            options,
            terms: if analyzer.is_keyword() { self.terms } else { self.words },
            analyzer,
            prefix: format!("{}{SEPARATOR}", name.replace(SEPARATOR, "\u{4}")),
            columns: shared_columns(name),
        })
    }

    /// The place that a query means: of a field, or of the keys of the entries.
    pub(crate) fn place_of_query(&self, name: &str) -> Arc<Place> {
        if name == KEY_FIELD { Arc::new(self.key_place()) } else { self.place(name) }
    }

    /// The place of the keys of the entries: terms in lower case.
    pub(crate) fn key_place(&self) -> Place {
        Place {
            name: "\0key".to_owned(),
            options: FieldOptions::default(),
            analyzer: Analyzer::LowerCaseKeyword,
            terms: self.key,
            prefix: String::new(),
            columns: shared_columns("\0key"),
        }
    }

    /// The places of all fields that were known beforehand, by name.
    pub(crate) fn places(&self) -> impl Iterator<Item = &Arc<Place>> {
        self.schema.fields.keys().filter_map(|name| self.fields.get(name))
    }

    /// The tokenizers that the tantivy schema names.
    pub(crate) fn tokenizers(&self) -> TokenizerManager {
        let manager = TokenizerManager::default();
        for place in self.fields.values() {
            manager.register(
                &tokenizer_name(&place.options, &place.analyzer),
                FieldTokenizer::new(place.analyzer.clone()),
            );
        }
        manager.register("shared", SharedTokenizer(self.shared_analyzer.clone()));
        manager.register("keyword", FieldTokenizer::new(Analyzer::Keyword));
        manager
    }
}

fn own_place(
    builder: &mut SchemaBuilder,
    number: usize,
    name: &str,
    options: &FieldOptions,
    analyzer: Analyzer,
) -> Place {
    let terms_name = format!("t{number}");
    let terms = match options.indexing {
        // Nothing is ever added, but queries may ask.
        Indexing::No => builder.add_text_field(&terms_name, keyword_options()),
        _ if analyzer.is_keyword() => builder.add_text_field(&terms_name, keyword_options()),
        _ => builder.add_text_field(&terms_name, words_options(&tokenizer_name(options, &analyzer))),
    };
    let mut column = |part| {
        let name = format!("{}{number}", PART_LETTERS[part as usize]);
        match part {
            Part::Long | Part::Date => builder.add_i64_field(&name, NumericOptions::default().set_fast()),
            Part::Double | Part::Longitude | Part::Latitude | Part::Boost => {
                builder.add_f64_field(&name, NumericOptions::default().set_fast())
            }
            Part::Shape => builder.add_text_field(&name, TextOptions::default().set_fast("raw")),
        }
    };
    let mut columns = shared_columns(name);
    // An empty column costs something in every segment: only what fields mostly have is their own.
    let mostly: &[Part] = match options.spatial {
        None => &[Part::Long, Part::Double, Part::Date],
        Some(_) => &[Part::Long, Part::Double, Part::Date, Part::Longitude, Part::Latitude, Part::Shape],
    };
    for &part in mostly {
        columns[part as usize] = Column::Own(column(part));
    }
    Place { name: name.to_owned(), options: options.clone(), analyzer, terms, prefix: String::new(), columns }
}

fn shared_columns(name: &str) -> [Column; PARTS] {
    // Dots and backslashes would be read as steps of a path.
    let path: String = name
        .chars()
        .map(|character| match character {
            '.' => '\u{2}',
            '\\' => '\u{3}',
            '\0' | '\u{1}' => '\u{4}',
            other => other,
        })
        .collect();
    PART_LETTERS.map(|letter| Column::Shared(format!("{path}\u{5}{letter}")))
}

/// The name of a custom one says nothing of what it does: that may change, and what is indexed stays.
fn tokenizer_name(options: &FieldOptions, analyzer: &Analyzer) -> String {
    match (analyzer, &options.analyzer) {
        (Analyzer::Custom(_), Some(name)) => format!("custom {}", name.to_lowercase()),
        _ => format!("{analyzer:?}"),
    }
}

fn keyword_options() -> TextOptions {
    TextOptions::default().set_indexing_options(
        TextFieldIndexing::default()
            .set_tokenizer("keyword")
            .set_fieldnorms(false)
            .set_index_option(IndexRecordOption::Basic),
    )
}

fn words_options(tokenizer: &str) -> TextOptions {
    TextOptions::default().set_indexing_options(
        TextFieldIndexing::default()
            .set_tokenizer(tokenizer)
            .set_fieldnorms(true)
            .set_index_option(IndexRecordOption::WithFreqsAndPositions),
    )
}

/// Cuts the text after a field's name and puts the name before each word.
#[derive(Clone)]
struct SharedTokenizer(Analyzer);

impl Tokenizer for SharedTokenizer {
    type TokenStream<'a> = SharedWords<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> SharedWords<'a> {
        let begin = text.find(SEPARATOR).map_or(0, |at| at + 1);
        SharedWords { prefix: &text[..begin], words: Words::new(self.0.clone(), &text[begin..]) }
    }
}

struct SharedWords<'a> {
    prefix: &'a str,
    words: Words<'a>,
}

impl TokenStream for SharedWords<'_> {
    fn advance(&mut self) -> bool {
        let more = self.words.advance();
        if more {
            self.words.token_mut().text.insert_str(0, self.prefix);
        }
        more
    }

    fn token(&self) -> &Token {
        self.words.token()
    }

    fn token_mut(&mut self) -> &mut Token {
        self.words.token_mut()
    }
}
