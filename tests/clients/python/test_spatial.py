"""Where things are: points and shapes, in automatic and static indexes, and order by distance."""

import pytest
from ravendb import AbstractIndexCreationTask
from ravendb.documents.indexes.spatial.configuration import SpatialRelation, SpatialUnits
from ravendb.documents.queries.spatial import PointField, WktField

from cases import keys

LYON, LILLE, NICE = "suppliers/1", "suppliers/2", "suppliers/3"
# Around Paris, and around the south-east of France, longitude first.
NORTH = "POLYGON((1 48, 4 48, 4 51, 1 51, 1 48))"
SOUTH = "POLYGON((4 43, 8 43, 8 46, 4 46, 4 43))"
POINT = PointField("lat", "lng")


class Suppliers_Places(AbstractIndexCreationTask):
    def __init__(self):
        super().__init__()
        self.map = "from s in docs.Suppliers select new { s.name, place = CreateSpatialField(s.lat, s.lng), area = CreateSpatialField(s.area) }"


@pytest.fixture(scope="module")
def placed(shop):
    Suppliers_Places().execute(shop)
    return shop


def automatic(session):
    return session.query_collection("Suppliers", dict).wait_for_non_stale_results()


def static(session):
    return session.query_index("Suppliers/Places", dict).wait_for_non_stale_results()


DYNAMIC = {
    # Paris to Lille is about 203 km, to Lyon about 391, to Nice about 685.
    "within_a_radius": (lambda q: q.spatial(POINT, lambda c: c.within_radius(250, 48.8566, 2.3522)), [LILLE]),
    "within_a_larger_radius": (lambda q: q.spatial(POINT, lambda c: c.within_radius(420, 48.8566, 2.3522)), [LYON, LILLE]),
    "within_a_radius_in_miles": (lambda q: q.spatial(POINT, lambda c: c.within_radius(250, 48.8566, 2.3522, SpatialUnits.MILES)), [LYON, LILLE]),
    "within_no_radius": (lambda q: q.spatial(POINT, lambda c: c.within_radius(10, 48.8566, 2.3522)), []),
    "within_a_shape": (lambda q: q.spatial(POINT, lambda c: c.within(SOUTH)), [LYON, NICE]),
    "intersects": (lambda q: q.spatial(POINT, lambda c: c.intersects(NORTH)), [LILLE]),
    "and_another_condition": (lambda q: q.spatial(POINT, lambda c: c.within(SOUTH)).and_also().where_equals("city", "Nice"), [NICE]),
    "shapes_within_a_shape": (lambda q: q.spatial(WktField("area"), lambda c: c.within(SOUTH)), [LYON, NICE]),
    "shapes_that_intersect": (lambda q: q.spatial(WktField("area"), lambda c: c.intersects("POLYGON((4.8 45.7, 5 45.7, 5 46, 4.8 46, 4.8 45.7))")), [LYON]),
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_automatic(shop, name):
    build, expected = DYNAMIC[name]
    with shop.open_session() as session:
        assert sorted(keys(session, list(build(automatic(session))))) == expected


STATIC = {
    "within_a_radius": (lambda q: q.within_radius_of("place", 250, 48.8566, 2.3522), [LILLE]),
    "within_a_radius_in_miles": (lambda q: q.within_radius_of("place", 250, 48.8566, 2.3522, SpatialUnits.MILES), [LYON, LILLE]),
    "within_a_shape": (lambda q: q.relates_to_shape("place", SOUTH, SpatialRelation.WITHIN), [LYON, NICE]),
    "intersects": (lambda q: q.relates_to_shape("area", "POLYGON((4.8 45.7, 5 45.7, 5 46, 4.8 46, 4.8 45.7))", SpatialRelation.INTERSECTS), [LYON]),
    "a_circle": (lambda q: q.spatial("place", lambda c: c.within_radius(420, 48.8566, 2.3522)), [LYON, LILLE]),
    "not": (lambda q: q.where_exists("name").and_also().not_().within_radius_of("place", 250, 48.8566, 2.3522), [LYON, NICE]),
}


@pytest.mark.parametrize("name", STATIC)
def test_static(placed, name):
    build, expected = STATIC[name]
    with placed.open_session() as session:
        assert sorted(keys(session, list(build(static(session))))) == expected


ORDERS = {
    "from_a_point": (lambda q: q.order_by_distance("place", 43.7102, 7.262), [NICE, LYON, LILLE]),
    "descending": (lambda q: q.order_by_distance_descending("place", 43.7102, 7.262), [LILLE, LYON, NICE]),
    "from_another_point": (lambda q: q.order_by_distance("place", 50.0, 3.0), [LILLE, LYON, NICE]),
    "of_what_a_condition_finds": (lambda q: q.within_radius_of("place", 420, 48.8566, 2.3522).order_by_distance("place", 45.7, 4.8), [LYON, LILLE]),
}


@pytest.mark.parametrize("name", ORDERS)
def test_order_by_distance(placed, name):
    build, expected = ORDERS[name]
    with placed.open_session() as session:
        assert keys(session, list(build(static(session)))) == expected


def test_order_by_distance_of_an_automatic_index(shop):
    with shop.open_session() as session:
        assert keys(session, list(automatic(session).order_by_distance(POINT, 43.7102, 7.262))) == [NICE, LYON, LILLE]
        assert keys(session, list(automatic(session).order_by_distance_descending(POINT, 43.7102, 7.262))) == [LILLE, LYON, NICE]


def test_the_distance_is_told(placed):
    with placed.open_session() as session:
        found = list(static(session).order_by_distance("place", 48.8566, 2.3522))
    assert [supplier["@metadata"]["@spatial"]["Distance"] for supplier in found] == pytest.approx([203.50, 391.50, 685.07], abs=0.05)


def test_an_order_as_text(placed):
    with placed.open_session() as session:
        query = session.advanced.raw_query("from index 'Suppliers/Places' where spatial.within(place, spatial.circle($r, $lat, $lng)) order by spatial.distance(place, spatial.point($lat, $lng)) desc", dict)
        query.add_parameter("r", 500).add_parameter("lat", 48.8566).add_parameter("lng", 2.3522)
        assert keys(session, list(query)) == [LYON, LILLE]


def test_a_shape_as_text(shop):
    with shop.open_session() as session:
        query = session.advanced.raw_query("from Suppliers where spatial.within(spatial.point(lat, lng), spatial.wkt($shape))", dict).add_parameter("shape", NORTH)
        assert keys(session, list(query.wait_for_non_stale_results())) == [LILLE]


def test_a_shape_that_is_none(shop):
    with shop.open_session() as session:
        with pytest.raises(Exception, match="(?i)shape|wkt|polygon"):
            list(session.advanced.raw_query("from Suppliers where spatial.within(spatial.point(lat, lng), spatial.wkt('POLYGON((1 2'))", dict))
