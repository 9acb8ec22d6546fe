//! What texts become, and which are refused where.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;

/// The way to the results, in short.
fn way(text: &str) -> String {
    match Plan::new(text).unwrap_or_else(|error| panic!("{text}: {error}")).access {
        Access::Collection { name, ids } => format!("{} {ids:?}", name.as_deref().unwrap_or("*")),
        Access::Index(name) => format!("index {name}"),
        Access::Dynamic(definition) => definition.name(),
    }
}

#[test]
fn queries_take_the_shortest_way() {
    for (text, expected) in [
        ("from Users", "Users All"),
        ("from @all_docs", "* All"),
        ("from Users where true", "Users All"),
        ("from Users where false", "Users None"),
        ("from Users filter Age > 3 limit 10", "Users All"),
        ("from Users where id() = 'u/1'", "Users These"),
        ("from Users as u where id(u) in ($ids) select u.Name", "Users These"),
        ("from Users where startsWith(id(), 'u/')", "Users Prefix"),
        ("from @all_docs where startsWith(id(), 'u/')", "* Prefix"),
        ("from index 'Users/ByName' where Name = 'x'", "index Users/ByName"),
        ("from Users where Name = 'x'", "Auto/Users/ByName"),
        ("from Users where id() = 'u/1' and Name = 'x'", "Auto/Users/ByName"),
        ("from Users as u where u.Name = 'x' order by u.Age as long", "Auto/Users/ByAgeAndName"),
        ("from Users where Address.City = 'x' and Lines[].P > 3", "Auto/Users/ByAddress.CityAndLines[].P"),
        ("from @all_docs where Name = 'x'", "Auto/AllDocs/ByName"),
        ("from Users where search(Name, 'x')", "Auto/Users/BySearch(Name)"),
        ("from Users group by City select key(), count()", "Auto/Users/ByCountReducedByCity"),
    ] {
        assert_eq!(way(text), expected, "{text}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_its_place() {
    for (text, place, word) in [
        ("from Users as u where x.Name = 1", "1:23", "Unknown alias x"),
        ("from Users as u select x.Name", "1:24", "Unknown alias x"),
        ("from Users as u\nload z.Ref as r", "2:6", "Unknown alias z"),
        ("from Users as u include x.Name", "1:25", "Unknown alias x"),
        ("from Users where foo(Name)", "1:18", "foo"),
        ("from Users where startsWith(Name)", "1:18", "expects 2 arguments"),
        ("from Users select foo(Name)", "1:19", "Unknown method call in SELECT"),
        ("from Users select Name, Name", "1:25", "Duplicate alias"),
        ("from Users select count()", "1:19", "GROUP BY"),
        ("from Users select { A: 1 }", "1:19", "aliases"),
        ("from Users filter search(Name, 'x')", "1:19", "not supported"),
        ("from Users group by City where Name = 1 select count()", "1:1", "group by key"),
        ("from Users as u load u.Ref as r where r.Name = 1", "1:", ""),
    ] {
        match Plan::new(text) {
            Ok(plan) => panic!("{text}: {plan:?}"),
            Err(error) => {
                let message = error.to_string();
                assert!(message.contains(place) && message.contains(word), "{text}: {message}");
            }
        }
    }
}
