//! Names of automatic indexes: `Auto/Users/ByAgeAndSearch(Name)`, `Auto/Orders/ByCountReducedByCompany`.

use crate::auto::{ALL_DOCUMENTS, AutoDefinition, AutoField, GroupByArray};
use crate::definition::AUTO_PREFIX;

pub(super) fn name(definition: &AutoDefinition) -> String {
    let collection = match definition.collection.as_str() {
        ALL_DOCUMENTS => "AllDocs",
        other => other,
    };
    let mut name = format!("{AUTO_PREFIX}{collection}");
    let parts = sorted(definition.map_fields.iter().map(|(path, field)| decorated(path, field)));
    if !parts.is_empty() {
        name.push_str("/By");
        name.push_str(&parts.join("And"));
    }
    if definition.is_map_reduce() {
        let keys =
            sorted(definition.group_by_fields.iter().map(|(path, field)| match field.group_by_array {
                GroupByArray::ByContent => format!("Array({path})"),
                _ => decorated(path, field),
            }));
        if parts.is_empty() {
            name.push('/');
        }
        name.push_str("ReducedBy");
        name.push_str(&keys.join("And"));
    }
    name
}

fn decorated(path: &str, field: &AutoField) -> String {
    if field.spatial.is_some() {
        let mut name: String = path.split(',').map(str::trim).collect::<Vec<_>>().join("|");
        if let Some(first) = name.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        return name;
    }
    let decorations = [
        (field.search, "Search"),
        (field.highlighting, "Highlight"),
        (field.exact, "Exact"),
        (field.suggestions, "Suggest"),
    ];
    let parts: Vec<String> =
        decorations.iter().filter(|(is_on, _)| *is_on).map(|(_, name)| format!("{name}({path})")).collect();
    if parts.is_empty() { path.to_owned() } else { parts.join("And") }
}

/// By letters without regard to case, then small letters first.
fn sorted(parts: impl Iterator<Item = String>) -> Vec<String> {
    let mut parts: Vec<String> = parts.collect();
    parts.sort_by(|a, b| a.to_lowercase().cmp(&b.to_lowercase()).then_with(|| b.cmp(a)));
    parts
}

#[cfg(test)]
mod tests {
    use crate::auto::*;

    fn spatial(method: SpatialMethod, arguments: &[&str]) -> Option<AutoSpatial> {
        let arguments = arguments.iter().map(|path| (*path).to_owned()).collect();
        Some(AutoSpatial { method, arguments, options: Default::default() })
    }

    #[test]
    fn names_are_those_of_the_reference() {
        let users = |set: &dyn Fn(&mut AutoDefinition)| {
            let mut definition = AutoDefinition::new("Users");
            set(&mut definition);
            definition.name()
        };
        let plain = |paths: &[&str]| {
            users(&|definition| paths.iter().for_each(|path| *definition.field(path) = AutoField::default()))
        };
        assert_eq!(plain(&["Name"]), "Auto/Users/ByName");
        assert_eq!(plain(&["Name", "Age", "Lines[].P"]), "Auto/Users/ByAgeAndLines[].PAndName");
        assert_eq!(plain(&["Name", "name"]), "Auto/Users/BynameAndName");
        assert_eq!(
            plain(&["Name", "@metadata.@last-modified"]),
            "Auto/Users/By@metadata.@last-modifiedAndName"
        );
        let mixed = users(&|definition| {
            definition.field("Age");
            definition.field("spatial.point(Lat, Lng)").spatial =
                spatial(SpatialMethod::Point, &["Lat", "Lng"]);
            let name = definition.field("Name");
            name.search = true;
            name.highlighting = true;
        });
        assert_eq!(mixed, "Auto/Users/ByAgeAndSearch(Name)AndHighlight(Name)AndSpatial.point(Lat|Lng)");
        let suggest = users(&|definition| {
            definition.field("spatial.point(Lat, Lng)").spatial =
                spatial(SpatialMethod::Point, &["Lat", "Lng"]);
            definition.field("Name").suggestions = true;
        });
        assert_eq!(suggest, "Auto/Users/BySpatial.point(Lat|Lng)AndSuggest(Name)");
        assert_eq!(
            AutoDefinition { collection: ALL_DOCUMENTS.to_owned(), ..Default::default() }.name(),
            "Auto/AllDocs"
        );
    }

    #[test]
    fn groups_are_named_by_their_keys() {
        let grouped = |behavior, key: &str| {
            let mut definition = AutoDefinition::new("Orders");
            definition.field("Count").aggregation = Aggregation::Count;
            definition.field("Price").aggregation = Aggregation::Sum;
            let field = AutoField { group_by_array: behavior, ..AutoField::default() };
            definition.group_by_fields.insert(key.to_owned(), field);
            definition.name()
        };
        assert_eq!(grouped(GroupByArray::NotApplicable, "Cat"), "Auto/Orders/ByCountAndPriceReducedByCat");
        assert_eq!(
            grouped(GroupByArray::ByIndividualValues, "Lines[].P"),
            "Auto/Orders/ByCountAndPriceReducedByLines[].P"
        );
        assert_eq!(
            grouped(GroupByArray::ByContent, "Lines[].P"),
            "Auto/Orders/ByCountAndPriceReducedByArray(Lines[].P)"
        );
    }
}
