//! Points and shapes: relations between them, and distances.
//!
//! Shapes are compared exactly, not by cells as RavenDB does. `Within` and `Intersects` are the same, as they are for RavenDB on Lucene;
//! for points there is no difference. Edges are straight in latitude and longitude; circles are round on the sphere.

mod wkt;

use std::sync::Arc;

use geo::{
    BoundingRect, Centroid, Geometry, Intersects, LineString, MapCoords, Point, Polygon, Rect, Relate,
};
use tantivy::DocId;

use crate::compile::{Boxed, Compiler};
use crate::docs::Gather;
use crate::error::{Error, Result};
use crate::layout::Place;
use crate::options::{SpatialKind, SpatialOptions, Units};
use crate::query::{Relation, Shape, SpatialQuery};
use crate::request::Distance;
use crate::segment::Numbers;
use wkt::Parsed;

/// The mean radius of the Earth.
const EARTH_RADIUS_KILOMETERS: f64 = 6_371.008_771_4;

/// RavenDB's mile.
const KILOMETERS_PER_MILE: f64 = 1.609_34;

/// A degree of a great circle as RavenDB's distances count it: sixty nautical miles.
const MILES_PER_DEGREE: f64 = 60.0 * 1.1515;

/// The mile of these distances.
const KILOMETERS_PER_DISTANCE_MILE: f64 = 1.609_344;

/// Corners of the polygon that stands for a circle against shapes that are no points.
const CIRCLE_CORNERS: usize = 96;

impl Shape {
    /// An error that names what is wrong, if the shape is none.
    pub fn validate(&self) -> Result<()> {
        Region::new(self, &SpatialOptions::default()).map(|_| ())
    }
}

/// A shape as the text that is kept in its column.
pub(crate) fn text_of(shape: &Shape) -> String {
    let units = |units: &Option<Units>| match units {
        Some(Units::Kilometers) => " km",
        Some(Units::Miles) => " mi",
        None => "",
    };
    match shape {
        Shape::Circle { radius, latitude, longitude, units: of } => {
            format!("Circle({longitude} {latitude} d={radius}){}", units(of))
        }
        Shape::Wkt { text, units: of } => format!("{text}{}", units(of)),
        Shape::Point { latitude, longitude } => format!("POINT({longitude} {latitude})"),
    }
}

/// The shape that [`text_of`] wrote.
fn shape_of(text: &str) -> Shape {
    let (text, units) = if let Some(text) = text.strip_suffix(" km") {
        (text, Some(Units::Kilometers))
    } else if let Some(text) = text.strip_suffix(" mi") {
        (text, Some(Units::Miles))
    } else {
        (text, None)
    };
    Shape::Wkt { text: text.to_owned(), units }
}

/// A shape that can be compared.
#[derive(Debug, Clone)]
enum Region {
    Geometry(Geometry<f64>),
    /// The middle and the radius, in kilometres on the Earth and in units of the plane else.
    Circle {
        x: f64,
        y: f64,
        radius: f64,
        kind: SpatialKind,
    },
}

impl Region {
    fn new(shape: &Shape, options: &SpatialOptions) -> Result<Region> {
        let circle = |x: f64, y: f64, radius: f64, units: Option<Units>| {
            let unit = match (options.kind, units.unwrap_or(options.units)) {
                (SpatialKind::Geography, Units::Miles) => KILOMETERS_PER_MILE,
                _ => 1.0,
            };
            Region::Circle { x, y, radius: radius * unit, kind: options.kind }
        };
        let region = match shape {
            Shape::Point { latitude, longitude } => {
                Region::Geometry(Point::new(*longitude, *latitude).into())
            }
            Shape::Circle { radius, latitude, longitude, units } => {
                circle(*longitude, *latitude, *radius, *units)
            }
            Shape::Wkt { text, units } => match wkt::parse(text) {
                Some(Parsed::Geometry(geometry)) => Region::Geometry(geometry),
                Some(Parsed::Circle(x, y, radius)) => circle(x, y, radius, *units),
                None => return Err(Error::InvalidQuery(format!("Value '{text}' is not a valid WKT value."))),
            },
        };
        let is_finite = match &region {
            Region::Circle { x, y, radius, .. } => {
                x.is_finite() && y.is_finite() && radius.is_finite() && *radius >= 0.0
            }
            Region::Geometry(Geometry::Point(point)) => point.x().is_finite() && point.y().is_finite(),
            Region::Geometry(_) => true,
        };
        if !is_finite {
            return Err(Error::InvalidQuery(
                "a shape's numbers must be finite, and a radius not negative".to_owned(),
            ));
        }
        Ok(region)
    }

