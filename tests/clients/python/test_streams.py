"""Streams of documents by prefix."""

import pytest

from models import User


@pytest.fixture
def users(store):
    with store.bulk_insert() as bulk:
        for n in range(1_000):
            bulk.store_as(User(f"user {n}", n), f"users/{n:04}")
        bulk.store_as(User("other"), "people/1")
    return store


def names(stream):
    return [item.key for item in stream]


def test_by_prefix(users):
    with users.open_session() as session:
        keys = names(session.advanced.stream_starting_with("users/"))
        assert keys == [f"users/{n:04}" for n in range(1_000)]


def test_the_documents_are_whole(users):
    with users.open_session() as session:
        item = next(iter(session.advanced.stream_starting_with("users/0123")))
        assert item.document["age"] == 123 if isinstance(item.document, dict) else item.document.age == 123
        assert item.key == "users/0123"
        assert item.change_vector.startswith("A:")
        assert item.metadata["@collection"] == "Users"


def test_a_page(users):
    with users.open_session() as session:
        assert names(session.advanced.stream_starting_with("users/", start=10, page_size=3)) == ["users/0010", "users/0011", "users/0012"]


def test_matches(users):
    with users.open_session() as session:
        assert names(session.advanced.stream_starting_with("users/", matches="099?")) == [f"users/{n:04}" for n in range(990, 1_000)]


def test_after_an_id(users):
    with users.open_session() as session:
        assert names(session.advanced.stream_starting_with("users/", start_after="users/0997")) == ["users/0998", "users/0999"]


def test_of_nothing(users):
    with users.open_session() as session:
        assert names(session.advanced.stream_starting_with("nothing/")) == []


def test_nothing_is_tracked(users):
    with users.open_session() as session:
        names(session.advanced.stream_starting_with("users/000"))
        assert not session.advanced.is_loaded("users/0001")


def test_a_stream_is_a_snapshot(users):
    """What is written while a stream is read does not appear in it."""
    with users.open_session() as session:
        stream = iter(session.advanced.stream_starting_with("users/"))
        keys = [next(stream).key]
        with users.open_session() as writer:
            writer.store(User("new"), "users/9999")
            writer.save_changes()
        keys += [item.key for item in stream]
    assert len(keys) == len(set(keys))
    assert keys[:1_000] == [f"users/{n:04}" for n in range(1_000)]
