"""Waiting for indexes: after saving, in queries; and what is told of indexes as it happens."""

import datetime
import threading
from importlib.metadata import version

import pytest
from ravendb import IndexDefinition
from ravendb.changes.types import IndexChangeTypes
from ravendb.documents.indexes.definitions import IndexLockMode, IndexPriority
from ravendb.documents.operations.indexes import (
    DeleteIndexOperation,
    PutIndexesOperation,
    SetIndexesLockOperation,
    SetIndexesPriorityOperation,
    StartIndexingOperation,
    StopIndexingOperation,
)

from models import User

WAIT = 60


def define(name="Users/ByName", text="from u in docs.Users select new { u.name }", **more):
    return PutIndexesOperation(IndexDefinition(name=name, maps={text}, **more))


@pytest.fixture
def indexed(store):
    """A store of a database with an index that has caught up with it."""
    store.maintenance.send(define())
    with store.open_session() as session:
        list(session.query_index("Users/ByName", User).wait_for_non_stale_results())
    return store


def named(store, name):
    """How many users of a name the index knows now, without waiting."""
    with store.open_session() as session:
        return len(list(session.advanced.raw_query("from index 'Users/ByName' where name = $name", dict).add_parameter("name", name)))


def test_after_saving(indexed):
    for n in range(10):
        with indexed.open_session() as session:
            session.advanced.wait_for_indexes_after_save_changes(lambda wait: wait.with_timeout(datetime.timedelta(seconds=WAIT)))
            session.store(User(f"user {n}"), f"users/{n}")
            session.save_changes()
        assert named(indexed, f"user {n}") == 1


def test_after_saving_too_long(indexed):
    indexed.maintenance.send(StopIndexingOperation())
    with indexed.open_session() as session:
        session.advanced.wait_for_indexes_after_save_changes(lambda wait: wait.with_timeout(datetime.timedelta(milliseconds=200)).throw_on_timeout(True))
        session.store(User("Ann"), "users/1")
        with pytest.raises(Exception, match="(?i)time"):
            session.save_changes()
    indexed.maintenance.send(StartIndexingOperation())
    with indexed.open_session() as session:
        assert session.load("users/1", User).name == "Ann"


def test_after_saving_too_long_without_an_error(indexed):
    indexed.maintenance.send(StopIndexingOperation())
    with indexed.open_session() as session:
        session.advanced.wait_for_indexes_after_save_changes(lambda wait: wait.with_timeout(datetime.timedelta(milliseconds=200)).throw_on_timeout(False))
        session.store(User("Ann"), "users/1")
        session.save_changes()
    assert named(indexed, "Ann") == 0
    indexed.maintenance.send(StartIndexingOperation())


def test_a_stopped_index_is_stale(indexed):
    indexed.maintenance.send(StopIndexingOperation())
    with indexed.open_session() as session:
        session.store(User("Ann"), "users/1")
        session.save_changes()
        seen = []
        assert list(session.query_index("Users/ByName", User).statistics(seen.append)) == []
        assert seen[0].is_stale is True
    indexed.maintenance.send(StartIndexingOperation())
    with indexed.open_session() as session:
        seen = []
        assert len(list(session.query_index("Users/ByName", User).wait_for_non_stale_results().statistics(seen.append))) == 1
        assert seen[0].is_stale is False


def test_waiting_too_long_in_a_query(indexed):
    indexed.maintenance.send(StopIndexingOperation())
    with indexed.open_session() as session:
        session.store(User("Ann"), "users/1")
        session.save_changes()
        with pytest.raises(Exception, match="(?i)waited|timeout"):
            list(session.query_index("Users/ByName", User).wait_for_non_stale_results(datetime.timedelta(milliseconds=200)))
    indexed.maintenance.send(StartIndexingOperation())


def test_a_document_of_another_collection_does_not_make_it_stale(indexed):
    with indexed.open_session() as session:
        session.store(User("Ann"), "users/1")
        session.save_changes()
        list(session.query_index("Users/ByName", User).wait_for_non_stale_results())
    indexed.maintenance.send(StopIndexingOperation())
    with indexed.open_session() as session:
        session.store({"name": "Acme", "@metadata": {"@collection": "Companies"}}, "companies/1")
        session.save_changes()
        seen = []
        list(session.query_index("Users/ByName", User).statistics(seen.append))
        assert seen[0].is_stale is False
    indexed.maintenance.send(StartIndexingOperation())


def test_many_documents(indexed):
    with indexed.bulk_insert() as bulk:
        for n in range(2_000):
            bulk.store_as(User(f"user {n % 10}", n), f"users/{n}")
    with indexed.open_session() as session:
        query = session.query_index("Users/ByName", User).wait_for_non_stale_results(datetime.timedelta(seconds=WAIT)).where_equals("name", "user 7")
        assert query.count() == 200


