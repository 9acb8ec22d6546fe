"""Facets, suggestions, more like this, highlighting, explanations: ways to look around in what is found."""

import pytest
from ravendb import AbstractIndexCreationTask, RangeBuilder
from ravendb.documents.indexes.definitions import FieldIndexing, FieldStorage, FieldTermVector
from ravendb.documents.queries.facets.misc import FacetOptions, FacetTermSortMode
from ravendb.documents.queries.highlighting import HighlightingOptions
from ravendb.documents.queries.more_like_this import MoreLikeThisOptions, MoreLikeThisStopWords
from ravendb.documents.queries.suggestions import StringDistanceTypes, SuggestionOptions

import cases
from cases import keys


class Products_Facets(AbstractIndexCreationTask):
    def __init__(self):
        super().__init__()
        self.map = "from p in docs.Products select new { p.name, p.category, p.price, p.stock, p.tags, p.released, p.discontinued, city = p.supplier.address.city, description = p.description }"
        self._index("description", FieldIndexing.SEARCH)


class Products_Texts(AbstractIndexCreationTask):
    """What suggestions, more like this and highlighting need."""

    def __init__(self):
        super().__init__()
        self.map = "from p in docs.Products select new { p.name, p.description, p.category }"
        self._index("name", FieldIndexing.SEARCH)
        self._suggestion("name")
        self._index("description", FieldIndexing.SEARCH)
        self._suggestion("description")
        self._store("description", FieldStorage.YES)
        self._term_vector("description", FieldTermVector.WITH_POSITIONS_AND_OFFSETS)


@pytest.fixture(scope="module")
def indexed(shop):
    for task in (Products_Facets(), Products_Texts()):
        task.execute(shop)
    with shop.open_session() as session:
        for name in ("Products/Facets", "Products/Texts"):
            list(session.query_index(name, dict).wait_for_non_stale_results())
    return shop


def values(result):
    return [(value.range_, value.count_) for value in result.values]


TERMS = {
    "category": [("categories/1", 3), ("categories/2", 3), ("categories/3", 2)],
    "city": [("lille", 2), ("lyon", 4), ("nice", 1)],
    "tags": [("baked", 2), ("drink", 1), ("fresh", 3), ("red", 1), ("sweet", 4), ("yellow", 1)],
    "discontinued": [("NULL_VALUE", 1), ("false", 4), ("true", 1)],
}


@pytest.mark.parametrize("field", ["category", "city", "discontinued"])
def test_facet_of_terms(indexed, field):
    with indexed.open_session() as session:
        facets = session.query_index("Products/Facets", dict).aggregate_by(lambda f: f.by_field(field)).execute()
    assert sorted(values(facets[field])) == TERMS[field]


def test_facet_of_a_list(indexed):
    with indexed.open_session() as session:
        facets = session.query_index("Products/Facets", dict).where_equals("category", "categories/1").aggregate_by(lambda f: f.by_field("tags")).execute()
    assert sorted(values(facets["tags"])) == [("drink", 1), ("fresh", 2), ("red", 1), ("sweet", 2), ("yellow", 1)]


def test_facet_of_what_a_condition_finds(indexed):
    with indexed.open_session() as session:
        facets = session.query_index("Products/Facets", dict).where_greater_than("stock", 20).aggregate_by(lambda f: f.by_field("category")).execute()
    assert sorted(values(facets["category"])) == [("categories/1", 3), ("categories/2", 1), ("categories/3", 1)]


def test_facet_of_nothing(indexed):
    with indexed.open_session() as session:
        facets = session.query_index("Products/Facets", dict).where_equals("name", "none").aggregate_by(lambda f: f.by_field("category")).execute()
    assert values(facets["category"]) == []


def test_two_facets(indexed):
    with indexed.open_session() as session:
        query = session.query_index("Products/Facets", dict).aggregate_by(lambda f: f.by_field("category")).and_aggregate_by(lambda f: f.by_field("city"))
        facets = query.execute()
    assert {name: sorted(values(facet)) for name, facet in facets.items()} == {"category": TERMS["category"], "city": TERMS["city"]}


