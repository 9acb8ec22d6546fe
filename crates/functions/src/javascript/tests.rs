//! Patches end to end, hostile ones among them.

use std::collections::BTreeMap;
use std::time::Duration;

use jackdaw_document::{self as document, Context, Document, Mode, Style};

use super::*;
use crate::{Input, RuntimeError};

/// Documents by id, as JSON text.
#[derive(Default)]
struct Store {
    documents: BTreeMap<String, String>,
    output: Vec<String>,
    includes: Vec<(IncludeKind, String)>,
}

impl PatchHost for Store {
    fn load(&mut self, id: &str, give: &mut dyn FnMut(Option<&Input<'_>>)) -> Result<(), HostError> {
        let context = Context::new();
        match self.documents.get(id) {
            Some(text) => {
                let document = context.parse(text)?;
                give(Some(&Input { change_vector: "A:7-x", ..Input::new(document, id) }));
            }
            None => give(None),
        }
        Ok(())
    }

    fn compare_exchange(
        &mut self,
        key: &str,
        give: &mut dyn FnMut(Option<document::Value<'_>>),
    ) -> Result<(), HostError> {
        let context = Context::new();
        give(
            (key == "known").then(|| context.parse(r#"{"a":[1.10]}"#)).transpose()?.map(|value| value.root()),
        );
        Ok(())
    }

    fn put(&mut self, id: &str, document: Document<'_>, vector: Option<&str>) -> Result<String, HostError> {
        if vector.is_some_and(|vector| vector != "A:7-x") {
            return Err("another change vector".into());
        }
        let id = if id.ends_with('/') { format!("{id}1-A") } else { id.to_owned() };
        self.documents.insert(id.clone(), document.to_json(Style::Compact));
        Ok(id)
    }

    fn delete(&mut self, id: &str, _: Option<&str>) -> Result<bool, HostError> {
        Ok(self.documents.remove(id).is_some())
    }

    fn include(&mut self, kind: IncludeKind, id: &str) {
        self.includes.push((kind, id.to_owned()));
    }

    fn output(&mut self, text: String) {
        self.output.push(text);
    }
}

const DOCUMENT: &str = concat!(
    r#"{"a":1,"b":1.10,"c":9007199254740993,"d":10.0,"e":1e3,"f":[1.10,9007199254740993,{"x":2.50}],"g":{"h":1.10},"#,
    r#""s":"t","n":null,"1":"one","z":12345678901234567890.123456789,"@metadata":{"@collection":"Ps","x":"y"}}"#
);

fn try_patch(store: &mut Store, document: &str, script: &str, args: &str) -> Result<String, ScriptError> {
    let context = Context::new();
    let document = context.parse(document)?;
    let args = context.parse(args)?;
    let input = Input {
        last_modified: 638_000_000_000_000_000,
        change_vector: "A:3-q",
        ..Input::new(document, "p/1")
    };
    let script = PatchScript::compile(script).map_err(|error| ScriptError::thrown(error.to_string()))?;
    let memory = Context::new();
    let limits = ScriptLimits { time: Duration::from_secs(60), ..ScriptLimits::PATCH };
    let patched = script.run(&input, Some(&args.root()), &limits, store, &memory, Mode::Memory)?;
    Ok(patched.to_json(Style::Compact))
}

fn patch(script: &str) -> String {
    try_patch(&mut Store::default(), DOCUMENT, script, r#"{"n":5,"t":"x","o":{"p":1.50}}"#)
        .unwrap_or_else(|error| panic!("{script}: {error}"))
}

/// What a script stores in `q`.
#[track_caller]
fn check(script: &str, expected: &str) {
    let patched = patch(script);
    let context = Context::new();
    let patched = context.parse(&patched).unwrap();
    let found = patched.get("q").map(|value| {
        let mut out = Vec::new();
        value.print_to(&mut out, Style::Compact);
        String::from_utf8(out).unwrap()
    });
    assert_eq!(found.as_deref().unwrap_or("missing"), expected, "{script}");
}

fn failure(script: &str) -> ScriptError {
    match try_patch(&mut Store::default(), DOCUMENT, script, "{}") {
        Ok(patched) => panic!("{script} should have failed, and gave {patched}"),
        Err(error) => error,
    }
}

#[test]
fn what_a_script_leaves_alone_stays_as_it_was() {
    assert_eq!(patch(""), DOCUMENT);
    assert_eq!(patch("this.a = 2"), DOCUMENT.replacen("\"a\":1", "\"a\":2", 1));
    assert_eq!(patch("this.f; this.g.h; JSON.stringify(this)"), DOCUMENT);
    assert_eq!(patch("delete this.a; this.a = 1"), DOCUMENT);
    assert_eq!(patch("this.f.splice(0, 1)"), DOCUMENT.replacen("[1.10,", "[", 1));
    assert_eq!(patch("this.f.unshift(0)"), DOCUMENT.replacen("[1.10,", "[0,1.10,", 1));
    assert_eq!(
        patch("this.f.reverse()"),
        DOCUMENT.replacen(
            r#"[1.10,9007199254740993,{"x":2.50}]"#,
            r#"[{"x":2.50},9007199254740993,1.10]"#,
            1
        )
    );
    assert_eq!(patch("this.d++"), DOCUMENT.replacen("10.0", "11.0", 1));
    assert_eq!(patch("this.d = 10"), DOCUMENT);
    assert_eq!(patch("this.b = this.b + 1"), DOCUMENT.replacen("1.10", "2.1", 1));
    assert_eq!(patch("this.u = undefined"), DOCUMENT);
    check("this.q = this.g", r#"{"h":1.10}"#);
    check("this.q = this.f[2]", r#"{"x":2.50}"#);
}

#[test]
fn values_become_json() {
    check("this.q = NaN", "\"NaN\"");
    check("this.q = [Infinity, -Infinity, -0]", r#"["Infinity","-Infinity",0]"#);
    check("this.q = function () {}", "null");
    check("this.q = {a: undefined, b: null}", r#"{"a":null,"b":null}"#);
    check("this.q = [1,,3]", "[1,3]");
    check("this.q = [undefined, null]", "[null,null]");
    check("this.q = new Date(Date.UTC(2020, 1, 2, 3, 4, 5, 6))", "\"2020-02-02T03:04:05.0060000Z\"");
    check("this.q = 10n ** 20n", "100000000000000000000");
    check("this.q = new Map([[1, 2]])", "{}");
    check("this.q = '\\ud800x'", "\"\u{fffd}x\"");
    check("this.q = {'\\udc00': 1}", "{\"\u{fffd}\":1}");
    check("this.q = 0.1 + 0.2", "0.30000000000000004");
    check("this.q = 'a\\u0000b'", "\"a\\u0000b\"");
    check(
        "this.q = {'': 1, constructor: 2, toString: 3, __proto__: null}",
        r#"{"":1,"constructor":2,"toString":3}"#,
    );
    check(
        "this.q = {}; this.q.constructor = 1; this.q.hasOwnProperty = 2; this.q['__proto__'] = 3",
        r#"{"constructor":1,"hasOwnProperty":2,"__proto__":3}"#,
    );
    check("this.q = this; ", "null");
    check("this.q = {}; this.q.q = {r: this.q}", r#"{"q":{"r":null}}"#);
    check("this.q = []; this.q[3000] = 1", "[1]");
    check("this.q = []; this.q.length = 4294967295", "[]");
    check("this.q = new Proxy({a: 1}, {})", r#"{"a":1}"#);
    assert!(failure("this.q = Symbol('x')").to_string().contains("Symbol"));
    assert!(failure("this.q = new Date(NaN)").to_string().contains("Date"));
    assert!(failure("this.q = new Date(8e15)").to_string().contains("Date"));
}

#[test]
fn reading_from_nothing_gives_nothing() {
    check("this.q = this.nope.x", "null");
    check("this.q = this.nope.x.y.z + 1", "1");
    check("this.q = this.nope + 1", "\"NaN\"");
    check("this.q = this.n.x", "null");
    check("this.q = this.nope[0]", "null");
    check("this.q = this.nope.length", "0");
    check("this.q = this.nope.foo()", "missing");
    check("this.q = this.nope.map(x => x)", "[]");
    check("this.q = this.nope.filter(x => x)", "[]");
    check("this.q = this.nope.reduce((a, b) => a + b, 7)", "7");
    check(
        "this.q = [this.nope.some(x => x), this.nope.every(x => x), this.nope.includes(1)]",
        "[false,true,false]",
    );
    check("this.nope.push(1); this.q = this.s.foo", "missing");
    check("this.q = typeof this.nope?.x", "\"undefined\"");
    check(
        "this.q = [undeclared, undeclared.x, typeof undeclared, undeclared.f()]",
        r#"[null,null,"undefined",null]"#,
    );
    assert!(failure("this.nope.x = 1").to_string().contains("undefined"));
    assert!(failure("this.s.foo()").to_string().contains("function"));
}

#[test]
fn arguments_and_parameters() {
    check("this.q = args.n + 1", "6");
    check("this.q = args.nope", "missing");
    check("this.q = [args.o, $t, $nope]", r#"[{"p":1.5},"x",null]"#);
    check("this.q = args", r#"{"n":5,"t":"x","o":{"p":1.5}}"#);
}

#[test]
fn functions_of_patches() {
    check("this.q = id(this)", "\"p/1\"");
    check("this.q = [id({}), id(null)]", "[null,null]");
    check(
        "this.q = getMetadata(this)",
        r#"{"@collection":"Ps","x":"y","@change-vector":"A:3-q","@id":"p/1","@last-modified":"2022-09-28T22:13:20.0000000Z"}"#,
    );
    check("this.q = getMetadata(this) === this['@metadata']", "true");
    check("this.q = lastModified(this)", "1664403200000");
    check("this.q = load('nope')", "missing");
    check("this.q = [cmpxchg('nope'), cmpxchg('known')]", r#"[null,{"a":[1.1]}]"#);
    check("this.q = [Raven_Min(2, 1), Raven_Max('a', 'b'), Raven_Min(null, 2)]", r#"[1,"b",null]"#);
    check("this.q = [startsWith('Abc', 'aB'), endsWith('abc', 'C'), regex('ABC', '^a')]", "[true,true,true]");
    check(
        "this.q = [convertToTimeSpanString(1, 2, 3, 4), convertJsTimeToTimeSpanString(90061001)]",
        r#"["1.02:03:04","1.01:01:01.0010000"]"#,
    );
    check("this.q = compareDates(new Date(0), new Date(1), 'LessThan')", "true");
    check(
        "this.q = toStringWithFormat(1.5, '0.00') + toStringWithFormat(new Date(0), 'yyyy')",
        "\"1.501970\"",
    );
    check("this.q = '{0} {1}'.format(1, 'x')", "\"1 x\"");
    check("this.q = Math.round(spatial.distance(1, 2, 3, 4, 'kilometers') * 1e6)", "314387825");

    let mut store = Store::default();
    store.documents.insert("p/2".to_owned(), r#"{"x":1.10,"big":9007199254740993}"#.to_owned());
    let script = "
        output(this.a); output('text'); output({a: [1]}); console.log(null);
        this.ids = [put('q/', {copy: load('p/2')}), put('q/9', this), put('gone', {})];
        del('gone'); this.gone = del('gone');
        this.meta = getMetadata(load('p/2'))['@id'];
        this.both = load(['p/2', 'nope']).length;
        include('p/2'); includes.cmpxchg('k');";
    let patched = try_patch(&mut store, r#"{"a":1.50}"#, script, "{}").unwrap();
    assert_eq!(patched, r#"{"a":1.50,"ids":["q/1-A","q/9","gone"],"gone":false,"meta":"p/2","both":2}"#);
    assert_eq!(store.documents["q/1-A"], r#"{"copy":{"x":1.10,"big":9007199254740993}}"#);
    assert_eq!(store.documents["q/9"], r#"{"a":1.50}"#);
    assert!(!store.documents.contains_key("gone"));
    assert_eq!(store.output, ["1.5", "text", r#"{"a":[1]}"#, "null"]);
    assert_eq!(
        store.includes,
        [(IncludeKind::Document, "p/2".to_owned()), (IncludeKind::CompareExchange, "k".to_owned())]
    );
}

#[test]
fn dates_are_those_of_utc() {
    check("this.q = new Date(2020, 1, 2, 3, 4, 5, 6)", "\"2020-02-02T03:04:05.0060000Z\"");
    check(
        "this.q = [new Date('2020-01-01T05:00:00').getHours(), new Date(2020, 0, 1).getTimezoneOffset()]",
        "[5,0]",
    );
    check(
        "const d = new Date(0); d.setHours(7); this.q = [d, d instanceof Date, new Date(d) - d, Date.parse('2020-01-01T00:00:00')]",
        "[\"1970-01-01T07:00:00.0000000Z\",true,0,1577836800000]",
    );
    check(
        "this.q = [String(new Date(0)), String(new Date('x')), typeof Date(), new Date('2020-05-05T01:02:03.1234567Z')]",
        "[\"Thu 01 Jan 1970 00:00:00 GMT\",\"Invalid Date\",\"string\",\"2020-05-05T01:02:03.1230000Z\"]",
    );
    check("class D extends Date {} this.q = new D(2020, 0, 1)", "\"2020-01-01T00:00:00.0000000Z\"");
}

#[test]
fn errors_are_told() {
    assert_eq!(failure("throw 5").to_string(), "5");
    assert_eq!(failure("throw 'boo'").to_string(), "boo");
    assert_eq!(failure("throw {a: 1}").to_string(), r#"{"a":1}"#);
    assert_eq!(failure("\nthrow new Error('boo')").to_string(), "Error: boo (line 2)");
    assert!(failure("undeclared = 5").to_string().contains("undeclared"));
    assert!(failure("this.a = ;").to_string().starts_with("line 1, column 10"));
    assert!(failure("with (this) { a = 5 }").to_string().contains("SyntaxError"));
    let error = failure("incrementCounter(this, 'likes')");
    assert!(matches!(&error, ScriptError::NotSupported { feature, .. } if feature == "Counters"), "{error}");
    // What the database answers is the result, whatever the script makes of it.
    let error = failure("try { put('x', {}, 'A:1-other') } catch (e) {}");
    assert!(matches!(&error, ScriptError::Host(_)), "{error}");
    assert_eq!(error.to_string(), "another change vector");
    assert!(failure("load(5)").to_string().contains("load(id | ids)"));
    assert!(failure("getMetadata({})").to_string().contains("getMetadata"));
    assert!(failure("put('x', [1])").to_string().contains("valid object"));
    // A throwing getter, a hostile error.
    assert!(failure("this.q = { get a() { throw new Error('got') } }").to_string().contains("got"));
    assert!(!failure("throw { toJSON() { throw 1 } }").to_string().is_empty());
    assert!(
        !failure("throw Object.assign(new Error('x'), { message: { toString() { throw 1 } } })")
            .to_string()
            .is_empty()
    );
}

#[test]
fn endless_and_greedy_scripts_end() {
    let limited = |script: &str, what: &str| match failure(script) {
        ScriptError::Runtime(RuntimeError::Limit { what: found, .. }) => assert_eq!(found, what, "{script}"),
        other if what == "bytes of memory" && other.to_string().contains("no memory") => {}
        other => panic!("{script}: {other}"),
    };
    limited("while (true) {}", "steps");
    limited("for (;;) { try { for (;;) {} } catch (e) {} finally { continue } }", "steps");
    limited("this.q = { get a() { while (true); } }", "steps");
    limited("this.q = new Proxy({}, { ownKeys() { while (true); } })", "steps");
    limited("const a = [3, 2, 1]; while (true) a.sort()", "steps");
    limited("let s = 'x'; while (true) s = (s + s).replace('x', 'xy')", "bytes of memory");
    assert!(failure("let s = 'x'; while (true) s += s").to_string().contains("string too long"));
    limited("const a = []; while (true) a.push(new Array(1000).fill(a.length))", "bytes of memory");
    limited("this.q = 'x'.repeat(2 ** 29)", "bytes of memory");
    limited("/^(a+)+$/.test('a'.repeat(40) + 'b')", "steps");
    limited("[].indexOf.call({ length: 2 ** 53 - 1 }, 1)", "steps");
    let deep = failure("function f() { f() } f()");
    assert!(deep.to_string().contains("stack"), "{deep}");
    let deep = failure("let o = {}; for (let i = 0; i < 5000; i++) o = { o }; this.q = o");
    assert!(deep.to_string().contains("deep") || deep.to_string().contains("stack"), "{deep}");
    check("let o = {}; for (let i = 0; i < 100; i++) o = { o }; this.q = JSON.stringify(o).length", "602");
    check("this.q = Object.create(Date.prototype)", "{}");
    // The engine is as good as before.
    check("this.q = 1", "1");
}

#[test]
fn nothing_leaks_from_one_script_to_another() {
    for script in [
        "globalThis.leak = 1",
        "Object.prototype.leak = 1",
        "Array.prototype.push = () => 1",
        "Math.max = () => 1",
        "load = () => 1",
        "Object.prototype.toString = () => 'x'",
        "({}).__proto__.leak = 1; [].__proto__.leak = 1",
        "Object.defineProperty(Object.prototype, 'leak', { value: 1 })",
        "Object.setPrototypeOf(Object.prototype, { leak: 1 })",
        "(function* () {})().__proto__.leak = 1; Object.getPrototypeOf(function* () {}).leak = 1",
        "console.log.leak = 1; spatial.distance = 1",
        "(0, eval)('var leak = 1')",
        "new Function('leak = 1')()",
        "(function () {}).constructor('globalThis.leak = 1')()",
        "(async () => {}).constructor('globalThis.leak = 1')()",
        "''[Symbol.iterator]().__proto__.leak = 1",
    ] {
        // Refused, or without effect.
        let _ = try_patch(&mut Store::default(), "{}", script, "{}");
        let probe = "this.q = [typeof leak, ({}).leak, [].leak, [].push(1), Math.max(1, 2), typeof load('x'), String({}), (function* () {})().leak ?? null, typeof spatial.distance]";
        let mut store = Store::default();
        let patched = try_patch(&mut store, "{}", probe, "{}").unwrap();
        assert_eq!(
            patched, r#"{"q":["undefined",null,null,1,2,"undefined","[object Object]",null,"function"]}"#,
            "{script}"
        );
    }
    // Promises that were left hanging do not run later.
    let _ = try_patch(&mut Store::default(), "{}", "(async () => { await 1; while (true); })()", "{}");
    check("this.q = 1", "1");
}

#[test]
fn scripts_are_whole() {
    assert!(failure("}); globalThis.x = 1; (function () {").to_string().contains("line 1"));
    assert!(failure("} this.a = 9; {").to_string().contains("line 1"));
    check("this.q = 1 // no end of line", "1");
    check("return this.q = 1", "1");
    check("let args2 = 1, q = 2; const $x = 3; this.q = q", "2");
    check("let args = { n: 1 }; this.q = args.n", "1");
}
