"""Creating, listing, disabling and deleting databases; topology and versions."""

import threading

import pytest
from ravendb import DocumentStore
from ravendb.documents.operations.server_misc import ToggleDatabasesStateOperation
from ravendb.serverwide.database_record import DatabaseRecord
from ravendb.serverwide.operations.common import (
    BuildNumber,
    CreateDatabaseOperation,
    DeleteDatabaseOperation,
    GetBuildNumberOperation,
    GetDatabaseNamesOperation,
    GetDatabaseRecordOperation,
    PromoteDatabaseNodeOperation,
    ReorderDatabaseMembersOperation,
)

from models import User


def names(server, page_size=10_000):
    return server.maintenance.server.send(GetDatabaseNamesOperation(0, page_size))


def test_a_created_database_is_listed(server, database):
    assert database in names(server)


def test_a_page_of_names(server, database):
    assert len(names(server, page_size=1)) == 1


def test_the_record_of_a_database(server, database):
    record = server.maintenance.server.send(GetDatabaseRecordOperation(database))
    assert record.database_name == database
    assert record.disabled is False
    assert record.encrypted is False


def test_a_missing_database_has_no_record(server, new_name):
    assert server.maintenance.server.send(GetDatabaseRecordOperation(new_name())) is None


def test_the_answer_to_a_creation_says_where_it_lives(server, new_name):
    name = new_name()
    try:
        result = server.maintenance.server.send(CreateDatabaseOperation(DatabaseRecord(name)))
        assert result.name == name
        assert result.topology.members == ["A"]
        assert result.raft_command_index > 0
        assert len(result.nodes_added_to) == 1
    finally:
        server.maintenance.server.send(DeleteDatabaseOperation(name, True))


def test_creating_twice_is_refused_and_keeps_the_data(server, store, database):
    with store.open_session() as session:
        session.store(User("Ann"), "users/1")
        session.save_changes()
    with pytest.raises(Exception, match="already exists"):
        server.maintenance.server.send(CreateDatabaseOperation(DatabaseRecord(database)))
    with store.open_session() as session:
        assert session.load("users/1", User).name == "Ann"


def test_names_do_not_care_about_case(server, url, database):
    with pytest.raises(Exception, match="already exists"):
        server.maintenance.server.send(CreateDatabaseOperation(DatabaseRecord(database.upper())))
    with DocumentStore(url, database.upper()) as store:
        store.initialize()
        with store.open_session() as session:
            assert session.load("users/1") is None


@pytest.mark.parametrize("name", ["a b", "a/b", "..", "a?b", "a*b", "x" * 300])
def test_impossible_names_are_refused(server, name):
    before = set(names(server))
    try:
        with pytest.raises(Exception):
            server.maintenance.server.send(CreateDatabaseOperation(DatabaseRecord(name)))
    finally:
        made = set(names(server)) - before
        for one in made & {name}:
            server.maintenance.server.send(DeleteDatabaseOperation(one, True))
    assert name not in names(server)


def test_a_deleted_database_is_gone(server, new_name):
    name = new_name()
    server.maintenance.server.send(CreateDatabaseOperation(DatabaseRecord(name)))
    server.maintenance.server.send(DeleteDatabaseOperation(name, True))
    assert name not in names(server)
    assert server.maintenance.server.send(GetDatabaseRecordOperation(name)) is None


def test_deleting_a_missing_database_is_no_error(server, new_name):
    result = server.maintenance.server.send(DeleteDatabaseOperation(new_name(), True))
    assert result.pending_deletes == []


def test_a_database_of_the_same_name_starts_empty(server, url, new_name):
    name = new_name()
    for _ in range(2):
        server.maintenance.server.send(CreateDatabaseOperation(DatabaseRecord(name)))
        with DocumentStore(url, name) as store:
            store.initialize()
            with store.open_session() as session:
                assert session.load("users/1") is None
                session.store(User("Ann"), "users/1")
                session.save_changes()
        server.maintenance.server.send(DeleteDatabaseOperation(name, True))


def test_the_build_number(server):
    build: BuildNumber = server.maintenance.server.send(GetBuildNumberOperation())
    assert build.build_version > 0
    assert build.product_version
    assert build.full_version


def test_disable_and_enable(server, store, other_store, database):
    with store.open_session() as session:
        session.store(User("Ann"), "users/1")
        session.save_changes()
    disabled = server.maintenance.server.send(ToggleDatabasesStateOperation(database, True))
    assert disabled.success and disabled.disabled and disabled.name == database
    with pytest.raises(Exception) as refused:
        with other_store().open_session() as session:
            session.load("users/1", User)
    assert "DatabaseDisabled" in str(refused.value) or "disabled" in str(refused.value)
    enabled = server.maintenance.server.send(ToggleDatabasesStateOperation(database, False))
    assert enabled.success and not enabled.disabled
    with other_store().open_session() as session:
        assert session.load("users/1", User).name == "Ann"


def test_a_disabled_database_says_so_in_its_record(server, database):
    server.maintenance.server.send(ToggleDatabasesStateOperation(database, True))
    assert server.maintenance.server.send(GetDatabaseRecordOperation(database)).disabled is True


def test_the_only_node_is_the_first_member(server, database):
    server.maintenance.server.send(ReorderDatabaseMembersOperation(database, ["A"]))
    promoted = server.maintenance.server.send(PromoteDatabaseNodeOperation(database, "A"))
    assert promoted.name == database


def test_the_topology_names_the_address_that_was_used(store, url, database):
    executor = store.get_request_executor()
    with store.open_session() as session:
        session.load("users/1")
    nodes = executor.topology_nodes
    assert [(node.url, node.database, node.cluster_tag) for node in nodes] == [(url, database, "A")]


def test_sessions_of_another_database(server, store, new_name):
    other = new_name()
    server.maintenance.server.send(CreateDatabaseOperation(DatabaseRecord(other)))
    try:
        with store.open_session(other) as session:
            session.store(User("elsewhere"), "users/1")
            session.save_changes()
        with store.open_session() as session:
            assert session.load("users/1", User) is None
        with store.open_session(other) as session:
            assert session.load("users/1", User).name == "elsewhere"
    finally:
        server.maintenance.server.send(DeleteDatabaseOperation(other, True))


def test_many_databases_created_at_once(server, url, new_name):
    wanted = [new_name() for _ in range(16)]
    errors = []

    def create(name):
        try:
            with DocumentStore(url, name) as store:
                store.initialize()
                store.maintenance.server.send(CreateDatabaseOperation(DatabaseRecord(name)))
                with store.open_session() as session:
                    session.store(User(name), "users/1")
                    session.save_changes()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=create, args=(name,)) for name in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    try:
        assert errors == []
        assert set(wanted) <= set(names(server))
        for name in wanted:
            with server.open_session(name) as session:
                assert session.load("users/1", User).name == name
    finally:
        for name in wanted:
            server.maintenance.server.send(DeleteDatabaseOperation(name, True))
