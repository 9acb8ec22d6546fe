//! What must hold of any input: one function per target, used by the fuzz targets and by the replay of the corpus on the stable compiler.

use jackdaw_document::{Context, Dictionary, Document, Limits, Mode, Style, Value};

/// Any text: it is refused, or both modes give the same valid document, which prints what parses to itself.
pub fn text(input: &[u8]) {
    let context = Context::new();
    let Ok(memory) = context.parse(input) else {
        assert!(context.parse_with(input, Mode::Disk).is_err());
        return;
    };
    let disk = context.parse_with(input, Mode::Disk).expect("accepted in one mode, so in both");
    for document in [&memory, &disk] {
        document.validate(context.limits()).expect("what was parsed is valid");
        let printed = document.to_json(Style::Compact);
        let again = context.parse(&printed).expect("what was printed is JSON");
        assert_eq!(again.to_json(Style::Compact), printed);
        assert!(again == *document && again.content_hash() == document.content_hash());
        let indented = context.parse(document.to_json(Style::Indented)).expect("indented is JSON too");
        assert!(indented == again);
    }
    assert!(memory == disk);
}

/// Any bytes: they are refused, or the document prints valid JSON; and nothing panics on the way, checked or not.
pub fn binary(input: &[u8]) {
    let Ok(document) = Document::open(input) else { return };
    let mut left = 10_000;
    walk(&document.root(), 0, &mut left);
    let limits = Limits { text_size_max: 1 << 20, ..Limits::default() };
    if document.validate(&limits).is_err() {
        return;
    }
    let printed = document.to_json(Style::Compact);
    let context = Context::new();
    let again = context.parse(&printed).expect("a valid document prints JSON");
    assert_eq!(again.to_json(Style::Compact), printed);
}

fn walk(value: &Value<'_>, depth: u32, left: &mut u32) {
    if *left == 0 || depth > 100 {
        return;
    }
    *left -= 1;
    match value {
        Value::Array(array) => array.iter().take(100).for_each(|value| walk(&value, depth + 1, left)),
        Value::Object(object) => {
            for (name, value) in object.iter().take(100) {
                let _ = object.get(&name.to_str());
                walk(&value, depth + 1, left);
            }
        }
        Value::Text(text) => {
            let _ = text.to_str();
        }
        Value::Number(number) => {
            let _ = (number.as_f64(), number.to_string());
        }
        Value::Document(document) => walk(&document.root(), depth + 1, left),
        _ => {}
    }
}

/// Any bytes as a dictionary, and any bytes as its text and as its codes. The first two bytes say where the dictionary ends.
pub fn dictionary(input: &[u8]) {
    let mut codes = Vec::new();
    let mut back = Vec::new();
    let built_in = Dictionary::built_in();
    built_in.compress(input, &mut codes);
    built_in.decompress(&codes, &mut back);
    assert_eq!(back, input);
    back.clear();
    built_in.decompress(input, &mut back);

    let Some((size, rest)) = input.split_first_chunk::<2>() else { return };
    let at = usize::from(u16::from_le_bytes(*size)).min(rest.len());
    let (bytes, text) = rest.split_at(at);
    let Ok(dictionary) = Dictionary::from_bytes(bytes) else { return };
    codes.clear();
    back.clear();
    dictionary.compress(text, &mut codes);
    dictionary.decompress(&codes, &mut back);
    assert_eq!(back, text);
    assert_eq!(dictionary.to_bytes(), bytes);
}
