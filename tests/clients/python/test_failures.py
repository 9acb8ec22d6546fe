"""When things go wrong: the server dies and comes back, databases are missing, and input is nonsense. Whatever is sent, the server
answers with an error that its sender understands, stores nothing of it, and serves the next one as if nothing had been."""

import socket
import threading
from urllib.parse import urlsplit

import pytest
from ravendb import DocumentStore

from models import User


def test_a_server_that_is_not_there(proxy, other_store):
    store = other_store(proxy.url, disable_topology_updates=True)
    proxy.stop()
    with store.open_session() as session:
        with pytest.raises(Exception):
            session.load("users/1", User)


def test_a_server_that_dies_and_comes_back(proxy, other_store, store):
    through = other_store(proxy.url, disable_topology_updates=True)
    with through.open_session() as session:
        session.store(User("before"), "users/1")
        session.save_changes()
    proxy.stop()
    with through.open_session() as session:
        session.store(User("during"), "users/2")
        with pytest.raises(Exception):
            session.save_changes()
    proxy.start()
    fresh = other_store(proxy.url, disable_topology_updates=True)
    with fresh.open_session() as session:
        assert session.load("users/1", User).name == "before"
        session.store(User("after"), "users/3")
        session.save_changes()
    with store.open_session() as session:
        found = session.load(["users/1", "users/2", "users/3"], User)
        assert found["users/2"] is None
        assert found["users/3"].name == "after"


def test_a_save_cut_off_in_the_middle_stores_nothing(proxy, other_store, document_count):
    through = other_store(proxy.url, disable_topology_updates=True)
    with through.open_session() as session:
        session.load("users/none", User)
    proxy.cut_after_bytes = 100_000
    with through.open_session() as session:
        for n in range(2_000):
            session.store(User("x" * 200), f"users/{n}")
        with pytest.raises(Exception):
            session.save_changes()
    proxy.cut_after_bytes = None
    assert document_count() == 0


def test_a_missing_database(url, new_name):
    with DocumentStore(url, new_name()) as store:
        store.initialize()
        with store.open_session() as session:
            with pytest.raises(Exception, match="(?i)does ?not ?exist"):
                session.load("users/1", User)


def test_a_database_deleted_under_a_store(server, store, database):
    from ravendb.serverwide.operations.common import DeleteDatabaseOperation

    with store.open_session() as session:
        session.store(User("Ann"), "users/1")
        session.save_changes()
    server.maintenance.server.send(DeleteDatabaseOperation(database, True))
    with store.open_session() as session:
        with pytest.raises(Exception, match="(?i)does ?not ?exist"):
            session.load("users/1", User)


BROKEN = {
    "nothing": b"",
    "no JSON": b"nonsense",
    "half an object": b'{"Commands":[{"Id":"users/1","Type":"PUT","Document":{"name":"An',
    "an array": b"[]",
    "a number": b"42",
    "null": b"null",
    "commands that are a text": b'{"Commands":"PUT"}',
    "commands that are an object": b'{"Commands":{}}',
    "a command that is a text": b'{"Commands":["PUT"]}',
    "a command of no type": b'{"Commands":[{"Id":"users/1"}]}',
    "a command of an unknown type": b'{"Commands":[{"Id":"users/1","Type":"EXPLODE"}]}',
    "a type that is a number": b'{"Commands":[{"Id":"users/1","Type":7}]}',
    "a document that is a text": b'{"Commands":[{"Id":"users/1","Type":"PUT","Document":"x"}]}',
    "a document that is missing": b'{"Commands":[{"Id":"users/1","Type":"PUT"}]}',
    "a good command before a bad one": b'{"Commands":[{"Id":"users/1","Type":"PUT","Document":{}},{"Type":"EXPLODE"}]}',
    "brackets without end": b'{"Commands":' + b"[" * 100_000,
    "objects without end": b'{"a":' * 100_000,
    "zero bytes": b"\x00" * 1000,
    "random bytes": bytes(range(256)) * 16,
}


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
def test_broken_batches(raw, document_count, body):
    answer = raw("POST", "/bulk_docs", data=body)
    assert 400 <= answer.status_code <= 500 and answer.status_code not in (404, 408)
    error = answer.json()
    assert error["Type"] and error["Message"] and error["Error"]
    assert document_count() == 0


