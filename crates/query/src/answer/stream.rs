//! Results as lines of comma-separated values.

use jackdaw_document::{Style, Value};

/// Columns for what is known about every document, and so tells nothing.
const LEFT_OUT: &[&str] = &[
    "@metadata.@id",
    "@metadata.@change-vector",
    "@metadata.@last-modified",
    "@metadata.@index-score",
    "@metadata.@flags",
];

/// Appends a result as a line. The first one makes the columns, and a line with their names.
pub(crate) fn print_csv(result: &Value<'_>, columns: &mut Vec<String>, out: &mut Vec<u8>) {
    let mut values = Vec::new();
    gather("", result, &mut values);
    if columns.is_empty() {
        columns.push("@id".to_owned());
        columns
            .extend(values.iter().map(|(name, _)| name.clone()).filter(|name| !LEFT_OUT.contains(&&**name)));
        for (at, column) in columns.iter().enumerate() {
            cell(at, column.as_bytes(), out);
        }
        out.extend_from_slice(b"\r\n");
    }
    for (at, column) in columns.iter().enumerate() {
        let name = if at == 0 { "@metadata.@id" } else { column };
        let value = values.iter().find(|(found, _)| found == name).map(|(_, value)| value);
        let mut text = Vec::new();
        match value {
            None | Some(Value::Null) => {}
            Some(Value::Bool(value)) => text.extend_from_slice(if *value { b"True" } else { b"False" }),
            Some(Value::Text(value)) => value.append_to(&mut text),
            Some(value) => value.print_to(&mut text, Style::Compact),
        }
        cell(at, &text, out);
    }
    out.extend_from_slice(b"\r\n");
}

/// The values below an object, by their paths.
fn gather<'a>(path: &str, value: &Value<'a>, values: &mut Vec<(String, Value<'a>)>) {
    match value.as_object() {
        Some(object) => {
            for (name, value) in object.iter() {
                let name = name.to_str();
                let path = if path.is_empty() { name.into_owned() } else { format!("{path}.{name}") };
                gather(&path, &value, values);
            }
        }
        None => values.push((path.to_owned(), *value)),
    }
}

fn cell(at: usize, text: &[u8], out: &mut Vec<u8>) {
    if at > 0 {
        out.push(b',');
    }
    if !text.iter().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
        out.extend_from_slice(text);
        return;
    }
    out.push(b'"');
    for byte in text {
        if *byte == b'"' {
            out.push(b'"');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    use jackdaw_document::Context;

    #[test]
    fn the_first_result_makes_the_columns() {
        let context = Context::new();
        let (mut columns, mut out) = (Vec::new(), Vec::new());
        for text in [
            r#"{"s":"a,\"b\"","o":{"x":1.50},"l":[1,"z"],"@metadata":{"@collection":"Ts","@id":"t/1","@last-modified":"x"}}"#,
            r#"{"more":1,"s":null,"o":{"x":true},"@metadata":{"@id":"t/2"}}"#,
        ] {
            print_csv(&context.parse(text).unwrap().root(), &mut columns, &mut out);
        }
        let expected = "@id,s,o.x,l,@metadata.@collection\r\nt/1,\"a,\"\"b\"\"\",1.50,\"[1,\"\"z\"\"]\",Ts\r\nt/2,,True,,\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