    /// The rectangle around it, for points that cannot be inside; `None` where one says little.
    fn bounds(&self) -> Option<Rect<f64>> {
        match self {
            Region::Geometry(geometry) => geometry.bounding_rect(),
            Region::Circle { x, y, radius, kind: SpatialKind::Cartesian } => {
                Some(Rect::new((x - radius, y - radius), (x + radius, y + radius)))
            }
            Region::Circle { y, radius, .. } => {
                let height = (radius / EARTH_RADIUS_KILOMETERS).to_degrees();
                Some(Rect::new((f64::MIN, y - height), (f64::MAX, y + height)))
            }
        }
    }

    fn holds_point(&self, x: f64, y: f64) -> bool {
        match self {
            Region::Geometry(geometry) => geometry.intersects(&Point::new(x, y)),
            Region::Circle { x: middle_x, y: middle_y, radius, kind } => {
                let distance = match kind {
                    SpatialKind::Geography => {
                        great_circle(*middle_y, *middle_x, y, x) * EARTH_RADIUS_KILOMETERS
                    }
                    SpatialKind::Cartesian => (x - middle_x).hypot(y - middle_y),
                };
                distance <= *radius
            }
        }
    }

    /// As a geometry: a circle becomes a polygon.
    fn geometry(&self) -> Geometry<f64> {
        match self {
            Region::Geometry(geometry) => geometry.clone(),
            Region::Circle { x, y, radius, kind } => {
                let corners = (0..=CIRCLE_CORNERS).map(|corner| {
                    let angle =
                        std::f64::consts::TAU * (corner % CIRCLE_CORNERS) as f64 / CIRCLE_CORNERS as f64;
                    match kind {
                        SpatialKind::Cartesian => (x + radius * angle.cos(), y + radius * angle.sin()),
                        SpatialKind::Geography => {
                            destination(*x, *y, angle, radius / EARTH_RADIUS_KILOMETERS)
                        }
                    }
                });
                Polygon::new(LineString::from_iter(corners), Vec::new()).into()
            }
        }
    }

    fn intersects(&self, other: &Region) -> bool {
        match (self, other) {
            (Region::Geometry(Geometry::Point(point)), region)
            | (region, Region::Geometry(Geometry::Point(point))) => region.holds_point(point.x(), point.y()),
            (Region::Geometry(left), Region::Geometry(right)) => left.intersects(right),
            (Region::Circle { .. }, _) | (_, Region::Circle { .. }) => {
                let (left, right) = (self.geometry(), other.geometry());
                // A circle over the date line goes beyond 180 degrees.
                [0.0, 360.0, -360.0].iter().any(|shift| {
                    left.intersects(&right.map_coords(|at| geo::Coord { x: at.x + shift, y: at.y }))
                })
            }
        }
    }

    fn contains(&self, other: &Region) -> bool {
        if let Region::Geometry(Geometry::Point(point)) = other {
            return self.holds_point(point.x(), point.y());
        }
        self.geometry().relate(&other.geometry()).is_contains()
    }

    fn matches(&self, relation: Relation, of_entry: &Region) -> bool {
        match relation {
            Relation::Within | Relation::Intersects => self.intersects(of_entry),
            Relation::Disjoint => !self.intersects(of_entry),
            Relation::Contains => of_entry.contains(self),
        }
    }
}

impl Compiler<'_> {
    /// The entries with a point or a shape that lies so to the query's.
    pub(crate) fn spatial(&self, query: &SpatialQuery) -> Result<Boxed> {
        let place = self.layout().place(&query.field);
        let options = place.options.spatial.clone().unwrap_or_default();
        let region = Region::new(&query.shape, &options)?;
        let bounds = region.bounds().filter(|_| query.relation != Relation::Disjoint);
        let relation = query.relation;
        Ok(self.set(move |segment, layout| {
            let numbers = segment.numbers(layout, &place)?;
            let mut gather = Gather::new(segment.max_doc());
            if let (Some(latitudes), Some(longitudes)) = (&numbers.latitudes, &numbers.longitudes) {
                for doc in 0..segment.max_doc() {
                    let found =
                        latitudes.values_for_doc(doc).zip(longitudes.values_for_doc(doc)).any(|(y, x)| {
                            if bounds.is_some_and(|bounds| y < bounds.min().y || y > bounds.max().y) {
                                return false;
                            }
                            match relation {
                                Relation::Within | Relation::Intersects => region.holds_point(x, y),
                                Relation::Disjoint => !region.holds_point(x, y),
                                Relation::Contains => {
                                    Region::Geometry(Point::new(x, y).into()).contains(&region)
                                }
                            }
                        });
                    if found {
                        gather.insert(doc);
                    }
                }
            }
            if let Some(shapes) = &numbers.shapes {
                // Each text is read and compared once, however many entries have it.
                let mut answers: Vec<Option<bool>> = vec![None; shapes.num_terms()];
                let mut text = String::new();
                for doc in 0..segment.max_doc() {
                    for ord in shapes.ords().values_for_doc(doc) {
                        let slot = answers.get_mut(ord as usize);
                        let found = match slot.as_ref().and_then(|answer| **answer) {
                            Some(found) => found,
                            None => {
                                shapes.ord_to_str(ord, &mut text)?;
                                let found = Region::new(&shape_of(&text), &options)
                                    .is_ok_and(|of_entry| region.matches(relation, &of_entry));
                                if let Some(slot) = slot {
                                    *slot = Some(found);
                                }
                                found
                            }
                        };
                        if found {
                            gather.insert(doc);
                        }
                    }
                }
            }
            Ok(gather.finish())
        }))
    }
}

