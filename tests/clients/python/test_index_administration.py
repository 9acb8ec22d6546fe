"""Indexes as things to put, look at, stop, lock, change and remove."""

import time

import pytest
from ravendb import GetStatisticsOperation, IndexDefinition
from ravendb.documents.indexes.definitions import FieldIndexing, FieldStorage, IndexFieldOptions, IndexLockMode, IndexPriority, IndexRunningStatus
from ravendb.documents.operations.indexes import (
    DeleteIndexErrorsOperation,
    DeleteIndexOperation,
    DisableIndexOperation,
    EnableIndexOperation,
    GetIndexErrorsOperation,
    GetIndexesOperation,
    GetIndexesStatisticsOperation,
    GetIndexingStatusOperation,
    GetIndexNamesOperation,
    GetIndexOperation,
    GetIndexStatisticsOperation,
    GetTermsOperation,
    PutIndexesOperation,
    ResetIndexOperation,
    SetIndexesLockOperation,
    SetIndexesPriorityOperation,
    StartIndexingOperation,
    StartIndexOperation,
    StopIndexingOperation,
    StopIndexOperation,
)

from cases import keys
from models import Company

BY_NAME = "from p in docs.Products select new { p.name }"
BY_STOCK = "from p in docs.Products select new { p.stock }"
PER_CATEGORY = "from p in docs.Products select new { p.category, count = 1 }", "from r in results group r by r.category into g select new { category = g.Key, count = g.Sum(x => x.count) }"


def define(text=BY_NAME, name="Products/ByName", **more):
    return IndexDefinition(name=name, maps={text}, **more)


@pytest.fixture
def put(own_shop):
    def put(*definitions):
        return own_shop.maintenance.send(PutIndexesOperation(*(definitions or [define()])))

    return put


@pytest.fixture
def send(own_shop):
    return own_shop.maintenance.send


@pytest.fixture
def ask(own_shop):
    """Ids of what a query of an index gives when the index is caught up."""

    def ask(rql):
        with own_shop.open_session() as session:
            return sorted(keys(session, list(session.advanced.raw_query(rql, dict).wait_for_non_stale_results())))

    return ask


def test_put_and_get(put, send):
    answer = put()
    assert answer["Results"][0]["Index"] == "Products/ByName"
    definition = send(GetIndexOperation("Products/ByName"))
    assert (definition.name, set(definition.maps), definition.lock_mode, definition.priority) == ("Products/ByName", {BY_NAME}, IndexLockMode.UNLOCK, IndexPriority.NORMAL)


def test_get_of_what_is_not_there(send):
    assert send(GetIndexOperation("Nothing")) is None


def test_fields_come_back(put, raw):
    put(define(fields={"name": IndexFieldOptions(storage=FieldStorage.YES, indexing=FieldIndexing.SEARCH, analyzer="StandardAnalyzer")}))
    field = raw("GET", "/indexes?name=products/byname").json()["Results"][0]["Fields"]["name"]
    assert (field["Storage"], field["Indexing"], field["Analyzer"], field["TermVector"]) == ("Yes", "Search", "StandardAnalyzer", None)


def test_several_at_once(put, send):
    put(define(), define(BY_STOCK, "Products/ByStock"))
    assert send(GetIndexNamesOperation(0, 10)) == ["Products/ByName", "Products/ByStock"]
    assert [definition.name for definition in send(GetIndexesOperation(0, 10))] == ["Products/ByName", "Products/ByStock"]


def test_a_page_of_names(put, send):
    put(*(define(name=f"Index/{n}") for n in range(5)))
    assert send(GetIndexNamesOperation(1, 2)) == ["Index/1", "Index/2"]


def test_automatic_indexes_are_listed(own_shop, send):
    with own_shop.open_session() as session:
        list(session.query_collection("Products", dict).where_equals("name", "Milk"))
    assert send(GetIndexNamesOperation(0, 10)) == ["Auto/Products/Byname"]


def test_delete(put, send):
    put()
    send(DeleteIndexOperation("Products/ByName"))
    assert send(GetIndexNamesOperation(0, 10)) == []


def test_a_deleted_index_is_not_found(put, send, ask):
    put()
    assert ask("from index 'Products/ByName' where name = 'Milk'") == ["products/7"]
    send(DeleteIndexOperation("Products/ByName"))
    with pytest.raises(Exception, match="(?i)index"):
        ask("from index 'Products/ByName' where name = 'Milk'")


