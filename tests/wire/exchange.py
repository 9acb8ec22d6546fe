"""One HTTP exchange, sent exactly as written and kept exactly as answered.

The standard library's connection is used without the conveniences of a client: no redirect, no decompression, no cookie, and the
path goes out as it stands, so that `?&id=` or a `%2F` reaches the server unchanged. Each exchange has a connection of its own:
an answer never depends on what an earlier request left in a buffer.
"""

import http.client
import socket
from dataclasses import dataclass, field
from urllib.parse import urlsplit

# A server that says nothing for this long is reported as silent. It is a limit for hangs, no expectation.
LIMIT_SECONDS = 60


@dataclass
class Answer:
    """What came back: `headers` in lower case, `body` as bytes off the wire (chunks joined, nothing decompressed)."""

    status: int
    headers: dict = field(default_factory=dict)
    body: bytes = b""


class NoAnswer(Exception):
    """The server closed the connection, or stayed silent, before a status line."""


def exchange(base_url, method, path, headers, body):
    """Sends one request. `body` is None or bytes; its length is declared unless the headers name a transfer coding, in which
    case the body is sent in chunks of 7 bytes (a server that waits for whole tokens in one chunk fails here)."""
    parts = urlsplit(base_url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=LIMIT_SECONDS)
    # The library refuses unusual characters in a path; this tool is here to send them.
    connection._validate_path = lambda url: None
    try:
        chunked = any(name.lower() == "transfer-encoding" for name in headers)
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        if body is not None and not chunked:
            connection.putheader("Content-Length", str(len(body)))
        elif body is None and method in ("PUT", "POST", "PATCH"):
            connection.putheader("Content-Length", "0")
        connection.endheaders()
        if chunked:
            for start in range(0, len(body), 7):
                piece = body[start : start + 7]
                connection.send(b"%x\r\n%s\r\n" % (len(piece), piece))
            connection.send(b"0\r\n\r\n")
        elif body:
            connection.send(body)
        response = connection.getresponse()
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())
    except (http.client.HTTPException, OSError) as error:
        raise NoAnswer(f"{type(error).__name__}: {error}") from error
    finally:
        connection.close()


def free_port():
    """A loopback port nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
