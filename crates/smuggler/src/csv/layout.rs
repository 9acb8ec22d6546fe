//! The columns of a file as properties of documents.

use jackdaw_document::{Builder, Context};

use super::infer::{self, Field};
use super::{CsvOptions, FieldType};
use crate::error::{Error, Result};
use crate::source::rows::Row;

/// The column that is the document's id.
const ID: &str = "@id";
/// The columns that may name the document's collection.
const COLLECTION: [&str; 2] = ["@collection", "@metadata.@collection"];

/// Where each column goes. Made once for a file, used for each row.
pub(crate) struct Layout {
    properties: Vec<Property>,
    /// The column that holds the id.
    pub(crate) id: Option<usize>,
    /// The column that names the collection.
    pub(crate) collection: Option<usize>,
    nulls: Vec<Box<[u8]>>,
}

struct Property {
    name: String,
    value: Value,
}

enum Value {
    Column { index: usize, types: FieldType },
    Object(Vec<Property>),
}

impl Layout {
    /// The layout of columns with these names.
    ///
    /// # Errors
    ///
    /// [`Error::Options`] when the options name a column that is not there, or two columns would become the same property.
    pub(crate) fn new(headers: &[String], options: &CsvOptions) -> Result<Layout> {
        if let Some(missing) = options.columns.iter().find(|column| !headers.contains(&column.column)) {
            return Err(Error::Options(format!("the file has no column {:?}", missing.column)));
        }
        let mut layout = Layout {
            properties: Vec::new(),
            id: None,
            collection: None,
            nulls: options.nulls.iter().map(|null| Box::from(null.as_bytes())).collect(),
        };
        for (index, header) in headers.iter().enumerate() {
            let told = options.columns.iter().find(|column| column.column == *header);
            let name = match told {
                None => header,
                Some(told) => match &told.property {
                    Some(property) => property,
                    None => continue,
                },
            };
            let types = told.and_then(|told| told.types).unwrap_or(options.types);
            if name == ID {
                layout.id = Some(index);
            } else if COLLECTION.contains(&name.as_str()) {
                layout.collection = Some(index);
            } else {
                let path: Vec<&str> = if options.nested { name.split('.').collect() } else { vec![name] };
                place(&mut layout.properties, &path, Value::Column { index, types })
                    .map_err(|()| Error::Options(format!("two columns become the property {name:?}")))?;
            }
        }
        Ok(layout)
    }

    /// Writes the properties of a row into an object that is open. The error says what is wrong with the row.
    pub(crate) fn write(
        &self,
        row: Row<'_>,
        builder: &mut Builder<'_>,
        context: &Context,
    ) -> Result<(), String> {
        self.write_properties(&self.properties, row, builder, context)
    }

    fn write_properties(
        &self,
        properties: &[Property],
        row: Row<'_>,
        builder: &mut Builder<'_>,
        context: &Context,
    ) -> Result<(), String> {
        for property in properties {
            builder.name(&property.name).map_err(|error| error.to_string())?;
            match &property.value {
                Value::Column { index, types } => {
                    let field = infer::field(row.field(*index), *types, &self.nulls)
                        .map_err(|reason| self.wrong(property, reason))?;
                    write(field, builder, context)
                        .map_err(|error| self.wrong(property, &error.to_string()))?;
                }
                Value::Object(properties) => {
                    builder.begin_object().map_err(|error| error.to_string())?;
                    self.write_properties(properties, row, builder, context)?;
                    builder.end().map_err(|error| error.to_string())?;
                }
            }
        }
        Ok(())
    }

    #[cold]
    fn wrong(&self, property: &Property, reason: &str) -> String {
        format!("the field of {:?}: {reason}", property.name)
    }
}

fn write(field: Field<'_>, builder: &mut Builder<'_>, context: &Context) -> jackdaw_document::Result<()> {
    match field {
        Field::Null => builder.null(),
        Field::Boolean(value) => builder.bool(value),
        Field::Integer(value) => builder.i64(value),
        Field::Number(text) => builder.number_text(text),
        Field::Text(text) => builder.str(text),
        Field::Json(text) => builder.value(&context.parse(text)?.root()),
    }
}