def test_reset(put, send, ask):
    put()
    assert ask("from index 'Products/ByName' where name = 'Milk'") == ["products/7"]
    send(ResetIndexOperation("Products/ByName"))
    assert ask("from index 'Products/ByName' where name = 'Milk'") == ["products/7"]


def test_statistics(put, send, ask):
    put()
    ask("from index 'Products/ByName'")
    statistics = send(GetIndexStatisticsOperation("Products/ByName"))
    assert (statistics.name, statistics.entries_count, statistics.map_attempts, statistics.map_successes, statistics.map_errors) == ("Products/ByName", 8, 8, 8, 0)
    assert list(statistics.collections) == ["Products"]


def test_statistics_of_map_reduce(put, send, ask, own_shop):
    put(IndexDefinition(name="PerCategory", maps={PER_CATEGORY[0]}, reduce=PER_CATEGORY[1]))
    with own_shop.open_session() as session:
        assert len(list(session.advanced.raw_query("from index 'PerCategory'", dict).wait_for_non_stale_results())) == 3
    statistics = send(GetIndexStatisticsOperation("PerCategory"))
    assert (statistics.entries_count, statistics.map_successes, statistics.reduce_errors) == (3, 8, 0)


def test_statistics_of_the_database(put, send, ask):
    put(define(), define(BY_STOCK, "Products/ByStock"))
    ask("from index 'Products/ByName'")
    ask("from index 'Products/ByStock'")
    statistics = send(GetStatisticsOperation())
    assert statistics.count_of_indexes == 2
    assert sorted(index.name for index in statistics.indexes) == ["Products/ByName", "Products/ByStock"]


@pytest.mark.parametrize(("field", "after", "size", "expected"), [
    ("name", None, 10, ["apple", "apple juice", "banana", "cherry pie", "goat cheese", "milk", "rye bread", "éclair"]),
    ("name", "banana", 2, ["cherry pie", "goat cheese"]),
    ("stock", None, 3, ["0", "12", "120"]),
    ("tags", None, 20, ["baked", "drink", "fresh", "red", "sweet", "yellow"]),
    ("discontinued", None, 10, ["NULL_VALUE", "false", "true"]),
    ("description", None, 2, ["EMPTY_STRING", "a crisp red apple for pies and cider"]),
], ids=["text", "after_a_value", "numbers", "lists", "null", "empty"])
def test_terms(put, send, ask, field, after, size, expected):
    put(define("from p in docs.Products select new { p.name, p.stock, tags = p.tags.Where(t => t != null), p.discontinued, p.description }", "Products/All"))
    ask("from index 'Products/All'")
    assert send(GetTermsOperation("Products/All", field, after, size)) == expected


def test_words_of_a_field_to_search_are_terms(put, send, ask):
    put(define("from p in docs.Products select new { p.name }", "Products/Words", fields={"name": IndexFieldOptions(indexing=FieldIndexing.SEARCH)}))
    ask("from index 'Products/Words'")
    assert send(GetTermsOperation("Products/Words", "name", None, 4)) == ["apple", "banana", "bread", "cheese"]


def test_stop_and_start_one(put, send, ask, own_shop):
    put()
    ask("from index 'Products/ByName'")
    send(StopIndexOperation("Products/ByName"))
    assert {index.name: index.status for index in send(GetIndexingStatusOperation()).indexes} == {"Products/ByName": IndexRunningStatus.PAUSED}
    with own_shop.open_session() as session:
        session.store({"name": "Plum", "@metadata": {"@collection": "Products"}}, "products/9")
        session.save_changes()
        seen = []
        assert list(session.advanced.raw_query("from index 'Products/ByName' where name = 'Plum'", dict).statistics(seen.append)) == []
        assert seen[0].is_stale
    send(StartIndexOperation("Products/ByName"))
    assert ask("from index 'Products/ByName' where name = 'Plum'") == ["products/9"]


def test_stop_and_start_all(put, send):
    put(define(), define(BY_STOCK, "Products/ByStock"))
    send(StopIndexingOperation())
    status = send(GetIndexingStatusOperation())
    assert status.status == IndexRunningStatus.PAUSED
    assert [index.status for index in status.indexes] == [IndexRunningStatus.PAUSED] * 2
    send(StartIndexingOperation())
    status = send(GetIndexingStatusOperation())
    assert status.status == IndexRunningStatus.RUNNING
    assert [index.status for index in status.indexes] == [IndexRunningStatus.RUNNING] * 2


