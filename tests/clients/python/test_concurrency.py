"""Optimistic concurrency, transactions that happen whole or not at all, and many at once."""

import threading

import pytest

from models import User


def conflict():
    """Expects the refusal of a stale write. The class of the exception differs between releases of the client."""
    return pytest.raises(Exception, match="(?i)concurrency|change vector")


def is_conflict(error):
    return "oncurrency" in repr(error) or "change vector" in str(error)


def save(store, key, user):
    with store.open_session() as session:
        session.store(user, key)
        session.save_changes()


def in_threads(count, work):
    """Runs `work(n)` in that many threads at once; the first error is raised here."""
    errors = []
    barrier = threading.Barrier(count)

    def run(number):
        try:
            barrier.wait()
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_the_last_writer_wins_without_it(store):
    save(store, "users/1", User("Ann"))
    with store.open_session() as one, store.open_session() as other:
        one.load("users/1", User).name = "one"
        other.load("users/1", User).name = "other"
        one.save_changes()
        other.save_changes()
    with store.open_session() as session:
        assert session.load("users/1", User).name == "other"


def test_the_second_writer_fails_with_it(store):
    save(store, "users/1", User("Ann"))
    with store.open_session() as one, store.open_session() as other:
        other.advanced.use_optimistic_concurrency = True
        one.load("users/1", User).name = "one"
        other.load("users/1", User).name = "other"
        one.save_changes()
        with conflict():
            other.save_changes()
    with store.open_session() as session:
        assert session.load("users/1", User).name == "one"


def test_by_convention(other_store):
    store = other_store(use_optimistic_concurrency=True)
    save(store, "users/1", User("Ann"))
    with store.open_session() as session:
        session.store(User("Bob"), "users/1")
        with conflict():
            session.save_changes()


def test_a_delete_of_a_changed_document_fails(store):
    save(store, "users/1", User("Ann"))
    with store.open_session() as session:
        session.advanced.use_optimistic_concurrency = True
        user = session.load("users/1", User)
        save(store, "users/1", User("Bea"))
        session.delete(user)
        with conflict():
            session.save_changes()
    with store.open_session() as session:
        assert session.load("users/1", User).name == "Bea"


def test_store_of_what_must_be_new(store):
    save(store, "users/1", User("Ann"))
    with store.open_session() as session:
        session.advanced.use_optimistic_concurrency = True
        session.store(User("never"), "users/1")
        with conflict():
            session.save_changes()
    with store.open_session() as session:
        session.advanced.use_optimistic_concurrency = True
        session.store(User("Bob"), "users/2")
        session.save_changes()
    with store.open_session() as session:
        assert session.load("users/1", User).name == "Ann"
        assert session.load("users/2", User).name == "Bob"


def test_store_with_a_given_change_vector(store):
    with store.open_session() as session:
        user = User("Ann")
        session.store(user, "users/1")
        session.save_changes()
        change_vector = session.advanced.get_change_vector_for(user)
    with store.open_session() as session:
        session.store(User("Bea"), "users/1", change_vector)
        session.save_changes()
    with store.open_session() as session:
        session.store(User("never"), "users/1", change_vector)
        with conflict():
            session.save_changes()


def test_a_failed_save_changes_nothing(store, document_count):
    save(store, "users/1", User("Ann"))
    with store.open_session() as session:
        session.advanced.use_optimistic_concurrency = True
        session.store(User("a"), "users/a")
        session.store(User("never"), "users/1")
        session.store(User("b"), "users/b")
        with conflict():
            session.save_changes()
    assert document_count() == 1


def test_a_failed_session_can_be_saved_after_a_repair(store):
    save(store, "users/1", User("Ann"))
    with store.open_session() as session:
        session.advanced.use_optimistic_concurrency = True
        user = session.load("users/1", User)
        save(store, "users/1", User("Bea"))
        user.name = "mine"
        with conflict():
            session.save_changes()
        session.advanced.refresh(user)
        user.name = "mine"
        session.save_changes()
    with store.open_session() as session:
        assert session.load("users/1", User).name == "mine"


def test_saving_the_same_session_again_and_again(store):
    with store.open_session() as session:
        session.advanced.use_optimistic_concurrency = True
        user = User("0")
        session.store(user, "users/1")
        for n in range(20):
            user.name = str(n)
            session.save_changes()
    with store.open_session() as session:
        assert session.load("users/1", User).name == "19"


def test_a_counter_kept_by_retries(store):
    save(store, "users/1", User("counter", 0))

    def work(_):
        done = 0
        while done < 10:
            with store.open_session() as session:
                session.advanced.use_optimistic_concurrency = True
                session.load("users/1", User).age += 1
                try:
                    session.save_changes()
                    done += 1
                except Exception as error:
                    if not is_conflict(error):
                        raise

    in_threads(8, work)
    with store.open_session() as session:
        assert session.load("users/1", User).age == 80


def test_only_one_creates(store):
    created = []

    def work(number):
        with store.open_session() as session:
            session.advanced.use_optimistic_concurrency = True
            session.store(User(str(number)), "users/1")
            try:
                session.save_changes()
                created.append(number)
            except Exception as error:
                if not is_conflict(error):
                    raise

    in_threads(12, work)
    assert len(created) == 1
    with store.open_session() as session:
        assert session.load("users/1", User).name == str(created[0])


def test_many_writers_of_their_own_documents(store, document_count):
    def work(number):
        for n in range(25):
            save(store, f"users/{number}-{n}", User(f"{number} {n}", n))

    in_threads(16, work)
    assert document_count() == 400
    with store.open_session() as session:
        assert session.load("users/15-24", User).name == "15 24"


def test_readers_see_batches_whole(store):
    """Two documents are always saved together; nobody ever sees one of them without the other."""
    keys = ["pairs/1", "pairs/2"]

    def write(n):
        with store.open_session() as session:
            for key in keys:
                session.store(User("pair", n), key)
            session.save_changes()

    write(0)
    done = threading.Event()
    torn = []

    def read():
        while not done.is_set():
            with store.open_session() as session:
                one, other = session.load(keys, User).values()
                if one.age != other.age:
                    torn.append((one.age, other.age))

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for n in range(1, 100):
        write(n)
    done.set()
    for reader in readers:
        reader.join()
    assert torn == []


def test_one_store_many_threads(store):
    save(store, "users/1", User("Ann"))

    def work(_):
        for _ in range(30):
            with store.open_session() as session:
                assert session.load("users/1", User).name == "Ann"

    in_threads(16, work)
