"""Loading many documents, related ones, and those whose ids begin alike."""

import io
import json

import pytest

from models import Company, Line, Order, User


@pytest.fixture
def shop(store):
    """Two companies, three users, two orders, and users whose ids tell their number."""
    with store.open_session() as session:
        session.store(Company("Acme"), "companies/1")
        session.store(Company("Zeta"), "companies/2")
        for n in range(1, 13):
            session.store(User(f"user {n}", n, f"companies/{1 + n % 2}"), f"users/{n}")
        session.store(User("lost", 0, "companies/none"), "people/1")
        session.store(Order("companies/1", [Line("companies/1"), Line("companies/2")], ["companies/1", "companies/2"]), "orders/1")
        session.save_changes()
    return store


def found(users):
    return [user.Id for user in users]


def test_load_many(shop):
    with shop.open_session() as session:
        users = session.load(["users/3", "users/1", "users/2"], User)
        assert {key: user.name for key, user in users.items()} == {"users/1": "user 1", "users/2": "user 2", "users/3": "user 3"}
        assert session.advanced.number_of_requests == 1


def test_load_many_some_missing(shop):
    with shop.open_session() as session:
        users = session.load(["users/1", "users/none", "users/2"], User)
        assert users["users/none"] is None
        assert users["users/2"].name == "user 2"


def test_load_many_all_missing(shop):
    with shop.open_session() as session:
        users = session.load(["users/a", "users/b"], User)
        assert users == {"users/a": None, "users/b": None}


def test_load_the_same_twice(shop):
    with shop.open_session() as session:
        users = session.load(["users/1", "users/1", "users/2"], User)
        assert set(users) == {"users/1", "users/2"}


def test_load_in_another_casing(shop):
    with shop.open_session() as session:
        assert session.load("USERS/1", User).Id == "users/1"


def test_load_of_documents_that_are_partly_there(shop):
    with shop.open_session() as session:
        session.load("users/1", User)
        session.load(["users/1", "users/2"], User)
        assert session.advanced.number_of_requests == 2
        session.load(["users/1", "users/2"], User)
        assert session.advanced.number_of_requests == 2


def test_load_so_many_that_the_ids_go_into_the_body(store):
    keys = [f"users/with-a-rather-long-id-{n}" for n in range(200)]
    with store.open_session() as session:
        for n, key in enumerate(keys):
            session.store(User(str(n)), key)
        session.save_changes()
    with store.open_session() as session:
        users = session.load(keys, User)
        assert [users[key].name for key in keys] == [str(n) for n in range(200)]
        assert session.advanced.number_of_requests == 1


def test_loaded_missing_documents_are_remembered(shop):
    with shop.open_session() as session:
        session.load("users/none", User)
        session.load("users/none", User)
        assert session.advanced.number_of_requests == 1


def test_include_of_one(shop):
    with shop.open_session() as session:
        user = session.include("company").load("users/1", User)["users/1"]
        assert session.load(user.company, Company).name == "Zeta"
        assert session.advanced.number_of_requests == 1


def test_include_by_a_builder(shop):
    with shop.open_session() as session:
        user = session.load("users/2", User, lambda includes: includes.include_documents("company"))
        assert session.load(user.company, Company).name == "Acme"
        assert session.advanced.number_of_requests == 1


def test_include_of_several_documents(shop):
    with shop.open_session() as session:
        users = session.include("company").load(["users/1", "users/2"], User)
        assert {session.load(user.company, Company).name for user in users.values()} == {"Acme", "Zeta"}
        assert session.advanced.number_of_requests == 1


def test_include_of_a_missing_document(shop):
    with shop.open_session() as session:
        user = session.include("company").load("people/1", User)["people/1"]
        assert session.load(user.company, Company) is None


def test_include_from_a_list(shop):
    with shop.open_session() as session:
        order = session.include("products").load("orders/1", Order)["orders/1"]
        assert [session.load(product, Company).name for product in order.products] == ["Acme", "Zeta"]
        assert session.advanced.number_of_requests == 1


