//! What `jackdaw import` is told, and what it means to an import.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::ValueEnum;
use jackdaw_smuggler::{
    ColumnOptions, CsvOptions, DumpOptions, Existing, Expansion, FieldType, Format, ImportOptions,
};

use crate::output;

/// Arguments of the command.
#[derive(clap::Args)]
#[command(after_long_help = "\
Inputs may be compressed with gzip or Zstandard; their first bytes tell. Records that are no documents are refused and told, with the line \
or byte they begin at, and the import goes on.

An id is taken from --id, else from @metadata.@id, else made by the database from --id-prefix or the collection's name: `users/` is \
completed by a number, `users|` by the next identity.")]
pub(crate) struct Arguments {
    /// The database: its directory, which no server may have open and which is made if there is none, or the URL of one of a running
    /// server (http://HOST:PORT/databases/NAME)
    pub(super) database: PathBuf,
    /// The files to import, one after the other; `-` is standard input
    #[arg(required = true)]
    pub(super) files: Vec<PathBuf>,
    /// What the files hold; else their names tell
    #[arg(long, value_enum)]
    input: Option<InputKind>,
    /// The collection of documents that name none
    #[arg(long, value_name = "NAME")]
    collection: Option<String>,
    /// The property that is the id, as a path such as `Order.Number`
    #[arg(long, value_name = "PATH")]
    id: Option<String>,
    /// What ids begin with: before the value of --id, or for the database to complete
    #[arg(long, value_name = "TEXT")]
    id_prefix: Option<String>,
    /// What happens to a document whose id is taken
    #[arg(long, value_enum, default_value_t = OnExisting::Overwrite)]
    existing: OnExisting,
    /// Take only documents of this collection; may be given again
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Threads that parse; 0 is one less than the machine has
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Stop when more records than this are refused
    #[arg(long, value_name = "COUNT")]
    refused_max: Option<u64>,
    /// Refused records to show
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    pub(super) show_refused: usize,
    /// Refuse records of more bytes than this
    #[arg(long, value_name = "BYTES", default_value_t = ImportOptions::default().record_size_max)]
    record_size_max: usize,
    /// Refuse compressed inputs that expand to more than this many times their size
    #[arg(long, value_name = "TIMES", default_value_t = Expansion::default().ratio_max)]
    expansion_max: u64,
    #[command(flatten)]
    csv: CsvArguments,
    #[command(flatten)]
    dump: DumpArguments,
    #[command(flatten)]
    pub(super) format: output::Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum InputKind {
    /// One JSON document a line
    Lines,
    /// An array of JSON documents, or one behind another
    Json,
    /// Comma-separated values
    Csv,
    /// A dump of a database
    Dump,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OnExisting {
    /// It is written over
    Overwrite,
    /// It is written over unless nothing would change
    SkipUnchanged,
    /// It stays as it is
    Keep,
}

#[derive(clap::Args)]
#[command(next_help_heading = "CSV")]
struct CsvArguments {
    /// What stands between fields: one character, or `tab`
    #[arg(long, value_name = "CHARACTER", default_value = ",", value_parser = one_byte)]
    delimiter: u8,
    /// What stands around fields that hold a delimiter or a line feed
    #[arg(long, value_name = "CHARACTER", default_value = "\"", value_parser = one_byte)]
    quote: u8,
    /// The names of the columns, comma-separated, when the file has no header
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    columns: Option<Vec<String>>,
    /// What becomes of a column: `COLUMN=PROPERTY`, `COLUMN=PROPERTY:TYPE`, `COLUMN:TYPE`, or `COLUMN=` to leave it out. Types are text, number,
    /// boolean, json and inferred; the property `@id` is the id, `@collection` the collection
    #[arg(long, value_name = "MAPPING", value_parser = mapping)]
    column: Vec<ColumnOptions>,
    /// Take all fields as text
    #[arg(long)]
    text: bool,
    /// A text that means that there is no value; may be given again
    #[arg(long, value_name = "TEXT")]
    null: Vec<String>,
    /// Let dots in column names be part of property names
    #[arg(long)]
    flat: bool,
}

#[derive(clap::Args)]
#[command(next_help_heading = "Dumps")]
struct DumpArguments {
    /// Leave out documents
    #[arg(long)]
    no_documents: bool,
    /// Leave out definitions of indexes and of custom analyzers
    #[arg(long)]
    no_indexes: bool,
    /// Leave out identities
    #[arg(long)]
    no_identities: bool,
    /// Leave out compare-exchange values
    #[arg(long)]
    no_compare_exchange: bool,
    /// Delete what the dump says was deleted
    #[arg(long)]
    tombstones: bool,
}

impl Arguments {
    fn kind_of(&self, path: &Path) -> Result<InputKind> {
        self.input.or_else(|| kind_of(path)).ok_or_else(|| {
            anyhow!("{}: its name does not tell what it holds; say so with --input", path.display())
        })
    }

    /// The query string that asks a server for the same.
    ///
    /// Error: an argument that a server does not take.
    pub(super) fn query_of(&self, path: &Path) -> Result<Vec<(&'static str, String)>> {
        let kind = self.kind_of(path)?;
        let defaults = ImportOptions::default();
        let local = [
            (!self.csv.column.is_empty(), "--column"),
            (self.csv.columns.is_some(), "--columns"),
            (self.threads != 0, "--threads"),
            (self.record_size_max != defaults.record_size_max, "--record-size-max"),
            (self.expansion_max != defaults.expansion.ratio_max, "--expansion-max"),
            (self.dump.no_documents, "--no-documents"),
            (self.dump.no_indexes, "--no-indexes"),
            (self.dump.no_identities, "--no-identities"),
            (self.dump.no_compare_exchange, "--no-compare-exchange"),
            (self.dump.tombstones, "--tombstones"),
        ];
        if let Some((_, name)) = local.iter().find(|(is_given, _)| *is_given) {
            return Err(anyhow!("{name} works on a directory, not on a server"));
        }
        let is_csv = kind == InputKind::Csv;
        let character =
            |byte: u8| if byte == b'\t' { "tab".to_owned() } else { char::from(byte).to_string() };
        let mut query = vec![
            ("format", Some(name_of(kind))),
            ("existing", Some(name_of(self.existing))),
            ("collection", self.collection.clone()),
            ("id", self.id.clone()),
            ("idPrefix", self.id_prefix.clone()),
            ("refusedMax", self.refused_max.map(|max| max.to_string())),
            ("delimiter", is_csv.then(|| character(self.csv.delimiter))),
            ("quote", is_csv.then(|| character(self.csv.quote))),
            ("text", (is_csv && self.csv.text).then(|| "true".to_owned())),
            ("flat", (is_csv && self.csv.flat).then(|| "true".to_owned())),
        ];
        query.extend(self.only.iter().map(|only| ("only", Some(only.clone()))));
        query.extend(self.csv.null.iter().map(|null| ("null", Some(null.clone()))));
        Ok(query.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
    }

    /// What a file holds.
    pub(super) fn format_of(&self, path: &Path) -> Result<Format> {
        Ok(match self.kind_of(path)? {
            InputKind::Lines => Format::Lines,
            InputKind::Json => Format::Values,
            InputKind::Csv => Format::Csv(self.csv.options()),
            InputKind::Dump => Format::Dump(DumpOptions {
                database_record: !self.dump.no_indexes,
                documents: !self.dump.no_documents,
                indexes: !self.dump.no_indexes,
                identities: !self.dump.no_identities,
                compare_exchange: !self.dump.no_compare_exchange,
                tombstones: self.dump.tombstones,
            }),
        })
    }

    pub(super) fn options(&self) -> ImportOptions {
        ImportOptions {
            collection: self.collection.clone(),
            id_property: self.id.clone(),
            id_prefix: self.id_prefix.clone(),
            existing: match self.existing {
                OnExisting::Overwrite => Existing::Overwrite,
                OnExisting::SkipUnchanged => Existing::SkipUnchanged,
                OnExisting::Keep => Existing::Keep,
            },
            only_collections: self.only.clone(),
            threads: self.threads,
            refused_max: self.refused_max.unwrap_or(u64::MAX),
            record_size_max: self.record_size_max,
            expansion: Expansion { ratio_max: self.expansion_max.max(1), ..Expansion::default() },
        }
    }
}

impl CsvArguments {
    fn options(&self) -> CsvOptions {
        CsvOptions {
            delimiter: self.delimiter,
            quote: self.quote,
            headers: self.columns.clone(),
            columns: self.column.clone(),
            types: if self.text { FieldType::Text } else { FieldType::Inferred },
            nulls: self.null.clone(),
            nested: !self.flat,
        }
    }
}

/// A choice as it is spelt on the command line, and in a query string.
fn name_of(choice: impl ValueEnum) -> String {
    choice.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// What a file's name says that it holds, whatever it is compressed with.
fn kind_of(path: &Path) -> Option<InputKind> {
    let name = path.file_name()?.to_str()?.to_lowercase();
    let name =
        [".gz", ".gzip", ".zst", ".zstd"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    let (_, extension) = name.rsplit_once('.')?;
    match extension {
        "ndjson" | "jsonl" | "ldjson" | "jsonlines" => Some(InputKind::Lines),
        "json" => Some(InputKind::Json),
        "csv" | "tsv" => Some(InputKind::Csv),
        "ravendbdump" | "ravendump" => Some(InputKind::Dump),
        _ => None,
    }
}

fn one_byte(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [byte] if byte.is_ascii() => Ok(*byte),
        b"tab" | b"\\t" => Ok(b'\t'),
        _ => Err("one ASCII character is expected, or `tab`".into()),
    }
}

fn mapping(text: &str) -> Result<ColumnOptions, String> {
    let (column, told) = match text.split_once('=') {
        Some((column, told)) => (column, Some(told)),
        None => (text, None),
    };
    // `COLUMN:TYPE` or `COLUMN=PROPERTY:TYPE`: a colon that no type follows belongs to the name.
    let typed = |text: &str| match text.rsplit_once(':') {
        Some((name, types)) => {
            field_type(types).map_or((text.to_owned(), None), |t| (name.to_owned(), Some(t)))
        }
        None => (text.to_owned(), None),
    };
    let (column, property, types) = match told {
        Some(told) => {
            let (property, types) = typed(told);
            (column.to_owned(), property, types)
        }
        None => {
            let (column, types) = typed(column);
            if types.is_none() {
                return Err("expected COLUMN=PROPERTY, COLUMN=PROPERTY:TYPE, COLUMN:TYPE or COLUMN=".into());
            }
            (column.clone(), column, types)
        }
    };
    Ok(ColumnOptions { column, property: Some(property).filter(|property| !property.is_empty()), types })
}

fn field_type(text: &str) -> Option<FieldType> {
    Some(match text {
        "text" => FieldType::Text,
        "number" => FieldType::Number,
        "boolean" => FieldType::Boolean,
        "json" => FieldType::Json,
        "inferred" => FieldType::Inferred,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_files_hold() {
        let check =
            |name: &str, expected: Option<InputKind>| assert!(kind_of(Path::new(name)) == expected, "{name}");
        check("a/users.ndjson.gz", Some(InputKind::Lines));
        check("users.jsonl", Some(InputKind::Lines));
        check("twitter.json.zst", Some(InputKind::Json));
        check("Flights.CSV.gz", Some(InputKind::Csv));
        check("Dump of x.ravendbdump", Some(InputKind::Dump));
        check("users", None);
        check("-", None);
    }

    #[test]
    fn mappings_of_columns() {
        let check = |text: &str, column: &str, property: Option<&str>, types: Option<FieldType>| {
            let expected = ColumnOptions { column: column.into(), property: property.map(Into::into), types };
            assert_eq!(mapping(text), Ok(expected), "{text}");
        };
        check("zip=Address.Zip", "zip", Some("Address.Zip"), None);
        check("zip=Address.Zip:text", "zip", Some("Address.Zip"), Some(FieldType::Text));
        check("zip:text", "zip", Some("zip"), Some(FieldType::Text));
        check("zip=", "zip", None, None);
        check("a=b:c", "a", Some("b:c"), None);
        assert!(mapping("zip").is_err());
        assert!(mapping("zip:x").is_err());
    }
}
