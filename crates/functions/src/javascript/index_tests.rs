//! Index functions and projections in JavaScript, through the faces that both languages share.

use std::collections::BTreeMap;

use jackdaw_document::{self as document, Context, Style};

use super::*;
use crate::{Collections, Combine, Host, Input, Limits, Map, Reduce, RuntimeError, SourceKind, Value};

#[derive(Default)]
struct Loads<'d> {
    documents: BTreeMap<String, document::Document<'d>>,
    asked: Vec<(String, Option<String>, bool)>,
}

impl<'d> Host<'d> for Loads<'d> {
    fn load_document(
        &mut self,
        id: &str,
        collection: Option<&str>,
    ) -> Result<Option<Input<'d>>, RuntimeError> {
        self.asked.push((id.to_owned(), collection.map(str::to_owned), true));
        Ok(self.documents.get(id).map(|document| Input::new(*document, "loaded/1")))
    }

    fn load_untracked(
        &mut self,
        id: &str,
        collection: Option<&str>,
    ) -> Result<Option<Input<'d>>, RuntimeError> {
        self.asked.push((id.to_owned(), collection.map(str::to_owned), false));
        Ok(self.documents.get(id).map(|document| Input::new(*document, "loaded/1")))
    }

    fn compare_exchange(&mut self, key: &str) -> Result<Option<document::Value<'d>>, RuntimeError> {
        if key == "broken" {
            return Err(RuntimeError::Host("cannot read".to_owned()));
        }
        Ok(None)
    }
}

const ORDER: &str = r#"{"Company":"companies/1","Lines":[{"P":"tea","Price":1.50,"N":2},{"P":"cup","Price":4,"N":1}],"At":"2020-02-03T00:00:00","Tags":["a","b"],"ShipTo":null,"@metadata":{"@collection":"Orders"}}"#;

