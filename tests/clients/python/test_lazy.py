"""Lazy operations: many questions in one request."""

from models import Company, User


def fill(store):
    with store.open_session() as session:
        session.store(Company("Acme"), "companies/1")
        for n in range(1, 6):
            session.store(User(f"user {n}", n, "companies/1"), f"users/{n}")
        session.save_changes()


def test_nothing_is_asked_until_a_value_is(store):
    fill(store)
    with store.open_session() as session:
        lazy = session.advanced.lazily.load("users/1", User)
        assert session.advanced.number_of_requests == 0
        assert lazy.value.name == "user 1"
        assert session.advanced.number_of_requests == 1


def test_several_in_one_request(store):
    fill(store)
    with store.open_session() as session:
        one = session.advanced.lazily.load("users/1", User)
        two = session.advanced.lazily.load("users/2", User)
        company = session.advanced.lazily.load("companies/1", Company)
        session.advanced.eagerly.execute_all_pending_lazy_operations()
        assert session.advanced.number_of_requests == 1
        assert (one.value.name, two.value.name, company.value.name) == ("user 1", "user 2", "Acme")
        assert session.advanced.number_of_requests == 1


def test_many_ids(store):
    fill(store)
    with store.open_session() as session:
        users = session.advanced.lazily.load(["users/1", "users/none", "users/3"], User).value
        assert users["users/1"].name == "user 1"
        assert users["users/3"].name == "user 3"
        assert users["users/none"] is None


def test_a_missing_one(store):
    fill(store)
    with store.open_session() as session:
        assert session.advanced.lazily.load("users/none", User).value is None


def test_by_prefix(store):
    fill(store)
    with store.open_session() as session:
        users = session.advanced.lazily.load_starting_with("users/", User).value
        assert sorted(users) == [f"users/{n}" for n in range(1, 6)]
        assert session.advanced.number_of_requests == 1


def test_by_prefix_matches_and_pages(store):
    fill(store)
    with store.open_session() as session:
        users = session.advanced.lazily.load_starting_with("users/", User, matches="1|2|3", start=1, page_size=1).value
        assert list(users) == ["users/2"]


def test_with_an_include(store):
    fill(store)
    with store.open_session() as session:
        lazy = session.advanced.lazily.include("company").load("users/1", User)
        user = lazy.value["users/1"] if isinstance(lazy.value, dict) else lazy.value
        assert session.load(user.company, Company).name == "Acme"
        assert session.advanced.number_of_requests == 1


def test_what_was_loaded_is_tracked(store):
    fill(store)
    with store.open_session() as session:
        session.advanced.lazily.load("users/1", User).value.name = "changed"
        session.save_changes()
    with store.open_session() as session:
        assert session.load("users/1", User).name == "changed"


def test_conditional_load(store):
    fill(store)
    with store.open_session() as session:
        change_vector = session.advanced.get_change_vector_for(session.load("users/1", User))
    with store.open_session() as session:
        session.load("users/1", User).name = "changed"
        session.save_changes()
    with store.open_session() as session:
        result = session.advanced.lazily.conditional_load("users/1", change_vector, User).value
        assert result.entity.name == "changed"
        assert result.change_vector != change_vector


def test_a_callback(store):
    fill(store)
    seen = []
    with store.open_session() as session:
        session.advanced.lazily.load("users/1", User, lambda user: seen.append(user.name))
        session.advanced.eagerly.execute_all_pending_lazy_operations()
    assert seen == ["user 1"]


def test_values_of_compare_exchange(store):
    from ravendb.documents.session.misc import SessionOptions, TransactionMode

    options = SessionOptions(transaction_mode=TransactionMode.CLUSTER_WIDE, disable_atomic_document_writes_in_cluster_wide_transaction=True)
    with store.open_session(session_options=options) as session:
        session.advanced.cluster_transaction.create_compare_exchange_value("k/1", "one")
        session.advanced.cluster_transaction.create_compare_exchange_value("k/2", "two")
        session.save_changes()
    with store.open_session(session_options=options) as session:
        one = session.advanced.cluster_transaction.lazily.get_compare_exchange_value("k/1", str)
        both = session.advanced.cluster_transaction.lazily.get_compare_exchange_values(["k/1", "k/2"], str)
        assert one.value.value == "one"
        assert both.value["k/2"].value == "two"
        assert session.advanced.number_of_requests == 1