def test_a_facet_under_another_name(indexed):
    with indexed.open_session() as session:
        facets = session.query_index("Products/Facets", dict).aggregate_by(lambda f: f.by_field("city").with_display_name("place")).execute()
    assert list(facets) == ["place"]
    assert sorted(values(facets["place"])) == TERMS["city"]


@pytest.mark.parametrize(("aggregate", "read", "expected"), [
    (lambda f: f.sum_on("stock"), lambda v: v.sum_, {"categories/1": 260, "categories/2": 35, "categories/3": 212}),
    (lambda f: f.min_on("stock"), lambda v: v.min_, {"categories/1": 60, "categories/2": 0, "categories/3": 12}),
    (lambda f: f.max_on("stock"), lambda v: v.max_, {"categories/1": 120, "categories/2": 30, "categories/3": 200}),
    (lambda f: f.average_on("price"), lambda v: v.average_, {"categories/1": 9.5 / 3, "categories/2": 9.25, "categories/3": 9.75}),
    (lambda f: f.sum_on("price"), lambda v: v.sum_, {"categories/1": 9.5, "categories/2": 27.75, "categories/3": 19.5}),
], ids=["sum", "min", "max", "average", "sum_of_fractions"])
def test_aggregations(indexed, aggregate, read, expected):
    with indexed.open_session() as session:
        facets = session.query_index("Products/Facets", dict).aggregate_by(lambda f: aggregate(f.by_field("category"))).execute()
    assert {value.range_: pytest.approx(read(value)) for value in facets["category"].values} == expected


def test_aggregations_of_two_fields(indexed):
    with indexed.open_session() as session:
        facets = session.query_index("Products/Facets", dict).aggregate_by(lambda f: f.by_field("category").sum_on("stock").sum_on("price").max_on("price")).execute()
    found = {(value.range_, value.name): (value.sum_, value.max_, value.count_) for value in facets["category"].values}
    assert found[("categories/1", "price")] == (9.5, 4, 3)
    assert found[("categories/1", "stock")] == (260, None, 3)


def test_aggregation_under_another_name(indexed):
    with indexed.open_session() as session:
        facets = session.query_index("Products/Facets", dict).aggregate_by(lambda f: f.by_field("category").sum_on("stock", "pieces")).execute()
    assert {(value.name, value.sum_) for value in facets["category"].values} == {("pieces", 260), ("pieces", 35), ("pieces", 212)}


@pytest.mark.parametrize(("mode", "expected"), [
    (FacetTermSortMode.VALUE_ASC, [("baked", 2), ("drink", 1), ("fresh", 3), ("red", 1), ("sweet", 4), ("yellow", 1)]),
    (FacetTermSortMode.VALUE_DESC, [("yellow", 1), ("sweet", 4), ("red", 1), ("fresh", 3), ("drink", 1), ("baked", 2)]),
    (FacetTermSortMode.COUNT_ASC, [("drink", 1), ("red", 1), ("yellow", 1), ("baked", 2), ("fresh", 3), ("sweet", 4)]),
    (FacetTermSortMode.COUNT_DESC, [("sweet", 4), ("fresh", 3), ("baked", 2), ("drink", 1), ("red", 1), ("yellow", 1)]),
])
def test_order_of_terms(indexed, mode, expected):
    options = FacetOptions()
    options.term_sort_mode = mode
    options.start = 0
    options.page_size = 100
    with indexed.open_session() as session:
        query = session.query_index("Products/Facets", dict).where_exists("released").and_also().where_not_none("tags").aggregate_by(lambda f: f.by_field("tags").with_options(options))
        assert values(query.execute()["tags"]) == expected


