"""What every case stands on: a server (its address is in CLIENTS_URL), and a database of the case's own."""

import os
import uuid
from urllib.parse import urlsplit

import pytest
import requests
from ravendb import DocumentStore
from ravendb.serverwide.database_record import DatabaseRecord
from ravendb.serverwide.operations.common import CreateDatabaseOperation, DeleteDatabaseOperation

pytest.register_assert_rewrite("cases")
import cases
from proxy import Proxy

# Set when the server is a real RavenDB, to prove the cases themselves.
PEER = os.environ.get("CLIENTS_PEER") == "1"


def pytest_collection_modifyitems(items):
    for item in items:
        if PEER and item.get_closest_marker("later"):
            item.add_marker(pytest.mark.skip(reason="a real RavenDB has this feature"))


@pytest.fixture(scope="session")
def url():
    return os.environ["CLIENTS_URL"].rstrip("/")


@pytest.fixture(scope="session")
def server(url):
    """A store without a database, for what concerns the server."""
    with DocumentStore(url) as store:
        store.initialize()
        yield store


@pytest.fixture(scope="session")
def new_name():
    """Makes database names that nobody has."""
    return lambda: f"py-{uuid.uuid4().hex}"


def drop(server, name):
    server.maintenance.server.send(DeleteDatabaseOperation(name, True))


@pytest.fixture
def database(server, new_name):
    """The name of an empty database."""
    name = new_name()
    server.maintenance.server.send(CreateDatabaseOperation(DatabaseRecord(name)))
    yield name
    drop(server, name)


@pytest.fixture
def store(url, database):
    """A store of the case's own database."""
    with DocumentStore(url, database) as store:
        store.initialize()
        yield store


@pytest.fixture(scope="module")
def shop(url, server, new_name):
    """A store of a database with the documents of the shop, shared by the cases of a file: they change no document of it."""
    name = new_name()
    server.maintenance.server.send(CreateDatabaseOperation(DatabaseRecord(name)))
    cases.put(url, name, cases.SHOP)
    with DocumentStore(url, name) as store:
        store.initialize()
        yield store
    drop(server, name)


@pytest.fixture
def own_shop(url, store, database):
    """The documents of the shop in the case's own database."""
    cases.put(url, database, cases.SHOP)
    return store


@pytest.fixture
def other_store(url, database):
    """Makes further stores of the same database, as other processes would, and closes them."""
    stores = []

    def make(address=url, **conventions):
        store = DocumentStore(address, database)
        for name, value in conventions.items():
            setattr(store.conventions, name, value)
        store.initialize()
        stores.append(store)
        return store

    yield make
    for store in stores:
        store.close()


@pytest.fixture
def proxy(url):
    """A relay before the server that can be cut."""
    parts = urlsplit(url)
    relay = Proxy(parts.hostname, parts.port)
    yield relay
    relay.stop()


@pytest.fixture
def raw(url, database):
    """Plain HTTP below the case's database, to look at what the client hides."""

    def ask(method, path, **more):
        return requests.request(method, f"{url}/databases/{database}{path}", timeout=60, **more)

    return ask


@pytest.fixture
def document_count(store):
    """How many documents the database has."""
    from ravendb.documents.operations.statistics import GetStatisticsOperation

    return lambda: store.maintenance.send(GetStatisticsOperation()).count_of_documents
