"""Patches: by script, through sessions, and what goes wrong with them."""

import pytest
from ravendb import PatchRequest
from ravendb.documents.operations.patch import PatchOperation

from models import Note, User


@pytest.fixture(autouse=True)
def ann(store):
    with store.open_session() as session:
        session.store(User("Ann", 30, tags=["a", "b", "c"]), "users/1")
        session.save_changes()


def load(store, key="users/1", type_=User):
    with store.open_session() as session:
        return session.load(key, type_)


def patch(store, script, values=None, key="users/1", **more):
    request = PatchRequest(script)
    request.values = values or {}
    return store.operations.send(PatchOperation(key, None, request, **more))


def test_a_script(store):
    patch(store, "this.age = 31; this.name += '!'")
    user = load(store)
    assert (user.name, user.age, user.tags) == ("Ann!", 31, ["a", "b", "c"])


def test_arguments(store):
    patch(store, "this.age += args.n; this.company = args.company", {"n": 12, "company": "companies/1"})
    user = load(store)
    assert (user.age, user.company) == (42, "companies/1")


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("this.tags.push('d')", ["a", "b", "c", "d"]),
        ("this.tags.splice(1, 1)", ["a", "c"]),
        ("this.tags = this.tags.map(function (x) { return x + x; })", ["aa", "bb", "cc"]),
        ("this.tags = this.tags.filter(x => x !== 'b')", ["a", "c"]),
        ("for (var i = 0; i < 3; i++) this.tags[i] = i", [0, 1, 2]),
        ("this.tags = this.nope.map(x => x)", []),
        ("delete this.tags", None),
    ],
    ids=["push", "splice", "map", "filter", "loop", "nothing", "delete"],
)
def test_lists(store, script, expected):
    patch(store, script)
    assert load(store).tags == expected


def test_numbers_that_no_script_can_hold_stay(store, raw):
    body = '{"big":9007199254740993,"price":1.10,"n":1,"@metadata":{"@collection":"Notes"}}'
    assert raw("PUT", "/docs?id=notes/1", data=body).status_code == 201
    patch(store, "this.n = 2", key="notes/1")
    assert raw("GET", "/docs?id=notes/1").text.startswith('{"Results":[{"big":9007199254740993,"price":1.10,"n":2,')


def test_a_missing_document(store):
    patch(store, "this.age = 31", key="users/none")
    assert load(store, "users/none") is None


def test_patch_if_missing(store):
    missing = PatchRequest("this.name = 'New'; this.age = 1; this['@metadata'] = { '@collection': 'Users' }")
    patch(store, "this.age++", key="users/2", patch_if_missing=missing)
    patch(store, "this.age++", key="users/2", patch_if_missing=missing)
    user = load(store, "users/2")
    assert (user.name, user.age) == ("New", 2)


def test_other_documents(store):
    with store.open_session() as session:
        session.store(Note({"rate": 7}), "notes/1")
        session.save_changes()
    patch(store, "this.age = load('notes/1').content.rate; put('notes/2', {content: id(this), '@metadata': {'@collection': 'Notes'}}); del('notes/1')")
    assert load(store).age == 7
    assert load(store, "notes/2", Note).content == "users/1"
    assert load(store, "notes/1", Note) is None


@pytest.mark.parametrize("script", ["throw 5", "this.name = 'x'; throw new Error('no')", "this.age = ;", "while (true) {}"], ids=["throw", "error", "syntax", "endless"])
def test_a_script_that_fails_changes_nothing(store, script):
    with pytest.raises(Exception, match="JavaScript|statements|Script|Failed to parse"):
        patch(store, script)
    assert load(store).name == "Ann"


def test_sets_in_a_session(store):
    with store.open_session() as session:
        session.advanced.patch("users/1", "age", 31)
        session.advanced.patch("users/1", "name", "Anna")
        session.save_changes()
    user = load(store)
    assert (user.name, user.age) == ("Anna", 31)


def test_increments_in_a_session(store):
    with store.open_session() as session:
        session.advanced.increment("users/1", "age", 5)
        session.save_changes()
    assert load(store).age == 35


def test_lists_in_a_session(store):
    with store.open_session() as session:
        session.advanced.patch_array("users/1", "tags", lambda tags: tags.add("d"))
        session.save_changes()
    assert load(store).tags == ["a", "b", "c", "d"]


def test_a_batch_sees_its_own_patches(store):
    from ravendb.documents.commands.batches import PatchCommandData

    with store.open_session() as session:
        session.store(User("Bob", 1), "users/2")
        session.save_changes()
    with store.open_session() as session:
        session.advanced.defer(PatchCommandData("users/2", None, PatchRequest("this.age += 10"), None))
        session.advanced.defer(PatchCommandData("users/1", None, PatchRequest("this.age = load('users/2').age"), None))
        session.save_changes()
    assert (load(store).age, load(store, "users/2").age) == (11, 11)


def test_a_batch_is_all_or_nothing(store, document_count):
    from ravendb.documents.commands.batches import PatchCommandData

    with store.open_session() as session:
        session.store(User("Bob", 1), "users/2")
        session.advanced.defer(PatchCommandData("users/1", None, PatchRequest("this.age = 0; throw 'no'"), None))
        with pytest.raises(Exception, match="no"):
            session.save_changes()
    assert (load(store).age, document_count()) == (30, 1)


def test_a_stale_change_vector(store):
    from ravendb.documents.commands.batches import PatchCommandData

    with store.open_session() as session:
        session.advanced.defer(PatchCommandData("users/1", "A:999-AAAAAAAAAAAAAAAAAAAAAA", PatchRequest("this.age = 0"), None))
        with pytest.raises(Exception):
            session.save_changes()
    assert load(store).age == 30


def test_metadata(store):
    patch(store, "getMetadata(this)['x'] = 'y'; this.company = getMetadata(this)['@id']")
    with store.open_session() as session:
        user = session.load("users/1", User)
        assert user.company == "users/1"
        assert session.advanced.get_metadata_for(user)["x"] == "y"


@pytest.mark.later
def test_counters_in_a_script_are_refused_by_name(raw):
    answer = raw("PATCH", "/docs?id=users/1", data='{"Patch":{"Script":"incrementCounter(this, \'likes\')"}}')
    assert answer.status_code == 501
    assert "Counters" in answer.json()["Message"]