def test_disable_and_enable(put, send, ask):
    put()
    send(DisableIndexOperation("Products/ByName"))
    assert [index.status for index in send(GetIndexingStatusOperation()).indexes] == [IndexRunningStatus.DISABLED]
    send(EnableIndexOperation("Products/ByName"))
    assert [index.status for index in send(GetIndexingStatusOperation()).indexes] == [IndexRunningStatus.RUNNING]
    assert ask("from index 'Products/ByName' where name = 'Milk'") == ["products/7"]


@pytest.mark.parametrize("priority", [IndexPriority.LOW, IndexPriority.NORMAL, IndexPriority.HIGH])
def test_priority(put, send, priority):
    put()
    send(SetIndexesPriorityOperation(priority, "Products/ByName"))
    assert send(GetIndexOperation("Products/ByName")).priority == priority


@pytest.mark.parametrize("mode", [IndexLockMode.UNLOCK, IndexLockMode.LOCKED_IGNORE, IndexLockMode.LOCKED_ERROR])
def test_lock_mode(put, send, mode):
    put()
    send(SetIndexesLockOperation(mode, "Products/ByName"))
    assert send(GetIndexOperation("Products/ByName")).lock_mode == mode


def test_a_lock_that_ignores(put, send):
    put()
    send(SetIndexesLockOperation(IndexLockMode.LOCKED_IGNORE, "Products/ByName"))
    put(define(BY_STOCK))
    assert set(send(GetIndexOperation("Products/ByName")).maps) == {BY_NAME}


def test_a_lock_that_refuses(put, send):
    put()
    send(SetIndexesLockOperation(IndexLockMode.LOCKED_ERROR, "Products/ByName"))
    with pytest.raises(Exception, match="LockedError"):
        put(define(BY_STOCK))
    assert set(send(GetIndexOperation("Products/ByName")).maps) == {BY_NAME}


def test_a_lock_of_what_is_not_there(send):
    with pytest.raises(Exception, match="Nothing"):
        send(SetIndexesLockOperation(IndexLockMode.LOCKED_ERROR, "Nothing"))


def test_side_by_side(put, send, ask):
    """The new definition replaces the old one when it has caught up."""
    put()
    assert ask("from index 'Products/ByName' where name = 'Milk'") == ["products/7"]
    put(define("from p in docs.Products select new { p.name, p.stock }"))
    for _ in range(600):
        if send(GetIndexNamesOperation(0, 10)) == ["Products/ByName"]:
            break
        time.sleep(0.05)
    assert ask("from index 'Products/ByName' where name = 'Milk' and stock = 200") == ["products/7"]


def test_the_old_definition_answers_until_the_new_one_has_caught_up(put, send, ask):
    put()
    ask("from index 'Products/ByName'")
    send(StopIndexingOperation())
    put(define("from p in docs.Products select new { p.name, p.stock }"))
    assert send(GetIndexNamesOperation(0, 10)) == ["Products/ByName", "ReplacementOf/Products/ByName"]
    assert ask("from index 'Products/ByName' where name = 'Milk'") == ["products/7"]
    send(StartIndexingOperation())


def test_the_same_definition_changes_nothing(put, send, ask):
    put()
    ask("from index 'Products/ByName'")
    send(StopIndexingOperation())
    put()
    assert send(GetIndexNamesOperation(0, 10)) == ["Products/ByName"]
    send(StartIndexingOperation())


def errors_of(send, name):
    """The errors of an index, once there are some: they may be written a moment after the entries."""
    for _ in range(600):
        [errors] = send(GetIndexErrorsOperation(name))
        if errors.errors:
            return errors
        time.sleep(0.05)
    raise AssertionError("no errors")


DIVIDES = "from p in docs.Products select new { p.name, share = 1000 / p.stock }"


def test_an_error_is_kept(put, send, ask):
    put(define(DIVIDES, "Products/Share"))
    assert "products/8" not in ask("from index 'Products/Share'")
    errors = errors_of(send, "Products/Share")
    assert (errors.name, [error.document for error in errors.errors], [error.action for error in errors.errors]) == ("Products/Share", ["products/8"], ["Map"])
    assert "zero" in errors.errors[0].error


def test_other_documents_are_found_in_spite_of_it(put, send, ask):
    put(define(DIVIDES, "Products/Share"))
    assert ask("from index 'Products/Share' where share = 8") == ["products/1"]
    assert send(GetIndexStatisticsOperation("Products/Share")).map_errors == 1


