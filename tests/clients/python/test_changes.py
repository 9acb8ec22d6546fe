"""The changes API: notifications over a WebSocket."""

import queue
import threading

import pytest

from models import Company, User

# A notification that has not come by then never will; it is a limit, no expectation.
PATIENCE_SECONDS = 30


@pytest.fixture
def changes(store):
    feed = store.changes()
    yield feed
    feed.close()


@pytest.fixture
def watch():
    """Subscribes and returns the queue of what comes, once the server has confirmed."""
    closers = []

    def start(observable):
        seen = queue.Queue()
        closers.append(observable.subscribe(seen.put))
        observable.ensure_subscribe_now()
        return seen

    yield start
    for close in closers:
        close()


def save(store, key, entity):
    with store.open_session() as session:
        session.store(entity, key)
        session.save_changes()


def delete(store, key):
    with store.open_session() as session:
        session.delete(key)
        session.save_changes()


def next_of(seen):
    return seen.get(timeout=PATIENCE_SECONDS)


def kind(change):
    return getattr(change.type_of_change, "value", change.type_of_change)


def test_one_document(store, changes, watch):
    seen = watch(changes.for_document("users/1"))
    save(store, "users/2", User("other"))
    save(store, "users/1", User("Ann"))
    change = next_of(seen)
    assert (change.key, kind(change), change.collection_name) == ("users/1", "Put", "Users")
    assert change.change_vector.startswith("A:")
    assert seen.empty()


def test_a_delete(store, changes, watch):
    save(store, "users/1", User("Ann"))
    seen = watch(changes.for_document("users/1"))
    delete(store, "users/1")
    change = next_of(seen)
    if kind(change) == "Put":
        # The save before the watch, notified of late.
        change = next_of(seen)
    assert (change.key, kind(change)) == ("users/1", "Delete")


def test_all_documents_in_order(store, changes, watch):
    seen = watch(changes.for_all_documents())
    for n in range(20):
        save(store, f"users/{n}", User(str(n)))
    assert [next_of(seen).key for _ in range(20)] == [f"users/{n}" for n in range(20)]


def test_a_prefix(store, changes, watch):
    seen = watch(changes.for_documents_start_with("users/"))
    save(store, "companies/1", Company("Acme"))
    save(store, "users/1", User("Ann"))
    save(store, "USERS/2", User("Bob"))
    assert [next_of(seen).key.lower() for _ in range(2)] == ["users/1", "users/2"]


def test_a_collection(store, changes, watch):
    seen = watch(changes.for_documents_in_collection("Users"))
    save(store, "companies/1", Company("Acme"))
    save(store, "any/1", User("Ann"))
    assert next_of(seen).key == "any/1"


def test_a_document_in_another_casing(store, changes, watch):
    seen = watch(changes.for_document("users/1"))
    save(store, "USERS/1", User("Ann"))
    assert next_of(seen).key == "USERS/1"


def test_a_batch_notifies_of_each(store, changes, watch):
    seen = watch(changes.for_all_documents())
    with store.open_session() as session:
        for n in range(10):
            session.store(User(str(n)), f"users/{n}")
        session.save_changes()
    assert {next_of(seen).key for _ in range(10)} == {f"users/{n}" for n in range(10)}


def test_a_failed_save_notifies_of_nothing(store, changes, watch):
    save(store, "users/1", User("Ann"))
    seen = watch(changes.for_all_documents())
    with store.open_session() as session:
        session.advanced.use_optimistic_concurrency = True
        session.store(User("b"), "users/0")
        session.store(User("never"), "users/1")
        with pytest.raises(Exception):
            session.save_changes()
    save(store, "users/end", User("end"))
    # The first save may still be notified of, late as it is.
    keys = [next_of(seen).key]
    while keys[-1] != "users/end":
        keys.append(next_of(seen).key)
    assert set(keys) <= {"users/1", "users/end"} and len(keys) <= 2


def test_what_is_notified_is_readable(store, changes, watch):
    """An event is sent after the commit: whoever gets it finds the document."""
    seen = watch(changes.for_all_documents())
    writer = threading.Thread(target=lambda: [save(store, f"users/{n}", User(str(n))) for n in range(30)])
    writer.start()
    for _ in range(30):
        change = next_of(seen)
        with store.open_session() as session:
            assert session.load(change.key, User) is not None
    writer.join()


def test_several_watchers_on_one_socket(store, changes, watch):
    one = watch(changes.for_document("users/1"))
    everything = watch(changes.for_all_documents())
    prefix = watch(changes.for_documents_start_with("users/"))
    save(store, "users/1", User("Ann"))
    assert [next_of(seen).key for seen in (one, everything, prefix)] == ["users/1"] * 3


def test_bulk_insert_notifies(store, changes, watch):
    seen = watch(changes.for_documents_start_with("users/"))
    with store.bulk_insert() as bulk:
        for n in range(50):
            bulk.store_as(User(str(n)), f"users/{n}")
    assert {next_of(seen).key for _ in range(50)} == {f"users/{n}" for n in range(50)}


def test_unsubscribing_stops_it(store, changes):
    seen = queue.Queue()
    observable = changes.for_document("users/1")
    close = observable.subscribe(seen.put)
    observable.ensure_subscribe_now()
    save(store, "users/1", User("Ann"))
    next_of(seen)
    close()
    everything = queue.Queue()
    rest = changes.for_all_documents()
    close_rest = rest.subscribe(everything.put)
    rest.ensure_subscribe_now()
    save(store, "users/1", User("Bea"))
    assert next_of(everything).key == "users/1"
    assert seen.empty()
    close_rest()


def test_two_databases_do_not_mix(server, store, changes, watch, new_name):
    from ravendb.serverwide.database_record import DatabaseRecord
    from ravendb.serverwide.operations.common import CreateDatabaseOperation, DeleteDatabaseOperation

    seen = watch(changes.for_all_documents())
    other = new_name()
    server.maintenance.server.send(CreateDatabaseOperation(DatabaseRecord(other)))
    try:
        with store.open_session(other) as session:
            session.store(User("elsewhere"), "users/elsewhere")
            session.save_changes()
        save(store, "users/here", User("here"))
        assert next_of(seen).key == "users/here"
    finally:
        server.maintenance.server.send(DeleteDatabaseOperation(other, True))
