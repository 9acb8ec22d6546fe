//! Which fields a query uses, and what for.
#![allow(clippy::unwrap_used, missing_docs)]

use jackdaw_rql::{Field, Usage, parse};

/// `field:usage` for each use, with `!` for those within `exact`.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let query = parse(text).unwrap();
    let mut found = Vec::new();
    query.visit_fields(|one| {
        let field = match one.field {
            Field::Path(path) => path.to_string(),
            Field::Quoted(text) => format!("{text:?}"),
            Field::Computed(call) => call.to_string(),
        };
        let usage = match one.usage {
            Usage::Compared => "compared".to_owned(),
            Usage::Grouped => "grouped".to_owned(),
            Usage::Ordered(key) => {
                key.order_type.map_or("ordered", |order_type| order_type.as_str()).to_owned()
            }
            Usage::Argument(call) => call.name.to_string(),
        };
        found.push(format!("{field}:{usage}{}", if one.exact { "!" } else { "" }));
    });
    assert_eq!(found, expected, "{text}");
}

#[test]
fn compared_fields() {
    check(
        "from a where n = 1 and (b.c[].d > 'x' or not e in (1))",
        &["n:compared", "b.c[].d:compared", "e:compared"],
    );
    check("from a where 'order' between $a and $b and t all in ($l)", &["'order':compared", "t:compared"]);
    check("from a where exact(n = 'x') and m = 'y'", &["n:compared!", "m:compared"]);
    check("from a where exact(startsWith(n, 'x'))", &["n:startsWith!"]);
    check("from a where boost(fuzzy(n = 'x', 0.5), 2)", &["n:compared"]);
    check("from a where intersect(n = 1, m = 2)", &["n:compared", "m:compared"]);
}

#[test]
fn arguments() {
    check("from a where search(n, $t, and) or exists('b c')", &["n:search", "\"b c\":exists"]);
    check("from a where proximity(search(n, 'x y'), 2)", &["n:search"]);
    check("from a where vector.search(embedding.text(n), $v)", &["n:embedding.text"]);
    check("from a where moreLikeThis(id() = 'a/1') and c = 'x'", &["c:compared"]);
}

#[test]
fn what_is_no_field() {
    check("from a as u where id(u) = 'x' or id() in ($l) or startsWith(id(), 'x')", &[]);
    check("from a where n = cmpxchg('key') and m > now($d)", &["n:compared", "m:compared"]);
    check("from a where true order by random('seed'), score()", &[]);
    check("from a select n include b, counters('c') filter_limit 1", &[]);
    check("from a filter n = 1", &[]);
}

#[test]
fn grouping_and_order() {
    check(
        "from a group by b, array(c[].d) where count() > 1 and sum(e) > 2 order by count() as long, sum(e) desc, b as double",
        &["b:grouped", "c[].d:array", "e:sum", "e:sum", "b:double"],
    );
    check(
        "from a order by n, m as alphaNumeric desc, custom(s, 'Sorter')",
        &["n:ordered", "m:alphaNumeric", "s:custom"],
    );
}

#[test]
fn spatial_fields() {
    check(
        "from a where spatial.within(spatial.point(Lat, Lng), spatial.circle(1, 2, 3)) order by spatial.distance('spatial.wkt(W)', spatial.point(1, 2))",
        &["spatial.point(Lat, Lng):spatial.within", "\"spatial.wkt(W)\":spatial.distance"],
    );
    check("from a where spatial.intersects(Area, spatial.wkt($s))", &["Area:spatial.intersects"]);
}
