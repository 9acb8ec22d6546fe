//! Whether an automatic index can answer what a query asks, and what a new one should hold.

use crate::auto::{AutoDefinition, AutoField};

/// How an index suits a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Match {
    /// It has all that is asked.
    Complete,
    /// It lacks something, and a wider one can take its place.
    Partial(Mismatch),
    /// It is of another kind.
    None(Mismatch),
}

/// What an index lacks, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch(pub String);

/// Why an index was not taken, for who asks how a query is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The index.
    pub index: String,
    /// Why not.
    pub reason: String,
}

impl AutoDefinition {
    /// How an index of this definition suits `asked`.
    pub fn matches(&self, asked: &AutoDefinition) -> Match {
        let none = |reason: String| Match::None(Mismatch(reason));
        if !self.collection.eq_ignore_ascii_case(&asked.collection) {
            return none(format!(
                "Query is for collection '{}' and index is for '{}'",
                asked.collection, self.collection
            ));
        }
        if self.is_map_reduce() != asked.is_map_reduce() {
            return none("one groups results and the other does not".to_owned());
        }
        if asked.is_map_reduce() {
            let same_keys = self.group_by_fields.len() == asked.group_by_fields.len()
                && asked.group_by_fields.iter().all(|(path, field)| {
                    self.group_by_fields
                        .get(path)
                        .is_some_and(|own| own.group_by_array == field.group_by_array && own.has(field))
                });
            if !same_keys {
                return none("Index does not have the same group by fields".to_owned());
            }
        }
        for (path, field) in &asked.map_fields {
            match self.map_fields.get(path) {
                None => return Match::Partial(Mismatch(format!("The following field is missing: {path}"))),
                Some(own) if !own.has(field) => {
                    return Match::Partial(Mismatch(format!("The field {path} is indexed in another way")));
                }
                Some(own) if own.aggregation != field.aggregation => {
                    return Match::Partial(Mismatch(format!(
                        "The field {path} is aggregated in another way"
                    )));
                }
                Some(_) => {}
            }
        }
        Match::Complete
    }

    /// What is asked, with the fields of an index that lacks some of it. A field that both have is as the query asks.
    pub fn extended_by(&self, index: &AutoDefinition) -> AutoDefinition {
        let mut wider = self.clone();
        for (path, field) in &index.map_fields {
            wider.map_fields.entry(path.clone()).or_insert_with(|| field.clone());
        }
        wider
    }

    /// How many fields it has, and how much is indexed of them.
    pub(crate) fn width(&self) -> (usize, usize) {
        let ways = |field: &AutoField| {
            [field.exact, field.search, field.highlighting, field.suggestions]
                .into_iter()
                .filter(|way| *way)
                .count()
        };
        (self.map_fields.len(), self.map_fields.values().map(ways).sum())
    }
}

impl AutoField {
    /// Whether this has all that `asked` needs.
    fn has(&self, asked: &AutoField) -> bool {
        (self.exact || !asked.exact)
            && (self.search || !asked.search)
            && (self.highlighting || !asked.highlighting)
            && (self.suggestions || !asked.suggestions)
            && (asked.spatial.is_none() || self.spatial == asked.spatial)
    }
}

#[cfg(test)]
mod tests {
    use crate::auto::*;

    fn of(collection: &str, paths: &[&str]) -> AutoDefinition {
        let mut definition = AutoDefinition::new(collection);
        paths.iter().for_each(|path| *definition.field(path) = AutoField::default());
        definition
    }

    #[test]
    fn a_wider_index_answers_and_a_narrower_one_is_extended() {
        let index = of("Users", &["Age", "Name"]);
        assert_eq!(index.matches(&of("users", &["Age"])), Match::Complete);
        assert_eq!(index.matches(&of("Users", &[])), Match::Complete);
        let asked = of("Users", &["City"]);
        assert!(matches!(index.matches(&asked), Match::Partial(_)));
        assert_eq!(asked.extended_by(&index).name(), "Auto/Users/ByAgeAndCityAndName");
        assert!(matches!(index.matches(&of("Orders", &["Age"])), Match::None(_)));
    }

    #[test]
    fn ways_of_indexing_must_be_there_and_the_query_has_the_last_word() {
        let mut index = of("Users", &["Name"]);
        index.field("Name").search = true;
        assert_eq!(index.matches(&of("Users", &["Name"])), Match::Complete);
        let mut asked = of("Users", &["Name"]);
        asked.field("Name").exact = true;
        assert!(matches!(index.matches(&asked), Match::Partial(_)));
        assert_eq!(asked.extended_by(&index).name(), "Auto/Users/ByExact(Name)");
    }

    #[test]
    fn groups_must_have_the_same_keys() {
        let grouped = |key: &str| {
            let mut definition = of("Users", &[]);
            definition.field("Count").aggregation = Aggregation::Count;
            definition.group_by_fields.insert(key.to_owned(), AutoField::default());
            definition
        };
        assert_eq!(grouped("Age").matches(&grouped("Age")), Match::Complete);
        assert!(matches!(grouped("Age").matches(&grouped("Name")), Match::None(_)));
        assert!(matches!(grouped("Age").matches(&of("Users", &["Age"])), Match::None(_)));
    }
}
