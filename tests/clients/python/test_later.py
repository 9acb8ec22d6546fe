"""Features of later releases: each is refused in so many words, and changes nothing. None is ignored."""

import pytest

from models import User

pytestmark = pytest.mark.later
REFUSAL = "(?i)not ?supported"


@pytest.fixture(autouse=True)
def ann(store):
    """One document, which must be there unchanged after every refusal."""
    with store.open_session() as session:
        session.store(User("Ann", 30), "users/1")
        session.save_changes()
    yield
    with store.open_session() as session:
        user = session.load("users/1", User)
        assert (user.name, user.age) == ("Ann", 30)
        metadata = session.advanced.get_metadata_for(user)
        assert not {"@counters", "@attachments", "@timeseries"} & set(metadata.keys())


def test_an_attachment(store, document_count):
    with store.open_session() as session:
        session.store(User("Bob"), "users/2")
        session.advanced.attachments.store("users/1", "a.txt", b"text", "text/plain")
        with pytest.raises(Exception, match=REFUSAL):
            session.save_changes()
    assert document_count() == 1


def test_a_counter(store):
    with store.open_session() as session:
        session.counters_for("users/1").increment("likes", 1)
        with pytest.raises(Exception, match=REFUSAL):
            session.save_changes()


def test_reading_a_counter(store):
    with store.open_session() as session:
        with pytest.raises(Exception, match=REFUSAL):
            session.counters_for("users/1").get("likes")


def test_a_time_series(store):
    import datetime

    with store.open_session() as session:
        session.time_series_for("users/1", "heart rate").append_single(datetime.datetime(2026, 1, 1), 60)
        with pytest.raises(Exception, match=REFUSAL):
            session.save_changes()


def test_revisions(store):
    with store.open_session() as session:
        with pytest.raises(Exception, match=REFUSAL):
            session.advanced.revisions.get_for("users/1", User)


def test_a_subscription(store):
    with pytest.raises(Exception, match=REFUSAL):
        store.subscriptions.create_for_class(User)


def test_counters_in_a_bulk_insert(store):
    with pytest.raises(Exception):
        with store.bulk_insert() as bulk:
            bulk.counters_for("users/1").increment("likes", 1)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/attachments?id=users/1&name=a.txt", "text"),
        ("POST", "/counters", '{"Documents":[]}'),
        ("POST", "/timeseries?docId=users/1", "{}"),
        ("POST", "/admin/revisions/config", "{}"),
        ("GET", "/docs?id=users/1&counter=likes", None),
        ("GET", "/docs?id=users/1&timeseries=HR&from=&to=", None),
        ("GET", "/docs?id=users/1&revisions=x", None),
        ("POST", "/bulk_docs", '{"Commands":[{"Id":"users/1","Type":"Counters","Counters":{"DocumentId":"users/1","Operations":[]}}]}'),
        ("POST", "/bulk_docs", '{"Commands":[{"Id":"users/1","Type":"TimeSeries","TimeSeries":{"Name":"HR","Appends":[]}}]}'),
        ("POST", "/bulk_docs", '{"Commands":[{"Id":"users/1","Type":"AttachmentDELETE","Name":"a"}]}'),
        ("POST", "/bulk_docs", '{"Commands":[{"Id":"users/1","Type":"ForceRevisionCreation"}]}'),
        ("POST", "/bulk_docs", '{"Commands":[{"Id":"users/1","Type":"PUT","Document":{},"ForceRevisionCreationStrategy":"Before"}]}'),
    ],
)
def test_on_the_wire(raw, method, path, body):
    answer = raw(method, path, data=body)
    assert answer.status_code in (500, 501)
    assert answer.json()["Type"].endswith("NotSupportedException")
