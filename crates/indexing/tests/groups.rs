//! Map/reduce indexes follow documents: put, change, delete, restarts, failing functions, automatic groups.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use jackdaw_document::{Document, Style};
use jackdaw_indexing::auto::AutoDefinition;
use jackdaw_indexing::auto::{Aggregation, AutoField, GroupByArray};
use jackdaw_search::Query;
use serde_json::json;
use support::Shop;

/// All results, as JSON, sorted.
fn results(shop: &Shop, name: &str) -> Vec<String> {
    let view = shop.caught_up(name);
    let page = view.searcher().search(&Query::All, &[], 0, usize::MAX, false).unwrap();
    let shown = |stored: &[u8]| Document::open(stored).unwrap().to_json(Style::Compact).to_string();
    let mut all: Vec<_> = page.hits.iter().map(|hit| shown(&hit.stored)).collect();
    all.sort();
    all
}

fn question(tags: &[&str], month: u32, views: i64) -> String {
    let date = format!("2020-{month:02}-05T10:00:00.0000000Z");
    json!({ "Tags": tags, "CreationDate": date, "Views": views, "@metadata": { "@collection": "Questions" } })
        .to_string()
}

fn per_tag(shop: &Shop) {
    shop.define(json!({
        "Name": "Questions/PerTag",
        "Maps": ["from q in docs.Questions from tag in q.Tags select new { Tag = tag, Count = 1, Views = q.Views }"],
        "Reduce": "from r in results group r by r.Tag into g select new { Tag = g.Key, Count = g.Sum(x => x.Count), Views = g.Sum(x => x.Views) }",
    }));
}