def test_map_reduce_follows_changes(store):
    reduce = "from r in results group r by r.company into g select new { company = g.Key, count = g.Sum(x => x.count), age = g.Sum(x => x.age) }"
    store.maintenance.send(define("Users/PerCompany", "from u in docs.Users select new { u.company, count = 1, u.age }", reduce=reduce))

    def rows():
        with store.open_session() as session:
            query = session.advanced.raw_query("from index 'Users/PerCompany' order by company", dict).wait_for_non_stale_results()
            return [(row["company"], row["count"], row["age"]) for row in query]

    with store.open_session() as session:
        for n in range(10):
            session.store(User(f"user {n}", n, f"companies/{n % 2}"), f"users/{n}")
        session.save_changes()
    assert rows() == [("companies/0", 5, 20), ("companies/1", 5, 25)]
    with store.open_session() as session:
        session.load("users/1", User).age = 101
        session.load("users/2", User).company = "companies/2"
        session.delete("users/4")
        session.save_changes()
    assert rows() == [("companies/0", 3, 14), ("companies/1", 5, 125), ("companies/2", 1, 2)]
    with store.open_session() as session:
        for n in (1, 3, 5, 7, 9):
            session.delete(f"users/{n}")
        session.save_changes()
    assert rows() == [("companies/0", 3, 14), ("companies/2", 1, 2)]


def test_the_results_of_map_reduce_as_documents(store):
    reduce = "from r in results group r by r.company into g select new { company = g.Key, count = g.Sum(x => x.count) }"
    store.maintenance.send(define("Users/PerCompany", "from u in docs.Users select new { u.company, count = 1 }", reduce=reduce, output_reduce_to_collection="CompanyCounts"))
    with store.open_session() as session:
        for n in range(5):
            session.store(User(f"user {n}", n, f"companies/{n % 2}"), f"users/{n}")
        session.save_changes()

    def counts():
        with store.open_session() as session:
            list(session.advanced.raw_query("from index 'Users/PerCompany'", dict).wait_for_non_stale_results())
            return sorted((row["company"], row["count"]) for row in session.query_collection("CompanyCounts", dict))

    assert counts() == [("companies/0", 3), ("companies/1", 2)]
    with store.open_session() as session:
        session.delete("users/0")
        session.delete("users/1")
        session.delete("users/3")
        session.save_changes()
    assert counts() == [("companies/0", 2)]


class Seen:
    """What came, and a wait for what is to come."""

    def __init__(self):
        self.kinds = []
        self.changed = threading.Condition()

    def __call__(self, change):
        with self.changed:
            self.kinds.append((change.name, change.type_of_change))
            self.changed.notify_all()

    def wait(self, name, kind):
        with self.changed:
            assert self.changed.wait_for(lambda: (name, kind) in self.kinds, WAIT), f"{name} {kind} did not come, but {self.kinds}"


@pytest.fixture
def watch(store):
    """Feeds of the changes of indexes, closed at the end."""
    if version("ravendb").startswith("5."):
        pytest.skip("now and then this client does not return from subscribing to indexes")
    changes = store.changes()
    closers = []

    def watch(name=None):
        seen = Seen()
        observable = changes.for_index(name) if name else changes.for_all_indexes()
        closers.append(observable.subscribe(seen))
        observable.ensure_subscribe_now()
        return seen

    yield watch
    for close in closers:
        close()
    changes.close()


def test_an_index_is_added(store, watch):
    seen = watch()
    store.maintenance.send(define())
    seen.wait("Users/ByName", IndexChangeTypes.INDEX_ADDED)


def test_an_index_is_removed(indexed, watch):
    seen = watch()
    indexed.maintenance.send(DeleteIndexOperation("Users/ByName"))
    seen.wait("Users/ByName", IndexChangeTypes.INDEX_REMOVED)


def test_a_batch_is_completed(indexed, watch):
    seen = watch("Users/ByName")
    with indexed.open_session() as session:
        session.store(User("Ann"), "users/1")
        session.save_changes()
    seen.wait("Users/ByName", IndexChangeTypes.BATCH_COMPLETED)


def test_a_lock_mode_is_changed(indexed, watch):
    seen = watch("Users/ByName")
    indexed.maintenance.send(SetIndexesLockOperation(IndexLockMode.LOCKED_IGNORE, "Users/ByName"))
    seen.wait("Users/ByName", IndexChangeTypes.LOCK_MODE_CHANGED)


def test_a_priority_is_changed(indexed, watch):
    seen = watch("Users/ByName")
    indexed.maintenance.send(SetIndexesPriorityOperation(IndexPriority.HIGH, "Users/ByName"))
    seen.wait("Users/ByName", IndexChangeTypes.PRIORITY_CHANGED)


def test_an_index_is_replaced(indexed, watch):
    seen = watch("Users/ByName")
    with indexed.open_session() as session:
        session.store(User("Ann", 30), "users/1")
        session.save_changes()
    indexed.maintenance.send(define(text="from u in docs.Users select new { u.name, u.age }"))
    seen.wait("Users/ByName", IndexChangeTypes.SIDE_BY_SIDE_REPLACE)


def test_other_indexes_are_not_told(indexed, watch):
    seen = watch("Users/ByName")
    indexed.maintenance.send(define("Users/ByAge", "from u in docs.Users select new { u.age }"))
    indexed.maintenance.send(SetIndexesLockOperation(IndexLockMode.LOCKED_IGNORE, "Users/ByName"))
    seen.wait("Users/ByName", IndexChangeTypes.LOCK_MODE_CHANGED)
    assert {name for name, _ in seen.kinds} == {"Users/ByName"}
