"""Bulk insert: many documents over one connection."""

import gzip
import json
import threading

import pytest
import requests
from ravendb.documents.bulk_insert_operation import BulkInsertOptions
from ravendb.documents.commands.bulkinsert import GetNextOperationIdCommand, KillOperationCommand

from models import Note, User


def change_vector_of(store, key):
    with store.open_session() as session:
        return session.advanced.get_change_vector_for(session.load(key, User))


def test_a_few(store, document_count):
    with store.bulk_insert() as bulk:
        bulk.store_as(User("Ann", 30), "users/1")
        bulk.store_as(User("Bob", 31), "users/2")
    assert document_count() == 2
    with store.open_session() as session:
        user = session.load("users/1", User)
        assert (user.name, user.age) == ("Ann", 30)
        assert session.advanced.get_metadata_for(user)["@collection"] == "Users"


def test_ids_by_the_client(store):
    with store.bulk_insert() as bulk:
        keys = [bulk.store(User(str(n))) for n in range(40)]
    assert keys == [f"users/{n}-A" for n in range(1, 41)]
    with store.open_session() as session:
        assert session.load("users/40-A", User).name == "39"


def test_none_at_all(store, document_count):
    with store.bulk_insert():
        pass
    assert document_count() == 0


def test_fifty_thousand(store, document_count):
    with store.bulk_insert() as bulk:
        for n in range(50_000):
            bulk.store_as(User(f"user {n}", n), f"users/{n}")
    assert document_count() == 50_000
    with store.open_session() as session:
        assert session.load("users/49999", User).age == 49_999


def test_compressed(store, document_count):
    with store.bulk_insert(options=BulkInsertOptions(use_compression=True)) as bulk:
        for n in range(5_000):
            bulk.store_as(User(f"user {n}", n), f"users/{n}")
    assert document_count() == 5_000


def test_big_documents(store):
    text = "lorem ipsum " * 100_000
    with store.bulk_insert() as bulk:
        for n in range(8):
            bulk.store_as(Note(f"{n}{text}"), f"notes/{n}")
    with store.open_session() as session:
        assert session.load("notes/7", Note).content == f"7{text}"


def test_existing_documents_are_overwritten(store):
    for name in ("Ann", "Bea"):
        with store.bulk_insert() as bulk:
            bulk.store_as(User(name), "users/1")
    with store.open_session() as session:
        assert session.load("users/1", User).name == "Bea"


def test_unchanged_documents_are_skipped_on_request(store):
    def insert(name, skip):
        with store.bulk_insert(options=BulkInsertOptions(skip_overwrite_if_unchanged=skip)) as bulk:
            bulk.store_as(User(name), "users/1")
        return change_vector_of(store, "users/1")

    first = insert("Ann", False)
    assert insert("Ann", True) == first
    assert insert("Bea", True) != first
    second = change_vector_of(store, "users/1")
    assert insert("Bea", False) != second


def test_the_same_id_twice(store, document_count):
    with store.bulk_insert() as bulk:
        bulk.store_as(User("first"), "users/1")
        bulk.store_as(User("second"), "users/1")
    assert document_count() == 1
    with store.open_session() as session:
        assert session.load("users/1", User).name == "second"


def test_hard_texts_and_ids(store):
    with store.bulk_insert() as bulk:
        bulk.store_as(Note('"\\\n\t\u0001 é 中'), "notes/é 中?&#%")
    with store.open_session() as session:
        assert session.load("notes/é 中?&#%", Note).content == '"\\\n\t\u0001 é 中'


