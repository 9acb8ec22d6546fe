"""Cluster-wide sessions: documents and compare-exchange values in one transaction, atomic and guarded."""

import contextlib
import threading

import pytest
from ravendb.documents.operations.compare_exchange.operations import (
    GetCompareExchangeValueOperation,
    PutCompareExchangeValueOperation,
)
from ravendb.documents.session.misc import SessionOptions, TransactionMode

from models import User


def cluster_wide(store, guards=True):
    options = SessionOptions(transaction_mode=TransactionMode.CLUSTER_WIDE, disable_atomic_document_writes_in_cluster_wide_transaction=not guards)
    return store.open_session(session_options=options)


@contextlib.contextmanager
def conflict():
    """Expects the refusal of a transaction that met another one."""
    with pytest.raises(Exception) as refused:
        yield
    assert "oncurrency" in repr(refused.value)


def value(store, key):
    found = store.operations.send(GetCompareExchangeValueOperation(key, str))
    return found.value if found else None


def test_a_document(store):
    with cluster_wide(store) as session:
        session.store(User("Ann"), "users/1")
        session.save_changes()
    with store.open_session() as session:
        user = session.load("users/1", User)
        assert user.name == "Ann"
        assert "RAFT:" in session.advanced.get_change_vector_for(user)


def test_a_value(store):
    with cluster_wide(store) as session:
        session.advanced.cluster_transaction.create_compare_exchange_value("names/ann", "users/1")
        session.save_changes()
    assert value(store, "names/ann") == "users/1"


def test_a_document_and_a_value(store):
    with cluster_wide(store) as session:
        session.store(User("Ann"), "users/1")
        session.advanced.cluster_transaction.create_compare_exchange_value("names/ann", "users/1")
        session.save_changes()
    with cluster_wide(store) as session:
        assert session.advanced.cluster_transaction.get_compare_exchange_value("names/ann", str).value == "users/1"
        assert session.load("users/1", User).name == "Ann"


def test_a_taken_name_keeps_the_document_out(store, document_count):
    store.operations.send(PutCompareExchangeValueOperation("names/ann", "users/0", 0))
    with cluster_wide(store) as session:
        session.store(User("Ann"), "users/1")
        session.advanced.cluster_transaction.create_compare_exchange_value("names/ann", "users/1")
        with conflict():
            session.save_changes()
    assert document_count() == 0
    assert value(store, "names/ann") == "users/0"


def test_change_a_value(store):
    with cluster_wide(store) as session:
        session.advanced.cluster_transaction.create_compare_exchange_value("users/1", User("Ann", 30))
        session.save_changes()
    with cluster_wide(store) as session:
        session.advanced.cluster_transaction.get_compare_exchange_value("users/1", User).value.age = 31
        session.save_changes()
    with cluster_wide(store) as session:
        assert session.advanced.cluster_transaction.get_compare_exchange_value("users/1", User).value.age == 31


def test_delete_a_value(store):
    store.operations.send(PutCompareExchangeValueOperation("names/ann", "users/1", 0))
    with cluster_wide(store) as session:
        found = session.advanced.cluster_transaction.get_compare_exchange_value("names/ann", str)
        session.advanced.cluster_transaction.delete_compare_exchange_value(found)
        session.save_changes()
    assert value(store, "names/ann") is None


def test_delete_a_document(store):
    with cluster_wide(store) as session:
        session.store(User("Ann"), "users/1")
        session.save_changes()
    with cluster_wide(store) as session:
        session.delete(session.load("users/1", User))
        session.save_changes()
    with store.open_session() as session:
        assert session.load("users/1", User) is None


def test_a_document_changed_meanwhile_is_refused(store):
    with cluster_wide(store) as session:
        session.store(User("Ann"), "users/1")
        session.save_changes()
    with cluster_wide(store) as one, cluster_wide(store) as other:
        one.load("users/1", User).name = "one"
        other.load("users/1", User).name = "other"
        one.save_changes()
        with conflict():
            other.save_changes()
    with store.open_session() as session:
        assert session.load("users/1", User).name == "one"


def test_without_guards_the_last_writer_wins(store):
    with cluster_wide(store, guards=False) as session:
        session.store(User("Ann"), "users/1")
        session.save_changes()
    with cluster_wide(store, guards=False) as one, cluster_wide(store, guards=False) as other:
        one.load("users/1", User).name = "one"
        other.load("users/1", User).name = "other"
        one.save_changes()
        other.save_changes()
    with store.open_session() as session:
        assert session.load("users/1", User).name == "other"


def test_two_create_the_same_document(store):
    with cluster_wide(store) as one, cluster_wide(store) as other:
        one.store(User("one"), "users/1")
        other.store(User("other"), "users/1")
        one.save_changes()
        with conflict():
            other.save_changes()


def test_an_ordinary_write_after_a_cluster_wide_one(store):
    with cluster_wide(store) as session:
        session.store(User("Ann"), "users/1")
        session.save_changes()
    with store.open_session() as session:
        session.load("users/1", User).name = "Bea"
        session.save_changes()
    with cluster_wide(store) as session:
        user = session.load("users/1", User)
        assert user.name == "Bea"
        user.name = "Cid"
        session.save_changes()
    with store.open_session() as session:
        assert session.load("users/1", User).name == "Cid"


def test_several_values_at_once(store):
    with cluster_wide(store) as session:
        for n in range(10):
            session.advanced.cluster_transaction.create_compare_exchange_value(f"k/{n}", f"value {n}")
        session.save_changes()
    with cluster_wide(store) as session:
        found = session.advanced.cluster_transaction.get_compare_exchange_values([f"k/{n}" for n in range(10)], str)
        assert {key: one.value for key, one in found.items()} == {f"k/{n}": f"value {n}" for n in range(10)}
        assert session.advanced.number_of_requests == 1


def test_a_value_is_asked_for_once(store):
    store.operations.send(PutCompareExchangeValueOperation("k", "v", 0))
    with cluster_wide(store) as session:
        for _ in range(3):
            assert session.advanced.cluster_transaction.get_compare_exchange_value("k", str).value == "v"
            assert session.advanced.cluster_transaction.get_compare_exchange_value("none", str) is None
        assert session.advanced.number_of_requests == 2


def test_an_object_as_value(store):
    with cluster_wide(store) as session:
        session.advanced.cluster_transaction.create_compare_exchange_value("users/1", User("Ann", 30))
        session.save_changes()
    with cluster_wide(store) as session:
        assert session.advanced.cluster_transaction.get_compare_exchange_value("users/1", User).value.age == 30


def test_an_id_that_the_server_should_make_is_refused(store, document_count):
    with cluster_wide(store) as session:
        session.store(User("Ann"), "users/")
        with pytest.raises(Exception):
            session.save_changes()
    assert document_count() == 0


def test_unique_names_under_contention(store, document_count):
    """Twelve want the same name; one document comes of it, and it is the one that the name points to."""
    won, lock = [], threading.Lock()

    def work(number):
        with cluster_wide(store) as session:
            session.store(User(str(number)), f"users/{number}")
            session.advanced.cluster_transaction.create_compare_exchange_value("names/ann", f"users/{number}")
            try:
                session.save_changes()
            except Exception as error:
                if "oncurrency" not in repr(error):
                    raise
                return
        with lock:
            won.append(f"users/{number}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert value(store, "names/ann") == won[0]
    assert document_count() == 1