def test_errors_are_removed(put, send, ask):
    put(define(DIVIDES, "Products/Share"))
    ask("from index 'Products/Share'")
    errors_of(send, "Products/Share")
    send(DeleteIndexErrorsOperation(["Products/Share"]))
    [errors] = send(GetIndexErrorsOperation("Products/Share"))
    assert errors.errors == []


def test_an_index_without_errors(put, send, ask):
    put()
    ask("from index 'Products/ByName'")
    assert [(errors.name, errors.errors) for errors in send(GetIndexErrorsOperation())] == [("Products/ByName", [])]


def test_an_index_that_always_fails(put, ask):
    put(define("from p in docs.Products select new { bad = 3 / (p.stock - p.stock) }", "Products/Bad"))
    with pytest.raises(Exception, match="(?i)errored|zero|Products/Bad"):
        for _ in range(100):
            ask("from index 'Products/Bad' where bad = 1")


@pytest.mark.parametrize(("definition", "message"), [
    (define("from p in docs.Products select new { p.name", "Bad"), "(?i)compil"),
    (define("from p in docs.Products select new { p.name.Nothing(1, }", "Bad"), "(?i)compil|extract"),
    (define("map('Products', p => { return { name: p.name }", "Bad"), "(?i)javascript|compil|parse|unexpected"),
    (define(fields={"name": IndexFieldOptions(analyzer="NoSuchAnalyzer")}), "(?i)NoSuchAnalyzer"),
    (IndexDefinition(name="Bad", maps={BY_NAME}, reduce="from r in results group r by r.none into g select new { none = g.Key, count = g.Sum(x => x.count) }"), "(?i)none|field"),
], ids=["C#_without_an_end", "C#_that_is_wrong", "JavaScript_without_an_end", "analyzer", "reduce_of_other_fields"])
def test_what_does_not_compile_is_refused(put, send, definition, message):
    with pytest.raises(Exception, match=message):
        put(definition)
    assert send(GetIndexNamesOperation(0, 10)) == []


def test_staleness(put, raw, ask):
    put()
    ask("from index 'Products/ByName'")
    assert raw("GET", "/indexes/staleness?name=Products/ByName").json() == {"IsStale": False, "StalenessReasons": []}


def test_staleness_of_a_stopped_index(put, raw, ask, send, own_shop):
    put()
    ask("from index 'Products/ByName'")
    send(StopIndexingOperation())
    with own_shop.open_session() as session:
        session.store({"name": "Plum", "@metadata": {"@collection": "Products"}}, "products/9")
        session.save_changes()
    answer = raw("GET", "/indexes/staleness?name=Products/ByName").json()
    assert answer["IsStale"] is True
    assert len(answer["StalenessReasons"]) == 1
    send(StartIndexingOperation())


@pytest.mark.parametrize(("definition", "expected"), [(define(), False), (define(BY_STOCK), True), (define(name="Other"), True), (define(priority="High"), True)], ids=["same", "map", "new", "priority"])
def test_has_changed(put, raw, definition, expected):
    put()
    body = {"Name": definition.name, "Maps": list(definition.maps), "Priority": str(definition.priority or "Normal"), "LockMode": "Unlock", "Fields": {}, "Configuration": {}}
    assert raw("POST", "/indexes/has-changed", json=body).json() == {"Changed": expected}


@pytest.mark.parametrize("name", ["Products/ByName", "a", "Ünïcode/中文", "x" * 100])
def test_names(put, send, ask, name):
    put(define(name=name))
    assert send(GetIndexOperation(name)).name == name
    assert ask(f"from index '{name}' where name = 'Milk'") == ["products/7"]


def test_a_name_that_is_not_allowed(put, send):
    with pytest.raises(Exception, match="(?i)not permitted|not allowed"):
        put(define(name="With spaces and (signs)"))
    assert send(GetIndexNamesOperation(0, 10)) == []


def test_a_changed_related_document(put, ask, own_shop):
    put(define("from p in docs.Products select new { category = LoadDocument(p.category, \"Categories\").name }", "Products/ByCategory"))
    assert ask("from index 'Products/ByCategory' where category = 'Dairy'") == ["products/6", "products/7"]
    with own_shop.open_session() as session:
        session.load("categories/3", Company).name = "Milk and cheese"
        session.save_changes()
    assert ask("from index 'Products/ByCategory' where category = 'Dairy'") == []
    assert ask("from index 'Products/ByCategory' where category = 'milk and cheese'") == ["products/6", "products/7"]
    with own_shop.open_session() as session:
        session.delete("categories/3")
        session.save_changes()
    assert ask("from index 'Products/ByCategory' where category = 'milk and cheese'") == []
