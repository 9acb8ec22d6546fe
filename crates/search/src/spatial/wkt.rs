//! Well-known text, and what RavenDB understands beside it.
//!
//! ```text
//! POINT(x y)  LINESTRING(x y, ...)  POLYGON((x y, ...), ...)  MULTIPOINT(...)  MULTILINESTRING(...)  MULTIPOLYGON(...)
//! GEOMETRYCOLLECTION(...)  ENVELOPE(minX, maxX, maxY, minY)  BOX(minX minY, maxX maxY)  CIRCLE(x y d=radius)  minX minY maxX maxY
//! ```

use geo::{
    Coord, Geometry, GeometryCollection, LineString, MultiLineString, MultiPoint, MultiPolygon, Point,
    Polygon, Rect,
};

/// More nested collections are refused.
const DEPTH_MAX: usize = 16;

/// What a text says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Parsed {
    Geometry(Geometry<f64>),
    /// x, y, and a radius whose units the text does not tell.
    Circle(f64, f64, f64),
}

/// Reads a shape; `None` for what is none.
pub(super) fn parse(text: &str) -> Option<Parsed> {
    let mut reader = Reader { text, at: 0 };
    let parsed = reader.shape(0)?;
    reader.space();
    (reader.at == text.len()).then_some(parsed)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn eat(&mut self, character: char) -> Option<()> {
        self.space();
        self.text[self.at..].starts_with(character).then(|| self.at += character.len_utf8())
    }

    fn name(&mut self) -> String {
        self.space();
        let rest = &self.text[self.at..];
        let end = rest.find(|character: char| !character.is_ascii_alphabetic()).unwrap_or(rest.len());
        self.at += end;
        rest[..end].to_ascii_uppercase()
    }

    fn number(&mut self) -> Option<f64> {
        self.space();
        let rest = &self.text[self.at..];
        let end = rest
            .find(|character: char| {
                !character.is_ascii_digit() && !matches!(character, '.' | '-' | '+' | 'e' | 'E')
            })
            .unwrap_or(rest.len());
        let number: f64 = rest[..end].parse().ok()?;
        self.at += end;
        number.is_finite().then_some(number)
    }

    fn coordinate(&mut self) -> Option<Coord<f64>> {
        let coordinate = Coord { x: self.number()?, y: self.number()? };
        // Heights and measures say nothing here.
        for _ in 0..2 {
            let before = self.at;
            if self.number().is_none() {
                self.at = before;
            }
        }
        Some(coordinate)
    }

    /// What stands between parentheses, separated by commas.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        self.eat('(')?;
        let mut items = vec![item(self)?];
        while self.eat(',').is_some() {
            items.push(item(self)?);
        }
        self.eat(')')?;
        Some(items)
    }

    fn line(&mut self) -> Option<LineString<f64>> {
        let coordinates = self.list(Self::coordinate)?;
        (coordinates.len() >= 2).then(|| LineString::new(coordinates))
    }

    fn polygon(&mut self) -> Option<Polygon<f64>> {
        let mut rings = self.list(Self::line)?;
        if rings.iter().any(|ring| ring.0.len() < 3) {
            return None;
        }
        let outer = rings.remove(0);
        Some(Polygon::new(outer, rings))
    }

    /// A point of several, which may have parentheses of its own.
    fn point_of_several(&mut self) -> Option<Point<f64>> {
        if self.eat('(').is_none() {
            return self.coordinate().map(Point);
        }
        let coordinate = self.coordinate()?;
        self.eat(')')?;
        Some(Point(coordinate))
    }

    fn rectangle(from: (f64, f64), to: (f64, f64)) -> Parsed {
        Parsed::Geometry(Geometry::Rect(Rect::new(from, to)))
    }

    fn shape(&mut self, depth: usize) -> Option<Parsed> {
        if depth > DEPTH_MAX {
            return None;
        }
        let name = self.name();
        Some(Parsed::Geometry(match name.as_str() {
            "POINT" => {
                self.eat('(')?;
                let coordinate = self.coordinate()?;
                self.eat(')')?;
                Geometry::Point(Point(coordinate))
            }
            "LINESTRING" => Geometry::LineString(self.line()?),
            "POLYGON" => Geometry::Polygon(self.polygon()?),
            "MULTIPOINT" => Geometry::MultiPoint(MultiPoint(self.list(Self::point_of_several)?)),
            "MULTILINESTRING" => Geometry::MultiLineString(MultiLineString(self.list(Self::line)?)),
            "MULTIPOLYGON" => Geometry::MultiPolygon(MultiPolygon(self.list(Self::polygon)?)),
            "GEOMETRYCOLLECTION" => {
                let members = self.list(|reader| match reader.shape(depth + 1)? {
                    Parsed::Geometry(geometry) => Some(geometry),
                    Parsed::Circle(..) => None,
                })?;
                Geometry::GeometryCollection(GeometryCollection(members))
            }
            "ENVELOPE" => {
                let ends = self.list(Self::number)?;
                let &[min_x, max_x, max_y, min_y] = ends.as_slice() else { return None };
                return Some(Self::rectangle((min_x, min_y), (max_x, max_y)));
            }
            "BOX" => {
                let corners = self.list(Self::coordinate)?;
                let &[from, to] = corners.as_slice() else { return None };
                return Some(Self::rectangle((from.x, from.y), (to.x, to.y)));
            }
            "CIRCLE" => {
                self.eat('(')?;
                let (x, y) = (self.number()?, self.number()?);
                if self.name() != "" {
                    self.eat('=')?;
                }
                let radius = self.number()?;
                self.eat(')')?;
                return (radius >= 0.0).then_some(Parsed::Circle(x, y, radius));
            }
            "" => {
                let (min_x, min_y, max_x, max_y) =
                    (self.number()?, self.number()?, self.number()?, self.number()?);
                return Some(Self::rectangle((min_x, min_y), (max_x, max_y)));
            }
            _ => return None,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_read() {
        for text in [
            "POINT(1 2)",
            "point ( -1.5 2e1 )",
            "POINT(1 2 3)",
            "LINESTRING(0 0, 20 20)",
            "POLYGON((0 0, 10 0, 10 10, 0 10, 0 0),(4 4, 6 4, 6 6, 4 6, 4 4))",
            "MULTIPOINT((1 1),(50 50))",
            "MULTIPOINT(1 1, 50 50)",
            "MULTILINESTRING((0 0, 1 1),(2 2, 3 3))",
            "MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)))",
            "GEOMETRYCOLLECTION(POINT(1 1), LINESTRING(0 0, 1 1))",
            "ENVELOPE(40,50,50,40)",
            "BOX(-1 -1,6 6)",
            "0 0 6 6",
        ] {
            assert!(matches!(parse(text), Some(Parsed::Geometry(_))), "{text}");
        }
        assert_eq!(parse("Circle(0 1 d=8)"), Some(Parsed::Circle(0.0, 1.0, 8.0)));
        for text in [
            "",
            "nonsense",
            "POINT",
            "POINT(1)",
            "POINT(1 2",
            "POINT(1 2) x",
            "POLYGON((0 0, 1 1))",
            "Circle(0 0 d=-1)",
            "POINT(1e999 0)",
            "POINT(NaN 0)",
            "1 2 3",
            "ENVELOPE(1,2,3)",
            "GEOMETRYCOLLECTION(Circle(0 0 d=1))",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse(&"GEOMETRYCOLLECTION(".repeat(100_000)), None);
    }
}
