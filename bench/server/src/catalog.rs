//! The index definitions and queries of `catalog.json`, and the values that fill the queries' parameters.

use anyhow::{Result, ensure};
use serde_json::{Map, Value, json};

use crate::random::Random;

/// One section of the catalog: `indexes`, `query` or `facet`; only the entries that `only` names, if it names any. Names of entries are in
/// [`entry_name`].
pub(crate) fn section(name: &str, only: &[String]) -> Result<Vec<Value>> {
    let mut catalog: Value = serde_json::from_str(include_str!("../catalog.json"))?;
    let mut entries = catalog[name].as_array_mut().map(std::mem::take).unwrap_or_default();
    ensure!(!entries.is_empty(), "the catalog has no {name}");
    entries.retain(|entry| only.is_empty() || only.iter().any(|only| only == entry_name(entry)));
    Ok(entries)
}

/// An index's name, or that of a query.
pub(crate) fn entry_name(entry: &Value) -> &str {
    entry["definition"]["Name"].as_str().or(entry["name"].as_str()).unwrap_or("")
}

/// Values that queries ask for, drawn from the data itself, so that they hit with the data's own frequencies.
pub(crate) struct Values {
    packages: Vec<Value>,
    words: Vec<String>,
    title_words: Vec<String>,
}

impl Values {
    /// Takes them from some documents of each collection.
    pub(crate) fn from_documents(packages: Vec<Value>, questions: &[Value]) -> Result<Values> {
        let words = |from: &[Value], field: &str| -> Vec<String> {
            let texts = from.iter().filter_map(|document| document[field].as_str());
            let words = texts.flat_map(|text| text.split(|character: char| !character.is_ascii_alphabetic()));
            words.filter(|word| word.len() > 4).map(str::to_lowercase).collect()
        };
        let values = Values {
            words: words(&packages, "Description"),
            title_words: words(questions, "Title"),
            packages,
        };
        ensure!(
            !values.words.is_empty() && !values.title_words.is_empty(),
            "there are no documents to draw words from"
        );
        Ok(values)
    }

    /// The body of a query. Its parameters are named for what they hold.
    pub(crate) fn body(&self, query: &str, random: &mut Random) -> String {
        let mut parameters = Map::new();
        let ends = |character: char| !character.is_ascii_alphanumeric();
        for name in query.split('$').skip(1).filter_map(|after| after.split(ends).next()) {
            let package = pick(&self.packages, random);
            let value = match name {
                "package" => package["Package"].clone(),
                "section" => package["Section"].clone(),
                "maintainer" => package["Maintainer"].clone(),
                "word" => json!(pick(&self.words, random)),
                "words" => json!(format!("{} {}", pick(&self.words, random), pick(&self.words, random))),
                "title" => json!(pick(&self.title_words, random)),
                "size" => json!(1000 + random.below(100_000)),
                "size2" => json!(parameters.get("size").and_then(Value::as_u64).unwrap_or(0) * 2),
                "page" => json!(random.below(40) * 25),
                _ => json!(20_000 + random.below(20_000)),
            };
            parameters.insert(name.to_owned(), value);
        }
        json!({"Query": query, "QueryParameters": parameters}).to_string()
    }
}

fn pick<'v, T>(values: &'v [T], random: &mut Random) -> &'v T {
    &values[random.below(values.len() as u64) as usize]
}