def test_several_at_once(store, document_count):
    def insert(number):
        with store.bulk_insert() as bulk:
            for n in range(1_000):
                bulk.store_as(User(str(n)), f"users/{number}/{n}")

    threads = [threading.Thread(target=insert, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert document_count() == 4_000


def test_its_operation_is_completed(store, raw):
    bulk = store.bulk_insert()
    with bulk:
        for n in range(10):
            bulk.store_as(User(str(n)), f"users/{n}")
        operation = bulk._operation_id
    state = raw("GET", f"/operations/state?id={operation}").json()
    assert state["Status"] == "Completed"
    assert state["Result"]["DocumentsProcessed"] == 10


def operation_id(store):
    command = GetNextOperationIdCommand()
    store.get_request_executor().execute_command(command)
    return command.result


def commands(*documents):
    return [{"Id": key, "Type": "PUT", "Document": {"name": name, "@metadata": {"@collection": "Users"}}} for key, name in documents]


def test_a_broken_stream_leaves_a_faulted_operation(store, raw):
    operation = operation_id(store)
    answer = raw("POST", f"/bulk_insert?id={operation}", data=b'[{"Id":"users/1","Type":"PUT","Document":{"name":')
    assert answer.status_code == 500
    assert answer.json()["Type"] and answer.json()["Error"].startswith(answer.json()["Type"])
    assert raw("GET", f"/operations/state?id={operation}").json()["Status"] == "Faulted"


def test_kill(store, raw):
    """A bulk insert that is killed while its sender is still writing fails, and takes no further documents."""
    operation = operation_id(store)
    killed, begun = threading.Event(), threading.Event()

    def body():
        yield b"["
        for n in range(1_000_000):
            text = json.dumps(commands((f"users/{n}", "x" * 1000))[0]).encode()
            yield (b"," if n else b"") + text
            if n == 5_000:
                begun.set()
                killed.wait(60)
            if n > 20_000:
                return

    outcome = []

    def send():
        try:
            outcome.append(raw("POST", f"/bulk_insert?id={operation}", data=body()).status_code)
        except Exception as error:
            outcome.append(error)

    sender = threading.Thread(target=send)
    sender.start()
    assert begun.wait(60)
    store.get_request_executor().execute_command(KillOperationCommand(operation))
    killed.set()
    sender.join()
    assert outcome[0] != 201
    assert raw("GET", f"/operations/state?id={operation}").json()["Status"] in ("Canceled", "Faulted")
    with store.open_session() as session:
        assert session.load("users/20000", User) is None


def test_kill_of_an_unknown_operation(store):
    with pytest.raises(Exception):
        store.get_request_executor().execute_command(KillOperationCommand(987_654_321))


def test_sync_flushed_gzip_is_read_as_it_comes(store, raw):
    """Documents of a stream that is still open are readable when enough of them were sent: nobody waits for the end."""
    import zlib

    operation = operation_id(store)
    compressor = zlib.compressobj(wbits=31)
    done = threading.Event()

    def body():
        def flushed(text):
            return compressor.compress(text) + compressor.flush(zlib.Z_SYNC_FLUSH)

        yield flushed(b"[")
        for n in range(20_000):
            yield flushed((b"," if n else b"") + json.dumps(commands((f"users/{n}", "x" * 200))[0]).encode())
        done.wait(60)
        yield flushed(b"]") + compressor.flush()

    outcome = []

    def send():
        outcome.append(raw("POST", f"/bulk_insert?id={operation}", data=body(), headers={"Content-Encoding": "gzip"}).status_code)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        found = None
        while found is None and sender.is_alive():
            with store.open_session() as session:
                found = session.load("users/0", User)
        assert found.name == "x" * 200
        assert sender.is_alive()
    finally:
        done.set()
        sender.join()
    assert outcome == [201]


def test_a_whole_body_in_gzip(raw, document_count):
    body = gzip.compress(json.dumps(commands(("users/1", "Ann"), ("users/2", "Bob"))).encode())
    assert raw("POST", "/bulk_insert?id=77", data=body, headers={"Content-Encoding": "gzip"}).status_code == 201
    assert document_count() == 2


def test_a_connection_that_breaks_leaves_documents_whole(store, proxy, database, document_count):
    """The connection is cut in the middle of a document. What was taken before may stay; no document is half there."""
    proxy.cut_after_bytes = 3_000_000

    def body():
        yield b"["
        for n in range(20_000):
            yield (b"," if n else b"") + json.dumps(commands((f"users/{n}", "x" * 500))[0]).encode()
        yield b"]"

    with pytest.raises(requests.exceptions.RequestException):
        requests.post(f"{proxy.url}/databases/{database}/bulk_insert?id=77", data=body(), timeout=60)
    assert document_count() < 20_000
    with store.open_session() as session:
        for user in session.advanced.load_starting_with("users/", User, page_size=20_000):
            assert user.name == "x" * 500