/// How far entries are from a point.
pub(crate) struct DistanceFrom {
    numbers: Arc<Numbers>,
    latitude: f64,
    longitude: f64,
    round: f64,
    options: SpatialOptions,
    units: Units,
}

impl DistanceFrom {
    pub(crate) fn new(
        place: &Place,
        numbers: Arc<Numbers>,
        latitude: f64,
        longitude: f64,
        round: f64,
        units: Option<Units>,
    ) -> DistanceFrom {
        let options = place.options.spatial.clone().unwrap_or_default();
        let units = units.unwrap_or(options.units);
        DistanceFrom { numbers, latitude, longitude, round, options, units }
    }

    /// The nearest point of an entry; of a shape, its middle.
    pub(crate) fn distance(&self, doc: DocId) -> Option<Distance> {
        let mut nearest: Option<Distance> = None;
        let mut consider = |latitude: f64, longitude: f64| {
            let distance = self.between(latitude, longitude);
            if nearest.is_none_or(|nearest| distance < nearest.distance) {
                nearest = Some(Distance { distance, latitude, longitude });
            }
        };
        if let (Some(latitudes), Some(longitudes)) = (&self.numbers.latitudes, &self.numbers.longitudes) {
            latitudes
                .values_for_doc(doc)
                .zip(longitudes.values_for_doc(doc))
                .for_each(|(latitude, longitude)| consider(latitude, longitude));
        }
        if let Some(shapes) = &self.numbers.shapes {
            let mut text = String::new();
            for ord in shapes.ords().values_for_doc(doc) {
                let is_read = shapes.ord_to_str(ord, &mut text).unwrap_or(false);
                if !is_read {
                    continue;
                }
                match Region::new(&shape_of(&text), &self.options) {
                    Ok(Region::Circle { x, y, .. }) => consider(y, x),
                    Ok(Region::Geometry(geometry)) => {
                        if let Some(middle) = geometry.centroid() {
                            consider(middle.y(), middle.x());
                        }
                    }
                    Err(_) => {}
                }
            }
        }
        nearest
    }

    fn between(&self, latitude: f64, longitude: f64) -> f64 {
        match self.options.kind {
            SpatialKind::Cartesian => (latitude - self.latitude).hypot(longitude - self.longitude),
            SpatialKind::Geography => {
                let degrees = great_circle(self.latitude, self.longitude, latitude, longitude).to_degrees();
                let miles = degrees * MILES_PER_DEGREE;
                match self.units {
                    Units::Miles => miles,
                    Units::Kilometers => miles * KILOMETERS_PER_DISTANCE_MILE,
                }
            }
        }
    }

    /// What orders the entry: entries without a point are last.
    pub(crate) fn sort_key(&self, doc: DocId) -> f64 {
        match self.distance(doc) {
            Some(distance) if self.round > 0.0 => (distance.distance / self.round).floor() * self.round,
            Some(distance) => distance.distance,
            None => f64::MAX,
        }
    }
}

/// The angle between two points of a sphere, in radians.
fn great_circle(latitude: f64, longitude: f64, other_latitude: f64, other_longitude: f64) -> f64 {
    let (a, b) = (latitude.to_radians(), other_latitude.to_radians());
    let half_latitude = ((b - a) / 2.0).sin();
    let half_longitude = ((other_longitude - longitude).to_radians() / 2.0).sin();
    let chord = half_latitude * half_latitude + a.cos() * b.cos() * half_longitude * half_longitude;
    2.0 * chord.sqrt().min(1.0).asin()
}

/// Where one comes after an angle in a direction; the longitude goes on beyond 180 degrees.
fn destination(x: f64, y: f64, direction: f64, angle: f64) -> (f64, f64) {
    let latitude = y.to_radians();
    let sine = latitude.sin() * angle.cos() + latitude.cos() * angle.sin() * direction.cos();
    let reached = sine.clamp(-1.0, 1.0).asin();
    let turn = (direction.sin() * angle.sin() * latitude.cos()).atan2(angle.cos() - latitude.sin() * sine);
    (x + turn.to_degrees(), reached.to_degrees())
}
