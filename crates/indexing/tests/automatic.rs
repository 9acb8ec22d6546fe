//! Automatic indexes: found, made, widened, retired.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use jackdaw_indexing::auto::{AutoDefinition, AutoSpatial, SpatialMethod};
use support::Shop;

fn asked(collection: &str, paths: &[&str]) -> AutoDefinition {
    let mut asked = AutoDefinition::new(collection);
    for path in paths {
        asked.field(path);
    }
    asked
}

#[test]
fn the_first_query_makes_one_and_a_wider_one_follows() {
    let shop = Shop::new();
    shop.put("users/1", r#"{"Name":"Ada","Age":3,"@metadata":{"@collection":"Users"}}"#);
    let first = shop.indexes.auto(&asked("users", &["Name"])).unwrap();
    assert!(first.created);
    assert_eq!(first.index.name(), "Auto/Users/ByName", "as the collection is spelt");
    assert_eq!(shop.find("auto/users/byname", "Name", "ada"), ["users/1"]);
    assert!(!shop.indexes.auto(&asked("Users", &["Name"])).unwrap().created);
    let second = shop.indexes.auto(&asked("Users", &["Age"])).unwrap();
    assert_eq!((second.index.name().as_str(), second.created), ("Auto/Users/ByAgeAndName", true));
    shop.caught_up("Auto/Users/ByAgeAndName");
    assert_eq!(
        shop.indexes.auto(&asked("Users", &["Name"])).unwrap().index.name(),
        "Auto/Users/ByAgeAndName"
    );
    let reasons = shop.indexes.explain_auto(&asked("Users", &["Age"]));
    assert_eq!(reasons.len(), 1);
    assert!(reasons[0].reason.contains("Age"), "{}", reasons[0].reason);
    drop((first, second));
    // Not at once: queries that run may still use it.
    shop.indexes.retire_unused().unwrap();
    assert_eq!(shop.indexes.count(), 2);
    let shop = shop.reopen();
    assert_eq!(shop.indexes.count(), 2);
    assert!(!shop.indexes.auto(&asked("Users", &["Age", "Name"])).unwrap().created);
}

#[test]
fn values_are_taken_from_paths() {
    let shop = Shop::new();
    shop.put(
        "orders/1",
        r#"{"Company":"C","Lines":[{"P":"a","N":1},{"P":"B","N":2.5}],"Ship":{"To":{"City":"Rome"}},"Empty":null,"Flag":true,
            "Obj":{"a":1},"At":"2020-01-02T03:04:05Z","@metadata":{"@collection":"Orders","Extra":"e"}}"#,
    );
    let mut asked = asked(
        "Orders",
        &["Company", "Lines[].P", "Lines[].N", "Ship.To.City", "Empty", "Flag", "None", "@metadata.Extra"],
    );
    asked.field("Company").exact = true;
    asked.field("Company").search = true;
    asked.field("id()");
    asked.field("@metadata.@last-modified");
    let name = shop.indexes.auto(&asked).unwrap().index.name();
    let terms = |field: &str| shop.terms(&name, field);
    assert_eq!(terms("Company"), ["c"]);
    assert_eq!(terms("exact(Company)"), ["C"]);
    assert_eq!(terms("search(Company)"), ["c"]);
    assert_eq!(terms("Lines[].P"), ["a", "b"]);
    assert_eq!(terms("Lines[].N"), ["1", "2.5"]);
    assert_eq!(terms("Ship.To.City"), ["rome"]);
    assert_eq!(terms("Empty"), ["NULL_VALUE"]);
    assert_eq!(terms("Flag"), ["true"]);
    assert_eq!(terms("None"), [""; 0]);
    assert_eq!(terms("@metadata.Extra"), ["e"]);
    assert_eq!(terms("@metadata.@last-modified").len(), 1);
}

#[test]
fn all_documents_and_places() {
    let shop = Shop::new();
    shop.put("a/1", r#"{"Name":"a","Lat":"1.5","Lng":2,"@metadata":{"@collection":"A"}}"#);
    shop.put("b/1", r#"{"Name":"b"}"#);
    let all = shop.indexes.auto(&asked("@all_docs", &["Name"])).unwrap().index.name();
    assert_eq!(all, "Auto/AllDocs/ByName");
    assert_eq!(shop.terms(&all, "Name"), ["a", "b"]);
    let mut places = AutoDefinition::new("A");
    let arguments = vec!["Lat".to_owned(), "Lng".to_owned()];
    places.field("spatial.point(Lat, Lng)").spatial =
        Some(AutoSpatial { method: SpatialMethod::Point, arguments, options: Default::default() });
    let index = shop.indexes.auto(&places).unwrap().index;
    assert_eq!(index.name(), "Auto/A/BySpatial.point(Lat|Lng)");
    assert_eq!(shop.all(&index.name()), ["a/1"]);
    let record = index.auto_definition().unwrap().to_record(&index.name());
    assert_eq!(AutoDefinition::from_record(&record), index.auto_definition(), "as a dump has it");
}
