"""Statistics, operations, client configuration."""

import pytest
from ravendb.documents.commands.bulkinsert import GetNextOperationIdCommand
from ravendb.documents.operations.configuration.operations import (
    ClientConfiguration,
    GetClientConfigurationOperation,
    PutClientConfigurationOperation,
)
from ravendb.documents.operations.identities import NextIdentityForOperation
from ravendb.documents.operations.statistics import (
    GetCollectionStatisticsOperation,
    GetDetailedStatisticsOperation,
    GetStatisticsOperation,
)

from models import Company, User


def fill(store):
    with store.open_session() as session:
        for n in range(3):
            session.store(User(str(n)), f"users/{n}")
        session.store(Company("Acme"), "companies/1")
        session.save_changes()
    with store.open_session() as session:
        session.delete("users/2")
        session.save_changes()


def test_statistics_of_an_empty_database(store):
    statistics = store.maintenance.send(GetStatisticsOperation())
    assert statistics.count_of_documents == 0
    assert statistics.count_of_indexes == 0
    assert statistics.indexes == []


def test_statistics(store):
    fill(store)
    statistics = store.maintenance.send(GetStatisticsOperation())
    assert statistics.count_of_documents == 3
    assert statistics.count_of_tombstones == 1
    assert statistics.count_of_revision_documents == 0
    assert statistics.database_id


def test_statistics_move_with_every_write(store):
    def last_etag():
        return store.maintenance.send(GetStatisticsOperation()).last_doc_etag or 0

    before = last_etag()
    fill(store)
    after = last_etag()
    assert after > before
    with store.open_session() as session:
        session.store(User("more"), "users/more")
        session.save_changes()
    assert last_etag() > after


def test_detailed_statistics(store):
    fill(store)
    store.maintenance.send(NextIdentityForOperation("users|"))
    statistics = store.maintenance.send(GetDetailedStatisticsOperation())
    assert statistics.count_of_documents == 3
    assert statistics.count_of_identities == 1
    assert statistics.count_of_compare_exchange == 0


def test_statistics_of_collections(store):
    fill(store)
    statistics = store.maintenance.send(GetCollectionStatisticsOperation())
    assert statistics.count_of_documents == 3
    assert statistics.collections == {"Users": 2, "Companies": 1}


def test_a_collection_that_is_emptied(store):
    fill(store)
    with store.open_session() as session:
        session.delete("companies/1")
        session.save_changes()
    collections = store.maintenance.send(GetCollectionStatisticsOperation()).collections
    assert collections.get("Companies", 0) == 0 and collections["Users"] == 2


def test_detailed_statistics_of_collections(store):
    fill(store)
    # Older clients have no such operation.
    from ravendb.documents.operations.statistics import GetDetailedCollectionStatisticsOperation

    users = store.maintenance.send(GetDetailedCollectionStatisticsOperation()).collections["Users"]
    assert (users.name, users.count_of_documents) == ("Users", 2)
    assert users.size.size_in_bytes > 0


def test_range_documents_are_counted(store):
    with store.open_session() as session:
        session.store(User("Ann"))
        session.save_changes()
    statistics = store.maintenance.send(GetCollectionStatisticsOperation())
    assert statistics.collections == {"Users": 1, "@hilo": 1}


def test_operation_ids_grow(store):
    ids = []
    for _ in range(3):
        command = GetNextOperationIdCommand()
        store.get_request_executor().execute_command(command)
        ids.append(command.result)
    assert ids == sorted(set(ids))


def test_the_state_of_an_unknown_operation(raw):
    answer = raw("GET", "/operations/state?id=987654321")
    assert (answer.status_code, answer.content) == (404, b"")


def test_client_configuration(store):
    assert store.maintenance.send(GetClientConfigurationOperation()).configuration is None
    configuration = ClientConfiguration()
    configuration.max_number_of_requests_per_session = 5
    store.maintenance.send(PutClientConfigurationOperation(configuration))
    stored = store.maintenance.send(GetClientConfigurationOperation())
    assert stored.configuration.max_number_of_requests_per_session == 5
    assert stored.etag > 0


def test_clients_learn_of_a_new_configuration(store, raw):
    configuration = ClientConfiguration()
    configuration.max_number_of_requests_per_session = 5
    store.maintenance.send(PutClientConfigurationOperation(configuration))
    old = raw("GET", "/docs?id=a&id=b", headers={"Client-Configuration-Etag": '"0"'})
    assert old.headers["Refresh-Client-Configuration"] == "true"
    etag = store.maintenance.send(GetClientConfigurationOperation()).etag
    current = raw("GET", "/docs?id=a&id=b", headers={"Client-Configuration-Etag": f'"{etag}"'})
    assert "Refresh-Client-Configuration" not in current.headers


def test_health(raw):
    assert raw("GET", "/healthcheck").status_code == 204


@pytest.mark.parametrize("path", ["/no-such-route", "/docs/no-such-route", "/operations"])
def test_routes_that_do_not_exist_are_no_missing_values(raw, path):
    """A 404 is a value to the clients ("it is not there"), so that an unknown route must be something else."""
    assert raw("DELETE", path).status_code == 400
