//! What is lowered gives what QuickJS gives: on the texts of other tests, on cases that were hard, and on functions and documents made by chance.

use std::collections::BTreeMap;

use jackdaw_document::{self as document, Context, Document};
use jackdaw_testkit::{Random, Seeds};

use super::super::index::{both_of_map, both_of_reduce};
use crate::run::Memory;
use crate::{Engine, Entry, Host, Input, Limits, Map, Reduce, RuntimeError};

const REPLAY: &str = "SEED={seed} cargo test -p jackdaw-functions --lib lower::tests::{test}";

/// Documents that each have something odd.
const DOCUMENTS: [&str; 9] = [
    r#"{"A":7,"B":1.50,"C":"Abc","D":null,"E":true,"F":[1,2.5,"x",null,{"A":1,"B":"y"}],"G":{"A":1,"B":{"A":[3]},"C":"z"},"H":"2020-02-03T04:05:06.0000000Z","L":[{"A":2,"B":1.25,"C":"tea"},{"A":3,"B":10,"C":"cup"}],"@metadata":{"@collection":"Xs","x":1}}"#,
    r#"{"A":-0,"B":1e400,"C":"","D":"12","E":false,"F":[],"G":{},"L":[]}"#,
    r#"{"A":"12","B":"x","C":"Grüße \u4e16\u754c","D":0,"E":"","F":["b","a","B"],"G":{"10":1,"2":2,"b":3,"A":null},"L":[{"A":1},{"B":2},{}]}"#,
    r#"{"A":9007199254740993,"B":0.1,"C":" padded\t","D":[1,[2,[3]]],"E":null,"F":[true,false,0,""],"G":null,"L":null}"#,
    r#"{"A":1e21,"B":-1.5,"C":"a\ud83d\ude00b","D":{"A":1},"E":[],"F":"text","G":[{"A":5}],"L":[{"A":"2","B":"3"}]}"#,
    r#"{"A":[7],"B":{"A":2},"C":["p","q"],"F":{"A":[1,2]},"L":[[1,2],[3]],"@metadata":{"@collection":"Xs","@id":"own"}}"#,
    r#"{"C":"a,b,,c","A":2147483648,"B":-2147483649.5,"F":[3,1,2,3],"L":[{"A":1,"B":2,"C":"x"},{"A":1,"B":2,"C":"x"}],"id":5}"#,
    r#"{"A":123456789012345680000,"B":1e-7,"C":"-0x1F","D":"1e3","E":"0x10","F":[1e21,1e-7,0.1,100],"G":{"A":"q","B":[]},"L":[{"A":0.1,"B":0.2},{"A":0.3,"B":3}]}"#,
    "{}",
];

/// What was asked for, and documents for some of it.
struct Loads<'d> {
    known: Option<Document<'d>>,
    asked: Vec<(String, Option<String>, bool)>,
}

impl<'d> Host<'d> for Loads<'d> {
    fn load_document(&mut self, id: &str, of: Option<&str>) -> Result<Option<Input<'d>>, RuntimeError> {
        self.asked.push((id.to_owned(), of.map(str::to_owned), true));
        Ok(self.known.filter(|_| id.len() % 2 == 1).map(|document| Input::new(document, "loaded/1")))
    }

    fn load_untracked(&mut self, id: &str, of: Option<&str>) -> Result<Option<Input<'d>>, RuntimeError> {
        self.asked.push((id.to_owned(), of.map(str::to_owned), false));
        Ok(None)
    }

    fn compare_exchange(&mut self, key: &str) -> Result<Option<document::Value<'d>>, RuntimeError> {
        self.asked.push((key.to_owned(), None, false));
        Ok(self.known.and_then(|document| document.get("A")))
    }
}

/// How far the two agree that is not an error: runs, those that were declined, and those that QuickJS ended with an error.
#[derive(Clone, Copy, Default, Debug)]
struct Count {
    runs: usize,
    declined: usize,
    errors: usize,
    not_lowered: usize,
}

