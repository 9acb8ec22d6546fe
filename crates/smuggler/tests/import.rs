//! Imports into a database, exports out of it, and both ways round.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{Cursor, Read, Write};

use jackdaw_database::{Database, DatabaseOptions, Fields, Order, print_document};
use jackdaw_smuggler::{
    BulkInsert, CsvOptions, DumpCompression, DumpOptions, Error, Existing, Expansion, ExportOptions, Format,
    ImportOptions, Imported, IndexReport, IndexTaker, Place, Progress, Report, decompressed, export, import,
};

struct Shop {
    database: Database,
    _directory: tempfile::TempDir,
}

impl Shop {
    fn new() -> Shop {
        let directory = tempfile::tempdir().unwrap();
        let database = Database::open(directory.path(), "shop", DatabaseOptions::default()).unwrap();
        Shop { database, _directory: directory }
    }

    fn import(&self, input: impl Into<Vec<u8>>, format: &Format, options: &ImportOptions) -> Imported {
        import(&self.database, None, Cursor::new(input.into()), format, options, &Progress::default())
    }

    fn lines(&self, input: &str, options: &ImportOptions) -> Report {
        let Imported { report, failure } = self.import(input, &Format::Lines, options);
        assert!(failure.is_none(), "{failure:?}");
        report
    }

    /// A document's JSON without what differs from write to write; none if there is none.
    fn document(&self, id: &str) -> Option<String> {
        let snapshot = self.database.read().unwrap();
        let document = snapshot.document(id).unwrap()?;
        let mut text = Vec::new();
        print_document(&document, Fields::All, &mut text);
        let mut json: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let metadata = json["@metadata"].as_object_mut().unwrap();
        metadata.remove("@change-vector");
        metadata.remove("@last-modified");
        Some(json.to_string())
    }

    fn count(&self) -> u64 {
        self.database.read().unwrap().document_count().unwrap()
    }

    fn ids(&self) -> Vec<String> {
        let mut ids = Vec::new();
        let visit = |document: jackdaw_database::StoredDocument<'_>| {
            ids.push(document.id.to_owned());
            Ok(std::ops::ControlFlow::Continue(()))
        };
        self.database.read().unwrap().documents_by_etag(0, Order::Ascending, visit).unwrap();
        ids
    }
}

/// The order of properties depends on how `serde_json` was built, which other crates decide.
fn parsed(json: &str) -> serde_json::Value {
    serde_json::from_str(json).unwrap()
}

fn in_collection(name: &str) -> ImportOptions {
    ImportOptions { collection: Some(name.into()), ..ImportOptions::default() }
}

#[test]
fn lines_keep_their_ids_and_dirty_ones_are_refused_with_their_number() {
    let shop = Shop::new();
    let input = b"{\"Name\":\"Ada\",\"@metadata\":{\"@id\":\"users/1\",\"@collection\":\"Users\"}}\n\
        not json\n\
        {\"Name\":\"cut\n\
        \n\
        [1]\n\
        {\"Name\":\"\xff\"}\n\
        {\"Name\":\"B\xC3\xA9a\",\"@metadata\":{\"@id\":\"users/2\",\"@collection\":\"users\"}}\n\
        {\"@metadata\":{\"@id\":7}}\n\
        {\"@metadata\":1}\n\
        {\"n\":1} {\"n\":2}";
    let Imported { report, failure } = shop.import(&input[..], &Format::Lines, &ImportOptions::default());
    assert!(failure.is_none());
    let lines: Vec<_> = report.refusals.iter().map(|refusal| refusal.place).collect();
    assert_eq!(lines, [2, 3, 5, 6, 8, 9, 10].map(Place::Line));
    assert_eq!((report.documents, report.refused), (2, 7));
    assert!(report.refusals[3].reason.contains("not UTF-8"), "{}", report.refusals[3]);
    let ada = r#"{"@metadata":{"@collection":"Users","@id":"users/1"},"Name":"Ada"}"#;
    assert_eq!(parsed(&shop.document("users/1").unwrap()), parsed(ada));
    let bea = shop.document("users/2").unwrap();
    assert!(bea.contains("Béa"), "{bea}");
    let collections = shop.database.read().unwrap().collections().unwrap();
    assert_eq!(collections.len(), 1, "{collections:?}");
}

