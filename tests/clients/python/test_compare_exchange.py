"""Compare-exchange values, as operations of the store."""

import threading

import pytest
from ravendb.documents.operations.compare_exchange.operations import (
    DeleteCompareExchangeValueOperation,
    GetCompareExchangeValueOperation,
    GetCompareExchangeValuesOperation,
    PutCompareExchangeValueOperation,
)

from models import User


def put(store, key, value, index=0):
    return store.operations.send(PutCompareExchangeValueOperation(key, value, index))


def get(store, key, kind=str):
    return store.operations.send(GetCompareExchangeValueOperation(key, kind))


def test_create_and_get(store):
    result = put(store, "locks/1", "Ann")
    assert result.successful and result.value == "Ann" and result.index > 0
    found = get(store, "locks/1")
    assert (found.key, found.value, found.index) == ("locks/1", "Ann", result.index)


def test_a_missing_one(store):
    assert get(store, "none") is None


def test_creating_what_exists(store):
    first = put(store, "locks/1", "Ann")
    second = put(store, "locks/1", "Bob")
    assert not second.successful
    assert (second.value, second.index) == ("Ann", first.index)


def test_change_with_the_right_index(store):
    first = put(store, "locks/1", "Ann")
    second = put(store, "locks/1", "Bob", first.index)
    assert second.successful and second.index > first.index
    assert get(store, "locks/1").value == "Bob"


def test_change_with_a_stale_index(store):
    first = put(store, "locks/1", "Ann")
    put(store, "locks/1", "Bob", first.index)
    third = put(store, "locks/1", "Cid", first.index)
    assert not third.successful
    assert get(store, "locks/1").value == "Bob"


def test_delete(store):
    first = put(store, "locks/1", "Ann")
    assert store.operations.send(DeleteCompareExchangeValueOperation(str, "locks/1", first.index)).successful
    assert get(store, "locks/1") is None


def test_delete_with_a_stale_index(store):
    first = put(store, "locks/1", "Ann")
    put(store, "locks/1", "Bob", first.index)
    assert not store.operations.send(DeleteCompareExchangeValueOperation(str, "locks/1", first.index)).successful
    assert get(store, "locks/1").value == "Bob"


def test_keys_do_not_care_about_case(store):
    put(store, "Locks/One", "Ann")
    assert get(store, "LOCKS/ONE").value == "Ann"
    assert not put(store, "locks/one", "Bob").successful


@pytest.mark.parametrize("value", [1, 0, -5, 2**53, 1.5, "", "text", True], ids=repr)
def test_scalars(store, value):
    put(store, "values/1", value)
    found = get(store, "values/1", type(value)).value
    assert found == value and type(found) is type(value)


def test_an_object(store):
    put(store, "users/1", User("Ann", 30))
    found = get(store, "users/1", User)
    assert (found.value.name, found.value.age) == ("Ann", 30)


@pytest.mark.parametrize("key", ["with space", "a/b?c=d&e#f", "é/中/🦜", "%41%2F", "it's", "x" * 500], ids=repr)
def test_hard_keys(store, key):
    put(store, key, "here")
    assert get(store, key).value == "here"


def test_a_key_that_is_too_long(store):
    with pytest.raises(Exception, match="(?i)CompareExchangeKeyTooBig|512"):
        put(store, "k" * 600, "never")


def test_many_by_keys(store):
    for n in range(5):
        put(store, f"k/{n}", n)
    found = store.operations.send(GetCompareExchangeValuesOperation(["k/1", "k/3"], int))
    assert {key: value.value for key, value in found.items()} == {"k/1": 1, "k/3": 3}


def test_many_by_prefix(store):
    for key in ("a/1", "b/1", "b/2", "b/3", "c/1"):
        put(store, key, key)
    found = store.operations.send(GetCompareExchangeValuesOperation.create_for_start_with("b/", object_type=str))
    assert {key: value.value for key, value in found.items()} == {"b/1": "b/1", "b/2": "b/2", "b/3": "b/3"}


def test_indexes_only_grow(store):
    indexes = [put(store, f"k/{n}", n).index for n in range(5)]
    assert indexes == sorted(set(indexes))


def test_only_one_takes_the_lock(store):
    winners, lock = [], threading.Lock()

    def work(number):
        if put(store, "locks/1", f"worker {number}").successful:
            with lock:
                winners.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(winners) == 1
    assert get(store, "locks/1").value == f"worker {winners[0]}"


def test_a_counter_kept_by_retries(store):
    put(store, "counters/1", 0)

    def work():
        done = 0
        while done < 10:
            current = get(store, "counters/1", int)
            if put(store, "counters/1", current.value + 1, current.index).successful:
                done += 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert get(store, "counters/1", int).value == 40
