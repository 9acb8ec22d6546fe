"""A server that speaks the protocol, and a script's database on it."""

import http.client
import json
import time
import urllib.parse
import uuid

from json_text import Number, dumps, loads

PATIENCE_SECONDS = 60


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, status, kind, message):
        super().__init__(f"{status} {kind}: {message}")
        self.status, self.kind, self.message = status, kind, message


class Database:
    """A new database with a random name; gone at the end of the `with`."""

    def __init__(self, url, name="queries"):
        self.address = urllib.parse.urlsplit(url)
        self.name = f"{name}-{uuid.uuid4().hex[:8]}"
        self.connection = None

    def __enter__(self):
        self.request("PUT", f"/admin/databases?name={self.name}", {"DatabaseName": self.name, "Settings": {
            "Indexing.Auto.SearchEngineType": "Lucene", "Indexing.Static.SearchEngineType": "Lucene"}})
        return self

    def __exit__(self, *_):
        for attempt in range(3):
            try:
                self.request("DELETE", "/admin/databases", {"DatabaseNames": [self.name], "HardDelete": True})
                break
            except Refused as refused:
                # A busy server may say that it waits still for its own log to be applied.
                if refused.status != 408:
                    raise
        self.connection.close()

    def request(self, method, path, body=None):
        if self.connection is None:
            self.connection = http.client.HTTPConnection(self.address.hostname, self.address.port, timeout=PATIENCE_SECONDS)
        data = None if body is None else dumps(body).encode("utf-8", "surrogatepass")
        try:
            self.connection.request(method, path, data, {"Content-Type": "application/json"})
            response = self.connection.getresponse()
            text = response.read().decode("utf-8", "surrogatepass")
        except Exception:
            self.connection.close()
            self.connection = None
            raise
        if response.status >= 400:
            try:
                error = json.loads(text)
            except ValueError:
                error = {}
            kind = str(error.get("Type") or "-").split(",")[0].replace("+", ".").rsplit(".", 1)[-1]
            raise Refused(response.status, kind, str(error.get("Message") or text))
        return loads(text) if text else None

    def call(self, method, path, body=None):
        return self.request(method, f"/databases/{self.name}{path}", body)

    def put_documents(self, documents):
        """(collection, id, value) in this order."""
        commands = []
        for collection, identity, value in documents:
            metadata = {**value.get("@metadata", {}), "@collection": collection} if collection else value.get("@metadata", {})
            commands.append({"Id": identity, "ChangeVector": None, "Type": "PUT",
                             "Document": {**value, "@metadata": metadata}})
        if commands:
            self.call("POST", "/bulk_docs", {"Commands": commands})

    def put_indexes(self, definitions):
        for definition in definitions:
            self.call("PUT", "/admin/indexes", {"Indexes": [definition]})

    def wait_for_indexes(self):
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            indexes = self.call("GET", "/stats")["Indexes"]
            if not any(index["IsStale"] or index["Name"].startswith("ReplacementOf/") for index in indexes):
                return
            if time.monotonic() > end:
                raise Refused(0, "Stale", "the indexes stay stale")
            time.sleep(0.02)

    def query(self, text, parameters=None, projection=None):
        return self.call("POST", "/queries", {
            "Query": text, "QueryParameters": parameters, "WaitForNonStaleResults": True,
            "WaitForNonStaleResultsTimeout": "00:00:15", "ProjectionBehavior": projection or "Default"})