/// Puts a column where its path leads. Objects come where their first column is.
fn place(properties: &mut Vec<Property>, path: &[&str], value: Value) -> Result<(), ()> {
    let (name, below) = path.split_first().ok_or(())?;
    let known = properties.iter_mut().find(|property| property.name == *name);
    match (known, below.is_empty()) {
        (None, true) => properties.push(Property { name: (*name).to_owned(), value }),
        (None, false) => {
            let mut inner = Vec::new();
            place(&mut inner, below, value)?;
            properties.push(Property { name: (*name).to_owned(), value: Value::Object(inner) });
        }
        (Some(Property { value: Value::Object(inner), .. }), false) => place(inner, below, value)?,
        (Some(_), _) => return Err(()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use jackdaw_document::{Mode, Style};

    use super::super::ColumnOptions;
    use super::*;
    use crate::source::rows::Rows;
    use crate::source::{Records, Source};

    fn check(input: &str, options: &CsvOptions, expected: &[&str]) -> Layout {
        let mut rows = Rows::new(std::io::Cursor::new(input.as_bytes().to_vec()), options, 1 << 20).unwrap();
        let layout = Layout::new(rows.headers(), options).unwrap();
        let context = Context::new();
        let mut found = Vec::new();
        while let Some(block) = rows.next_block().unwrap() {
            let Records::Rows(rows) = block.records else { unreachable!("rows come as rows") };
            for i in 0..rows.len() {
                let mut wrong = None;
                let document = context.build(Mode::Memory, |builder| {
                    builder.begin_object()?;
                    wrong = layout.write(rows.row(i).1, builder, &context).err();
                    builder.end()
                });
                found.push(wrong.unwrap_or_else(|| document.unwrap().to_json(Style::Compact)));
            }
        }
        assert_eq!(found, expected);
        layout
    }

    #[test]
    fn headers_with_dots_nest() {
        let input = "Name,Address.City,Age,Address.Geo.Lat\nAda,London,36,51.5\n";
        check(
            input,
            &CsvOptions::default(),
            &[r#"{"Name":"Ada","Address":{"City":"London","Geo":{"Lat":51.5}},"Age":36}"#],
        );
        let flat = CsvOptions { nested: false, ..CsvOptions::default() };
        check(input, &flat, &[r#"{"Name":"Ada","Address.City":"London","Age":36,"Address.Geo.Lat":51.5}"#]);
    }

    #[test]
    fn columns_are_renamed_typed_and_left_out() {
        let column = |column: &str, property: Option<&str>, types| ColumnOptions {
            column: column.into(),
            property: property.map(Into::into),
            types,
        };
        let options = CsvOptions {
            columns: vec![
                column("zip", Some("Address.Zip"), Some(FieldType::Text)),
                column("skip", None, None),
                column("tags", Some("Tags"), Some(FieldType::Json)),
                column("key", Some("@id"), None),
            ],
            nulls: vec!["NA".into()],
            ..CsvOptions::default()
        };
        let layout = check(
            "key,zip,skip,tags,n\n7,0815,x,\"[\"\"a\"\",{\"\"b\"\":1.50}]\",NA\n8,1,x,[,1\n",
            &options,
            &[
                r#"{"Address":{"Zip":"0815"},"Tags":["a",{"b":1.50}],"n":null}"#,
                "the field of \"Tags\": the text ends too early at line 1, column 2 (byte 1)",
            ],
        );
        assert_eq!((layout.id, layout.collection), (Some(0), None));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert!(Layout::new(&names(&["a", "a.b"]), &CsvOptions::default()).is_err());
        assert!(Layout::new(&names(&["a.b", "a"]), &CsvOptions::default()).is_err());
        let options = CsvOptions {
            columns: vec![ColumnOptions { column: "x".into(), property: None, types: None }],
            ..CsvOptions::default()
        };
        assert!(Layout::new(&names(&["a"]), &options).is_err());
        let layout = Layout::new(&names(&["@metadata.@collection", "@id"]), &CsvOptions::default()).unwrap();
        assert_eq!((layout.id, layout.collection), (Some(1), Some(0)));
    }
}