#[test]
fn groups_follow_documents_and_restarts() {
    let shop = Shop::new();
    per_tag(&shop);
    shop.define(json!({
        "Name": "Questions/PerMonth",
        "Maps": ["from q in docs.Questions select new { q.CreationDate.Year, q.CreationDate.Month, Count = 1 }"],
        "Reduce": "from r in results group r by new { r.Year, r.Month } into g select new { g.Key.Year, g.Key.Month, Count = g.Sum(x => x.Count) }",
    }));
    shop.put("questions/1", &question(&["rust", "linux"], 1, 10));
    shop.put("questions/2", &question(&["rust"], 2, 5));
    shop.put("others/1", r#"{"Tags":["rust"],"@metadata":{"@collection":"Others"}}"#);
    let linux = r#"{"Tag":"linux","Count":1,"Views":10}"#;
    assert_eq!(results(&shop, "Questions/PerTag"), [linux, r#"{"Tag":"rust","Count":2,"Views":15}"#]);
    assert_eq!(
        results(&shop, "Questions/PerMonth"),
        [r#"{"Year":2020,"Month":1,"Count":1}"#, r#"{"Year":2020,"Month":2,"Count":1}"#]
    );
    assert_eq!(shop.find("Questions/PerTag", "Views", 15).len(), 1);

    shop.put("questions/2", &question(&["linux", "rust"], 1, 7));
    shop.put("Questions/3", &question(&["zig"], 1, 1));
    assert_eq!(
        results(&shop, "Questions/PerTag"),
        [
            r#"{"Tag":"linux","Count":2,"Views":17}"#,
            r#"{"Tag":"rust","Count":2,"Views":17}"#,
            r#"{"Tag":"zig","Count":1,"Views":1}"#,
        ]
    );
    assert_eq!(results(&shop, "Questions/PerMonth"), [r#"{"Year":2020,"Month":1,"Count":3}"#]);

    let shop = shop.reopen();
    shop.delete("questions/3");
    shop.delete("questions/1");
    assert_eq!(
        results(&shop, "Questions/PerTag"),
        [r#"{"Tag":"linux","Count":1,"Views":7}"#, r#"{"Tag":"rust","Count":1,"Views":7}"#]
    );
    shop.delete("questions/2");
    assert_eq!(results(&shop, "Questions/PerTag"), Vec::<String>::new());
    assert_eq!(results(&shop, "Questions/PerMonth"), Vec::<String>::new());
}

/// A function that is more than sums is run, over several maps, and over partial results when a group is large.
#[test]
fn functions_are_run_over_results_of_several_maps() {
    let shop = Shop::new();
    shop.define(json!({
        "Name": "Totals",
        "Maps": [
            "from o in docs.Orders select new { o.Company, Total = o.Total, Largest = o.Total, Names = new string[0] }",
            "docs.Companies.Select(c => new { Company = Id(c), Total = 0, Largest = 0, Names = new [] { c.Name } })",
        ],
        "Reduce": "from r in results group r by r.Company into g select new { Company = g.Key, Total = g.Sum(x => x.Total), Largest = g.Max(x => x.Largest), Names = g.SelectMany(x => x.Names).ToArray() }",
    }));
    shop.put("companies/1", r#"{"Name":"Ada & Co","@metadata":{"@collection":"Companies"}}"#);
    for at in 1..=300 {
        let order =
            json!({ "Company": "companies/1", "Total": at, "@metadata": { "@collection": "Orders" } });
        shop.put(&format!("orders/{at}"), &order.to_string());
    }
    let all = |total: i64, largest: i64| {
        vec![format!(
            r#"{{"Company":"companies/1","Total":{total},"Largest":{largest},"Names":["Ada & Co"]}}"#
        )]
    };
    assert_eq!(results(&shop, "Totals"), all(300 * 301 / 2, 300));
    shop.delete("orders/300");
    assert_eq!(results(&shop, "Totals"), all(299 * 300 / 2, 299));
}

/// A failing reduce takes its own key out and is told; when its cause goes, the key is back.
#[test]
fn a_failing_reduce_takes_out_its_key_alone() {
    let shop = Shop::new();
    per_tag(&shop);
    for at in 0..20 {
        shop.put(&format!("questions/{at}"), &question(&[&format!("tag{at:02}")], 1, 1));
    }
    shop.caught_up("Questions/PerTag");
    let text = question(&["tag00"], 1, 1).replace("\"Views\":1", "\"Views\":\"many\"");
    shop.put("questions/x", &text);
    assert_eq!(results(&shop, "Questions/PerTag").len(), 19);
    let errors = shop.indexes.get("Questions/PerTag").unwrap().errors().unwrap();
    assert_eq!(errors.len(), 1);
    assert_eq!(
        (errors[0].action.as_str(), errors[0].document.as_deref()),
        ("Reduce", Some("Reduce key: [\"tag00\"]"))
    );
    assert!(errors[0].error.contains("Views"), "{}", errors[0].error);
    shop.delete("questions/x");
    assert_eq!(results(&shop, "Questions/PerTag")[0], r#"{"Tag":"tag00","Count":1,"Views":1}"#);
}

#[test]
fn automatic_groups() {
    let shop = Shop::new();
    shop.put("questions/1", &question(&["rust", "linux"], 1, 10));
    shop.put("questions/2", &question(&["rust"], 2, 5));
    let mut definition = AutoDefinition::new("Questions");
    let each = AutoField { group_by_array: GroupByArray::ByIndividualValues, ..AutoField::default() };
    definition.group_by_fields.insert("Tags[]".into(), each);
    definition.field("Count").aggregation = Aggregation::Count;
    definition.field("Views").aggregation = Aggregation::Sum;
    let name = shop.indexes.auto(&definition).unwrap().index.name();
    assert_eq!(
        results(&shop, &name),
        [r#"{"Tags[]":"linux","Count":1,"Views":10}"#, r#"{"Tags[]":"rust","Count":2,"Views":15}"#]
    );
    shop.delete("questions/1");
    assert_eq!(results(&shop, &name), [r#"{"Tags[]":"rust","Count":1,"Views":5}"#]);
}

/// The ids and contents of documents, without their metadata.
fn documents(shop: &Shop, prefix: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let snapshot = shop.database.read().unwrap();
    let visited = snapshot.documents_by_prefix(prefix, None, |document| {
        let mut json: serde_json::Value =
            serde_json::from_str(&document.document.to_json(Style::Compact).to_string()).unwrap();
        json.as_object_mut().unwrap().remove("@metadata");
        assert_eq!(document.flags.to_string(), "Artificial, FromIndex");
        found.push((document.id.to_owned(), json.to_string()));
        Ok(std::ops::ControlFlow::Continue(()))
    });
    visited.unwrap();
    found
}

fn sale(region: &str, day: Option<u32>, amount: i64) -> String {
    let at = day.map(|day| format!("2024-02-{day:02}T00:00:00.0000000"));
    json!({ "Region": region, "At": at, "Amount": amount, "@metadata": { "@collection": "Sales" } })
        .to_string()
}

/// Results as documents, with references by pattern, follow what changes; a reset leaves nothing behind.
#[test]
fn results_become_documents() {
    let shop = Shop::new();
    let number = shop.define(json!({
        "Name": "Profits",
        "Maps": ["from s in docs.Sales select new { s.Region, s.At, s.Amount }"],
        "Reduce": "from r in results group r by new { r.Region, r.At } into g select new { g.Key.Region, g.Key.At, Amount = g.Sum(x => x.Amount) }",
        "OutputReduceToCollection": "Profits",
        "PatternForOutputReduceToCollectionReferences": "reports/{At:yyyy-MM-dd}",
    })).raft_index();
    shop.put("sales/1", &sale("eu", Some(5), 1));
    shop.put("sales/2", &sale("eu", Some(5), 2));
    shop.put("sales/3", &sale("us", Some(5), 4));
    shop.put("sales/4", &sale("us", Some(6), 8));
    shop.caught_up("Profits");
    let made = documents(&shop, "Profits/");
    assert_eq!(made.len(), 3);
    assert!(made.iter().all(|(id, _)| id.starts_with(&format!("Profits/{number}/"))), "{made:?}");
    let eu = |made: &[(String, String)]| made.iter().find(|(_, json)| json.contains("\"eu\"")).cloned();
    let (eu_id, eu_json) = eu(&made).unwrap();
    assert!(eu_json.contains("\"Amount\":3"), "{eu_json}");
    let reports = documents(&shop, "reports/");
    assert_eq!(
        reports.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(),
        ["reports/2024-02-05", "reports/2024-02-06"]
    );
    assert!(reports[0].1.contains(&eu_id) && !reports[1].1.contains(&eu_id));
    let collection =
        |name: &str| shop.database.read().unwrap().collection(name).unwrap().map(|found| found.documents);
    assert_eq!((collection("Profits"), collection("Profits/References")), (Some(3), Some(2)));

    // What does not change is not written again.
    let etag = shop.database.read().unwrap().last_etag().unwrap();
    shop.put("sales/5", &sale("us", Some(6), 0));
    shop.caught_up("Profits");
    assert_eq!(shop.database.read().unwrap().last_etag().unwrap(), etag + 1);

    shop.put("sales/4", &sale("us", Some(5), 8));
    shop.delete("sales/5");
    shop.put("sales/6", &sale("no day", None, 1));
    shop.caught_up("Profits");
    let reports = documents(&shop, "reports/");
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0].1.matches("Profits/").count(), 2, "{reports:?}");
    assert!(
        shop.indexes
            .get("Profits")
            .unwrap()
            .errors()
            .unwrap()
            .iter()
            .any(|error| error.error.contains("'At' was null"))
    );

    let shop = shop.reopen();
    shop.delete("sales/1");
    shop.delete("sales/2");
    shop.caught_up("Profits");
    assert!(eu(&documents(&shop, "Profits/")).is_none());
    assert_eq!(documents(&shop, "reports/")[0].1.matches("Profits/").count(), 1);
    let before = documents(&shop, "Profits/");
    shop.indexes.reset("Profits").unwrap();
    shop.caught_up("Profits");
    let after = documents(&shop, "Profits/").len();
    assert_eq!(after, before.len());
}

/// People see how results come about, while the index goes on and after it was opened again.
#[test]
fn trees_and_stored_results_are_shown() {
    let shop = Shop::new();
    per_tag(&shop);
    for at in 0..2000 {
        shop.put(&format!("questions/{at}"), &question(&["rust"], 1, at));
    }
    shop.put("questions/x", &question(&["zig", "rust"], 1, 7));
    shop.caught_up("Questions/PerTag");
    let shop = shop.reopen();
    let index = shop.indexes.get("Questions/PerTag").unwrap();
    let trees = index.trees_of_document("Questions/X").unwrap().unwrap();
    let names: Vec<_> = trees.iter().map(|tree| tree["DisplayName"].as_str().unwrap()).collect();
    assert_eq!(names, ["[\"zig\"]", "[\"rust\"]"]);
    assert_eq!(trees[1]["NumberOfEntries"], 2001);
    assert_eq!(trees[1]["Root"]["AggregationResult"]["Count"], 2001);
    let leaf = trees[1]["Root"]["Children"].as_array().unwrap().last().unwrap();
    let own = leaf["Entries"].as_array().unwrap().iter().find(|entry| entry["Source"] == "questions/x");
    assert_eq!(own.unwrap()["Data"], json!({ "Tag": "rust", "Count": 1, "Views": 7 }));
    assert!(index.trees_of_document("questions/none").unwrap().is_none());

    let stored = index.stored_results(0, 1).unwrap();
    assert_eq!(stored.len(), 1);
    assert_eq!((&stored[0]["Key"], &stored[0]["Result"]["Count"]), (&json!(["rust"]), &json!(2001)));
    assert_eq!(index.stored_results(1, 10).unwrap()[0]["Key"], json!(["zig"]));
    drop(index);
}

/// A document that is deleted and comes back in another collection is in the index once, whichever collection is taken first.
#[test]
fn a_document_changes_its_collection() {
    for maps in [["Zebras", "Antelopes"], ["Antelopes", "Zebras"]] {
        let shop = Shop::new();
        let maps = maps.map(|name| format!("from d in docs.{name} select new {{ d.Herd, Count = 1 }}"));
        shop.define(json!({ "Name": "Plain", "Maps": maps }));
        shop.define(json!({
            "Name": "Herds", "Maps": maps,
            "Reduce": "from r in results group r by r.Herd into g select new { Herd = g.Key, Count = g.Sum(x => x.Count) }",
        }));
        let animal =
            |collection: &str| json!({ "Herd": "h", "@metadata": { "@collection": collection } }).to_string();
        for (before, after) in [("Zebras", "Antelopes"), ("Antelopes", "Zebras")] {
            shop.put("a/1", &animal(before));
            assert_eq!(results(&shop, "Herds"), [r#"{"Herd":"h","Count":1}"#]);
            assert_eq!(shop.all("Plain"), ["a/1"]);
            shop.indexes.stop_all(None);
            shop.delete("a/1");
            shop.put("a/1", &animal(after));
            shop.indexes.start_all(None);
            assert_eq!(results(&shop, "Herds"), [r#"{"Herd":"h","Count":1}"#]);
            assert_eq!(shop.all("Plain"), ["a/1"]);
            shop.delete("a/1");
        }
    }
}