QUERIES = {
    "no id": "/docs?id",
    "an unknown parameter": "/docs?id=none&what=ever",
    "doubled marks": "/docs??&id=none",
    "a page size that is a text": "/docs?startsWith=a&pageSize=many",
    "a page size beyond all numbers": "/docs?startsWith=a&pageSize=99999999999999999999999",
    "a negative page size": "/docs?startsWith=a&pageSize=-5",
    "a negative start": "/docs?startsWith=a&start=-5",
    "broken percent signs": "/docs?id=%zz%",
    "half a letter": "/docs?id=%c3",
    "zero": "/docs?id=a%00b",
    "path tricks": "/docs/../../../../etc/passwd",
    "encoded path tricks": "/%2e%2e/%2e%2e/etc/passwd",
    "an operation that is a text": "/operations/state?id=many",
    "a key of nothing": "/cmpxchg?key=",
    "an include of nothing": "/docs?id=none&include=",
    "a very long query": "/docs?id=" + "x" * 8_000,
}


@pytest.mark.parametrize("path", QUERIES.values(), ids=QUERIES)
def test_odd_queries(raw, path):
    """Any answer but a dropped connection; and the server goes on."""
    assert raw("GET", path).status_code < 600
    assert raw("GET", "/stats").status_code == 200


def talk(url, data, wait_for_end=True):
    """Sends bytes on a bare socket and returns what comes until the server closes or has answered."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as connection:
        answer = b""
        try:
            connection.sendall(data)
            if wait_for_end:
                connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(65536):
                answer += piece
        except OSError:
            pass
        return answer


NOISE = {
    "no HTTP": b"hello there\r\n\r\n",
    "a TLS hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 500,
    "a method of nonsense": b"FROBNICATE /build/version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    "no host": b"GET /build/version HTTP/1.1\r\nConnection: close\r\n\r\n",
    "a header without a colon": b"GET /build/version HTTP/1.1\r\nHost: x\r\nnonsense\r\nConnection: close\r\n\r\n",
    "a length that is a text": b"POST /build/version HTTP/1.1\r\nHost: x\r\nContent-Length: many\r\n\r\n",
    "a negative length": b"POST /build/version HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    "two lengths": b"POST /build/version HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "a huge header": b"GET /build/version HTTP/1.1\r\nHost: x\r\nX-Big: " + b"x" * 2_000_000 + b"\r\n\r\n",
    "too many headers": b"GET /build/version HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(20_000)) + b"\r\n",
    "a chunk of nonsense": b"POST /build/version HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
    "a promise that is not kept": b"POST /build/version HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc",
    "nothing at all": b"",
}


@pytest.mark.parametrize("data", NOISE.values(), ids=NOISE)
def test_noise(url, raw, data):
    answer = talk(url, data)
    assert not answer.startswith(b"HTTP/1.1 200") or b"build/version" in data
    assert raw("GET", "/stats").status_code == 200


@pytest.mark.parametrize("path", ["/databases/{}/changes", "/databases/none/changes"])
def test_websockets_of_nonsense(url, raw, database, path):
    upgrade = (
        f"GET {path.format(database)} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    ).encode()
    for frame in (b"\x81\x85\x00\x00\x00\x00hello", b"\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"\x00" * 1000, b"\xff" * 1000, b""):
        talk(url, upgrade + frame)
    assert raw("GET", "/stats").status_code == 200


def test_slow_senders_do_not_hold_up_others(url, raw):
    """Fifty connections that never finish their request."""
    parts = urlsplit(url)
    held = []
    try:
        for _ in range(50):
            connection = socket.create_connection((parts.hostname, parts.port), timeout=60)
            connection.sendall(b"POST /databases/x/bulk_docs HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
            held.append(connection)
        assert raw("GET", "/stats").status_code == 200
    finally:
        for connection in held:
            connection.close()


def test_an_error_leaves_the_connection_usable(url, database):
    """Errors and good answers in turn on one connection, bodies read or not."""
    import http.client

    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    for n in range(10):
        connection.request("POST", f"/databases/{database}/bulk_docs", body=b"nonsense")
        assert connection.getresponse().read()
        connection.request("PUT", f"/databases/{database}/docs?id=users/{n}", body=b'{"name":"Ann"}')
        answer = connection.getresponse()
        assert answer.status == 201
        answer.read()
    connection.close()


def test_many_connections_at_once(raw, store):
    with store.open_session() as session:
        session.store(User("Ann"), "users/1")
        session.save_changes()
    statuses, lock = [], threading.Lock()

    def work():
        for _ in range(5):
            answer = raw("GET", "/docs?id=users/1")
            with lock:
                statuses.append(answer.status_code)

    threads = [threading.Thread(target=work) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 200
