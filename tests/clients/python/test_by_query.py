"""Patches and deletions of all that a query finds, as operations of the server."""

import pytest
from ravendb import IndexDefinition, PatchByQueryOperation
from ravendb.documents.operations.indexes import PutIndexesOperation, StartIndexingOperation, StopIndexingOperation
from ravendb.documents.operations.misc import DeleteByQueryOperation, QueryOperationOptions
from ravendb.documents.queries.index_query import IndexQuery, Parameters

from cases import keys


@pytest.fixture
def change(own_shop):
    """Patches by a query and waits."""

    def change(text, **parameters):
        query = IndexQuery(query=text)
        query.query_parameters = Parameters(parameters)
        own_shop.operations.send_async(PatchByQueryOperation(query)).wait_for_completion()

    return change


@pytest.fixture
def remove(own_shop):
    def remove(text, **parameters):
        query = IndexQuery(query=text)
        query.query_parameters = Parameters(parameters)
        own_shop.operations.send_async(DeleteByQueryOperation(query)).wait_for_completion()

    return remove


@pytest.fixture
def values(own_shop):
    """A property of all documents of a collection, by id."""

    def values(collection, name):
        with own_shop.open_session() as session:
            return {item["@metadata"]["@id"]: item.get(name) for item in session.query_collection(collection, dict)}

    return values


@pytest.fixture
def wait(own_shop):
    """Makes the automatic index and waits until it has caught up."""

    def wait(rql):
        with own_shop.open_session() as session:
            return sorted(keys(session, list(session.advanced.raw_query(rql, dict).wait_for_non_stale_results())))

    return wait


def test_patch_a_collection(change, values):
    change("from Rooms update { this.size = this.size * 2; }")
    assert values("Rooms", "size") == {"rooms/1": 50, "rooms/2": 19, "rooms/3": 200, "rooms/4": 18.5}


def test_patch_what_a_condition_finds(change, values, wait):
    wait("from Rooms where size > 20")
    change("from Rooms where size > 20 update { this.big = true; }")
    assert values("Rooms", "big") == {"rooms/1": True, "rooms/2": None, "rooms/3": True, "rooms/4": None}


def test_patch_with_parameters(change, values):
    change("from Rooms update { this.size = $size; this.name = $name; }", size=7, name="same")
    assert set(values("Rooms", "size").values()) == {7}
    assert set(values("Rooms", "name").values()) == {"same"}


def test_patch_by_an_alias(change, values):
    change("from Rooms as r update { r.label = id(r) + '/' + r.name; }")
    assert values("Rooms", "label")["rooms/4"] == "rooms/4/attic"


def test_patch_by_ids(change, values):
    change("from @all_docs where id() in ('rooms/1', 'customers/2') update { this.seen = 1; }")
    assert values("Rooms", "seen") == {"rooms/1": 1, "rooms/2": None, "rooms/3": None, "rooms/4": None}
    assert values("Customers", "seen")["customers/2"] == 1


def test_patch_with_a_loaded_document(change, values):
    change("from Products as p load p.category as c update { p.group = c.name; }")
    assert values("Products", "group") == {"products/1": "Fruit", "products/2": "Fruit", "products/3": "Bakery", "products/4": "Fruit", "products/5": "Bakery", "products/6": "Dairy", "products/7": "Dairy", "products/8": "Bakery"}


def test_patch_with_a_declared_function(change, values):
    change("declare function grow(r) { r.size += 1; } from Rooms as r update { grow(r); }")
    assert values("Rooms", "size") == {"rooms/1": 26, "rooms/2": 10.5, "rooms/3": 101, "rooms/4": 10.25}


def test_patch_that_puts_and_deletes(change, values):
    change("from Rooms update { put('copies/' + this.name, { from: id(this), '@metadata': { '@collection': 'Copies' } }); del(id(this)); }")
    assert values("Rooms", "name") == {}
    assert sorted(values("Copies", "from").values()) == ["rooms/1", "rooms/2", "rooms/3", "rooms/4"]


