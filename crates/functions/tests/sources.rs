//! Additional sources in C#: static methods and constants, put in where they are called.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod runs;

use std::collections::BTreeMap;

use jackdaw_document::Context;
use jackdaw_functions::{Input, Limits, Map, NoHost};
use runs::entry_json;

const PEOPLE: &str = r#"
using System;
using System.Linq;
/* of people */
namespace My.Tools
{
    public static class PeopleUtil
    {
        private const int Year = 2020;
        public static readonly string Domain = "ayende" + ".net";
        public static string Email(string name, uint age) => $"{name}.{Born(age)}@{Domain}".ToLower();
        private static int Born(int age) { return Year - age; }
        public static double Half(double n) { return n / 2; }
        public static string Kind(dynamic age, int adult = 18)
        {
            if (age == null) return "unknown";
            var isAdult = age >= adult;
            return isAdult ? "adult" : "child";
        }
        public static string Shout(this string text, string mark = "!") => text.ToUpper() + mark;
        public static string Endless(int n) => Other(n);
        public static string Other(int n) => Endless(n);
        public static int Looping(int n) { for (var i = 0; i < n; i++) { } return n; }
        public int OfObject(int n) => n;
        public static object Twice(object o) => new { A = o, B = o };
    }
}
"#;

fn sources() -> BTreeMap<String, String> {
    BTreeMap::from([("People".to_owned(), PEOPLE.to_owned()), ("Blank".to_owned(), " \r\n".to_owned())])
}

fn run(expression: &str) -> Result<String, String> {
    let map = Map::compile(&format!("from p in docs.People select new {{ V = {expression} }}"), &sources())
        .map_err(|error| error.to_string())?;
    let context = Context::new();
    let document = context.parse(r#"{"Name":"Ada","Age":7,"Ages":[3,30,null]}"#).unwrap();
    let mut out = String::new();
    map.runner(Limits::default())
        .run(&Input::new(document, "people/1"), &mut NoHost, &mut |entry| {
            out.push_str(&entry_json(entry));
            Ok(())
        })
        .map_err(|error| error.to_string())?;
    Ok(out)
}

#[test]
fn methods_and_constants_are_used() {
    for (expression, expected) in [
        ("PeopleUtil.Email(p.Name, p.Age)", "\"ada.2013@ayende.net\""),
        ("My.Tools.PeopleUtil.Domain", "\"ayende.net\""),
        ("PeopleUtil.Half(p.Age)", "3.5"),
        ("PeopleUtil.Half(PeopleUtil.Half(p.Age))", "1.75"),
        ("p.Ages.Select(a => PeopleUtil.Kind(a))", "[\"child\",\"adult\",\"unknown\"]"),
        ("PeopleUtil.Kind(p.Age, 6)", "\"adult\""),
        ("p.Name.Shout()", "\"ADA!\""),
        ("p.Name.Shout(\"?\").Length", "4"),
        ("PeopleUtil.Shout(p.Name)", "\"ADA!\""),
    ] {
        assert_eq!(run(expression), Ok(format!("{{\"V\":{expected}}}")), "{expression}");
    }
}

#[test]
fn what_is_not_supported_is_refused_with_its_place() {
    for (expression, part) in [
        ("PeopleUtil.Endless(1)", "additional source `People`: `Endless` calls itself"),
        ("PeopleUtil.Looping(1)", "line 23, column 44: additional source `People`: `for` is not supported"),
        ("PeopleUtil.OfObject(1)", "`PeopleUtil.OfObject` is not supported"),
        ("PeopleUtil.Missing(1)", "`PeopleUtil.Missing` is not supported"),
        ("PeopleUtil.Half()", "nothing is given for `n`"),
        ("PeopleUtil.Half(1, 2)", "`Half` takes 1 arguments"),
        ("Email(p.Name, 1)", "`Email` is not supported"),
        ("Domain", "`Domain` is not known here"),
        ("OtherUtil.Email(p.Name, 1)", "`OtherUtil` is not known here"),
    ] {
        let error = run(expression).unwrap_err();
        assert!(error.contains(part), "{expression}: {error}");
    }
    let broken = BTreeMap::from([(
        "Broken".to_owned(),
        "public static class A { public static int B( => 1; }".to_owned(),
    )]);
    let error = Map::compile("from p in docs.People select new { p.Name }", &broken).unwrap_err();
    assert!(error.message.starts_with("additional source `Broken`"), "{error}");
}

/// Methods that each call the next twice make twice as many expressions a step.
#[test]
fn what_grows_without_end_is_refused() {
    let methods: String = (0..40)
        .map(|n| {
            format!(
                "public static object M{n}(object a) => new {{ A = M{}(a), B = M{}(a) }};\n",
                n + 1,
                n + 1
            )
        })
        .collect();
    let text = format!("public static class Many {{ {methods} public static object M40(object a) => a; }}");
    let sources = BTreeMap::from([("Many".to_owned(), text)]);
    let error = Map::compile("from p in docs.People select new { V = Many.M0(1) }", &sources).unwrap_err();
    assert!(error.message.contains("a function may have"), "{error}");
}
