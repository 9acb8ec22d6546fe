#!/usr/bin/env python3
"""Writes the answers of a real RavenDB into query scripts: record.py http://127.0.0.1:8080 [FILE...]"""

import json
import pathlib
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).parent
DATABASE = "query-scripts"


class Peer:
    def __init__(self, url):
        self.url = url

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def create(self):
        self.drop()
        self.call("PUT", f"/admin/databases?name={DATABASE}&replicationFactor=1", {"DatabaseName": DATABASE, "Settings": {}})

    def drop(self):
        self.call("DELETE", "/admin/databases", {"DatabaseNames": [DATABASE], "HardDelete": True})

    def put(self, collection, name, text):
        document = json.loads(text)
        document["@metadata"] = {"@collection": collection}
        path = f"/databases/{DATABASE}/docs?id={urllib.parse.quote(name, safe='')}"
        status, answer = self.call("PUT", path, document)
        assert status == 201, answer

    def index(self, name, definition):
        definition["Name"] = name
        status, answer = self.call("PUT", f"/databases/{DATABASE}/admin/indexes", {"Indexes": [definition]})
        assert status in (200, 201), answer

    def settle(self):
        while True:
            _, answer = self.call("GET", f"/databases/{DATABASE}/stats")
            indexes = json.loads(answer)["Indexes"]
            if not any(index["IsStale"] for index in indexes):
                return
            time.sleep(0.1)

    def query(self, text, parameters):
        body = {"Query": text, "QueryParameters": parameters, "WaitForNonStaleResults": True}
        return self.call("POST", f"/databases/{DATABASE}/queries", body)


def expectation(text, status, answer):
    """The lines that stand for an answer."""
    if status == 404:
        return ["! 404"]
    answer = json.loads(answer)
    if status != 200:
        return ["! " + answer["Type"].replace("+", ".").rsplit(".", 1)[-1]]
    rows = answer["Results"]
    ordered = "order by" in text
    metadata = [row.get("@metadata", {}) for row in rows]
    if all("@id" in each and not each.get("@projection") for each in metadata):
        ids = [each["@id"] for each in metadata]
        ids = ids if ordered else sorted(ids)
        return [" ".join([(">" if ordered else "=") + f" {answer['TotalResults']}:", *ids])]
    for row in rows:
        row.pop("@metadata", None)
    lines = ["| " + json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows]
    return lines if ordered else sorted(lines)


def record(peer, path):
    lines = path.read_text().splitlines()
    out, collection, index = [], None, None
    peer.create()
    at = 0
    part = None
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.startswith("@documents "):
            part, collection = "documents", line.split(" ", 1)[1]
        elif line.startswith("@index "):
            part, index = "index", line.split(" ", 1)[1]
        elif line == "@queries":
            part = "queries"
            peer.settle()
        elif not line or line.startswith("#"):
            pass
        elif part == "documents":
            peer.put(collection, *line.split(" ", 1))
        elif part == "index":
            peer.index(index, json.loads(line))
        else:
            parameters = None
            expected = []
            while at < len(lines) and lines[at][:2] in ("$ ", "= ", "> ", "| ", "! ", "~ "):
                if lines[at].startswith("$ "):
                    parameters = json.loads(lines[at][2:])
                else:
                    expected.append(lines[at])
                at += 1
            given = [] if parameters is None else ["$ " + json.dumps(parameters, ensure_ascii=False)]
            if any(each.startswith("~ ") for each in expected):
                out += [line, *given, *expected]
                continue
            texts = [line]
            if line.startswith("from *"):
                texts = [line.replace("from *", f"from {collection}", 1)]
                if index:
                    texts.append(line.replace("from *", f"from index '{index}'", 1))
            answers = [expectation(text, *peer.query(text, parameters)) for text in texts]
            if all(answer == answers[0] for answer in answers):
                out += [line, *given, *answers[0]]
            else:
                for text, answer in zip(texts, answers):
                    out += [text, *given, *answer]
            continue
        out.append(line)
    peer.drop()
    path.write_text("\n".join(out) + "\n")


def main():
    peer = Peer(sys.argv[1].rstrip("/"))
    for path in [pathlib.Path(name) for name in sys.argv[2:]] or sorted(HERE.glob("*.txt")):
        record(peer, path)
        print(path.name)


if __name__ == "__main__":
    main()