def test_patch_by_a_static_index(change, values, own_shop, wait):
    own_shop.maintenance.send(PutIndexesOperation(IndexDefinition(name="Rooms/BySize", maps={"from r in docs.Rooms select new { r.size }"})))
    assert wait("from index 'Rooms/BySize' where size < 20") == ["rooms/2", "rooms/4"]
    change("from index 'Rooms/BySize' as r where r.size < 20 update { r.small = true; }")
    assert values("Rooms", "small") == {"rooms/1": None, "rooms/2": True, "rooms/3": None, "rooms/4": True}


def test_patch_of_nothing(change, values):
    before = values("Rooms", "size")
    change("from Rooms where id() = 'rooms/none' update { this.size = 0; }")
    assert values("Rooms", "size") == before


@pytest.mark.parametrize(("text", "message"), [
    ("from Rooms update { throw 'enough'; }", "enough"),
    ("from Rooms update { this.size = ; }", "(?i)javascript|script|parse|unexpected"),
    ("from index 'Nothing' update { this.size = 1; }", "Nothing"),
], ids=["throws", "is_wrong", "no_index"])
def test_a_patch_that_fails(change, values, text, message):
    before = values("Rooms", "size")
    with pytest.raises(Exception, match=message):
        change(text)
    assert values("Rooms", "size") == before


def test_a_patch_is_indexed(change, wait):
    assert wait("from Rooms where size > 99") == ["rooms/3"]
    change("from Rooms update { this.size = 100; }")
    assert wait("from Rooms where size > 99") == ["rooms/1", "rooms/2", "rooms/3", "rooms/4"]


def test_delete_a_collection(remove, document_count):
    remove("from Rooms")
    assert document_count() == 22


def test_delete_what_a_condition_finds(remove, values, wait):
    wait("from Rooms where size > 20")
    remove("from Rooms where size > 20")
    assert sorted(values("Rooms", "size")) == ["rooms/2", "rooms/4"]


def test_delete_with_parameters(remove, values, wait):
    wait("from Rooms where size < 10")
    remove("from Rooms where size < $n", n=10)
    assert sorted(values("Rooms", "size")) == ["rooms/1", "rooms/3"]


def test_delete_by_the_beginning_of_an_id(remove, document_count):
    remove("from @all_docs where startsWith(id(), 'products/')")
    assert document_count() == 18


def test_delete_is_indexed(remove, wait):
    assert wait("from Rooms where size > 8") == ["rooms/1", "rooms/2", "rooms/3", "rooms/4"]
    remove("from Rooms where id() = 'rooms/2'")
    assert wait("from Rooms where size > 8") == ["rooms/1", "rooms/3", "rooms/4"]


def test_delete_by_an_index_that_is_not_there(remove, document_count):
    with pytest.raises(Exception, match="Nothing"):
        remove("from index 'Nothing'")
    assert document_count() == 26


def test_delete_by_a_stale_index_is_refused(own_shop, wait, document_count):
    own_shop.maintenance.send(PutIndexesOperation(IndexDefinition(name="Rooms/BySize", maps={"from r in docs.Rooms select new { r.size }"})))
    wait("from index 'Rooms/BySize'")
    own_shop.maintenance.send(StopIndexingOperation())
    with own_shop.open_session() as session:
        session.store({"size": 500, "@metadata": {"@collection": "Rooms"}}, "rooms/5")
        session.save_changes()
    big = IndexQuery(query="from index 'Rooms/BySize' where size > 20")
    with pytest.raises(Exception, match="(?i)stale"):
        own_shop.operations.send_async(DeleteByQueryOperation(big, QueryOperationOptions(allow_stale=False))).wait_for_completion()
    assert document_count() == 27
    own_shop.operations.send_async(DeleteByQueryOperation(big, QueryOperationOptions(allow_stale=True))).wait_for_completion()
    assert document_count() == 25
    own_shop.maintenance.send(StartIndexingOperation())
