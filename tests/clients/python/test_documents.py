"""Storing, loading, changing and deleting documents in sessions; metadata; what comes back is what went in."""

import datetime

import pytest
from ravendb.documents.commands.crud import DeleteDocumentCommand, HeadDocumentCommand, PutDocumentCommand

from models import Company, Line, Note, Order, User


def save(store, key, entity):
    with store.open_session() as session:
        session.store(entity, key)
        session.save_changes()


def content(store, value):
    """What becomes of a value on its way to the server and back."""
    save(store, "notes/1", Note(value))
    with store.open_session() as session:
        return session.load("notes/1", Note).content


def test_store_and_load(store):
    save(store, "users/1", User("Ann", 30))
    with store.open_session() as session:
        user = session.load("users/1", User)
        assert (user.name, user.age) == ("Ann", 30)


def test_a_missing_document_is_none(store):
    with store.open_session() as session:
        assert session.load("users/none", User) is None


def test_a_loaded_document_is_loaded_once(store):
    save(store, "users/1", User("Ann"))
    with store.open_session() as session:
        first = session.load("users/1", User)
        assert session.load("users/1", User) is first
        assert session.advanced.number_of_requests == 1


def test_nothing_is_sent_before_save_changes(store, document_count):
    with store.open_session() as session:
        session.store(User("Ann"), "users/1")
    assert document_count() == 0


def test_change(store):
    save(store, "users/1", User("Ann", 30))
    with store.open_session() as session:
        session.load("users/1", User).age = 31
        session.save_changes()
    with store.open_session() as session:
        assert session.load("users/1", User).age == 31


def test_saving_without_changes_sends_nothing(store):
    save(store, "users/1", User("Ann"))
    with store.open_session() as session:
        session.load("users/1", User)
        before = session.advanced.number_of_requests
        session.save_changes()
        assert session.advanced.number_of_requests == before


def test_delete_by_entity(store):
    save(store, "users/1", User("Ann"))
    with store.open_session() as session:
        session.delete(session.load("users/1", User))
        session.save_changes()
    with store.open_session() as session:
        assert session.load("users/1", User) is None


def test_delete_by_id(store):
    save(store, "users/1", User("Ann"))
    with store.open_session() as session:
        session.delete("users/1")
        session.save_changes()
    with store.open_session() as session:
        assert session.load("users/1", User) is None


def test_delete_of_a_missing_document_is_no_error(store):
    with store.open_session() as session:
        session.delete("users/none")
        session.save_changes()


def test_delete_and_store_again(store):
    save(store, "users/1", User("Ann"))
    with store.open_session() as session:
        session.delete("users/1")
        session.save_changes()
    save(store, "users/1", User("Bob"))
    with store.open_session() as session:
        assert session.load("users/1", User).name == "Bob"


def test_several_changes_in_one_save(store):
    save(store, "users/1", User("Ann"))
    save(store, "users/2", User("Bob"))
    with store.open_session() as session:
        session.load("users/1", User).name = "Anna"
        session.delete("users/2")
        session.store(User("Cid"), "users/3")
        before = session.advanced.number_of_requests
        session.save_changes()
        assert session.advanced.number_of_requests == before + 1
    with store.open_session() as session:
        found = session.load(["users/1", "users/2", "users/3"], User)
        assert found["users/1"].name == "Anna"
        assert found["users/2"] is None
        assert found["users/3"].name == "Cid"


def test_nested_objects_and_lists(store):
    save(store, "orders/1", Order("companies/1", [Line("p/1", 2), Line("p/2", 3)], ["p/1", "p/2"]))
    with store.open_session() as session:
        order = session.load("orders/1", Order)
        lines = [line if isinstance(line, dict) else vars(line) for line in order.lines]
        assert [(line["product"], line["count"]) for line in lines] == [("p/1", 2), ("p/2", 3)]
        assert order.products == ["p/1", "p/2"]


@pytest.mark.parametrize(
    "value",
    [
        None, True, False, "", "x", 0, -1, 2**53, 2**63 - 1, -(2**63), 1.5, -0.25, 1e300, 1e-300, [], {}, [[], [[]]],
        {"a": {"b": {"c": [1, "2", None]}}}, ["mixed", 1, None, {"k": "v"}, [True]], {"": "empty name"}, {"a.b": 1, "$x": 2, "@y": 3},
    ],
    ids=repr,
)
def test_a_value_comes_back(store, value):
    assert content(store, value) == value


