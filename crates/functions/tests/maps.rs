//! Whole maps: query and method syntax, sources, shapes, several entries.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod runs;

use std::collections::BTreeMap;

use jackdaw_functions::{Collections, Map, SourceKind};
use runs::map_entries;

const ORDER: &str = r#"{"Company":"companies/1","Freight":2.5,"Lines":[{"Product":"tea","Price":1.10,"Quantity":3},{"Product":"milk","Price":2,"Quantity":1},{"Product":"tea","Price":0.5,"Quantity":2}],"Tags":["a","b"],"OrderedAt":"1996-07-04T00:00:00.0000000","ShipTo":{"City":"Lyon","Location":{"Latitude":45.7,"Longitude":4.8}},"@metadata":{"@collection":"Orders"}}"#;

fn check(map: &str, expected: &[&str]) {
    assert_eq!(
        map_entries(map, "orders/1-A", ORDER).as_deref(),
        Ok(&expected.iter().map(|entry| (*entry).to_owned()).collect::<Vec<_>>()[..]),
        "{map}"
    );
}

#[test]
fn query_and_method_syntax() {
    check(
        "from o in docs.Orders select new { o.Company, City = o.ShipTo.City }",
        &[r#"{"Company":"companies/1","City":"Lyon"}"#],
    );
    check(
        "docs.Orders.Select(o => new { o.Company, o.ShipTo.City })",
        &[r#"{"Company":"companies/1","City":"Lyon"}"#],
    );
    check(
        "  // a comment\n from o in docs.Orders\r\n select new\n{ o.Company , } ;  ",
        &[r#"{"Company":"companies/1"}"#],
    );
    check("from o in docs select new { o.Freight }", &[r#"{"Freight":2.5}"#]);
    check("from o in docs[\"Orders\"] select new { o.Freight }", &[r#"{"Freight":2.5}"#]);
    check("from o in docs.Orders where o.Freight > 3 select new { o.Freight }", &[]);
    check("docs.Orders.Where(o => o.Freight > 2).Select(o => new { o.Freight })", &[r#"{"Freight":2.5}"#]);
}

#[test]
fn several_entries_for_a_document() {
    check(
        "from o in docs.Orders from l in o.Lines select new { o.Company, l.Product }",
        &[
            r#"{"Company":"companies/1","Product":"tea"}"#,
            r#"{"Company":"companies/1","Product":"milk"}"#,
            r#"{"Company":"companies/1","Product":"tea"}"#,
        ],
    );
    check(
        "docs.Orders.SelectMany(o => o.Lines, (o, l) => new { l.Product, Total = l.Price * l.Quantity })",
        &[
            r#"{"Product":"tea","Total":3.30}"#,
            r#"{"Product":"milk","Total":2}"#,
            r#"{"Product":"tea","Total":1.0}"#,
        ],
    );
    check(
        "docs.Orders.SelectMany(o => o.Tags.Select(t => new { Tag = t }))",
        &[r#"{"Tag":"a"}"#, r#"{"Tag":"b"}"#],
    );
    check(
        "from o in docs.Orders from l in o.Lines where l.Price > 1 let t = l.Price * 2 orderby t descending select new { l.Product, t }",
        &[r#"{"Product":"milk","t":4}"#, r#"{"Product":"tea","t":2.20}"#],
    );
    check(
        "from o in docs.Orders from l in o.Lines group l by l.Product into g select new { P = g.Key, N = g.Count() }",
        &[r#"{"P":"tea","N":2}"#, r#"{"P":"milk","N":1}"#],
    );
    check("from o in docs.Orders from m in o.Missing select new { m }", &[]);
}

#[test]
fn transparent_identifiers() {
    check(
        "docs.Orders.Select(order => new { order = order, total = order.Lines.Sum(l => l.Quantity) }).Select(this0 => new { this0.order.Company, Total = this0.total })",
        &[r#"{"Company":"companies/1","Total":6}"#],
    );
    check(
        "docs.Orders.SelectMany(o => o.Lines, (o, l) => new { o = o, l = l }).Where(this0 => this0.l.Quantity > 1).Select(this0 => new { this0.l.Product })",
        &[r#"{"Product":"tea"}"#, r#"{"Product":"tea"}"#],
    );
}

#[test]
fn joins() {
    check(
        "from o in docs.Orders from t in o.Tags join l in o.Lines on t equals l.Product into g select new { t, N = g.Count() }",
        &[r#"{"t":"a","N":0}"#, r#"{"t":"b","N":0}"#],
    );
    check(
        "from o in docs.Orders from p in new [] { \"tea\", \"gin\" } join l in o.Lines on p equals l.Product select new { p, l.Quantity }",
        &[r#"{"p":"tea","Quantity":3}"#, r#"{"p":"tea","Quantity":2}"#],
    );
}

#[test]
fn whole_documents_and_boosts() {
    check(
        "from o in docs.Orders select new { o.Company }.Boost(2)",
        &[r#"{"Company":"companies/1","@boost":2.0}"#],
    );
    check(
        "from o in docs.Orders select new { Company = o.Company.Boost(10) }",
        &[r#"{"Company":{"@boost":10.0,"Value":"companies/1"}}"#],
    );
    check(
        "from o in docs.Orders select o.ShipTo",
        &[r#"{"City":"Lyon","Location":{"Latitude":45.7,"Longitude":4.8}}"#],
    );
}

#[test]
fn dynamic_and_spatial_fields() {
    check(
        "from o in docs.Orders select new { _ = o.Lines.Select(l => CreateField(l.Product, l.Price, true, false)), At = CreateSpatialField(o.ShipTo.Location.Latitude, o.ShipTo.Location.Longitude) }",
        &[
            r#"{"_":[{"Name":"tea","Value":1.10},{"Name":"milk","Value":2},{"Name":"tea","Value":0.5}],"At":"POINT (4.8 45.7)"}"#,
        ],
    );
}

#[test]
fn what_is_known_of_a_map() {
    let map = |text: &str| Map::compile(text, &BTreeMap::new()).unwrap();
    let orders = map(
        "from o in docs.Orders let c = LoadDocument(o.Company, \"Companies\") select new { o.Freight, c.Name, _ = CreateField(\"a\", 1) }",
    );
    assert_eq!(orders.source().collections, Collections::Named(vec!["Orders".into()]));
    assert_eq!(orders.source().kind, SourceKind::Documents);
    assert_eq!(
        orders.field_names().unwrap().iter().map(|name| &**name).collect::<Vec<_>>(),
        ["Freight", "Name", "_"]
    );
    assert_eq!(orders.loads().iter().map(|name| &**name).collect::<Vec<_>>(), ["Companies"]);
    assert!(orders.has_dynamic_fields() && !orders.uses_compare_exchange());
    assert_eq!(map("from o in docs select new { o.A }").source().collections, Collections::All);
    assert_eq!(
        map("from o in docs.WhereEntityIs(\"Cats\", \"Dogs\") select new { o.A }").source().collections,
        Collections::Named(vec!["Cats".into(), "Dogs".into()])
    );
    let series = map("from ts in timeSeries.Users.HeartRates from e in ts.Entries select new { e.Value }");
    assert_eq!(series.source().kind, SourceKind::TimeSeries);
    assert_eq!(series.source().name.as_deref(), Some("HeartRates"));
    assert_eq!(map("counters.Users.Likes.Select(c => new { c.Value })").source().kind, SourceKind::Counters);
    assert!(map("from o in docs.Orders select o").field_names().is_none());
}

#[test]
fn errors_of_texts_have_places() {
    for (text, line, column, part) in [
        (
            "from o in docs.Orders select new { o.Name.Normalize() }",
            1,
            36,
            "member that is no plain property",
        ),
        (
            "from o in docs.Orders select new { A = o.Name.Normalize() }",
            1,
            47,
            "`Normalize` is not supported",
        ),
        ("from o in docs.Orders\nselect new { A = b }", 2, 18, "`b` is not known"),
        ("from o in docs.Orders select new { A = }", 1, 1, ""),
        ("from o in orders select new { o.A }", 1, 11, "`orders` is not known"),
        ("docs.Orders.Select(o => new { A = DateTime.Now })", 1, 35, "`DateTime.Now`"),
        ("from o in docs.Orders select new { o.A, o.B.A }", 1, 41, "`A` is given twice"),
        ("docs.Orders.Select(o => new { A = o.B.Substring() })", 1, 35, "`Substring` takes 1 to 2"),
        ("docs.Orders.Select(o => new { A = Regex.IsMatch(o.B, \"(?=a)\") })", 1, 54, "Regex.IsMatch"),
        ("docs.Orders.Select(o => new { A = new Foo() })", 1, 35, "`new Foo`"),
        ("from a in docs.As from b in docs.Bs select new { a.X }", 1, 29, "second"),
    ] {
        let error = Map::compile(text, &BTreeMap::new()).unwrap_err();
        assert!(error.message.contains(part), "{text}: {error}");
        if !part.is_empty() {
            assert_eq!((error.line, error.column), (line, column), "{text}: {error}");
        }
    }
}

/// What RavenDB 5.4 keeps when the condition over all documents is null: the document, unless the condition is made of `&&` or `||`.
#[test]
fn conditions_that_are_null() {
    let kept = |map: &str| {
        let documents = [
            r#"{"N":1,"F":true}"#,
            r#"{"N":2,"F":false}"#,
            r#"{"N":3,"F":null,"L":[{"F":null},{"F":true}]}"#,
            r#"{"N":4}"#,
        ];
        documents
            .iter()
            .flat_map(|document| map_entries(map, "ws/1", document).unwrap())
            .collect::<Vec<_>>()
            .join("")
    };
    for (condition, expected) in [
        ("w.F", "134"),
        ("(w.F)", "134"),
        ("!w.F", "234"),
        ("w.X.Any()", "1234"),
        ("w.F == true", "1"),
        ("w.F != false", "134"),
        ("w.F && true", "1"),
        ("true && w.F", "1"),
        ("w.F || w.F", "1"),
        ("w.F || w.N != 0", "1234"),
        ("!(w.F && true)", "234"),
        ("(bool)w.F", "1"),
        ("w.F ?? false", "1"),
        ("w.F ? true : false", "1"),
        ("w.Z > 1", ""),
    ] {
        let expected: String = expected.chars().map(|n| format!("{{\"N\":{n}}}")).collect();
        assert_eq!(
            kept(&format!("from w in docs.Ws where {condition} select new {{ w.N }}")),
            expected,
            "{condition}"
        );
        assert_eq!(
            kept(&format!("docs.Ws.Where(w => {condition}).Select(w => new {{ w.N }})")),
            expected,
            "{condition}"
        );
    }
    assert_eq!(kept("from w in docs.Ws let f = w.F where f select new { w.N }"), r#"{"N":1}{"N":3}{"N":4}"#);
    assert_eq!(kept("from w in docs.Ws from l in w.L where l.F select new { w.N }"), r#"{"N":3}{"N":3}"#);
    assert_eq!(kept("from w in docs.Ws from l in w.L.Where(x => x.F) select new { w.N }"), r#"{"N":3}"#);
}

/// Texts as clients write them: the odd spacing, casts and nesting that their tools produce.
#[test]
fn texts_of_clients_compile() {
    for text in [
        "from doc in docs.Companies select new { Name = doc.Name, _ = \"\" }",
        "from c in docs.Companies select new{c.Name,c.Contact.Email}",
        "docs.Employees.Select(employee => new {    contactName = (employee.FirstName + \" \") + employee.LastName,    collection = this.MetadataFor(employee)[\"@collection\"]})",
        "docs.Events.Select(e => new {\n    name = e.name,\n    coordinates = this.CreateSpatialField(((double?) e.latitude), ((double?) e.longitude))\n})",
        "docs.GeoDocuments.Select(doc => new {\n    WKT = this.CreateSpatialField(doc.WKT)\n})",
        "docs.Orders.SelectMany(order => order.Lines, (order, orderLine) => new {\n    ProductId = orderLine.Product,\n    ProductName = orderLine.ProductName\n})",
        "docs.Mains.Select(main => new {    main = main,    related = this.LoadDocument(String.Format(\"related/{0}\", main.name), \"RelatedDocuments\")}).Select(this0 => new {    name = this0.main.name,\n    value = this0.related != null ? ((decimal ? ) this0.related.value) : ((decimal ? ) null)\n})",
        "docs.BlogPosts.Select(post => new {\n    authors = this.Recurse(post, x => x.comments).Select(x0 => x0.author)\n})",
        "docs.Products.Select(product => new {\n    Query = this.AsJson(product).Select(x => x.Value)\n})",
        "from u in docs.Users select new { a = 5 / u.Age }",
        "from user in docs.Users select new { user.Name, lastName = user.LastName.Boost(10) }",
        "from doc in docs let DocId = doc[\"@metadata\"][\"@id\"] select new {DocId};",
        "from b in docs.Books select new { Pages = (int)b.Pages, b.Author.Name, Tags = b.Tags.Select(t => t.ToLower()).ToArray() }",
        "from sms in docs.Sms select new { Calls = 0, Sms = 1,  Key = sms.From + '/' + sms.At.Year  +'/' + sms.At.Month}",
        "from ts in timeSeries.Companies.HeartRate from entry in ts.Entries select new { heartBeat = entry.Values[0], date = entry.Timestamp.Date, user = ts.DocumentId }",
        "from ts in timeSeries.Companies from entry in ts.Entries select new { entry.Value, entry.Tag }",
        "counters.Companies.HeartRate.Select(counter => new {\n    heartBeat = counter.Value,\n    name = counter.Name,\n    user = counter.DocumentId\n})",
        "from counter in counters.Companies select new { counter.Value }",
        "from x in docs.Users where x.Age > 3 && (x.Name == \"a\" || x.Name == 'b'.ToString()) orderby x.Age select new { x.Name, Price = x.Price * 1M }",
        "docs.Users.OrderBy(x => x.Id).Where(x => true).Select(x => new { x.Id, Days = x.To - x.From, K = typeof(System.Xml.XmlNode).Name })",
        "from p in docs.Products select new { p.Name, Attributes = p.Attributes.Select(a => this.CreateField(a.Name, a.Value, false, true)) }",
        "from c in docs.Carts select new { Total = c.Lines.Sum(l => (l.Quantity * l.PricePerUnit) * (1 - l.Discount)), ByTag = c.Tags.GroupBy(t => t).ToDictionary(g => g.Key, g => g.Count()) }",
    ] {
        if let Err(error) = Map::compile(text, &BTreeMap::new()) {
            panic!("{text}: {error}");
        }
    }
    for text in [
        "from result in results group result by result.name into g select new {   name = g.Key,   count = g.Sum(x => x.count) }",
        "from result in results \r\n group result by new { result.playerId} into g select new {    playerId = g.Key.playerId,    seasons = g.SelectMany(a => a.seasons).GroupBy(a => a.seasonId).Select(a => new {        seasonId = a.Key,        season_count = a.Sum(b => b.season_count)})}",
        "from r in results group r by \"constant\" into g select new { TotalVotesUp = g.Sum( x => x.TotalVotesUp)}",
        "from r in results group r by new { r.Date, r.User } into g let sumHeartBeat = g.Sum(x => x.HeartBeat) let sumCount = g.Sum(x => x.Count) select new {  HeartBeat = sumHeartBeat / sumCount,   Date = g.Key.Date, User = g.Key.User, Count = sumCount}",
        "results.GroupBy(x => x.City).Select(g => new { City = g.Key, Count = g.Sum(x => x.Count) })",
    ] {
        if let Err(error) = jackdaw_functions::Reduce::compile(text, &BTreeMap::new()) {
            panic!("{text}: {error}");
        }
    }
}
