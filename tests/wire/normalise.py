"""Takes out of an answer what differs from run to run and leaves what must not.

A change vector becomes `<cv:A#2>`: its node tags, and which of the scenario's vectors it is, counted by first appearance. So an
`ETag` that must equal a document's `@change-vector` still has to, and an overwrite still has to bring a new one. Indexes of
commands become `<index#1>` in the same way; zero and negative ones mean something and stay. Dates keep their form only: seven
digits and `Z`, or they stand out. Texts for people (`Message`) are not compared; what a client reads out of them is asked for by
`contains` in the step. Numbers keep their spelling, so that `1.10` and `1.1` differ.
"""

import json
import re

CHANGE_VECTOR_PART = r"(?:[A-Z]{1,4}):\d+-[A-Za-z0-9+/]{22}"
CHANGE_VECTOR = re.compile(rf"^{CHANGE_VECTOR_PART}(?:, ?{CHANGE_VECTOR_PART})*$")
DATE = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z$")
GUID = re.compile(r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
ID_BASE64 = re.compile(r"^[A-Za-z0-9+/]{22}(==)?$")
DURATION = re.compile(r"^(\d+\.)?\d\d:\d\d:\d\d(\.\d{7})?$")
SERVER_ID = re.compile(r"\d{19}-A")
HASH = re.compile(r"^Hash-.+$")
HUMANE_SIZE = re.compile(r"^[\d.,]+ (Bytes|KBytes|MBytes|GBytes)$")
VERSION = re.compile(r"^\d+\.\d+(\.\d+){0,2}$")

# Counters that every server counts in its own way, by the property's name.
COUNTED = {
    "Etag", "LastDocEtag", "LastDatabaseEtag", "LastEtag", "LargestEtag", "EtagForBackup", "Index", "RaftCommandIndex",
    "TransactionIndex", "Actual", "Expected", "OperationId", "Stamp", "ResultEtag",
}
# Quantities that depend on the machine or the engine.
MEASURED = {
    "SizeInBytes", "ActualSize", "AllocatedSize", "DurationInMs", "LeaderShipDuration", "NumberOfTransactionMergerQueueOperations",
    "NumberOfCores", "InstalledMemoryInGb", "UsableMemoryInGb", "BuildVersion", "ServerSchemaVersion", "CurrentTerm",
}
# Headers whose value is a promise to a client; of some only the presence counts.
HEADERS = (
    "content-type", "content-encoding", "content-disposition", "etag", "database-missing", "refresh-topology",
    "refresh-client-configuration", "allow",
)
HEADERS_PRESENT = ("raven-server-version", "database-cluster-tx-id")


class Number(str):
    """A JSON number, as spelt."""


class Normaliser:
    """The names that one scenario's values have been given so far."""

    def __init__(self, base_url, names):
        self.names = names
        self.base_url = base_url.rstrip("/")
        self.symbols = {}

    def answer(self, answer, ignored=()):
        """The answer as plain data, without what varies and without the paths in `ignored`."""
        headers = {}
        for name in HEADERS:
            if name in answer.headers:
                headers[name] = self.text(answer.headers[name])
        if "content-disposition" in headers:
            # The file's name is the server's taste, its extension is what people look for.
            headers["content-disposition"] = re.sub(r'filename="?.*(\.\w+)"?', r"filename=<name>\1", headers["content-disposition"])
        for name in HEADERS_PRESENT:
            if name in answer.headers:
                headers[name] = "<present>"
        return {"status": answer.status, "headers": headers, "body": self.body(answer, headers, ignored)}

    def body(self, answer, headers, ignored):
        raw = answer.body
        if not raw:
            return None
        if answer.headers.get("content-encoding") == "gzip":
            import gzip

            raw = gzip.decompress(raw)
        kind = headers.get("content-type", "")
        if raw[:4] == b"\x28\xb5\x2f\xfd" or raw[:2] == b"\x1f\x8b":
            return "<compressed file>"
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            return f"<{len(raw)} bytes>"
        try:
            value = load(text)
            # Before anything is given a number, so that what is ignored shifts no numbers.
            for path in ignored:
                remove(value, path.split("."))
            return self.value(value)
        except ValueError:
            pass
        lines = text.split("\r\n")
        try:
            return {"<lines>": [self.value(load(line)) for line in lines if line], "<ends with CRLF>": lines[-1] == ""}
        except ValueError:
            return f"<text of type {kind}>"

    def value(self, value, key=None):
        if isinstance(value, dict):
            if is_error(value):
                return self.error(value)
            return {self.named(name): self.value(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.value(inner, key) for inner in value]
        if isinstance(value, Number):
            if key in MEASURED:
                return "<number>"
            if key in COUNTED:
                return self.symbol("index", value) if not value.startswith("-") and value != "0" else {"<number>": value}
            return {"<number>": value}
        if isinstance(value, str):
            return self.text(value, key)
        return value

    def error(self, value):
        out = {}
        for name, inner in value.items():
            if name == "Message":
                out[name] = "<text>"
            elif name == "Error":
                out[name] = "<type: text>" if str(inner).startswith(f"{value['Type']}: ") else "<text>"
            else:
                out[name] = self.value(inner, name)
        return out

    def text(self, text, key=None):
        if key in ("HumaneSize", "HumaneActualSize", "HumaneAllocatedSize") and HUMANE_SIZE.match(text):
            return "<size>"
        if key and key.endswith("Version") and VERSION.match(text):
            return "<version>"
        if key and (key.endswith("Base64") or key == "DatabaseId") and ID_BASE64.match(text):
            return "<id>"
        quoted = len(text) > 1 and text.startswith('"') and text.endswith('"')
        inner = self.plain_text(text[1:-1] if quoted else text)
        return f'"{inner}"' if quoted else inner

    def plain_text(self, text):
        if CHANGE_VECTOR.match(text):
            # The order of its parts says nothing.
            tags = ",".join(sorted(part.split(":")[0] for part in re.split(r", ?", text)))
            return self.symbol(f"cv:{tags}", text)
        if HASH.match(text):
            return self.symbol("hash", text)
        for pattern, name in ((DATE, "<date>"), (GUID, "<guid>"), (DURATION, "<duration>")):
            if pattern.match(text):
                return name
        return self.named(text)

    def named(self, text):
        """The text with the names of this run in place of what they stand for."""
        for actual, name in self.names.items():
            text = text.replace(actual, name)
        return SERVER_ID.sub("<etag>-A", text.replace(self.base_url, "<url>"))

    def symbol(self, kind, value):
        known = self.symbols.setdefault(kind, {})
        return f"<{kind}#{known.setdefault(str(value), len(known) + 1)}>"


def load(text):
    """JSON with numbers as spelt."""
    return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=Number)


def is_error(value):
    return isinstance(value.get("Type"), str) and "Message" in value and "Error" in value


def remove(value, path):
    """Takes a path out of a value; `*` stands for every element or property."""
    if isinstance(value, list):
        for inner in value:
            remove(inner, path[1:] if path[0] == "*" else path)
    elif isinstance(value, dict):
        for name in list(value) if path[0] == "*" else [path[0]]:
            if name in value and len(path) == 1:
                del value[name]
            elif name in value:
                remove(value[name], path[1:])


# Statuses that a client takes for a node that is down: it tries elsewhere instead of telling its user.
NODE_DOWN = (408, 502, 503, 504)


def is_refusal(answer, method):
    """Whether a client shows this answer to its user as an exception: an error status with an error's body."""
    if not 400 <= answer.status < 600 or answer.status in NODE_DOWN or answer.status == 404:
        return False
    try:
        return method == "HEAD" or is_error(load(answer.body.decode()))
    except (ValueError, AttributeError):
        return False