@pytest.mark.parametrize(
    "text",
    ["é ü ß", "中文字符", "🦜🐦‍⬛", "\"quoted\" \\ back", "line\nbreak\ttab\r\n", "\u0000\u0001\u001f", "\u2028\u2029", "مرحبا", "e\u0301", "x" * 100_000],
    ids=["latin", "chinese", "emoji", "quotes", "white space", "control", "separators", "arabic", "combining", "long"],
)
def test_a_text_comes_back(store, text):
    assert content(store, text) == text


def test_properties_keep_their_order(store):
    names = ["z", "a", "m", "B", "10", "2"]
    save(store, "notes/1", Note({name: index for index, name in enumerate(names)}))
    with store.open_session() as session:
        assert list(session.load("notes/1", dict)["content"]) == names


def test_a_deep_document(store):
    value = "bottom"
    for _ in range(50):
        value = {"inner": [value]}
    assert content(store, value) == value


def test_a_wide_document(store):
    value = {f"property{n}": n for n in range(5_000)}
    assert content(store, value) == value


def test_a_big_document(store):
    value = [f"{n} " + "lorem ipsum " * 8 for n in range(50_000)]
    assert content(store, value) == value


def test_dictionaries_are_documents_too(store):
    with store.open_session() as session:
        session.store({"name": "Ann", "@metadata": {"@collection": "People"}}, "people/1")
        session.save_changes()
    with store.open_session() as session:
        assert session.load("people/1", dict)["name"] == "Ann"


def test_the_collection_is_named_after_the_class(store):
    save(store, "users/1", User("Ann"))
    save(store, "companies/1", Company("Acme"))
    with store.open_session() as session:
        metadata = session.advanced.get_metadata_for(session.load("users/1", User))
        assert metadata["@collection"] == "Users"
        metadata = session.advanced.get_metadata_for(session.load("companies/1", Company))
        assert metadata["@collection"] == "Companies"


def test_the_class_is_in_the_metadata(store):
    save(store, "users/1", User("Ann"))
    with store.open_session() as session:
        user = session.load("users/1")
        assert isinstance(user, User)
        assert session.advanced.get_metadata_for(user)["Raven-Python-Type"] == "models.User"


def test_metadata_of_the_application(store):
    with store.open_session() as session:
        user = User("Ann")
        session.store(user, "users/1")
        session.advanced.get_metadata_for(user)["Department"] = "Birds"
        session.save_changes()
    with store.open_session() as session:
        user = session.load("users/1", User)
        assert session.advanced.get_metadata_for(user)["Department"] == "Birds"
        session.advanced.get_metadata_for(user)["Department"] = "Fish"
        session.save_changes()
    with store.open_session() as session:
        assert session.advanced.get_metadata_for(session.load("users/1", User))["Department"] == "Fish"


def test_the_id_is_set_on_the_entity(store):
    save(store, "users/1", User("Ann"))
    with store.open_session() as session:
        user = session.load("users/1", User)
        assert user.Id == "users/1"
        assert session.advanced.get_document_id(user) == "users/1"


def test_change_vectors_grow(store):
    with store.open_session() as session:
        user = User("Ann")
        session.store(user, "users/1")
        session.save_changes()
        first = session.advanced.get_change_vector_for(user)
        user.name = "Bea"
        session.save_changes()
        second = session.advanced.get_change_vector_for(user)
    assert first.startswith("A:") and second.startswith("A:") and first != second
    with store.open_session() as session:
        assert session.advanced.get_change_vector_for(session.load("users/1", User)) == second


def test_last_modified(store):
    before = datetime.datetime.utcnow() - datetime.timedelta(minutes=5)
    save(store, "users/1", User("Ann"))
    with store.open_session() as session:
        modified = session.advanced.get_last_modified_for(session.load("users/1", User))
    assert before < modified.replace(tzinfo=None) < before + datetime.timedelta(minutes=15)


def test_refresh(store):
    save(store, "users/1", User("Ann"))
    with store.open_session() as session:
        user = session.load("users/1", User)
        save(store, "users/1", User("Bea"))
        session.advanced.refresh(user)
        assert user.name == "Bea"


def test_exists(store):
    save(store, "users/1", User("Ann"))
    with store.open_session() as session:
        assert session.advanced.exists("users/1") is True
        assert session.advanced.exists("users/2") is False