def test_include_from_objects_in_a_list(shop):
    with shop.open_session() as session:
        session.include("lines[].product").load("orders/1", Order)
        assert session.load("companies/2", Company).name == "Zeta"
        assert session.advanced.number_of_requests == 1


def test_two_includes(shop):
    with shop.open_session() as session:
        session.include("company").include("lines[].product").load("orders/1", Order)
        assert session.load("companies/1", Company) and session.load("companies/2", Company)
        assert session.advanced.number_of_requests == 1


def test_by_prefix(shop):
    with shop.open_session() as session:
        users = session.advanced.load_starting_with("users/", User, page_size=100)
        assert len(users) == 12
        assert found(users) == sorted(found(users))


def test_by_prefix_does_not_care_about_case(shop):
    with shop.open_session() as session:
        assert found(session.advanced.load_starting_with("USERS/12", User)) == ["users/12"]


def test_by_prefix_of_nothing(shop):
    with shop.open_session() as session:
        assert session.advanced.load_starting_with("nothing/", User) == []


def test_by_prefix_pages(shop):
    with shop.open_session() as session:
        everything = found(session.advanced.load_starting_with("users/", User, page_size=100))
        paged = []
        for start in range(0, 15, 5):
            paged += found(session.advanced.load_starting_with("users/", User, start=start, page_size=5))
        assert paged == everything


@pytest.mark.parametrize(
    ("matches", "expected"),
    [
        ("1", ["users/1"]),
        ("1*", ["users/1", "users/10", "users/11", "users/12"]),
        ("1?", ["users/10", "users/11", "users/12"]),
        ("3|5|none", ["users/3", "users/5"]),
        ("*2", ["users/12", "users/2"]),
        ("nothing", []),
    ],
)
def test_by_prefix_matches(shop, matches, expected):
    with shop.open_session() as session:
        assert found(session.advanced.load_starting_with("users/", User, matches=matches)) == expected


@pytest.mark.parametrize(
    ("exclude", "expected"),
    [
        ("1*", ["users/2", "users/3", "users/4", "users/5", "users/6", "users/7", "users/8", "users/9"]),
        ("?", ["users/10", "users/11", "users/12"]),
        ("1*|2|3|4|5|6|7", ["users/8", "users/9"]),
        ("*", []),
    ],
)
def test_by_prefix_exclude(shop, exclude, expected):
    with shop.open_session() as session:
        assert found(session.advanced.load_starting_with("users/", User, exclude=exclude)) == expected


def test_by_prefix_matches_and_exclude(shop):
    with shop.open_session() as session:
        users = session.advanced.load_starting_with("users/", User, matches="1*", exclude="11")
        assert found(users) == ["users/1", "users/10", "users/12"]


def test_by_prefix_after_an_id(shop):
    with shop.open_session() as session:
        assert found(session.advanced.load_starting_with("users/", User, start_after="users/7")) == ["users/8", "users/9"]


def test_by_prefix_page_of_matches(shop):
    with shop.open_session() as session:
        users = session.advanced.load_starting_with("users/", User, matches="1*", start=1, page_size=2)
        assert found(users) == ["users/10", "users/11"]


def test_by_prefix_into_a_stream(shop):
    output = io.BytesIO()
    with shop.open_session() as session:
        session.advanced.load_starting_with_into_stream("users/1", output)
    results = json.loads(output.getvalue())["Results"]
    assert [result["name"] for result in results] == ["user 1", "user 10", "user 11", "user 12"]


def test_by_ids_into_a_stream(shop):
    output = io.BytesIO()
    with shop.open_session() as session:
        session.advanced.load_into_stream(["users/1", "companies/1"], output)
    assert {result["name"] for result in json.loads(output.getvalue())["Results"]} == {"user 1", "Acme"}


def test_documents_found_by_prefix_are_tracked(shop):
    with shop.open_session() as session:
        user = session.advanced.load_starting_with("users/3", User)[0]
        user.name = "changed"
        session.save_changes()
    with shop.open_session() as session:
        assert session.load("users/3", User).name == "changed"
