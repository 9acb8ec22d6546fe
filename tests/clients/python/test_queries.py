"""Queries by the client's builder: conditions, order, paging, projections, includes, laziness, statistics, waiting."""

import datetime
import warnings

import pytest
from ravendb import GroupBy, GroupByField, OrderingType, SearchOperator
from ravendb.documents.queries.query import QueryOperator
from ravendb.documents.session.misc import CmpXchg

from cases import keys, rows
from models import Company, User

NAMES = {n: f"products/{n}" for n in range(1, 9)}


class Product:
    """What some cases read of a product."""

    def __init__(self, name=None, price=None, stock=None, Id=None):
        self.Id = Id
        self.name = name
        self.price = price
        self.stock = stock


def products(session):
    return session.query_collection("Products", dict)


def found(session, query):
    return sorted(keys(session, list(query)))


CONDITIONS = {
    "equals": (lambda q: q.where_equals("name", "APPLE"), [1]),
    "equals_a_number": (lambda q: q.where_equals("stock", 30), [5]),
    "equals_a_fraction": (lambda q: q.where_equals("price", 18.5), [6]),
    "equals_true": (lambda q: q.where_equals("discontinued", True), [5]),
    "equals_none": (lambda q: q.where_equals("released", None), [7]),
    "equals_exact": (lambda q: q.where_equals("name", "Apple", True), [1]),
    "equals_exact_in_another_case": (lambda q: q.where_equals("name", "apple", True), []),
    "keyword_arguments": (lambda q: q.where(name="Milk"), [7]),
    "keyword_arguments_are_alternatives": (lambda q: q.where(name="Milk", stock=0), [7, 8]),
    "keyword_argument_with_a_list": (lambda q: q.where(name=["Milk", "Apple"]), [1, 7]),
    "not_equals": (lambda q: q.where_not_equals("category", "categories/2"), [1, 2, 4, 6, 7]),
    "not_none": (lambda q: q.where_not_none("tags"), [1, 2, 3, 4, 5, 6, 8]),
    "in": (lambda q: q.where_in("name", ["milk", "banana"]), [2, 7]),
    "in_numbers": (lambda q: q.where_in("stock", [5, 12, 13]), [3, 6]),
    "in_nothing": (lambda q: q.where_in("name", []), []),
    "not_in": (lambda q: q.not_().where_in("category", ["categories/1", "categories/3"]), [3, 5, 8]),
    "starts_with": (lambda q: q.where_starts_with("name", "aPP"), [1, 4]),
    "ends_with": (lambda q: q.where_ends_with("name", "ad"), [5]),
    "between": (lambda q: q.where_between("stock", 12, 80), [2, 4, 5, 6]),
    "between_fractions": (lambda q: q.where_between("price", 2.5, 4.0), [1, 2, 4]),
    "between_dates": (lambda q: q.where_between("released", datetime.datetime(2024, 1, 15), datetime.datetime(2024, 3, 1, 12, 30)), [1, 2, 8]),
    "greater": (lambda q: q.where_greater_than("price", 10.0), [3, 6]),
    "greater_or_equal": (lambda q: q.where_greater_than_or_equal("price", 10.0), [3, 6, 8]),
    "less": (lambda q: q.where_less_than("stock", 5), [8]),
    "less_or_equal": (lambda q: q.where_less_than_or_equal("stock", 5), [3, 8]),
    "greater_than_a_date": (lambda q: q.where_greater_than("released", datetime.datetime(2024, 6, 30)), [4, 6]),
    "exists": (lambda q: q.where_exists("released"), [1, 2, 3, 4, 6, 7, 8]),
    "does_not_exist": (lambda q: q.not_().where_exists("released"), [5]),
    "regex": (lambda q: q.where_regex("name", "^[ab]"), [1, 2, 4]),
    "search": (lambda q: q.search("description", "rye goats"), [5, 6]),
    "search_all_words": (lambda q: q.search("description", "crisp juice", SearchOperator.AND), [4]),
    "search_any_word": (lambda q: q.search("description", "crisp juice", SearchOperator.OR), [1, 4]),
    "search_twice": (lambda q: q.search("description", "rye").or_else().search("name", "milk"), [5, 7]),
    "search_and_search": (lambda q: q.search("description", "morning").and_also().search("description", "milk"), [7]),
    "lucene": (lambda q: q.where_lucene("name", "ban*"), [2]),
    "contains_any": (lambda q: q.contains_any("tags", ["drink", "yellow"]), [2, 4]),
    "contains_all": (lambda q: q.contains_all("tags", ["fresh", "sweet"]), [1]),
    "fuzzy": (lambda q: q.where_equals("name", "bannana").fuzzy(0.6), [2]),
    "proximity": (lambda q: q.search("description", "dark baked").proximity(2), [5]),
    "proximity_too_far": (lambda q: q.search("description", "dark rye").proximity(1), []),
    "a_nested_path": (lambda q: q.where_equals("supplier.address.zip", "69002"), [4]),
    "and": (lambda q: q.where_equals("category", "categories/1").and_also().where_less_than("stock", 100), [2, 4]),
    "and_by_default": (lambda q: q.where_equals("category", "categories/1").where_less_than("stock", 100), [2, 4]),
    "or": (lambda q: q.where_equals("name", "Milk").or_else().where_equals("name", "Apple"), [1, 7]),
    "or_by_default": (lambda q: q.using_default_operator(QueryOperator.OR).where_equals("name", "Milk").where_equals("name", "Apple"), [1, 7]),
    "a_subclause": (
        lambda q: q.open_subclause().where_equals("name", "Milk").or_else().where_equals("tags", "fresh").close_subclause().and_also().where_greater_than("price", 2.9),
        [1, 6],
    ),
    "not_a_subclause": (lambda q: q.not_().open_subclause().where_equals("tags", "sweet").or_else().where_equals("tags", "fresh").close_subclause(), [5, 7]),
    "negate_next": (lambda q: q.negate_next().where_equals("category", "categories/1"), [3, 5, 6, 7, 8]),
    "the_earlier_clauses_together": (lambda q: q.where_equals("name", "Milk").or_else().where_equals("name", "Apple").and_also(True).where_equals("stock", 120), [1]),
    "a_parameter_of_its_own": (lambda q: q.where_equals("name", "Milk").add_parameter("unused", 1), [7]),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_where(shop, name):
    build, expected = CONDITIONS[name]
    with shop.open_session() as session:
        assert found(session, build(products(session).wait_for_non_stale_results())) == [NAMES[n] for n in expected]


ORDERS = {
    "text": (lambda q: q.order_by("name"), [1, 4, 2, 3, 6, 7, 5, 8]),
    "text_descending": (lambda q: q.order_by_descending("name"), [8, 5, 7, 6, 3, 2, 4, 1]),
    "whole_numbers": (lambda q: q.order_by("stock", OrderingType.LONG), [8, 3, 6, 5, 4, 2, 1, 7]),
    "fractions_descending": (lambda q: q.order_by_descending("price", OrderingType.FLOAT), [6, 3, 8, 5, 4, 1, 2, 7]),
    "numbers_as_text": (lambda q: q.order_by("stock"), [8, 6, 1, 7, 5, 3, 4, 2]),
    "natural_text": (lambda q: q.order_by("name", OrderingType.ALPHA_NUMERIC), [1, 4, 2, 3, 6, 7, 5, 8]),
    "two_fields": (lambda q: q.order_by("category").order_by_descending("stock", OrderingType.LONG), [1, 2, 4, 5, 3, 8, 7, 6]),
    "add_order": (lambda q: q.add_order("price", True, OrderingType.FLOAT), [6, 3, 8, 5, 4, 1, 2, 7]),
    "a_nested_path": (lambda q: q.where_equals("category", "categories/1").order_by("supplier.address.zip"), [2, 1, 4]),
    "a_page": (lambda q: q.order_by("name").skip(2).take(3), [2, 3, 6]),
    "past_the_end": (lambda q: q.order_by("name").skip(8).take(3), []),
    "a_page_of_nothing": (lambda q: q.order_by("name").take(0), []),
    "score": (lambda q: q.where_equals("name", "Milk").boost(2).or_else().where_equals("name", "Apple").boost(9).order_by_score(), [1, 7]),
    "score_descending": (lambda q: q.where_equals("name", "Milk").boost(2).or_else().where_equals("name", "Apple").boost(9).order_by_score_descending(), [7, 1]),
}


@pytest.mark.parametrize("name", ORDERS)
def test_order(shop, name):
    build, expected = ORDERS[name]
    with shop.open_session() as session:
        query = build(products(session).wait_for_non_stale_results())
        assert keys(session, list(query)) == [NAMES[n] for n in expected]


def test_a_random_order_by_a_seed_stays(shop):
    with shop.open_session() as session:
        one, two = (keys(session, list(products(session).where_greater_than("stock", -1).random_ordering("seed").wait_for_non_stale_results())) for _ in range(2))
        assert sorted(one) == sorted(NAMES.values())
        assert one == two


def test_objects_of_a_class(shop):
    with shop.open_session() as session:
        product = session.query(object_type=Product).where_equals("name", "Cherry pie").single()
        assert isinstance(product, Product)
        assert (product.Id, product.name, product.price, product.stock) == ("products/3", "Cherry pie", 12.75, 5)


def test_what_a_query_gives_is_tracked(own_shop):
    with own_shop.open_session() as session:
        product = session.query(object_type=User).where_equals("none", 1)
        assert list(product) == []
        customer = session.query_collection("Customers", Company).where_equals("city", "Lille").single()
        customer.name = "Bea Baker"
        session.save_changes()
    with own_shop.open_session() as session:
        assert session.load("customers/2", Company).name == "Bea Baker"


def test_what_is_not_tracked(shop):
    with shop.open_session() as session:
        customer = session.query_collection("Customers", Company).where_equals("city", "Lille").no_tracking().single()
        assert customer.name == "Bob Baker"
        assert not session.advanced.is_loaded("customers/2")


def test_loaded_documents_are_the_same_objects(shop):
    with shop.open_session() as session:
        loaded = session.load("customers/2", Company)
        assert session.query_collection("Customers", Company).where_equals("city", "Lille").single() is loaded


@pytest.mark.parametrize(("build", "expected"), [
    (lambda q: q, 8),
    (lambda q: q.where_equals("category", "categories/3"), 2),
    (lambda q: q.where_equals("category", "none"), 0),
    (lambda q: q.where_greater_than("stock", 0).skip(3), 7),
], ids=["everything", "some", "none", "not_of_a_page"])
def test_count(shop, build, expected):
    with shop.open_session() as session:
        assert build(products(session).wait_for_non_stale_results()).count() == expected


def test_first(shop):
    with shop.open_session() as session:
        assert products(session).order_by("stock", OrderingType.LONG).first()["name"] == "Éclair"


def test_first_of_nothing(shop):
    with shop.open_session() as session:
        with pytest.raises(IndexError):
            products(session).where_equals("name", "none").first()


def test_single(shop):
    with shop.open_session() as session:
        assert products(session).where_equals("stock", 12).single()["name"] == "Goat cheese"


@pytest.mark.parametrize("category", ["categories/1", "none"])
def test_single_of_another_number(shop, category):
    with shop.open_session() as session:
        with pytest.raises(ValueError):
            products(session).where_equals("category", category).single()


def test_statistics(shop):
    seen = []
    with shop.open_session() as session:
        list(products(session).where_greater_than("stock", 10).order_by("stock").take(2).statistics(seen.append).wait_for_non_stale_results())
    [statistics] = seen
    assert statistics.total_results == 6
    assert statistics.index_name.startswith("Auto/Products/By") and "stock" in statistics.index_name
    assert statistics.is_stale is False
    assert statistics.result_etag is not None


def test_statistics_of_a_collection(shop):
    seen = []
    with shop.open_session() as session:
        assert len(list(products(session).take(3).statistics(seen.append))) == 3
    assert (seen[0].total_results, seen[0].index_name) == (8, "collection/Products")


def test_statistics_of_distinct(shop):
    seen = []
    with shop.open_session() as session:
        query = products(session).where_greater_than("stock", -1).select_fields(dict, "category").distinct().statistics(seen.append).wait_for_non_stale_results()
        assert sorted(row["category"] for row in rows(query)) == ["categories/1", "categories/2", "categories/3"]
    assert seen[0].skipped_results > 0


def test_timings(shop):
    seen = []
    with shop.open_session() as session:
        list(products(session).where_equals("name", "Milk").timings(seen.append))
    assert seen[0].duration_in_ms >= 0
    assert "Query" in seen[0].timings


def test_a_projection(shop):
    with shop.open_session() as session:
        query = products(session).where_equals("name", "Milk").select_fields(dict, "name", "stock")
        assert rows(query) == [{"name": "Milk", "stock": 200}]


def test_a_projection_into_a_class(shop):
    with shop.open_session() as session:
        product = session.query(object_type=Product).where_equals("name", "Milk").select_fields(Product, "name", "price").single()
        assert (product.name, product.price, product.stock) == ("Milk", 1, None)


def test_a_projection_of_a_nested_value(shop):
    with shop.open_session() as session:
        query = products(session).where_equals("name", "Banana").select_fields(dict, "supplier.address.city")
        assert rows(query) == [{"supplier.address.city": "Nice"}]


def test_projections_are_not_tracked(shop):
    with shop.open_session() as session:
        list(products(session).where_equals("name", "Milk").select_fields(dict, "name"))
        assert not session.advanced.is_loaded("products/7")


def test_include(shop):
    with shop.open_session() as session:
        product = products(session).where_equals("name", "Milk").include("category").single()
        requests = session.advanced.number_of_requests
        assert session.load(product["category"], dict)["name"] == "Dairy"
        assert session.advanced.number_of_requests == requests


def test_include_by_a_builder(shop):
    with shop.open_session() as session:
        list(session.query_collection("Orders", dict).where_equals("status", "Open").include(lambda i: i.include_documents("lines[].product").include_documents("customer")))
        requests = session.advanced.number_of_requests
        assert session.load("products/5", dict)["name"] == "Rye bread"
        assert session.load("customers/2", dict)["name"] == "Bob Baker"
        assert session.advanced.number_of_requests == requests


def test_group_by(shop):
    with shop.open_session() as session:
        query = products(session).group_by("category").select_key(projected_name="category").select_count().order_by("category").of_type(dict)
        assert rows(query) == [{"category": "categories/1", "count": 3}, {"category": "categories/2", "count": 3}, {"category": "categories/3", "count": 2}]


def test_group_by_with_a_sum(shop):
    with shop.open_session() as session:
        query = products(session).group_by("category").select_key(projected_name="category").select_sum(GroupByField("stock")).where_equals("category", "categories/3").of_type(dict)
        assert rows(query) == [{"category": "categories/3", "stock": 212}]


def test_group_by_an_array(shop):
    with shop.open_session() as session:
        query = session.query_collection("Orders", dict).group_by(GroupBy.array("lines[].product")).select_key(projected_name="products").select_count().of_type(dict)
        assert {"products": ["products/1", "products/3"], "count": 1} in rows(query)


def test_a_lazy_query(shop):
    with shop.open_session() as session:
        lazy = products(session).where_equals("name", "Milk").lazily()
        assert session.advanced.number_of_requests == 0
        assert keys(session, lazy.value) == ["products/7"]
        assert session.advanced.number_of_requests == 1


def test_lazy_queries_in_one_request(shop):
    with shop.open_session() as session:
        milk = products(session).where_equals("name", "Milk").lazily()
        rooms = session.query_collection("Rooms", dict).where_greater_than("size", 20).lazily()
        category = session.advanced.lazily.load("categories/1", Company)
        session.advanced.eagerly.execute_all_pending_lazy_operations()
        assert session.advanced.number_of_requests == 1
        assert keys(session, milk.value) == ["products/7"]
        assert sorted(keys(session, rooms.value)) == ["rooms/1", "rooms/3"]
        assert category.value.name == "Fruit"
        assert session.advanced.number_of_requests == 1


def test_a_lazy_count(shop):
    with shop.open_session() as session:
        assert products(session).where_equals("category", "categories/2").count_lazily().value == 3


def test_a_lazy_query_that_is_wrong(shop):
    with shop.open_session() as session:
        with pytest.raises(Exception, match="1:28"):
            session.advanced.raw_query("from Products where name = 'a", dict).lazily().value


def streamed(session, query):
    return [item.document for item in session.advanced.stream(query)]


def test_a_stream_of_a_query(shop):
    with shop.open_session() as session:
        list(products(session).where_greater_than("stock", 10).wait_for_non_stale_results())
        assert [product["name"] for product in streamed(session, products(session).where_greater_than("stock", 10).order_by("stock", OrderingType.LONG))] == [
            "Goat cheese", "Rye bread", "apple juice", "Banana", "Apple", "Milk"]


def test_a_stream_of_a_raw_query(shop):
    with shop.open_session() as session:
        query = session.advanced.raw_query("from Products where category = $c", dict).add_parameter("c", "categories/3")
        assert sorted(product["name"] for product in streamed(session, query)) == ["Goat cheese", "Milk"]


def test_a_stream_of_a_collection(shop):
    with shop.open_session() as session:
        assert [item.key for item in session.advanced.stream(products(session))] == list(NAMES.values())


def test_a_stream_of_projections(shop):
    with shop.open_session() as session:
        query = session.advanced.raw_query("from Products as p where p.price < 3 order by p.name select { title: p.name }", dict)
        assert [document["title"] for document in streamed(session, query)] == ["Banana", "Milk"]


def test_a_stream_with_statistics(shop):
    with shop.open_session() as session:
        query = products(session).where_equals("category", "categories/1")
        seen = []
        stream = session.advanced.stream_with_statistics(query, seen.append)
        assert sorted(item.document["name"] for item in stream) == ["Apple", "Banana", "apple juice"]
        assert seen[0].total_results == 3


def test_a_value_of_compare_exchange(own_shop):
    from ravendb.documents.operations.compare_exchange.operations import PutCompareExchangeValueOperation

    own_shop.operations.send(PutCompareExchangeValueOperation("best", "Banana", 0))
    with own_shop.open_session() as session:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            query = products(session).where_equals("name", CmpXchg.value("best")).wait_for_non_stale_results()
        assert keys(session, list(query)) == ["products/2"]


def test_a_value_of_compare_exchange_that_is_missing(own_shop):
    with own_shop.open_session() as session:
        assert list(session.advanced.raw_query("from Products where name = cmpxchg('none')", dict)) == []


def test_a_value_of_compare_exchange_in_a_projection(own_shop):
    from ravendb.documents.operations.compare_exchange.operations import PutCompareExchangeValueOperation

    own_shop.operations.send(PutCompareExchangeValueOperation("rate", 3, 0))
    with own_shop.open_session() as session:
        query = session.advanced.raw_query("from Products as p where p.name = 'Milk' select { price: p.price * cmpxchg('rate') }", dict)
        assert rows(query) == [{"price": 3}]


def test_includes_of_a_function(shop):
    with shop.open_session() as session:
        query = session.advanced.raw_query(
            "declare function f(p) { includes.document(p.category); return { name: p.name }; } from Products as p where p.name = 'Milk' select f(p)", dict)
        assert rows(query) == [{"name": "Milk"}]
        requests = session.advanced.number_of_requests
        assert session.load("categories/3", dict)["name"] == "Dairy"
        assert session.advanced.number_of_requests == requests


def test_a_query_sees_what_was_saved_before(store):
    for n in range(20):
        with store.open_session() as session:
            session.store(User(f"user {n}", n), f"users/{n}")
            session.save_changes()
        with store.open_session() as session:
            users = list(session.query(object_type=User).wait_for_non_stale_results().where_equals("age", n))
            assert [user.name for user in users] == [f"user {n}"]


def test_a_query_does_not_see_what_was_deleted(store):
    with store.open_session() as session:
        for n in range(3):
            session.store(User("Ann", n), f"users/{n}")
        session.save_changes()
        assert session.query(object_type=User).wait_for_non_stale_results().where_equals("name", "Ann").count() == 3
        session.delete("users/1")
        session.save_changes()
    with store.open_session() as session:
        assert keys(session, list(session.query(object_type=User).wait_for_non_stale_results().where_equals("name", "Ann").order_by("age"))) == ["users/0", "users/2"]


def test_a_query_sees_a_changed_value(store):
    with store.open_session() as session:
        session.store(User("Ann", 30), "users/1")
        session.save_changes()
        assert session.query(object_type=User).wait_for_non_stale_results().where_equals("age", 30).count() == 1
    with store.open_session() as session:
        session.load("users/1", User).age = 31
        session.save_changes()
    with store.open_session() as session:
        assert session.query(object_type=User).wait_for_non_stale_results().where_equals("age", 30).count() == 0
        assert session.query(object_type=User).wait_for_non_stale_results().where_equals("age", 31).count() == 1


def test_automatic_indexes_are_widened(store):
    from ravendb.documents.operations.indexes import GetIndexNamesOperation

    with store.open_session() as session:
        session.store(User("Ann", 30), "users/1")
        session.save_changes()
        seen = []
        list(session.query(object_type=User).where_equals("name", "Ann").statistics(seen.append))
        list(session.query(object_type=User).where_equals("age", 30).statistics(seen.append))
    assert [statistics.index_name for statistics in seen] == ["Auto/Users/Byname", "Auto/Users/ByageAndname"]
    assert "Auto/Users/ByageAndname" in store.maintenance.send(GetIndexNamesOperation(0, 10))


@pytest.mark.parametrize(("build", "expected"), [
    (lambda q: q.where_equals("name", "a").order_by("age"), "Auto/Users/ByageAndname"),
    (lambda q: q.search("name", "a"), "Auto/Users/BySearch(name)"),
    (lambda q: q.where_equals("name", "a", True), "Auto/Users/ByExact(name)"),
    (lambda q: q.where_equals("address.city", "a"), "Auto/Users/Byaddress.city"),
    (lambda q: q.where_equals("lines[].product", "a"), "Auto/Users/Bylines[].product"),
    (lambda q: q.where_equals("id()", "users/1"), "collection/Users"),
], ids=["two_fields", "search", "exact", "nested", "array", "id"])
def test_the_name_of_an_automatic_index(store, build, expected):
    with store.open_session() as session:
        session.store(User("Ann", 30), "users/1")
        session.save_changes()
        seen = []
        list(build(session.query(object_type=User)).statistics(seen.append))
    assert seen[0].index_name == expected


def test_an_index_that_is_not_there(shop):
    with shop.open_session() as session:
        with pytest.raises(Exception, match="(?i)index"):
            list(session.query_index("Nothing/Here", dict))