def test_evict(store):
    save(store, "users/1", User("Ann"))
    with store.open_session() as session:
        user = session.load("users/1", User)
        session.advanced.evict(user)
        assert session.load("users/1", User) is not user
        assert session.advanced.number_of_requests == 2


def test_clear_forgets_everything(store, document_count):
    with store.open_session() as session:
        session.store(User("Ann"), "users/1")
        session.advanced.clear()
        session.save_changes()
    assert document_count() == 0


def test_what_changed(store):
    save(store, "users/1", User("Ann", 30))
    with store.open_session() as session:
        user = session.load("users/1", User)
        assert not session.advanced.has_changes()
        user.age = 31
        assert session.advanced.has_changed(user)
        changes = session.advanced.what_changed()
        assert list(changes) == ["users/1"]
        assert len(changes["users/1"]) == 1


def test_ignored_changes_are_not_saved(store):
    save(store, "users/1", User("Ann"))
    with store.open_session() as session:
        user = session.load("users/1", User)
        session.advanced.ignore_changes_for(user)
        user.name = "never"
        session.save_changes()
    with store.open_session() as session:
        assert session.load("users/1", User).name == "Ann"


def test_removing_a_property(store):
    save(store, "notes/1", Note({"a": 1, "b": 2}))
    with store.open_session() as session:
        del session.load("notes/1", Note).content["b"]
        session.save_changes()
    with store.open_session() as session:
        assert session.load("notes/1", Note).content == {"a": 1}


def test_overwriting_with_another_collection_is_refused(store):
    save(store, "things/1", User("Ann"))
    with pytest.raises(Exception, match="(?i)collection|changing"):
        save(store, "things/1", Company("Acme"))
    with store.open_session() as session:
        assert session.load("things/1", User).name == "Ann"


def test_commands_outside_sessions(store):
    executor = store.get_request_executor()
    put = PutDocumentCommand("users/1", None, {"name": "Ann", "@metadata": {"@collection": "Users"}})
    executor.execute_command(put)
    assert put.result.key == "users/1"
    head = HeadDocumentCommand("users/1", None)
    executor.execute_command(head)
    assert put.result.change_vector in head.result
    with store.open_session() as session:
        assert session.load("users/1", User).name == "Ann"
    executor.execute_command(DeleteDocumentCommand("users/1"))
    gone = HeadDocumentCommand("users/1", None)
    executor.execute_command(gone)
    assert gone.result is None


def test_a_put_without_a_collection(store):
    store.get_request_executor().execute_command(PutDocumentCommand("misc/1", None, {"a": 1}))
    with store.open_session() as session:
        document = session.load("misc/1", dict)
        assert document["a"] == 1


def test_a_put_with_a_stale_change_vector(store):
    executor = store.get_request_executor()
    first = PutDocumentCommand("users/1", None, {"name": "Ann"})
    executor.execute_command(first)
    executor.execute_command(PutDocumentCommand("users/1", None, {"name": "Bea"}))
    with pytest.raises(Exception, match="change vector"):
        executor.execute_command(PutDocumentCommand("users/1", first.result.change_vector, {"name": "never"}))
    with pytest.raises(Exception, match="change vector"):
        executor.execute_command(DeleteDocumentCommand("users/1", first.result.change_vector))
    with store.open_session() as session:
        assert session.load("users/1", dict)["name"] == "Bea"


def test_a_thousand_documents_in_one_save(store, document_count):
    with store.open_session() as session:
        for n in range(1_000):
            session.store(User(f"user {n}", n), f"users/{n}")
        session.save_changes()
    assert document_count() == 1_000
    with store.open_session() as session:
        assert session.load("users/777", User).age == 777


def test_events_around_a_save(store):
    seen = []
    with store.open_session() as session:
        session.add_before_store(lambda event: seen.append(("before", event.document_id)))
        session.add_after_save_changes(lambda event: seen.append(("after", event.document_id)))
        session.store(User("Ann"), "users/1")
        session.save_changes()
    assert seen == [("before", "users/1"), ("after", "users/1")]


def test_too_many_requests_in_one_session(store):
    with store.open_session() as session:
        with pytest.raises(Exception, match="(?i)maximum number of requests"):
            for n in range(40):
                session.load(f"users/{n}", User)