def test_a_page_of_terms_and_what_remains(indexed):
    options = FacetOptions()
    options.term_sort_mode = FacetTermSortMode.COUNT_DESC
    options.start = 0
    options.page_size = 2
    options.include_remaining_terms = True
    with indexed.open_session() as session:
        facet = session.query_index("Products/Facets", dict).where_not_none("tags").and_also().where_exists("released").aggregate_by(lambda f: f.by_field("tags").with_options(options)).execute()["tags"]
    assert values(facet) == [("sweet", 4), ("fresh", 3)]
    assert (facet.remaining_terms, facet.remaining_terms_count, facet.remaining_hits) == (["baked", "drink", "red", "yellow"], 4, 5)


def test_facet_of_ranges(indexed):
    price = RangeBuilder.for_path("price")
    ranges = [price.is_less_than(3.0), price.is_greater_than_or_equal_to(3.0).is_less_than(10.0), price.is_greater_than_or_equal_to(10.0)]
    with indexed.open_session() as session:
        facets = session.query_index("Products/Facets", dict).aggregate_by(lambda f: f.by_ranges(*ranges)).execute()
    assert [value.count_ for value in facets["price"].values] == [2, 3, 3]
    assert [value.range_ for value in facets["price"].values] == ["price < 3.0", "price >= 3.0 and price < 10.0", "price >= 10.0"]


def test_ranges_with_aggregations(indexed):
    stock = RangeBuilder.for_path("stock")
    with indexed.open_session() as session:
        query = session.query_index("Products/Facets", dict).aggregate_by(lambda f: f.by_ranges(stock.is_less_than_or_equal_to(12), stock.is_greater_than(12)).max_on("price").sum_on("stock"))
        found = [(value.name, value.range_, value.count_, value.max_, value.sum_) for value in query.execute()["stock"].values]
    assert sorted(found, key=str) == sorted([
        ("price", "stock <= 12", 3, 18.5, None), ("stock", "stock <= 12", 3, None, 17),
        ("price", "stock > 12", 5, 5, None), ("stock", "stock > 12", 5, None, 490)], key=str)


def test_a_range_of_nothing(indexed):
    price = RangeBuilder.for_path("price")
    with indexed.open_session() as session:
        facets = session.query_index("Products/Facets", dict).aggregate_by(lambda f: f.by_ranges(price.is_greater_than(1000))).execute()
    assert values(facets["price"]) == [("price > 1000", 0)]


def test_facets_of_a_setup_document(own_shop):
    Products_Facets().execute(own_shop)
    setup = {"Facets": [{"FieldName": "category", "Aggregations": {}, "DisplayFieldName": None, "Options": None}], "RangeFacets": [{"Ranges": ["stock < 50", "stock >= 50"], "Aggregations": {}, "DisplayFieldName": "amount", "Options": None}], "@metadata": {"@collection": "FacetSetups"}}
    cases.put(own_shop.urls[0], own_shop.database, {"facets/products": setup})
    with own_shop.open_session() as session:
        list(session.query_index("Products/Facets", dict).wait_for_non_stale_results())
        facets = session.query_index("Products/Facets", dict).aggregate_using("facets/products").execute()
    assert sorted(values(facets["category"])) == TERMS["category"]
    assert values(facets["amount"]) == [("stock < 50", 4), ("stock >= 50", 4)]


def test_lazy_facets(indexed):
    with indexed.open_session() as session:
        lazy = session.query_index("Products/Facets", dict).aggregate_by(lambda f: f.by_field("category")).execute_lazy()
        assert session.advanced.number_of_requests == 0
        assert sorted(values(lazy.value["category"])) == TERMS["category"]


def test_facets_as_text(indexed):
    with indexed.open_session() as session:
        facets = session.advanced.raw_query("from index 'Products/Facets' select facet(category, sum(stock))", dict).execute_aggregation()
    assert {value.range_: (value.count_, value.sum_) for value in facets["category"].values} == {"categories/1": (3, 260), "categories/2": (3, 35), "categories/3": (2, 212)}