fn shown(entries: &[Entry<'_>]) -> String {
    entries.iter().map(|entry| format!("{:?} * {}\n", entry.fields, entry.boost)).collect()
}

fn limits() -> Limits {
    Limits { steps_max: 200_000, memory_bytes_max: 64 << 20, entries_max: 1_000 }
}

/// Runs a map both ways over documents.
fn compare(text: &str, documents: &[String], count: &mut Count) -> Result<(), String> {
    let (_, script, lowered) =
        both_of_map(text, &BTreeMap::new()).map_err(|error| format!("{text}\n{error}"))?;
    let Some(lowered) = lowered else {
        count.not_lowered += 1;
        return Ok(());
    };
    let mut memory = Memory::new(&lowered.program);
    let mut runner = script.runner(limits());
    for json in documents {
        let context = Context::new();
        let document = context.parse(json).map_err(|error| format!("{json}: {error}"))?;
        let known = context.parse(r#"{"A":3,"Name":"Ada","L":[1]}"#).map_err(|error| error.to_string())?;
        let input = Input {
            collection: "Xs",
            change_vector: "A:1-x",
            last_modified: 638_000_000_000_000_000,
            ..Input::new(document, "xs/1")
        };
        let mut expected = String::new();
        let mut asked = Loads { known: Some(known), asked: Vec::new() };
        let result = runner.run(&input, &mut asked, &mut |entry| {
            expected.push_str(&shown(std::slice::from_ref(entry)));
            Ok(())
        });
        let mut asked_too = Loads { known: Some(known), asked: Vec::new() };
        memory.reset();
        let found = lowered.run_map(&memory, &input, &mut asked_too, limits());
        count.runs += 1;
        count.errors += usize::from(result.is_err());
        match (result, found) {
            (Err(_), Err(_)) => {}
            (Ok(()), Err(_)) => count.declined += 1,
            (Ok(()), Ok(found)) => {
                let found = shown(&found);
                if found != expected {
                    return Err(format!("{text}\n{json}\nQuickJS: {expected}lowered: {found}"));
                }
                if asked.asked != asked_too.asked {
                    return Err(format!("{text}\n{json}\n{:?}\n{:?}", asked.asked, asked_too.asked));
                }
            }
            (Err(error), Ok(found)) => {
                return Err(format!("{text}\n{json}\nQuickJS: {error}\nlowered: {}", shown(&found)));
            }
        }
    }
    Ok(())
}

fn compare_reduce(text: &str, entries: &[String], count: &mut Count) -> Result<(), String> {
    let (_, script, lowered) =
        both_of_reduce(text, &BTreeMap::new()).map_err(|error| format!("{text}\n{error}"))?;
    let Some(lowered) = lowered else {
        count.not_lowered += 1;
        return Ok(());
    };
    let context = Context::new();
    let parsed: Result<Vec<_>, _> = entries.iter().map(|entry| context.parse(entry)).collect();
    let parsed = parsed.map_err(|error| error.to_string())?;
    let mut expected = String::new();
    let result = script.runner(limits()).run(&mut parsed.iter().copied(), &mut |entry| {
        expected.push_str(&shown(std::slice::from_ref(entry)));
        Ok(())
    });
    let memory = Memory::new(&lowered.program);
    let found = lowered.run_reduce(&memory, &parsed, limits());
    count.runs += 1;
    count.errors += usize::from(result.is_err());
    match (result, found) {
        (Err(_), Err(_)) => Ok(()),
        (Ok(()), Err(_)) => {
            count.declined += 1;
            Ok(())
        }
        (Ok(()), Ok(found)) if shown(&found) == expected => Ok(()),
        (result, Ok(found)) => {
            Err(format!("{text}\n{entries:?}\nQuickJS: {result:?} {expected}lowered: {}", shown(&found)))
        }
    }
}

fn documents() -> Vec<String> {
    DOCUMENTS.iter().map(|document| (*document).to_owned()).collect()
}

/// Compares a map on all documents; it must be lowered, and answer itself for most of them.
#[track_caller]
fn same(text: &str) {
    let mut count = Count::default();
    if let Err(message) = compare(text, &documents(), &mut count) {
        panic!("{message}");
    }
    assert_eq!(count.not_lowered, 0, "not lowered: {text}");
    assert!(count.declined * 2 < count.runs, "{text}: {count:?}");
}

#[test]
fn maps_as_they_are_written() {
    for text in [
        "map('Orders', o => ({ Company: o.Company, N: o.L.length }))",
        "map('Orders', function (o) { return { Total: o.L.reduce((a, l) => a + l.A * l.B, 0) }; })",
        "map('Orders', o => o.L.map(l => ({ P: l.C, Id: id(o) })))",
        "map('Orders', o => { const all = []; for (const l of o.L) all.push({ P: l.C, Id: id(o) }); return all; })",
        "map('Orders', o => { var all = []; if (Array.isArray(o.L)) o.L.forEach(l => { if (l.A) all.push({ P: l.C, n: all.length }); }); return all; })",
        "map('Items', i => { if (i.C == 'Abc') return null; return { name: i.C, a: i.G ? i.G.A : undefined, c: i.G && i.G.B ? i.G.B.A : null, len: Array.isArray(i.F) ? i.F.length : -1 }; })",
        "map('Numbers', n => ({ v: n.A, twice: n.A * 2, half: n.A / 2, text: String(n.B) }))",
        "map('Products', function (p) { var words = p.C.toLowerCase().split(' '); return { words: words, count: words.length, size: p.A > 50 ? 'big' : 'small', key: id(p) }; })",
        "map('Products', p => { const c = load(p.C, 'Categories'); return { name: p.A, category: c ? c.Name : null, key: id(c) }; })",
        "map('Products', p => ({ name: p.A, _: (p.L || []).map(t => createField('is_' + t.C, p.B, { indexing: 'Default', storage: false })) }))",
        "map('Books', b => ({ Title: b.C, Place: createSpatialField(b.A, b.B), Shape: createSpatialField(b.C) }))",
        "map('Products', p => boost({ a: p.A, b: boost(p.C, 3) }, 10))",
        "map('Products', p => ({ c: getMetadata(p)['@collection'], i: getMetadata(p)['@id'], m: getMetadata(p)['@last-modified'], v: getMetadata(p)['@change-vector'], l: lastModified(p) }))",
        "map('Products', p => ({ c: p['@metadata']['@collection'], all: p }))",
        "map('Products', p => p)",
        "map('Products', p => ({ ...p, A: 1, [p.C]: 2 }))",
        "map('Products', ({ A, C = 'none', L }) => ({ A, C, n: L.length }))",
        "map('Products', p => Object.entries(p.G || {}).map(([k, v]) => ({ k, v })))",
        "map('Products', p => { let sum = 0; for (let i = 0; i < p.F.length; i++) { if (i == 1) continue; sum += p.F[i]; } return { sum }; })",
        "map('Products', p => { const f = p.F, g = p.G?.B?.A?.[0]; let n = 0; while (n < 3) { n++; if (n === 2) break; } return { f, g, n, h: p.G?.length }; })",
        "map('Products', p => ({ k: cmpxchg('k'), u: noTracking.load('x', 'Xs').Y, many: load([p.C, 'ab'], 'Cs').map(c => c.Name) }))",
        "map(['A', 'B'], p => ({ t: `${p.A}-${p.C}`, n: -p.A, x: p.B ?? 5, y: p.C || 'd', z: !p.D }))",
        "map(p => ({ t: typeof p.A, u: typeof p.D, v: 'A' in (p.G || {}), w: p.C.length, x: p.C[0] }))",
    ] {
        same(text);
    }
}

#[test]
fn what_is_not_lowered_says_so() {
    let engine = |text: &str| Map::compile(text, &BTreeMap::new()).expect("the map is one").engine();
    assert_eq!(engine("map('A', a => ({ x: a.x }))"), Engine::Program);
    assert_eq!(engine("from a in docs.As select new { a.X }"), Engine::Program);
    for text in [
        "map('A', a => ({ x: new Date(a.x) }))",
        "map('A', a => ({ x: /x/.test(a.x) }))",
        "map('A', a => ({ x: a.x.sort() }))",
        "map('A', a => ({ x: nobody }))",
        "map('A', a => ({ x: a.constructor }))",
        "map('A', a => { a.x = 1; return a; })",
        "map('A', a => { try { return { x: a.x }; } catch (e) {} })",
        "map('A', a => { const b = []; const c = b; b.push(1); return { c }; })",
        "map('A', a => { const b = []; const c = a.L.map(x => { b.push(x); return 1; }); return { b, c }; })",
        "map('A', a => { const b = []; const c = a.L.map(x => b); b.push(1); return { c }; })",
        "map('A', a => ({ x: a.x })); map('B', b => ({ x: b.x }))",
        "map('A', a => ({ x: b, y: (() => 1)() }))",
        "map('A', a => { const x = 1; x = 2; return { x }; })",
        "map('A', a => ({ x: getMetadata(a)['@id'], y: a['@metadata'].z }))",
        "map('A', function (a) { return { x: this.x }; })",
    ] {
        assert_eq!(engine(text), Engine::QuickJs, "{text}");
    }
    let mut sources = BTreeMap::new();
    sources.insert("helpers".to_owned(), "function id(x) { return 1 }".to_owned());
    let map = Map::compile("map('A', a => ({ x: id(a) }))", &sources).expect("the map is one");
    assert_eq!(map.engine(), Engine::QuickJs);
    let engine = |text: &str| Reduce::compile(text, &BTreeMap::new()).expect("the reduce is one").engine();
    assert_eq!(
        engine("groupBy(x => x.a).aggregate(g => ({ a: g.key, n: g.values.length }))"),
        Engine::Program
    );
    assert_eq!(engine("groupBy(x => x.a).aggregate(g => ({ a: new Date(g.key) }))"), Engine::QuickJs);
}

#[test]
fn reduces_of_both() {
    let entries: Vec<String> = [
        r#"{"k":"a","n":1,"m":1.5}"#,
        r#"{"k":"b","n":2}"#,
        r#"{"k":"a","n":40,"m":"x"}"#,
        r#"{"k":null,"n":1}"#,
        r#"{"n":2,"m":2}"#,
        r#"{"k":{"y":1,"x":"a"},"n":null}"#,
        r#"{"k":[1,2],"n":7}"#,
    ]
    .map(str::to_owned)
    .to_vec();
    let mut count = Count::default();
    for text in [
        "groupBy(x => x.k).aggregate(g => { return { k: g.key, n: g.values.reduce((a, b) => a + b.n, 0) }; })",
        "groupBy(x => ({ k: x.k, m: x.m })).aggregate(g => ({ k: g.key.k, m: g.key.m, n: g.values.reduce((a, b) => a + b.n, 0), c: g.values.length }))",
        "groupBy(x => 1).aggregate(g => ({ most: Math.max(g.values[0].n, 1), all: g.values.map(v => v.n) }))",
        "groupBy(x => x.k).aggregate(g => ({ k: g.key, n: g.values.reduce((a, b) => b.n + a, 0), first: g.values[0] }))",
    ] {
        compare_reduce(text, &entries, &mut count).unwrap();
        compare_reduce(text, &entries[..1], &mut count).unwrap();
        compare_reduce(text, &[], &mut count).unwrap();
    }
    assert_eq!((count.not_lowered, count.declined, count.errors), (0, 0, 0), "{count:?}");
}

/// Letters whose case changes here must change as QuickJS has them.
#[test]
fn cases_of_letters() {
    let mut letters: Vec<char> = (1..0x3000).filter_map(char::from_u32).collect();
    letters.extend((0x3000..0x1_0000).step_by(7).filter_map(char::from_u32));
    let mut count = Count::default();
    for some in letters.chunks(16) {
        let json: Vec<String> = some
            .iter()
            .filter(|letter| **letter >= ' ' && !matches!(letter, '"' | '\\'))
            .map(|letter| format!(r#"{{"C":"a{letter}B"}}"#))
            .collect();
        compare(
            "map(p => ({ l: p.C.toLowerCase(), u: p.C.toUpperCase(), t: (p.C.slice(1, -1) + ' x').trim(), n: Number(p.C.slice(1, -1) + '5') }))",
            &json,
            &mut count,
        )
        .unwrap();
    }
    assert!(count.declined * 10 < count.runs * 9, "{count:?}");
}

/// Functions of a grammar of what is lowered.
struct Grammar {
    random: Random,
    /// Variables in scope.
    names: Vec<String>,
}

impl Grammar {
    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        self.random.pick(of).copied().unwrap_or_default()
    }

    fn name(&mut self) -> String {
        let names = self.names.clone();
        self.random.pick(&names).cloned().unwrap_or_default()
    }

    fn field(&mut self) -> &'static str {
        self.pick(&["A", "B", "C", "D", "E", "F", "G", "H", "L", "Nope", "length"])
    }

    /// `x => expression` of so many parameters.
    fn callback(&mut self, parameters: usize, depth: usize) -> String {
        let before = self.names.len();
        let fresh: Vec<String> = (0..parameters).map(|at| format!("v{}", before + at)).collect();
        self.names.extend(fresh.iter().cloned());
        let body = self.expression(depth);
        let text = match self.random.below(4) {
            0 => {
                self.names.push("inner".to_owned());
                let value = self.expression(1);
                format!("({}) => {{ const inner = {body}; return {value}; }}", fresh.join(", "))
            }
            _ => format!("({}) => ({body})", fresh.join(", ")),
        };
        self.names.truncate(before);
        text
    }

    fn expression(&mut self, depth: usize) -> String {
        if depth == 0 {
            return match self.random.below(8) {
                0 => self.pick(&["0", "1", "2.5", "-3", "1e21", "NaN", "Infinity", "7"]).to_owned(),
                1 => self
                    .pick(&["''", "'a'", "'12'", "'Abc'", "' '", "'b,c'", "'ü'", "'A'", "'length'"])
                    .to_owned(),
                2 => self.pick(&["null", "undefined", "true", "false", "[]", "({})"]).to_owned(),
                3 => self.name(),
                _ => format!("{}.{}", self.name(), self.field()),
            };
        }
        let below = depth - 1;
        match self.random.below(24) {
            0..=2 => self.expression(0),
            3 | 4 => {
                let target = self.expression(below);
                format!("({target}).{}", self.field())
            }
            5 => {
                let (target, key) = (self.expression(below), self.expression(below));
                format!("({target})[{key}]")
            }
            6 => {
                let target = self.expression(below);
                format!("({target})?.{}?.{}", self.field(), self.field())
            }
            7..=9 => {
                let operator =
                    self.pick(&["+", "+", "+", "-", "*", "/", "%", "**", "&", "|", "^", "<<", ">>", ">>>"]);
                let (left, right) = (self.expression(below), self.expression(below));
                // The left of `**` may be no unary expression.
                format!("(({left}) {operator} ({right}))")
            }
            10 => {
                let operator = self.pick(&["==", "!=", "===", "!==", "<", "<=", ">", ">="]);
                let (left, right) = (self.expression(below), self.expression(below));
                format!("(({left}) {operator} ({right}))")
            }
            11 => {
                let operator = self.pick(&["&&", "||", "??"]);
                let (left, right) = (self.expression(below), self.expression(below));
                format!("(({left}) {operator} ({right}))")
            }
            12 => {
                let operator = self.pick(&["!", "-", "+", "~", "typeof ", "void "]);
                format!("({operator}({}))", self.expression(below))
            }
            13 => {
                let (test, then, otherwise) =
                    (self.expression(below), self.expression(below), self.expression(below));
                format!("(({test}) ? ({then}) : ({otherwise}))")
            }
            14 => format!("`${{{}}}-${{{}}}`", self.expression(below), self.expression(below)),
            15 => {
                let values = [self.expression(below), self.expression(below)];
                match self.random.one_in(3) {
                    true => format!("[{}, ...({})]", values[0], values[1]),
                    false => format!("[{}]", values.join(", ")),
                }
            }
            16 => match self.random.below(4) {
                0 => format!("({{ ...({}), A: {} }})", self.expression(below), self.expression(below)),
                1 => format!("({{ [{}]: {} }})", self.expression(below), self.expression(below)),
                _ => format!("({{ A: {}, x: {} }})", self.expression(below), self.expression(below)),
            },
            17 | 18 => {
                let method = self.pick(&[
                    "map",
                    "filter",
                    "some",
                    "every",
                    "find",
                    "findIndex",
                    "findLast",
                    "flatMap",
                ]);
                let parameters = 1 + self.random.below(2);
                let (target, callback) = (self.array(below), self.callback(parameters, below));
                format!("({target}).{method}({callback})")
            }
            19 => {
                let (target, callback) = (self.array(below), self.callback(2, below));
                match self.random.one_in(4) {
                    true => format!("({target}).reduce({callback})"),
                    false => format!("({target}).reduce({callback}, {})", self.expression(0)),
                }
            }
            20 => {
                let method = self.pick(&[
                    "includes",
                    "indexOf",
                    "lastIndexOf",
                    "slice",
                    "concat",
                    "at",
                    "join",
                    "split",
                    "startsWith",
                    "endsWith",
                    "substring",
                    "substr",
                    "charAt",
                    "charCodeAt",
                    "padStart",
                    "padEnd",
                ]);
                let two =
                    matches!(method, "slice" | "substring" | "substr" | "padStart" | "padEnd" | "concat");
                let (target, first) = (self.expression(below), self.expression(0));
                match two && self.random.one_in(2) {
                    true => format!("({target}).{method}({first}, {})", self.expression(0)),
                    false => format!("({target}).{method}({first})"),
                }
            }
            21 => {
                let method = self.pick(&[
                    "toLowerCase()",
                    "toUpperCase()",
                    "trim()",
                    "trimStart()",
                    "trimEnd()",
                    "flat()",
                    "toString()",
                    "replace('a', 'x')",
                    "replaceAll('b', '')",
                    "repeat(2)",
                    "toFixed(2)",
                    "toFixed()",
                    "hasOwnProperty('A')",
                    "join('-')",
                    "filter(Boolean)",
                    "map(String)",
                    "slice(1)",
                ]);
                format!("({}).{method}", self.expression(below))
            }
            _ => {
                let function = self.pick(&[
                    "Math.abs",
                    "Math.floor",
                    "Math.ceil",
                    "Math.round",
                    "Math.trunc",
                    "Math.sign",
                    "Math.sqrt",
                    "String",
                    "Number",
                    "Boolean",
                    "parseInt",
                    "parseFloat",
                    "isNaN",
                    "Number.isInteger",
                    "Array.isArray",
                    "Object.keys",
                    "Object.values",
                    "Object.entries",
                    "id",
                    "Math.min",
                    "Math.max",
                    "load",
                ]);
                let first = self.expression(below);
                match function {
                    "Math.min" | "Math.max" => format!("{function}({first}, {})", self.expression(below)),
                    "load" => format!("load({first}, 'Cs')"),
                    _ => format!("{function}({first})"),
                }
            }
        }
    }

    /// What is often an array.
    fn array(&mut self, depth: usize) -> String {
        match self.random.below(4) {
            0 => self.expression(depth),
            1 => format!("{}.F", self.name()),
            2 => format!("[{}, {}]", self.expression(0), self.expression(0)),
            _ => format!("{}.L", self.name()),
        }
    }

    fn statements(&mut self) -> String {
        let value = self.expression(2);
        let test = self.expression(1);
        let (array, inner) = (self.array(1), self.expression(0));
        self.names.extend(["a".to_owned(), "sum".to_owned()]);
        match self.random.below(5) {
            0 => format!("const a = {value}; let sum = 1; if ({test}) {{ sum = {inner}; }} else sum += 2;"),
            1 => format!("let a = {value}, sum = 0; for (const each of {array}) {{ if (each === {inner}) break; sum += each; }}"),
            2 => format!("var a = {value}; let sum = ''; ({array}).forEach((x, i) => {{ sum += i; a = x; }});"),
            3 => format!("const a = {value}; const sum = []; for (let i = 0; i < 3; i++) {{ if (i === {inner}) continue; sum.push(i, a); }}")
                .replace("const sum = [];", "let sum = 0;")
                .replace("sum.push(i, a)", "sum += i"),
            _ => format!("const {{ A: a, B: sum = {inner} }} = {test} ? o : {{ A: {inner} }};"),
        }
    }

    fn map(&mut self) -> String {
        self.names = vec!["o".to_owned()];
        match self.random.below(4) {
            0 => {
                let before = self.statements();
                let fields = [self.expression(2), self.expression(2)];
                format!("map('Xs', o => {{ {before} return {{ p: {}, q: {} }}; }})", fields[0], fields[1])
            }
            1 => {
                let callback = self.callback(1, 2);
                format!("map('Xs', o => ({}).map({callback}))", self.array(0))
            }
            2 => {
                let test = self.expression(1);
                let pushed = self.expression(1);
                let array = self.array(1);
                format!(
                    "map('Xs', o => {{ const all = []; for (const e of {array}) if ({test}) all.push({{ e, p: {pushed} }}); return all; }})"
                )
            }
            _ => {
                let fields = [self.expression(3), self.expression(2), self.expression(1)];
                format!("map('Xs', o => ({{ p: {}, q: {}, r: {} }}))", fields[0], fields[1], fields[2])
            }
        }
    }

    fn json(&mut self, depth: usize) -> String {
        match self.random.below(if depth == 0 { 6 } else { 8 }) {
            0 => self.pick(&["0", "1", "-1", "2.50", "1e3", "9007199254740993", "-0.0", "1e-9"]).to_owned(),
            1 => self.random.below(1000).to_string(),
            2 => self.pick(&["null", "true", "false"]).to_owned(),
            3..=5 => self
                .pick(&[
                    r#""""#,
                    r#""a""#,
                    r#""Abc def""#,
                    r#""12""#,
                    r#""2020-01-02""#,
                    r#""\u00fcx""#,
                    r#""a,b""#,
                    r#""A""#,
                ])
                .to_owned(),
            6 => {
                let values: Vec<String> = (0..self.random.below(4)).map(|_| self.json(depth - 1)).collect();
                format!("[{}]", values.join(","))
            }
            _ => self.object(depth - 1),
        }
    }

    fn object(&mut self, depth: usize) -> String {
        let mut fields = Vec::new();
        for name in ["A", "B", "C", "D", "E", "F", "G", "H", "L", "7"] {
            if self.random.one_in(2) {
                fields.push(format!("\"{name}\":{}", self.json(depth)));
            }
        }
        format!("{{{}}}", fields.join(","))
    }
}

fn of_seed(seed: u64) -> Result<Count, String> {
    let mut grammar = Grammar { random: Random::new(seed), names: Vec::new() };
    let mut count = Count::default();
    for _ in 0..8 {
        let text = grammar.map();
        let mut all: Vec<String> = (0..6).map(|_| grammar.object(2)).collect();
        all.push(DOCUMENTS[grammar.random.below(DOCUMENTS.len())].to_owned());
        compare(&text, &all, &mut count)?;
    }
    Ok(count)
}

fn by_chance(seeds: u64) {
    let replay = REPLAY.replace("{test}", "functions_by_chance");
    let counts = Seeds::from_environment(seeds).check(&replay, of_seed);
    let sum = |of: fn(&Count) -> usize| counts.iter().map(of).sum::<usize>();
    let (runs, declined, errors) =
        (sum(|count| count.runs), sum(|count| count.declined), sum(|count| count.errors));
    let not_lowered = sum(|count| count.not_lowered);
    println!(
        "{runs} runs, {errors} of them errors, {declined} declined; {not_lowered} functions not lowered"
    );
    // A test of nothing but refusals would prove nothing. Chance makes many errors, and much that only QuickJS answers.
    if counts.len() > 100 {
        let answered = runs - errors - declined;
        assert!(
            answered * 8 > runs && not_lowered * 10 < counts.len() * 8,
            "{answered} of {runs}, {not_lowered}"
        );
    }
}

#[test]
fn functions_by_chance() {
    by_chance(150);
}

#[test]
fn slow_functions_by_chance() {
    by_chance(5_000);
}
