//! Points and shapes: what RavenDB 5.4 found with the same queries (it knows neither `contains` nor `disjoint`), and circles against
//! distances worked out by hand.
#![allow(clippy::unwrap_used, reason = "tests")]

mod objects;

use jackdaw_search::{
    Entry, FieldOptions, FieldValue, Query, Relation, Shape, SortBy, SpatialKind, SpatialOptions,
    SpatialQuery, Units,
};
use objects::{MEMORY, Random, Sample, descending, schema, sort};

fn spatial(kind: SpatialKind) -> FieldOptions {
    FieldOptions {
        spatial: Some(SpatialOptions { kind, ..SpatialOptions::default() }),
        ..FieldOptions::default()
    }
}

fn add(sample: &Sample, entries: &[(String, FieldValue<'_>)]) {
    let mut writer = sample.index.writer(MEMORY).unwrap();
    for (key, value) in entries {
        let fields = [("L", *value)];
        writer.add(&Entry { key, fields: &fields, stored: b"", references: &[], boost: 1.0 }).unwrap();
    }
    writer.commit(b"").unwrap();
}

const POINTS: [(f64, f64); 10] = [
    (0.0, 0.0),
    (1.0, 1.0),
    (10.0, 10.0),
    (45.0, -73.0),
    (45.5, -73.5),
    (-33.8, 151.2),
    (89.0, 10.0),
    (0.0, 179.9),
    (0.0, -179.9),
    (5.0, 5.0),
];

fn points(sample: &Sample) {
    let entries: Vec<_> = (1..)
        .zip(POINTS)
        .map(|(number, (latitude, longitude))| {
            (number.to_string(), FieldValue::Point { latitude, longitude })
        })
        .collect();
    add(sample, &entries);
}

fn query(relation: Relation, shape: Shape) -> Query {
    Query::Spatial(SpatialQuery { field: "L".to_owned(), relation, shape, error_percentage: 0.025 })
}

fn circle(radius: f64, latitude: f64, longitude: f64, units: Option<Units>) -> Shape {
    Shape::Circle { radius, latitude, longitude, units }
}

fn wkt(text: &str) -> Shape {
    Shape::Wkt { text: text.to_owned(), units: None }
}

#[test]
fn points_are_found_where_the_reference_finds_them() {
    for known in [schema(&[("L", spatial(SpatialKind::Geography))]), schema(&[])] {
        let sample = Sample::new(known);
        points(&sample);
        for (relation, shape, expected) in [
            (Relation::Within, circle(200.0, 0.0, 0.0, None), "1 2"),
            (Relation::Within, circle(150.0, 0.0, 0.0, None), "1"),
            (Relation::Within, circle(100.0, 0.0, 0.0, Some(Units::Miles)), "1 2"),
            (Relation::Within, wkt("POLYGON((-1 -1, 6 -1, 6 6, -1 6, -1 -1))"), "1 2 10"),
            (Relation::Intersects, wkt("POLYGON((0 0, 1 0, 1 1, 0 1, 0 0))"), "1 2"),
            (Relation::Within, circle(50.0, 0.0, 180.0, None), "8 9"),
            (Relation::Within, wkt("Circle(0 0 d=200)"), "1 2"),
            (Relation::Within, wkt("ENVELOPE(-1,6,6,-1)"), "1 2 10"),
            (Relation::Within, wkt("BOX(-1 -1,6 6)"), "1 2 10"),
            (Relation::Disjoint, circle(2000.0, 0.0, 0.0, None), "4 5 6 7 8 9"),
            (Relation::Contains, wkt("POINT(5 5)"), "10"),
        ] {
            let found = sample.keys(&query(relation, shape.clone()), &[]).join(" ");
            assert_eq!(found, expected, "{relation:?} {shape:?}");
        }
        assert_eq!(sample.keys(&Query::Exists { field: "L".to_owned() }, &[]).len(), 10);
        let error = sample.searcher().count(&query(Relation::Within, wkt("nonsense"))).unwrap_err();
        assert_eq!(error.to_string(), "Value 'nonsense' is not a valid WKT value.");
        assert!(sample.searcher().count(&query(Relation::Within, circle(f64::NAN, 0.0, 0.0, None))).is_err());
    }
}

#[test]
fn on_a_plane() {
    let sample = Sample::new(schema(&[("L", spatial(SpatialKind::Cartesian))]));
    points(&sample);
    for (shape, expected) in [
        (circle(2.0, 0.0, 0.0, None), "1 2"),
        (wkt("0 0 6 6"), "1 2 10"),
        (wkt("Circle(0 0 d=8)"), "1 2 10"),
        (wkt("-1 -1 6 6"), "1 2 10"),
    ] {
        assert_eq!(sample.keys(&query(Relation::Within, shape), &[]).join(" "), expected);
    }
}

#[test]
fn shapes_are_found_where_the_reference_finds_them() {
    let sample = Sample::new(schema(&[("L", spatial(SpatialKind::Geography))]));
    let shapes: Vec<Shape> = [
        "POINT(5 5)",
        "POLYGON((0 0, 10 0, 10 10, 0 10, 0 0))",
        "LINESTRING(0 0, 20 20)",
        "POLYGON((20 20, 30 20, 30 30, 20 30, 20 20))",
        "CIRCLE(15 15 d=100)",
        "ENVELOPE(40,50,50,40)",
        "MULTIPOINT((1 1),(50 50))",
    ]
    .map(wkt)
    .to_vec();
    let entries: Vec<_> =
        (1..).zip(&shapes).map(|(number, shape)| (number.to_string(), FieldValue::Shape(shape))).collect();
    add(&sample, &entries);
    for (relation, shape, expected) in [
        (Relation::Within, "POLYGON((-1 -1, 11 -1, 11 11, -1 11, -1 -1))", "1 2 3 7"),
        (Relation::Intersects, "POINT(5 5)", "1 2 3"),
        (Relation::Intersects, "POINT(2 2)", "2 3"),
        (Relation::Intersects, "POLYGON((4.5 4.5, 5.5 4.5, 5.5 5.5, 4.5 5.5, 4.5 4.5))", "1 2 3"),
        (Relation::Intersects, "LINESTRING(-1 5, 11 5)", "1 2 3"),
        (Relation::Intersects, "Circle(15 15 d=10)", "3 5"),
        (Relation::Disjoint, "POLYGON((-1 -1, 11 -1, 11 11, -1 11, -1 -1))", "4 5 6"),
        (Relation::Contains, "POLYGON((1 1, 2 1, 2 2, 1 2, 1 1))", "2"),
        (Relation::Contains, "POINT(5 5)", "1 2 3"),
    ] {
        assert_eq!(
            sample.keys(&query(relation, wkt(shape)), &[]).join(" "),
            expected,
            "{relation:?} {shape}"
        );
    }
    assert!(wkt("POINT(5 5)").validate().is_ok() && wkt("POINT(5").validate().is_err());
}

#[test]
fn distances_are_those_of_the_reference() {
    let sample = Sample::new(schema(&[("L", spatial(SpatialKind::Geography))]));
    points(&sample);
    let by = |units, round| SortBy::Distance {
        field: "L".to_owned(),
        latitude: 0.0,
        longitude: 0.0,
        round,
        units,
    };
    let page = sample.searcher().search(&Query::All, &[sort(by(None, 0.0))], 0, 4, false).unwrap();
    let found: Vec<(String, f64)> =
        page.hits.iter().map(|hit| (hit.key.clone(), hit.distance.unwrap().distance)).collect();
    let expected = [
        ("1", 0.0),
        ("2", 157.241_815_927_588_22),
        ("10", 785.729_417_198_477_9),
        ("3", 1_568.445_094_510_483_6),
    ];
    for ((key, distance), (expected_key, expected)) in found.iter().zip(expected) {
        assert_eq!(key, expected_key);
        assert!((distance - expected).abs() < 1e-6, "{distance} {expected}");
    }
    let first = page.hits[1].distance.unwrap();
    assert_eq!((first.latitude, first.longitude), (1.0, 1.0));
    let miles =
        sample.searcher().search(&Query::All, &[sort(by(Some(Units::Miles), 0.0))], 1, 1, false).unwrap();
    assert!((miles.hits[0].distance.unwrap().distance - 157.241_815_927_588_22 / 1.609_344).abs() < 1e-6);
    let last = sample.keys(&Query::All, &[descending(by(None, 0.0))]);
    assert_eq!(last[9], "1");
    // Within 1000 km all are as near: the order of insertion.
    assert_eq!(sample.keys(&Query::All, &[sort(by(None, 1000.0))])[..3], ["1", "2", "10"]);
}

#[test]
fn circles_equal_distances_worked_out_by_hand() {
    let sample = Sample::new(schema(&[("L", spatial(SpatialKind::Geography))]));
    let mut random = Random::new(7);
    let mut coordinate = |limit: u64| random.below(limit * 2000) as f64 / 1000.0 - limit as f64;
    let places: Vec<(f64, f64)> = (0..1000).map(|_| (coordinate(90), coordinate(180))).collect();
    let entries: Vec<_> = places
        .iter()
        .enumerate()
        .map(|(number, &(latitude, longitude))| {
            (number.to_string(), FieldValue::Point { latitude, longitude })
        })
        .collect();
    add(&sample, &entries);
    for _ in 0..30 {
        let (latitude, longitude, radius) = (coordinate(90), coordinate(180), (coordinate(90) + 91.0) * 30.0);
        // By the angle between the places as vectors.
        let vector = |latitude: f64, longitude: f64| {
            let (a, b) = (latitude.to_radians(), longitude.to_radians());
            [a.cos() * b.cos(), a.cos() * b.sin(), a.sin()]
        };
        let middle = vector(latitude, longitude);
        let expected: Vec<String> = places
            .iter()
            .enumerate()
            .filter(|(_, place)| {
                let other = vector(place.0, place.1);
                let cosine: f64 = middle.iter().zip(other).map(|(a, b)| a * b).sum();
                cosine.clamp(-1.0, 1.0).acos() * 6_371.008_771_4 <= radius
            })
            .map(|(number, _)| number.to_string())
            .collect();
        let found = sample.keys(&query(Relation::Within, circle(radius, latitude, longitude, None)), &[]);
        assert_eq!(found, expected, "{latitude} {longitude} {radius}");
    }
}