def test_facets_as_text_with_ranges(indexed):
    with indexed.open_session() as session:
        query = session.advanced.raw_query("from index 'Products/Facets' where stock > $n select facet(price < 4.5, price >= 4.5) as cost", dict).add_parameter("n", 10)
        assert values(query.execute_aggregation()["cost"]) == [("price < 4.5", 4), ("price >= 4.5", 2)]


def test_facets_of_a_date(indexed):
    with indexed.open_session() as session:
        query = session.advanced.raw_query("from index 'Products/Facets' select facet(released < $from, released >= $from and released < $to)", dict)
        query.add_parameter("from", "2024-03-01T00:00:00.0000000Z").add_parameter("to", "2025-01-01T00:00:00.0000000Z")
        assert [count for _, count in values(query.execute_aggregation()["released"])] == [3, 2]


# ---- suggestions --------------------------------------------------------------------------------------------------------


def suggested(indexed, build, field):
    with indexed.open_session() as session:
        return session.query_index("Products/Texts", dict).suggest_using(build).execute()[field].suggestions


@pytest.mark.parametrize(("term", "expected"), [("appel", ["apple"]), ("bannana", ["banana"]), ("chese", ["cheese", "cherry"]), ("qqqqqq", [])])
def test_suggestions(indexed, term, expected):
    assert suggested(indexed, lambda s: s.by_field("name", term), "name") == expected


def test_suggestions_of_several_terms(indexed):
    assert sorted(suggested(indexed, lambda s: s.by_field("name", ["appel", "bannana"]), "name")) == ["apple", "banana"]


def test_suggestions_under_another_name(indexed):
    assert suggested(indexed, lambda s: s.by_field("name", "appel").with_display_name("perhaps"), "perhaps") == ["apple"]


@pytest.mark.parametrize(("options", "expected"), [
    (SuggestionOptions(accuracy=0.9), []),
    (SuggestionOptions(accuracy=0.4, distance=StringDistanceTypes.LEVENSHTEIN), ["apple", "apples"]),
    (SuggestionOptions(accuracy=0.85, distance=StringDistanceTypes.JARO_WINKLER), ["apple", "apples"]),
], ids=["too_exact", "levenshtein", "jaro_winkler"])
def test_options_of_suggestions(indexed, options, expected):
    assert sorted(suggested(indexed, lambda s: s.by_field("description", "appel").with_options(options), "description")) == expected


def test_lazy_suggestions(indexed):
    with indexed.open_session() as session:
        lazy = session.query_index("Products/Texts", dict).suggest_using(lambda s: s.by_field("name", "appel")).execute_lazy()
        assert lazy.value["name"].suggestions == ["apple"]


def test_suggestions_of_an_automatic_index(shop):
    with shop.open_session() as session:
        result = session.query_collection("Products", dict).suggest_using(lambda s: s.by_field("name", "milc")).execute()
    assert result["name"].suggestions == ["milk"]


# ---- more like this -----------------------------------------------------------------------------------------------------

LIBERAL = {"minimum_term_frequency": 1, "minimum_document_frequency": 1}


def alike(indexed, source, **options):
    with indexed.open_session() as session:
        query = session.query_index("Products/Texts", dict).more_like_this(
            lambda m: m.using_document(lambda d: d.where_equals("id()", source)).with_options(MoreLikeThisOptions(fields=["description"], **(LIBERAL | options))))
        return keys(session, list(query))


def test_more_like_a_document(indexed):
    found = alike(indexed, "products/1")
    assert found[0] == "products/4"
    assert "products/1" not in found