#[test]
fn ids_come_from_a_property_or_are_made() {
    let shop = Shop::new();
    let options = ImportOptions {
        id_property: Some("Order.Number".into()),
        id_prefix: Some("orders/".into()),
        ..in_collection("Orders")
    };
    let input = "{\"Order\":{\"Number\":7}}\n{\"Order\":{\"Number\":\"x-1\"}}\n{\"Order\":{}}\n{\"Order\":{\"Number\":[]}}\n";
    let report = shop.lines(input, &options);
    assert_eq!((report.documents, report.refused), (2, 2));
    assert_eq!(shop.ids(), ["orders/7", "orders/x-1"]);

    let shop = Shop::new();
    shop.lines("{\"a\":1}\n{\"a\":2}\n", &in_collection("Users"));
    let ids = shop.ids();
    assert!(ids.iter().all(|id| id.starts_with("users/000000000000000000") && id.ends_with("-A")), "{ids:?}");

    let shop = Shop::new();
    let options = ImportOptions { id_prefix: Some("users|".into()), ..in_collection("Users") };
    shop.lines("{\"a\":1}\n{\"a\":2}\n", &options);
    assert_eq!(shop.ids(), ["users/1", "users/2"]);

    let shop = Shop::new();
    shop.lines("{\"a\":1}\n", &ImportOptions::default());
    assert_eq!(shop.ids()[0].len(), 36);
}

