//! Definitions of indexes, and of the analyzers they name, out of dumps and into them: what lies between the smuggler, which knows no indexes, and the indexes, which know no dumps.

use std::collections::BTreeMap;

use jackdaw_indexing::definition::REPLACEMENT_PREFIX;
use jackdaw_indexing::{AnalyzerDefinition, IndexDefinition, Indexes};
use jackdaw_smuggler::IndexTaker;
use serde_json::{Map, Value, json};

use crate::wire::indexes::dumped;

/// The static indexes of a database as a dump has them. Of one that is being replaced it is the definition that was given last. Automatic ones are left out: queries make
/// them.
///
/// With `remove_analyzers`, fields name none.
#[must_use]
pub fn index_items(indexes: &Indexes, remove_analyzers: bool) -> Vec<Vec<u8>> {
    let mut items = BTreeMap::new();
    for index in indexes.list() {
        // Names are the same without regard to case.
        let name = index.name().to_lowercase();
        let replaced = name.strip_prefix(&REPLACEMENT_PREFIX.to_lowercase());
        if replaced.is_none() && items.contains_key(&name) {
            // Its replacement came first.
            continue;
        }
        if let Some(item) = dumped(&index, remove_analyzers) {
            items.insert(replaced.unwrap_or(&name).to_owned(), item.to_string().into_bytes());
        }
    }
    items.into_values().collect()
}

/// The custom analyzers of a database as its record has them: by name.
#[must_use]
pub fn analyzers_of_record(indexes: &Indexes) -> Value {
    let all = indexes.analyzers().into_iter().map(|analyzer| (analyzer.name.clone(), json!(analyzer)));
    Value::Object(all.collect::<Map<_, _>>())
}

/// Puts the definitions that an import finds.
pub struct TakenIndexes {
    /// Into these.
    pub indexes: Indexes,
    /// Whether fields lose their analyzers on the way.
    pub remove_analyzers: bool,
}

impl IndexTaker for TakenIndexes {
    fn take(&self, definition: Value) -> Result<(), String> {
        let mut definition = IndexDefinition::from_json(&definition).map_err(|error| error.to_string())?;
        if self.remove_analyzers {
            definition.fields.values_mut().for_each(|field| field.analyzer = None);
        }
        self.indexes.put(vec![definition]).map(drop).map_err(|error| error.to_string())
    }

    fn take_record(&self, mut record: Value) -> (u64, Vec<String>) {
        let (mut taken, mut refused) = (0, Vec::new());
        // The record may be anything.
        let analyzers = record.get_mut("Analyzers").map(Value::take);
        let Some(Value::Object(analyzers)) = analyzers else { return (0, refused) };
        for (name, analyzer) in analyzers {
            let put = serde_json::from_value::<AnalyzerDefinition>(analyzer)
                .map_err(|error| error.to_string())
                .and_then(|analyzer| {
                    self.indexes.put_analyzers(vec![analyzer]).map_err(|error| error.to_string())
                });
            match put {
                Ok(()) => taken += 1,
                Err(error) => refused.push(format!("Could not write analyzer '{name}', error: {error}")),
            }
        }
        (taken, refused)
    }
}