@pytest.mark.parametrize(("source", "options", "expected"), [
    ("products/1", {"minimum_document_frequency": 2}, ["products/4"]),
    ("products/5", {}, ["products/3", "products/4", "products/6", "products/7"]),
    ("products/5", {"minimum_word_length": 5}, ["products/3"]),
    ("products/5", {"maximum_word_length": 4}, ["products/4", "products/6", "products/7"]),
    ("products/5", {"minimum_document_frequency": 5}, []),
    ("products/5", {"minimum_term_frequency": 2}, []),
    ("products/5", {"maximum_document_frequency": 2}, ["products/3"]),
], ids=["document_frequency", "all_words", "long_words", "short_words", "rare_words_only", "repeated_words", "common_words_left_out"])
def test_options_of_more_like_this(indexed, source, options, expected):
    assert sorted(alike(indexed, source, **options)) == expected


def test_more_like_a_text(indexed):
    with indexed.open_session() as session:
        query = session.query_index("Products/Texts", dict).more_like_this(
            lambda m: m.using_document('{"description": "goats and rye"}').with_options(MoreLikeThisOptions(fields=["description"], **LIBERAL)))
        assert sorted(keys(session, list(query))) == ["products/5", "products/6"]


def test_more_like_this_and_a_condition(indexed):
    with indexed.open_session() as session:
        query = session.advanced.raw_query(
            "from index 'Products/Texts' where moreLikeThis(id() = 'products/5', $o) and category = 'categories/2'", dict
        ).add_parameter("o", {"MinimumTermFrequency": 1, "MinimumDocumentFrequency": 1, "Fields": ["description"]})
        assert keys(session, list(query)) == ["products/3"]


def test_more_like_this_with_stop_words(indexed):
    with indexed.open_session() as session:
        words = MoreLikeThisStopWords("config/stop words", ["baked"])
        session.store(words, "config/stop words")
        session.save_changes()
    assert "products/3" not in alike(indexed, "products/5", stop_words_document_id="config/stop words")


# ---- highlighting and explanations --------------------------------------------------------------------------------------


def highlighted(session, query, options=None, field="description", length=128, count=3):
    seen = []
    found = list(query.highlight(field, length, count, seen.append, options))
    return {key: seen[0].get_fragments(key) for key in keys(session, found)}


def test_highlighting(indexed):
    with indexed.open_session() as session:
        found = highlighted(session, session.query_index("Products/Texts", dict).search("description", "rye"))
    assert found == {"products/5": ['Dark bread baked from <b style="background:yellow">rye</b>']}


def test_highlighting_with_tags(indexed):
    with indexed.open_session() as session:
        options = HighlightingOptions(pre_tags=["<i>"], post_tags=["</i>"])
        found = highlighted(session, session.query_index("Products/Texts", dict).search("description", "crisp"), options)
    assert found == {"products/1": ["A <i>crisp</i> red apple for pies and cider"], "products/4": ["Juice pressed from <i>crisp</i> red apples"]}


def test_highlighting_of_several_words(indexed):
    with indexed.open_session() as session:
        options = HighlightingOptions(pre_tags=["["], post_tags=["]"])
        found = highlighted(session, session.query_index("Products/Texts", dict).search("description", "goats farm").and_also().where_equals("category", "categories/3"), options)
    assert found == {"products/6": ["Cheese from the [goats] of the green [farm]"], "products/7": ["Milk of the morning, fresh from the [farm]"]}


def test_highlighting_of_an_automatic_index(shop):
    with shop.open_session() as session:
        found = highlighted(session, session.query_collection("Products", dict).search("description", "yellow"), HighlightingOptions(pre_tags=["["], post_tags=["]"]))
    assert found == {"products/2": ["A [yellow] banana, ripe and sweet"]}


def test_explanations(indexed):
    seen = []
    with indexed.open_session() as session:
        found = keys(session, list(session.query_index("Products/Texts", dict).search("description", "crisp").include_explanations(explanations_callback=seen.append)))
    assert sorted(found) == ["products/1", "products/4"]
    assert sorted(seen[0].explanations) == ["products/1", "products/4"]
    assert all("crisp" in text for texts in seen[0].explanations.values() for text in texts)