#[test]
fn documents_that_name_no_collection_are_of_the_one_that_is_asked_for() {
    let shop = Shop::new();
    let input = r#"{"n":1}
{"n":2,"@metadata":{}}
{"n":3,"@metadata":{"Kept":1,"@id":"x/3"}}
{"n":4,"@metadata":{"@collection":null,"@id":"x/4"}}
{"n":5,"@metadata":{"@collection":"","@id":"x/5"}}
{"n":6,"@metadata":{"@collection":"Orders","@id":"x/6"}}
"#;
    assert_eq!(shop.lines(input, &in_collection("Users")).documents, 6);
    let collections = shop.database.read().unwrap().collections().unwrap();
    let collections: Vec<_> = collections.iter().map(|found| (&*found.name, found.documents)).collect();
    assert_eq!(collections, [("Orders", 1), ("Users", 5)]);
    // It says so itself, so that a client that reads it and saves it changes no collection.
    let third = parsed(r#"{"n":3,"@metadata":{"Kept":1,"@collection":"Users","@id":"x/3"}}"#);
    assert_eq!(parsed(&shop.document("x/3").unwrap()), third);
    for id in ["x/4", "x/5"] {
        let document = parsed(&shop.document(id).unwrap());
        assert_eq!(document["@metadata"]["@collection"], "Users", "{id}");
    }
}

#[test]
fn of_two_documents_with_one_id_the_later_counts() {
    let shop = Shop::new();
    let mut input = String::new();
    for i in 0..20_000 {
        input += &format!("{{\"n\":{i},\"@metadata\":{{\"@id\":\"users/{}\"}}}}\n", i % 7);
    }
    let options = ImportOptions { threads: 3, ..in_collection("Users") };
    assert_eq!(shop.lines(&input, &options).documents, 20_000);
    assert_eq!(shop.count(), 7);
    for i in 19_993..20_000 {
        assert!(shop.document(&format!("users/{}", i % 7)).unwrap().contains(&format!("\"n\":{i}")));
    }
}

#[test]
fn what_is_there_is_written_over_or_not() {
    let shop = Shop::new();
    let input = "{\"n\":1,\"@metadata\":{\"@id\":\"a\"}}\n{\"n\":1,\"@metadata\":{\"@id\":\"b\"}}\n";
    let other = "{\"n\":1,\"@metadata\":{\"@id\":\"a\"}}\n{\"n\":2,\"@metadata\":{\"@id\":\"b\"}}\n";
    let with = |existing| ImportOptions { existing, ..ImportOptions::default() };
    let first = shop.lines(input, &with(Existing::SkipUnchanged));
    assert_eq!((first.documents, first.last_etag), (2, 2));
    let kept = shop.lines(other, &with(Existing::Keep));
    assert_eq!((kept.documents, kept.unchanged), (0, 2));
    let skipped = shop.lines(other, &with(Existing::SkipUnchanged));
    assert_eq!((skipped.documents, skipped.unchanged, skipped.last_etag), (1, 1, 3));
    let overwritten = shop.lines(other, &with(Existing::Overwrite));
    assert_eq!((overwritten.documents, overwritten.unchanged, overwritten.last_etag), (2, 0, 5));
}

#[test]
fn an_id_that_cannot_be_refuses_its_document_alone() {
    let shop = Shop::new();
    let long = "x".repeat(600);
    let input = format!(
        "{{\"@metadata\":{{\"@id\":\"a\"}}}}\n{{\"@metadata\":{{\"@id\":\"{long}\"}}}}\n{{\"@metadata\":{{\"@id\":\"b\",\"@collection\":\"{long}\"}}}}\n{{\"@metadata\":{{\"@id\":\"c\"}}}}\n"
    );
    let report = shop.lines(&input, &ImportOptions::default());
    assert_eq!((report.documents, report.refused), (2, 2));
    assert_eq!(shop.ids(), ["a", "c"]);
}

#[test]
fn too_many_refused_records_end_it() {
    let shop = Shop::new();
    let options = ImportOptions { refused_max: 3, ..ImportOptions::default() };
    let Imported { report, failure } = shop.import("x\n".repeat(10), &Format::Lines, &options);
    assert!(matches!(failure, Some(Error::TooManyRefused { refused: 4, .. })), "{failure:?}");
    assert_eq!(report.documents, 0);
}

#[test]
fn arrays_and_sequences_of_documents() {
    let shop = Shop::new();
    let input = "[{\"@metadata\":{\"@id\":\"a\"}},\n 1, {\"@metadata\":{\"@id\":\"b\"}}]";
    let Imported { report, failure } = shop.import(input, &Format::Values, &ImportOptions::default());
    assert!(failure.is_none());
    assert_eq!((report.documents, report.refused), (2, 1));
    assert_eq!(report.refusals[0].place, Place::Byte(29));
    let cut = "{\"@metadata\":{\"@id\":\"c\"}} {\"@met";
    let Imported { report, failure } = shop.import(cut, &Format::Values, &ImportOptions::default());
    assert!(matches!(failure, Some(Error::Split(_))), "{failure:?}");
    assert_eq!((report.documents, shop.count()), (1, 3));
}

#[test]
fn rows_become_documents() {
    let shop = Shop::new();
    let input = "@id,Name,Address.City,Age,Member,Note\n\
        users/1,\"Ada, L.\",London,36,true,NA\n\
        users/2,Bo\n\
        users/3,Cy,,4.50,FALSE,\"two\nlines\"\n";
    let csv = CsvOptions { nulls: vec!["NA".into()], ..CsvOptions::default() };
    let Imported { report, failure } = shop.import(input, &Format::Csv(csv), &in_collection("Users"));
    assert!(failure.is_none());
    assert_eq!((report.documents, report.refused), (2, 1));
    assert_eq!(report.refusals[0].to_string(), "line 3: it has 2 fields, the header has 6");
    let ada = r#"{"@metadata":{"@collection":"Users","@id":"users/1"},"Address":{"City":"London"},"Age":36,"Member":true,"Name":"Ada, L.","Note":null}"#;
    assert_eq!(parsed(&shop.document("users/1").unwrap()), parsed(ada));
    let cy = shop.document("users/3").unwrap();
    assert!(cy.contains(r#""City":null"#) && cy.contains("4.5") && cy.contains(r"two\nlines"), "{cy}");
}

fn filled() -> Shop {
    let shop = Shop::new();
    let mut input = String::new();
    for i in 0..3000 {
        input += &format!(
            "{{\"Text\":\"\\\"@export-type\\\" \u{e9}\\n\\\\\",\"n\":{i},\"Price\":1.10,\"Big\":123456789012345678901234567890,\"@metadata\":{{\"@id\":\"Items/{i}-A\",\"@collection\":\"{}\",\"Own\":[1]}}}}\n",
            if i % 3 == 0 { "Items" } else { "Others" }
        );
    }
    shop.lines(&input, &ImportOptions::default());
    shop.database
        .submit(|transaction| {
            transaction.seed_identity("users|", 41, false)?;
            transaction.next_identity("users|")?;
            transaction.delete("Items/7-A", &jackdaw_database::Expected::Any)
        })
        .wait()
        .unwrap();
    let context = jackdaw_document::Context::new();
    let value = context.parse(r#"{"Object":{"Name":"a \"b\""}}"#).unwrap().as_bytes().to_vec();
    shop.database
        .submit(move |transaction| transaction.put_compare_exchange("Key/1", 0, &value))
        .wait()
        .unwrap();
    shop
}

fn dump(shop: &Shop, options: &ExportOptions) -> Vec<u8> {
    let mut out = Vec::new();
    export(&shop.database, &mut out, options, &Progress::default()).unwrap();
    out
}

fn text(dump: Vec<u8>) -> String {
    let mut text = String::new();
    decompressed(Cursor::new(dump), Expansion::default(), &Default::default())
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    text
}

/// A dump without what differs from write to write.
fn comparable(dump: Vec<u8>) -> serde_json::Value {
    let mut dump: serde_json::Value = serde_json::from_str(&text(dump)).unwrap();
    for document in dump["Docs"].as_array_mut().unwrap() {
        let metadata = document["@metadata"].as_object_mut().unwrap();
        metadata.remove("@change-vector");
        metadata.remove("@last-modified");
    }
    dump
}

#[test]
fn an_export_imported_and_exported_is_the_same() {
    let shop = filled();
    let options = ExportOptions {
        compression: DumpCompression::Zstd,
        database_record: Some(b"{\"DatabaseName\":\"shop\"}".to_vec()),
        ..ExportOptions::default()
    };
    let first = dump(&shop, &options);
    for input in [
        first.clone(),
        dump(&shop, &ExportOptions { compression: DumpCompression::Gzip, ..options.clone() }),
        text(first.clone()).into_bytes(),
    ] {
        let other = Shop::new();
        let Imported { report, failure } =
            other.import(input, &Format::Dump(DumpOptions::default()), &ImportOptions::default());
        assert!(failure.is_none(), "{failure:?}");
        assert_eq!((report.documents, report.refused), (2999, 0));
        assert_eq!((report.identities, report.compare_exchange, report.database_record), (1, 1, true));
        assert!(report.skipped.is_empty(), "{:?}", report.skipped);
        assert_eq!(comparable(dump(&other, &options)), comparable(first.clone()));
        assert_eq!(other.database.read().unwrap().identities().unwrap(), [("users|".to_owned(), 42)]);
        assert!(other.document("items/8-a").unwrap().contains(r#""Own":[1]"#));
    }
}

/// Takes all definitions but those of the name `Bad`.
#[derive(Default)]
struct Names(std::sync::Mutex<Vec<String>>);

impl IndexTaker for Names {
    fn take(&self, definition: serde_json::Value) -> Result<(), String> {
        let name = definition["Name"].as_str().unwrap().to_owned();
        if name == "Bad" {
            return Err("it is bad".to_owned());
        }
        self.0.lock().unwrap().push(name);
        Ok(())
    }

    fn take_record(&self, record: serde_json::Value) -> (u64, Vec<String>) {
        self.0.lock().unwrap().push(record["DatabaseName"].as_str().unwrap().to_owned());
        (2, vec!["a third".to_owned()])
    }
}

#[test]
fn definitions_of_indexes_come_out_and_go_in() {
    let shop = filled();
    let item = |name: &str| {
        format!(r#"{{"Type":"Map","IndexDefinition":{{"Name":"{name}","Maps":["x"]}}}}"#).into_bytes()
    };
    // As an official server writes an automatic one.
    let automatic =
        br#"{"Type":"AutoMap","IndexDefinition":{"Name":"Auto/A","MapFields":[{"Name":"b",}]}}"#.to_vec();
    let indexes = vec![item("A"), automatic, item("Bad"), item("B"), b"{\"Type\":\"Map\"}".to_vec()];
    let options = ExportOptions {
        indexes: Some(indexes),
        database_record: Some(b"{\"DatabaseName\":\"shop\"}".to_vec()),
        ..ExportOptions::default()
    };
    let dump = dump(&shop, &options);
    let taken = |options: DumpOptions, names: Option<&Names>| {
        let (other, progress) = (Shop::new(), Progress::default());
        let Imported { report, failure } = import(
            &other.database,
            names.map(|names| names as &dyn IndexTaker),
            Cursor::new(dump.clone()),
            &Format::Dump(options),
            &ImportOptions::default(),
            &progress,
        );
        assert!(failure.is_none(), "{failure:?}");
        // What follows the indexes came in too.
        assert_eq!((report.documents, report.identities, report.compare_exchange), (2999, 1, 1));
        report
    };
    let names = Names::default();
    let report = taken(DumpOptions::default(), Some(&names));
    assert_eq!(*names.0.lock().unwrap(), ["shop", "A", "B"]);
    let IndexReport { taken: took, analyzers, automatic, refused, refusals } = report.indexes;
    assert_eq!((took, analyzers, automatic, refused), (2, 2, 1, 2));
    assert_eq!(refusals, ["a third", "Could not write index 'Bad', error: it is bad"]);
    assert!(report.refusals[0].reason.contains("IndexDefinition"), "{:?}", report.refusals);
    // Not asked for, or nobody to take them.
    let names = Names::default();
    let options = DumpOptions { indexes: false, database_record: false, ..DumpOptions::default() };
    let report = taken(options, Some(&names));
    assert_eq!((report.skipped["Indexes"], names.0.lock().unwrap().len()), (4, 0));
    let report = taken(DumpOptions::default(), None);
    assert_eq!((report.skipped["Indexes"], report.indexes.automatic), (3, 1));
}

#[test]
fn tombstones_delete_when_they_are_asked_for() {
    let shop = filled();
    let dump = dump(&shop, &ExportOptions { tombstones: true, ..ExportOptions::default() });
    let other = Shop::new();
    other.lines("{\"@metadata\":{\"@id\":\"Items/7-A\"}}\n", &ImportOptions::default());
    let Imported { report, .. } =
        other.import(dump.clone(), &Format::Dump(DumpOptions::default()), &ImportOptions::default());
    assert_eq!((report.deleted, report.skipped.get("Tombstones")), (0, Some(&1)));
    assert!(other.document("Items/7-A").is_some());
    let with = DumpOptions { tombstones: true, ..DumpOptions::default() };
    let Imported { report, .. } = other.import(dump, &Format::Dump(with), &ImportOptions::default());
    assert_eq!(report.deleted, 1);
    assert!(other.document("Items/7-A").is_none());
}

#[test]
fn collections_are_chosen_both_ways() {
    let shop = filled();
    let some = dump(&shop, &ExportOptions { collections: vec!["items".into()], ..ExportOptions::default() });
    assert_eq!(comparable(some)["Docs"].as_array().unwrap().len(), 1000);
    let all = dump(&shop, &ExportOptions::default());
    let other = Shop::new();
    let options = ImportOptions { only_collections: vec!["items".into()], ..ImportOptions::default() };
    let Imported { report, .. } = other.import(all, &Format::Dump(DumpOptions::default()), &options);
    assert_eq!((report.documents, other.count()), (1000, 1000));
}

#[test]
fn a_dump_that_is_cut_leaves_what_came_before() {
    let shop = filled();
    let whole = dump(&shop, &ExportOptions::default());
    for part in [0, 1, 10, whole.len() / 3, whole.len() / 2, whole.len() - 9, whole.len() - 1] {
        let other = Shop::new();
        let Imported { report, failure } =
            other.import(&whole[..part], &Format::Dump(DumpOptions::default()), &ImportOptions::default());
        assert!(failure.is_some(), "{part} of {}", whole.len());
        assert_eq!(report.documents, other.count());
    }
}

#[test]
fn a_bomb_is_refused() {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.write_all(b"{\"Docs\":[").unwrap();
    let blanks = vec![b' '; 1 << 20];
    for _ in 0..100 {
        encoder.write_all(&blanks).unwrap();
    }
    encoder.write_all(b"]}").unwrap();
    let bomb = encoder.finish().unwrap();
    let Imported { failure, .. } =
        Shop::new().import(bomb, &Format::Dump(DumpOptions::default()), &ImportOptions::default());
    assert!(failure.is_some_and(|error| matches!(error, Error::Io { .. })));
}

/// An input without an end that cancels the import it feeds.
struct Endless(Progress, u32);

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.1 += 1;
        if self.1 == 20 {
            self.0.cancel();
        }
        let line = b"{\"a\":1}\n";
        let count = buffer.len() / line.len() * line.len();
        buffer[..count].chunks_mut(line.len()).for_each(|place| place.copy_from_slice(line));
        Ok(count)
    }
}

#[test]
fn a_cancelled_import_ends_and_keeps_what_was_stored() {
    let shop = Shop::new();
    let progress = Progress::default();
    let input = Endless(progress.clone(), 0);
    let Imported { report, failure } =
        import(&shop.database, None, input, &Format::Lines, &in_collection("X"), &progress);
    assert!(matches!(failure, Some(Error::Cancelled)), "{failure:?}");
    assert_eq!((report.documents, progress.documents()), (shop.count(), shop.count()));
}

#[test]
fn a_bulk_insert_in_pieces() {
    let shop = Shop::new();
    let mut input = String::from("[");
    for i in 0..2000 {
        let comma = if i > 0 { "," } else { "" };
        input += &format!(
            "{comma}{{\"Id\":\"users/{i}\",\"Type\":\"PUT\",\"Document\":{{\"Name\":\"{}\",\"@metadata\":{{\"@collection\":\"Users\"}}}}}}",
            "x".repeat(200)
        );
    }
    for existing in [Existing::Overwrite, Existing::SkipUnchanged] {
        let mut insert = BulkInsert::new(&shop.database, existing);
        let (mut stored, mut unchanged, mut waiting) = (0, 0, Vec::new());
        for piece in input.as_bytes().chunks(70_000) {
            insert.push(piece);
            while insert.parse().unwrap() {
                waiting.push(insert.submit());
            }
        }
        insert.end();
        assert!(!insert.parse().unwrap() && insert.has_batch());
        waiting.push(insert.submit());
        for batch in waiting {
            let batch = batch.pending.wait().unwrap();
            stored += batch.documents;
            unchanged += batch.unchanged;
        }
        let expected = if existing == Existing::Overwrite { (2000, 0) } else { (0, 2000) };
        assert_eq!((stored, unchanged), expected);
    }
    assert_eq!(shop.count(), 2000);
}

#[test]
fn a_bulk_insert_with_a_document_that_cannot_be_fails() {
    let shop = Shop::new();
    for command in [
        r#"{"Id":"a","Type":"PUT","Document":{"n":01}}"#,
        r#"{"Id":"","Type":"PUT","Document":{"@metadata":[]}}"#,
        r#"{"Id":"a","Type":"Counters","Counters":{}}"#,
        r#"{"Id":"a","Type":"AttachmentPUT","ContentLength":3}abc"#,
    ] {
        let mut insert = BulkInsert::new(&shop.database, Existing::Overwrite);
        insert.push(format!("[{command}]").as_bytes());
        assert!(insert.parse().is_err(), "{command}");
    }
    assert_eq!(shop.count(), 0);
}
