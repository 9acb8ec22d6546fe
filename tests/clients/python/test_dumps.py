"""Dumps out of a database and into another: documents, and the indexes over them."""

import time

import pytest
import requests
from ravendb import DocumentStore, IndexDefinition
from ravendb.documents.indexes.definitions import FieldIndexing, FieldStorage, IndexFieldOptions, IndexLockMode, IndexPriority
from ravendb.documents.operations.indexes import GetIndexNamesOperation, PutIndexesOperation
from ravendb.documents.operations.statistics import GetStatisticsOperation
from ravendb.serverwide.database_record import DatabaseRecord
from ravendb.serverwide.operations.common import CreateDatabaseOperation

from cases import keys
from conftest import drop

smuggler = pytest.importorskip("ravendb.documents.smuggler.common", reason="this client has no smuggler")
pytestmark = pytest.mark.skipif(not hasattr(DocumentStore, "smuggler"), reason="this client has no smuggler")

BY_NAME = IndexDefinition(
    name="Products/ByName",
    maps={"from p in docs.Products select new { p.name, p.category }"},
    fields={"name": IndexFieldOptions(storage=FieldStorage.YES, indexing=FieldIndexing.SEARCH, analyzer="StandardAnalyzer")},
    priority=IndexPriority.HIGH,
    lock_mode=IndexLockMode.LOCKED_IGNORE,
)
PER_CATEGORY = IndexDefinition(
    name="Products/PerCategory",
    maps={"from p in docs.Products select new { p.category, count = 1 }"},
    reduce="from r in results group r by r.category into g select new { category = g.Key, count = g.Sum(x => x.count) }",
)
SCRIPT = IndexDefinition(name="Products/Script", maps={"map('Products', p => ({ name: p.name }))"})


@pytest.fixture
def other(url, server, new_name):
    """A store of a further, empty database."""
    name = new_name()
    server.maintenance.server.send(CreateDatabaseOperation(DatabaseRecord(name)))
    with DocumentStore(url, name) as store:
        store.initialize()
        yield store
    drop(server, name)


@pytest.fixture
def file(tmp_path):
    return str(tmp_path / "all.ravendbdump")


def exported(store, file, **options):
    store.smuggler.export(smuggler.DatabaseSmugglerExportOptions(**options), file).wait_for_completion()


def imported(store, file, **options):
    return store.smuggler.import_data(smuggler.DatabaseSmugglerImportOptions(**options), file).wait_for_completion()


def definitions(store):
    """As the server tells them: the client cannot write those that it has read."""
    return requests.get(f"{store.urls[0]}/databases/{store.database}/indexes", timeout=60).json()["Results"]


def count(store):
    return store.maintenance.send(GetStatisticsOperation()).count_of_documents


def found(store, rql):
    with store.open_session() as session:
        return keys(session, session.advanced.raw_query(rql).wait_for_non_stale_results())


@pytest.fixture
def indexed(own_shop):
    own_shop.maintenance.send(PutIndexesOperation(BY_NAME, PER_CATEGORY, SCRIPT))
    return own_shop


def test_indexes_go_with_documents(indexed, other, file):
    exported(indexed, file)
    imported(other, file)
    assert count(other) == count(indexed)
    assert definitions(other) == definitions(indexed)
    query = "from index 'Products/ByName' where search(name, 'milk')"
    assert found(other, query) == found(indexed, query) != []


def test_indexes_alone(indexed, other, file):
    exported(indexed, file, operate_on_types={smuggler.DatabaseItemType.INDEXES})
    imported(other, file)
    assert count(other) == 0
    assert definitions(other) == definitions(indexed)


@pytest.mark.parametrize("side", ["export", "import"])
def test_documents_alone(indexed, other, file, side):
    alone = {"operate_on_types": {smuggler.DatabaseItemType.DOCUMENTS}}
    exported(indexed, file, **(alone if side == "export" else {}))
    imported(other, file, **(alone if side == "import" else {}))
    assert count(other) == count(indexed)
    assert other.maintenance.send(GetIndexNamesOperation(0, 10)) == []


def test_analyzers_can_be_removed(indexed, other, file):
    exported(indexed, file)
    imported(other, file, remove_analyzers=True)
    field = definitions(other)[0]["Fields"]["name"]
    assert (field["Analyzer"], field["Indexing"]) == (None, "Search")


def test_an_import_changes_an_index_that_is_there(indexed, other, file):
    exported(indexed, file)
    other.maintenance.send(PutIndexesOperation(IndexDefinition(name="Products/PerCategory", maps=BY_NAME.maps)))
    imported(other, file)
    # The old one answers until the new one is built.
    while [index["Reduce"] for index in definitions(other) if index["Name"] == "Products/PerCategory"] != [PER_CATEGORY.reduce]:
        time.sleep(0.05)
    query = "from index 'Products/PerCategory' where count > 0"
    assert len(found(other, query)) == len(found(indexed, query)) > 0


def test_an_index_that_is_refused_does_not_stop_an_import(store, url, database, tmp_path, raw):
    import gzip
    import json

    bad = {"Type": "Map", "IndexDefinition": {"Name": "Bad", "Maps": ["from d in docs.Things select d.a.b.(("], "Fields": {}}}
    good = {"Type": "Map", "IndexDefinition": {"Name": "Good", "Maps": ["from d in docs.Things select new { d.a }"], "Fields": {}}}
    things = [{"a": n, "@metadata": {"@collection": "Things", "@id": f"things/{n}"}} for n in range(3)]
    file = tmp_path / "made.ravendbdump"
    file.write_bytes(gzip.compress(json.dumps({"BuildVersion": 54000, "Docs": things, "Indexes": [bad, good]}).encode()))
    result = imported(store, str(file))
    assert store.maintenance.send(GetIndexNamesOperation(0, 10)) == ["Good"]
    assert count(store) == 3
    assert any("'Bad'" in message and "ERROR" in message for message in result.messages)
