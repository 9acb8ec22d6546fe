//! Points and shapes.

use std::sync::Arc;

use tantivy::DocId;

use crate::layout::Place;
use crate::options::{SpatialKind, Units};
use crate::query::Shape;
use crate::request::Distance;
use crate::segment::Numbers;

/// The mean radius of the Earth.
const EARTH_RADIUS_KILOMETERS: f64 = 6371.008_771_4;

/// RavenDB's mile.
const KILOMETERS_PER_MILE: f64 = 1.609_34;

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

/// How far entries are from a point.
pub(crate) struct DistanceFrom {
    numbers: Arc<Numbers>,
    latitude: f64,
    longitude: f64,
    round: f64,
    kind: SpatialKind,
    /// Kilometres to the unit of the answer.
    unit: f64,
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
        let unit = match units.unwrap_or(options.units) {
            Units::Kilometers => 1.0,
            Units::Miles => KILOMETERS_PER_MILE,
        };
        DistanceFrom { numbers, latitude, longitude, round, kind: options.kind, unit }
    }

    /// The nearest point of an entry.
    pub(crate) fn distance(&self, doc: DocId) -> Option<Distance> {
        let (Some(latitudes), Some(longitudes)) = (&self.numbers.latitudes, &self.numbers.longitudes) else {
            return None;
        };
        latitudes
            .values_for_doc(doc)
            .zip(longitudes.values_for_doc(doc))
            .map(|(latitude, longitude)| Distance {
                distance: match self.kind {
                    SpatialKind::Geography => {
                        kilometers(self.latitude, self.longitude, latitude, longitude) / self.unit
                    }
                    SpatialKind::Cartesian => (latitude - self.latitude).hypot(longitude - self.longitude),
                },
                latitude,
                longitude,
            })
            .min_by(|left, right| left.distance.total_cmp(&right.distance))
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

/// The distance of two points on the Earth.
pub(crate) fn kilometers(latitude: f64, longitude: f64, other_latitude: f64, other_longitude: f64) -> f64 {
    let (a, b) = (latitude.to_radians(), other_latitude.to_radians());
    let half_latitude = ((b - a) / 2.0).sin();
    let half_longitude = ((other_longitude - longitude).to_radians() / 2.0).sin();
    let chord = half_latitude * half_latitude + a.cos() * b.cos() * half_longitude * half_longitude;
    2.0 * EARTH_RADIUS_KILOMETERS * chord.sqrt().min(1.0).asin()
}
