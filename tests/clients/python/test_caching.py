"""The client's cache lives on ETags: what has not changed is not sent again, what has changed always is."""

import pytest
import requests

from models import Company, User


@pytest.fixture
def statuses(store):
    """Status codes of the answers the client got, in order."""
    seen = []
    store.get_request_executor().add_on_succeed_request(lambda event: seen.append(event.response.status_code))
    return seen


def save(store, key, entity):
    with store.open_session() as session:
        session.store(entity, key)
        session.save_changes()


def load(store, *keys):
    with store.open_session() as session:
        return session.load(list(keys), User)


def test_one_document(store, statuses):
    save(store, "users/1", User("Ann"))
    statuses.clear()
    with store.open_session() as session:
        session.load("users/1", User)
    with store.open_session() as session:
        assert session.load("users/1", User).name == "Ann"
    assert statuses == [200, 304]


def test_a_changed_document(store, statuses):
    save(store, "users/1", User("Ann"))
    load(store, "users/1")
    save(store, "users/1", User("Bea"))
    statuses.clear()
    with store.open_session() as session:
        assert session.load("users/1", User).name == "Bea"
    assert statuses == [200]


def test_many_documents(store, statuses):
    save(store, "users/1", User("Ann"))
    save(store, "users/2", User("Bob"))
    statuses.clear()
    for _ in range(2):
        load(store, "users/1", "users/2")
    save(store, "users/2", User("Bert"))
    statuses.append("changed")
    assert load(store, "users/1", "users/2")["users/2"].name == "Bert"
    assert [status for status in statuses if status != 201] == [200, 304, "changed", 200]


def test_a_missing_document_that_appears(store, statuses):
    for _ in range(2):
        load(store, "users/1", "users/2")
    save(store, "users/2", User("Bob"))
    assert load(store, "users/1", "users/2")["users/2"].name == "Bob"


def test_an_included_document_that_changes(store):
    save(store, "companies/1", Company("Acme"))
    save(store, "users/1", User("Ann", company="companies/1"))

    def name_of_the_company():
        with store.open_session() as session:
            session.include("company").load("users/1", User)
            name = session.load("companies/1", Company).name
            assert session.advanced.number_of_requests == 1
            return name

    assert name_of_the_company() == "Acme"
    assert name_of_the_company() == "Acme"
    save(store, "companies/1", Company("Acme 2"))
    assert name_of_the_company() == "Acme 2"


def test_a_deleted_document(store):
    save(store, "users/1", User("Ann"))
    load(store, "users/1")
    with store.open_session() as session:
        session.delete("users/1")
        session.save_changes()
    with store.open_session() as session:
        assert session.load("users/1", User) is None


def test_by_prefix(store, statuses):
    save(store, "users/1", User("Ann"))
    statuses.clear()

    def names():
        with store.open_session() as session:
            return [user.name for user in session.advanced.load_starting_with("users/", User)]

    assert names() == ["Ann"]
    assert names() == ["Ann"]
    assert statuses == [200, 304]
    save(store, "users/2", User("Bob"))
    assert names() == ["Ann", "Bob"]


def test_a_document_deleted_from_the_middle_of_a_prefix(store):
    for n in (1, 2, 3):
        save(store, f"users/{n}", User(str(n)))

    def names():
        with store.open_session() as session:
            return [user.name for user in session.advanced.load_starting_with("users/", User)]

    assert names() == ["1", "2", "3"]
    with store.open_session() as session:
        session.delete("users/1")
        session.save_changes()
    assert names() == ["2", "3"]


def test_the_etag_of_a_document_is_its_change_vector(store, raw):
    save(store, "users/1", User("Ann"))
    answer = raw("GET", "/docs?id=users/1")
    change_vector = answer.json()["Results"][0]["@metadata"]["@change-vector"]
    assert answer.headers["ETag"] == f'"{change_vector}"'


def test_not_modified_has_no_body(store, raw):
    save(store, "users/1", User("Ann"))
    etag = raw("GET", "/docs?id=users/1").headers["ETag"]
    answer = raw("GET", "/docs?id=users/1", headers={"If-None-Match": etag})
    assert (answer.status_code, answer.content) == (304, b"")


def test_statistics_are_never_cached(raw):
    assert "ETag" not in raw("GET", "/stats").headers


def test_answers_are_compressed_when_asked(store, raw):
    save(store, "users/1", User("Ann" * 1000))
    plain = raw("GET", "/docs?id=users/1", headers={"Accept-Encoding": "identity"})
    assert "Content-Encoding" not in plain.headers
    zipped = raw("GET", "/docs?id=users/1", headers={"Accept-Encoding": "gzip"})
    assert zipped.json() == plain.json()


def test_a_database_made_anew_is_not_served_from_the_cache(server, store, database):
    from ravendb.serverwide.database_record import DatabaseRecord
    from ravendb.serverwide.operations.common import CreateDatabaseOperation, DeleteDatabaseOperation

    save(store, "users/1", User("Ann"))
    load(store, "users/1")
    server.maintenance.server.send(DeleteDatabaseOperation(database, True))
    server.maintenance.server.send(CreateDatabaseOperation(DatabaseRecord(database)))
    save(store, "users/1", User("Bob"))
    with store.open_session() as session:
        assert session.load("users/1", User).name == "Bob"


def test_the_server_names_itself_on_every_answer(url, raw):
    for answer in (raw("GET", "/docs?id=none"), raw("GET", "/stats"), requests.get(f"{url}/build/version", timeout=60)):
        assert int(answer.headers["Raven-Server-Version"].split(".")[0]) >= 6
