"""Ids: ranges that clients take (HiLo), ids made by the server, identities, and ids that are hard to spell."""

import threading

import pytest
from ravendb.documents.commands.crud import HiLoReturnCommand, NextHiLoCommand, PutDocumentCommand
from ravendb.documents.operations.identities import (
    GetIdentitiesOperation,
    NextIdentityForOperation,
    SeedIdentityForOperation,
)

from models import Company, User


def next_range(store, tag="users", last_max=0):
    import datetime

    command = NextHiLoCommand(tag, 0, datetime.datetime(2026, 1, 1), "/", last_max)
    store.get_request_executor().execute_command(command)
    return command.result


def test_ids_are_given_in_order(store):
    with store.open_session() as session:
        users = [User(str(n)) for n in range(3)]
        for user in users:
            session.store(user)
        session.save_changes()
        assert [user.Id for user in users] == ["users/1-A", "users/2-A", "users/3-A"]


def test_each_collection_has_its_own(store):
    with store.open_session() as session:
        user, company = User("Ann"), Company("Acme")
        session.store(user)
        session.store(company)
        session.save_changes()
        assert (user.Id, company.Id) == ("users/1-A", "companies/1-A")


def test_no_id_is_given_twice(other_store):
    """Several processes at once: a store each, since the client's own generator is no matter of ours."""
    given, lock = [], threading.Lock()

    def work(store):
        with store.open_session() as session:
            users = [User(str(n)) for n in range(25)]
            for user in users:
                session.store(user)
            session.save_changes()
        with lock:
            given.extend(user.Id for user in users)

    threads = [threading.Thread(target=work, args=(other_store(),)) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(given) == 300
    assert len(set(given)) == 300


def test_ranges_do_not_overlap(store):
    first = next_range(store)
    second = next_range(store, last_max=first.high)
    assert first.low == 1
    assert first.high - first.low + 1 >= 32
    assert second.low == first.high + 1
    assert first.prefix == "users/"
    assert first.server_tag == "A"


def test_a_returned_range_is_given_again(store):
    first = next_range(store)
    store.get_request_executor().execute_command(HiLoReturnCommand("users", 5, first.high))
    assert next_range(store).low == 6


def test_a_range_that_is_not_the_last_cannot_be_returned(store):
    first = next_range(store)
    second = next_range(store)
    store.get_request_executor().execute_command(HiLoReturnCommand("users", 5, first.high))
    assert next_range(store).low == second.high + 1


def test_the_state_of_ranges_is_a_document(store):
    first = next_range(store, "cars")
    with store.open_session() as session:
        assert session.load("Raven/Hilo/cars", dict)["Max"] == first.high


def test_a_range_goes_on_where_an_overwritten_state_says(store):
    with store.open_session() as session:
        session.store({"Max": 128, "@metadata": {"@collection": "@hilo"}}, "Raven/Hilo/users")
        session.save_changes()
    assert next_range(store).low == 129


def test_an_id_by_the_server(store):
    with store.open_session() as session:
        user = User("Ann")
        session.store(user, "users/")
        session.save_changes()
        key = session.advanced.get_document_id(user)
    assert key.startswith("users/") and key.endswith("-A") and len(key) == len("users/") + 19 + 2
    with store.open_session() as session:
        assert session.load(key, User).name == "Ann"


def test_an_id_from_an_identity(store):
    keys = []
    for n in range(3):
        with store.open_session() as session:
            user = User(str(n))
            session.store(user, "users|")
            session.save_changes()
            keys.append(session.advanced.get_document_id(user))
    assert keys == ["users/1", "users/2", "users/3"]


def test_an_id_by_the_server_outside_sessions(store):
    command = PutDocumentCommand("users/", None, {"name": "Ann"})
    store.get_request_executor().execute_command(command)
    assert command.result.key.endswith("-A")


def test_identities(store):
    assert store.maintenance.send(NextIdentityForOperation("orders|")) == 1
    assert store.maintenance.send(NextIdentityForOperation("orders")) == 2
    assert store.maintenance.send(NextIdentityForOperation("ORDERS|")) == 3
    assert store.maintenance.send(NextIdentityForOperation("other|")) == 1


def test_seeding_an_identity(store):
    assert store.maintenance.send(SeedIdentityForOperation("orders|", 100)) == 100
    assert store.maintenance.send(NextIdentityForOperation("orders|")) == 101
    assert store.maintenance.send(SeedIdentityForOperation("orders|", 50)) == 101
    assert store.maintenance.send(SeedIdentityForOperation("orders|", 50, True)) == 50
    assert store.maintenance.send(NextIdentityForOperation("orders|")) == 51


def test_all_identities(store):
    assert store.maintenance.send(GetIdentitiesOperation()) == {}
    store.maintenance.send(NextIdentityForOperation("orders|"))
    store.maintenance.send(SeedIdentityForOperation("cars|", 7))
    assert store.maintenance.send(GetIdentitiesOperation()) == {"orders|": 1, "cars|": 7}


def test_identities_taken_at_once(store):
    taken, lock = [], threading.Lock()

    def work():
        for _ in range(10):
            value = store.maintenance.send(NextIdentityForOperation("orders|"))
            with lock:
                taken.append(value)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(1, 61))


HARD = {
    "spaces": "users/with some spaces",
    "question mark": "users/a?b=c",
    "ampersand": "users/a&id=users/2",
    "hash": "users/a#b",
    "plus": "users/a+b",
    "percent": "users/100%",
    "percent encoded": "users/%2F%41",
    "quote": "users/it's",
    "double quote": 'users/"quoted"',
    "backslash": "users\\back",
    "dots": "../../users",
    "slashes": "//users///1//x",
    "unicode": "users/é/中文/ü",
    "emoji": "users/🦜",
    "angle brackets": "<script>alert(1)</script>",
    "star": "users/*",
    "comma and semicolon": "users/a,b;c",
    "braces": "users/{a}[b]",
    "colon": "C:users:1",
    "five hundred bytes": "users/" + "x" * 494,
}


@pytest.mark.parametrize("key", HARD.values(), ids=HARD)
def test_hard_ids(store, key):
    with store.open_session() as session:
        session.store(User("Ann"), key)
        session.store(User("decoy"), "users/2")
        session.save_changes()
    with store.open_session() as session:
        user = session.load(key, User)
        assert (user.name, session.advanced.get_document_id(user)) == ("Ann", key)
        user.name = "Bea"
        session.save_changes()
    with store.open_session() as session:
        assert session.load([key, "users/2"], User)[key].name == "Bea"
        session.delete(key)
        session.save_changes()
    with store.open_session() as session:
        assert session.load(key, User) is None
        assert session.load("users/2", User).name == "decoy"


def test_an_id_that_is_too_long(store, document_count):
    with store.open_session() as session:
        session.store(User("Ann"), "users/" + "x" * 600)
        with pytest.raises(Exception, match="(?i)512|too long|too big|exceed"):
            session.save_changes()
    assert document_count() == 0


def test_ids_that_differ_only_in_case_are_the_same(store, document_count):
    for key, name in (("users/Ann", "first"), ("USERS/ANN", "second")):
        with store.open_session() as session:
            session.store(User(name), key)
            session.save_changes()
    assert document_count() == 1
    with store.open_session() as session:
        assert session.load("users/ann", User).name == "second"