fn compile(text: &str) -> Map {
    Map::compile(text, &BTreeMap::new()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn run_with(map: &Map, host: &mut dyn Host<'_>) -> Result<Vec<String>, RuntimeError> {
    let context = Context::new();
    let document = context.parse(ORDER).unwrap();
    let input = Input {
        collection: "Orders",
        change_vector: "A:1-x",
        last_modified: 638_000_000_000_000_000,
        ..Input::new(document, "orders/1")
    };
    let mut entries = Vec::new();
    // The host's documents live longer than this one.
    struct Shorter<'h, 'd>(&'h mut dyn Host<'d>);
    impl<'s, 'd: 's> Host<'s> for Shorter<'_, 'd> {
        fn load_document(
            &mut self,
            id: &str,
            collection: Option<&str>,
        ) -> Result<Option<Input<'s>>, RuntimeError> {
            self.0.load_document(id, collection).map(|found| found.map(|input| input as Input<'s>))
        }
        fn load_untracked(
            &mut self,
            id: &str,
            collection: Option<&str>,
        ) -> Result<Option<Input<'s>>, RuntimeError> {
            self.0.load_untracked(id, collection).map(|found| found.map(|input| input as Input<'s>))
        }
        fn compare_exchange(&mut self, key: &str) -> Result<Option<document::Value<'s>>, RuntimeError> {
            self.0.compare_exchange(key).map(|found| found.map(|value| value as document::Value<'s>))
        }
    }
    let limits = Limits { steps_max: 100_000, memory_bytes_max: 64 << 20, entries_max: 10 };
    map.runner(limits).run(&input, &mut Shorter(host), &mut |entry| {
        let memory = Context::new();
        let built = memory.build(document::Mode::Memory, |builder| entry.append_to(builder)).unwrap();
        let boost = if entry.boost == 1.0 { String::new() } else { format!(" * {}", entry.boost) };
        entries.push(built.to_json(Style::Compact) + &boost);
        Ok(())
    })?;
    Ok(entries)
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let entries =
        run_with(&compile(text), &mut Loads::default()).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(entries, expected, "{text}");
}

#[test]
fn maps_of_all_shapes() {
    check(
        "map('Orders', o => ({ Company: o.Company, N: o.Lines.length }))",
        &[r#"{"Company":"companies/1","N":2}"#],
    );
    check(
        "map('Orders', function (o) { return { Total: o.Lines.reduce((a, l) => a + l.Price * l.N, 0) }; })",
        &[r#"{"Total":7}"#],
    );
    check(
        "map(\"Orders\", (o) => { return { City: o.ShipTo.City, Missing: o.Nope } });",
        &[r#"{"City":null,"Missing":null}"#],
    );
    check("map('Orders', o => o.Lines.map(l => ({ P: l.P })))", &[r#"{"P":"tea"}"#, r#"{"P":"cup"}"#]);
    check(
        "map('Orders', o => { const all = []; for (const l of o.Lines) all.push({ P: l.P, Id: id(o) }); return all; })",
        &[r#"{"P":"tea","Id":"orders/1"}"#, r#"{"P":"cup","Id":"orders/1"}"#],
    );
    check("map('Orders', o => null)", &[]);
    check("map('Orders', o => { if (o.Nope) return { a: 1 }; })", &[]);
    check(
        "map(o => ({ C: getMetadata(o)['@collection'], I: getMetadata(o)['@id'], L: lastModified(o) }))",
        &[r#"{"C":"Orders","I":"orders/1","L":1664403200000}"#],
    );
    check(
        "map('Orders', o => ({ At: new Date(o.At), Y: new Date(o.At).getFullYear() }))",
        &[r#"{"At":"2020-02-03T00:00:00.0000000Z","Y":2020}"#],
    );
    check(
        "map('Orders', o => ({ Tags: o.Tags, Lines: o.Lines.map(l => l.P), Obj: { a: [1, { b: 2 }] } }))",
        &[r#"{"Tags":["a","b"],"Lines":["tea","cup"],"Obj":{"a":[1,{"b":2}]}}"#],
    );
    check(
        "// a comment\nmap('Orders', o => { switch (o.Company) { case 'x': return { a: 1 }; default: return { a: 2 }; } })",
        &[r#"{"a":2}"#],
    );
    check("map('Orders', o => boost({ C: o.Company }, 10))", &[r#"{"C":"companies/1"} * 10"#]);
    check(
        "map('Orders', o => ({ a: 1 })); map('Others', o => ({ b: 1 })); map(['x', 'ORDERS'], o => ({ c: 1 }))",
        &[r#"{"a":1}"#, r#"{"c":1}"#],
    );
}

#[test]
fn fields_of_their_own() {
    check(
        "map('Orders', o => ({ _: { $value: o.Company, $name: 'Dyn', $options: { indexing: 'Exact', storage: true } } }))",
        &[r#"{"_":{"Name":"Dyn","Value":"companies/1"}}"#],
    );
    check(
        "map('Orders', o => ({ _: o.Tags.map(t => createField(t, 1, { storage: false })) }))",
        &[r#"{"_":[{"Name":"a","Value":1},{"Name":"b","Value":1}]}"#],
    );
    check(
        "map('Orders', o => ({ S: createSpatialField(1.5, 2), W: createSpatialField('POINT (1 2)'), N: createSpatialField(o.Nope, o.Nope) }))",
        &[r#"{"S":"POINT (2 1.5)","W":"POINT (1 2)","N":null}"#],
    );
    let map = compile(
        "map('Orders', o => ({ a: 1, _: createField('x', 1, { indexing: 'Search', storage: 'Yes', termVector: 'Yes' }), b: boost(2, 3) }))",
    );
    assert!(map.has_dynamic_fields());
    let context = Context::new();
    let document = context.parse("{}").unwrap();
    let mut seen = 0;
    map.runner(Limits::default())
        .run(&Input::new(document, "x"), &mut Loads::default(), &mut |entry| {
            let Some(Value::Field(field)) = entry.get("_") else { panic!("{entry:?}") };
            assert_eq!(
                (field.name, field.stored, field.indexing, field.term_vector),
                ("x", Some(true), Some(crate::FieldIndexing::Search), Some("Yes"))
            );
            assert!(matches!(entry.get("b"), Some(Value::Boosted(boosted)) if boosted.boost == 3.0));
            seen += 1;
            Ok(())
        })
        .unwrap();
    assert_eq!(seen, 1);
}

#[test]
fn what_is_known_beforehand() {
    let names = |text: &str| compile(text).field_names().map(|names| names.join(","));
    assert_eq!(names("map('A', a => ({ x: a.x, 'y z': 1 }))").as_deref(), Some("x,y z"));
    assert_eq!(
        names("map('A', a => { if (a) { return null } return { x: 1, y: 2 } })").as_deref(),
        Some("x,y")
    );
    assert_eq!(names("map('A', a => { if (a) return { x: 1 }; return { y: 2 } })"), None);
    assert_eq!(names("map('A', a => ({ ...a }))"), None);
    assert_eq!(names("map('A', a => a.b.map(b => ({ x: b })))"), None);
    let map = compile(
        "map('A', a => ({ x: load(a.b, 'Bs').c, y: load(a.b, 'Bs'), z: noTracking.load(a.b, 'Cs'), k: cmpxchg('k') }))",
    );
    assert_eq!(map.loads().join(","), "Bs");
    assert!(map.uses_compare_exchange());
    assert_eq!(map.source().collections, Collections::Named(vec!["A".into()]));
    assert_eq!(compile("map(a => ({ x: 1 }))").source().collections, Collections::All);
    let series = compile("timeSeries.map('Users', 'Heart', ts => ts.Entries.map(e => ({ v: e.Value })))");
    assert_eq!(
        (series.source().kind, series.source().name.as_deref()),
        (SourceKind::TimeSeries, Some("Heart"))
    );
    assert_eq!(compile("counters.map('Users', c => ({ v: c.Value }))").source().kind, SourceKind::Counters);
}

#[test]
fn maps_ask_their_host() {
    let context = Context::new();
    let company = context.parse(r#"{"Name":"Ada"}"#).unwrap();
    let mut host = Loads::default();
    host.documents.insert("companies/1".to_owned(), company);
    let map = compile(
        "map('Orders', o => { const c = load(o.Company, 'Companies'); return { N: c.Name, I: id(c), X: noTracking.load('x', 'Xs').Y } })",
    );
    assert_eq!(run_with(&map, &mut host).unwrap(), [r#"{"N":"Ada","I":"loaded/1","X":null}"#]);
    let asked = [
        ("companies/1".to_owned(), Some("Companies".to_owned()), true),
        ("x".to_owned(), Some("Xs".to_owned()), false),
    ];
    assert_eq!(host.asked, asked);
    let error = run_with(
        &compile("map('Orders', o => { try { cmpxchg('broken') } catch (e) {} return { a: 1 } })"),
        &mut host,
    );
    assert_eq!(error, Err(RuntimeError::Host("cannot read".to_owned())));
}

#[test]
fn additional_sources_are_seen() {
    let mut sources = BTreeMap::new();
    sources.insert("helpers".to_owned(), "// helpers\nfunction twice(x) { return x * 2 } // end".to_owned());
    let map = Map::compile("map('Orders', o => ({ N: twice(o.Lines.length), C: deep(o) }))", &sources);
    let error = run_with(&map.unwrap(), &mut Loads::default()).unwrap_err();
    assert!(error.to_string().contains("function"), "{error}");
    sources.insert("more".to_owned(), "const deep = o => o.ShipTo.City.Name".to_owned());
    let map =
        Map::compile("map('Orders', o => ({ N: twice(o.Lines.length), C: deep(o) }))", &sources).unwrap();
    assert_eq!(run_with(&map, &mut Loads::default()).unwrap(), [r#"{"N":4,"C":null}"#]);
    sources.insert("wrong".to_owned(), "function (".to_owned());
    assert!(
        Map::compile("map('Orders', o => ({ a: 1 }))", &sources).unwrap_err().construct.contains("wrong")
    );
}

#[test]
fn errors_of_definitions() {
    for text in
        ["map('A', a => ({ x: ))", "map('A')", "map(a, b => ({}))", "1 + 1", "map('A', a => 1); }); (() => {"]
    {
        assert!(Map::compile(text, &BTreeMap::new()).is_err(), "{text}");
    }
    let error = Map::compile("map('A',\n  a => ({ x: 1 + }))", &BTreeMap::new()).unwrap_err();
    assert_eq!(error.line, 2, "{error}");
    for text in [
        "groupBy(x => f(x)).aggregate(g => ({ k: g.key }))",
        "groupBy(x => x.a + x.b).aggregate(g => ({}))",
        "map('A', a => a)",
        "groupBy(x => x.a)",
    ] {
        assert!(Reduce::compile(text, &BTreeMap::new()).is_err(), "{text}");
    }
    for (text, part) in [
        ("map('Orders', o => { while (true); })", "steps"),
        ("map('Orders', o => { throw new Error('no') })", "no"),
        ("map('Orders', o => ({ a: o.Company.nope() }))", "function"),
        ("map('Orders', o => Array.from({ length: 11 }, () => ({ a: 1 })))", "entries"),
        ("map('Orders', o => { put('x', {}) })", "only patches"),
        ("map('Orders', o => ({ a: counterNamesFor(o) }))", "Counters"),
    ] {
        let error = run_with(&compile(text), &mut Loads::default()).unwrap_err();
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
}

fn reduce(text: &str, entries: &[&str]) -> Vec<String> {
    let reduce = Reduce::compile(text, &BTreeMap::new()).unwrap_or_else(|error| panic!("{text}: {error}"));
    let context = Context::new();
    let documents: Vec<_> = entries.iter().map(|entry| context.parse(entry).unwrap()).collect();
    let mut results = Vec::new();
    reduce
        .runner(Limits::default())
        .run(&mut documents.into_iter(), &mut |entry| {
            let memory = Context::new();
            let built = memory.build(document::Mode::Memory, |builder| entry.append_to(builder)).unwrap();
            results.push(built.to_json(Style::Compact));
            Ok(())
        })
        .unwrap();
    results
}

#[test]
fn reduces() {
    let sum = "groupBy(x => x.k).aggregate(g => { return { k: g.key, n: g.values.reduce((a, b) => a + b.n, 0) }; })";
    let entries = [
        r#"{"k":"a","n":1}"#,
        r#"{"k":"b","n":2}"#,
        r#"{"k":"a","n":40}"#,
        r#"{"k":null,"n":1}"#,
        r#"{"n":2}"#,
    ];
    let results = reduce(sum, &entries);
    assert_eq!(results[..2], [r#"{"k":"a","n":41}"#, r#"{"k":"b","n":2}"#]);
    // Again over its own results.
    let again: Vec<&str> = results.iter().map(String::as_str).chain([r#"{"k":"b","n":5}"#]).collect();
    assert_eq!(reduce(sum, &again)[1], r#"{"k":"b","n":7}"#);

    let composite = "groupBy(function (x) { return { y: x.Year, c: x.At.City }; }).aggregate(g => ({ Year: g.key.y, City: g.key.c, Sum: g.values.length }))";
    assert_eq!(
        reduce(composite, &[r#"{"Year":1,"At":{"City":"x"}}"#, r#"{"Year":1,"At":{"City":"x"}}"#]),
        [r#"{"Year":1,"City":"x","Sum":2}"#]
    );
    let compiled = Reduce::compile(composite, &BTreeMap::new()).unwrap();
    assert_eq!(compiled.key_fields().join(","), "Year,At.City");
    let fields: Vec<_> =
        compiled.fields().unwrap().iter().map(|field| (&*field.name, field.combine)).collect();
    assert_eq!(fields, [("Year", Combine::Key(0)), ("City", Combine::Key(1)), ("Sum", Combine::Other)]);
    let missing_comma = "groupBy(x => ({ city: x.city })).aggregate(g => ({ city: g.key.city count: g.values.reduce((a, b) => a + b.count, 0) }))";
    assert_eq!(reduce(missing_comma, &[r#"{"city":"x","count":3}"#]), [r#"{"city":"x","count":3}"#]);
    assert_eq!(
        Reduce::compile("groupBy(x => 1).aggregate(g => ({ n: 1 }))", &BTreeMap::new())
            .unwrap()
            .key_fields()
            .len(),
        0
    );
}

struct NoDocuments(Vec<String>);

impl ProjectionHost for NoDocuments {
    fn load(&mut self, id: &str, give: &mut dyn FnMut(Option<&Input<'_>>)) -> Result<(), HostError> {
        let context = Context::new();
        let found = context.parse(r#"{"Name":"Ada","@metadata":{"@collection":"Cs"}}"#)?;
        give((id == "companies/1").then_some(&Input::new(found, "companies/1")));
        Ok(())
    }

    fn compare_exchange(
        &mut self,
        _: &str,
        give: &mut dyn FnMut(Option<document::Value<'_>>),
    ) -> Result<(), HostError> {
        give(None);
        Ok(())
    }

    fn include(&mut self, kind: IncludeKind, id: &str) {
        self.0.push(format!("{kind:?} {id}"));
    }
}

fn project(body: &str) -> Vec<String> {
    let projection = Projection::compile(body, &["o", "c"]).unwrap_or_else(|error| panic!("{body}: {error}"));
    let context = Context::new();
    let order = context.parse(ORDER).unwrap();
    let parameters = context.parse(r#"{"p":1.50}"#).unwrap();
    let input = Input::new(order, "orders/1");
    let memory = Context::new();
    let mut results = Vec::new();
    let arguments = [Argument::Document(&input), Argument::Missing];
    projection
        .run(
            &arguments,
            Some(&parameters.root()),
            &ScriptLimits::FUNCTION,
            &mut NoDocuments(Vec::new()),
            &memory,
            &mut |result| {
                results.push(result.to_json(Style::Compact));
                Ok(())
            },
        )
        .unwrap_or_else(|error| panic!("{body}: {error}"));
    results
}

#[test]
fn projections() {
    assert_eq!(
        project("return { C: o.Company, Id: id(o), P: $p, N: c.Name, U: o.Nope }"),
        [r#"{"C":"companies/1","Id":"orders/1","P":1.5,"N":null,"U":null}"#]
    );
    assert_eq!(
        project(
            "function total(x) { return x.Lines.map(l => l.Price * l.N).reduce((a, b) => a + b, 0) }\nreturn { T: total(o) };"
        ),
        [r#"{"T":7}"#]
    );
    assert_eq!(project("return o.Lines.map(l => ({ P: l.P }))"), [r#"{"P":"tea"}"#, r#"{"P":"cup"}"#]);
    assert_eq!(project("return o"), [ORDER]);
    assert_eq!(project("return { L: o.Lines[0] }"), [r#"{"L":{"P":"tea","Price":1.50,"N":2}}"#]);
    assert_eq!(
        project("return { N: load(o.Company).Name, At: new Date(o.At).toISOString().slice(0, 10) }"),
        [r#"{"N":"Ada","At":"2020-02-03"}"#]
    );
    assert_eq!(
        project(
            "return { W: o.Tags.filter(t => t !== 'a').join(), M: Math.round(2.5), S: 'Abc'.toLowerCase().startsWith('a') }"
        ),
        [r#"{"W":"b","M":3,"S":true}"#]
    );
    assert_eq!(
        project("return { C: load(o.Company) }"),
        [r#"{"C":{"Name":"Ada","@metadata":{"@collection":"Cs","@id":"companies/1"}}}"#]
    );
    assert_eq!(project("return 5"), ["5"]);
    assert_eq!(project("return undefined"), ["null"]);
    assert!(Projection::compile("return {", &[]).is_err());
    assert!(Projection::compile("return 1", &["a, b = 1"]).is_err());
    let mut host = NoDocuments(Vec::new());
    let projection =
        Projection::compile("includes.document('a'); include('b'); includes.cmpxchg('c'); return 1", &[])
            .unwrap();
    projection.run(&[], None, &ScriptLimits::FUNCTION, &mut host, &Context::new(), &mut |_| Ok(())).unwrap();
    assert_eq!(host.0, ["Document a", "Document b", "CompareExchange c"]);
    let error = Projection::compile("put('x', {})", &[]).unwrap().run(
        &[],
        None,
        &ScriptLimits::FUNCTION,
        &mut host,
        &Context::new(),
        &mut |_| Ok(()),
    );
    assert!(error.unwrap_err().to_string().contains("only patches"));
}
