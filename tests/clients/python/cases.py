"""What Python and Node share: the documents of a small shop, and cases that are plain data (`../cases`)."""

import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "cases"


def read(name):
    return json.loads((FOLDER / f"{name}.json").read_text())


SHOP = read("shop")


def each(name):
    """Parametrizes a case by what stands in a file."""
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["name"].replace(" ", "_")) for case in read(name)])


def put(url, database, documents):
    """Writes documents as they stand, in one request."""
    import requests

    commands = [{"Id": key, "Type": "PUT", "ChangeVector": None, "Document": document} for key, document in documents.items()]
    requests.post(f"{url}/databases/{database}/bulk_docs", json={"Commands": commands}, timeout=60).raise_for_status()


def keys(session, entities):
    """Ids of what a query gave, in its order."""
    return [entity["@metadata"]["@id"] if isinstance(entity, dict) else session.advanced.get_document_id(entity) for entity in entities]


def rows(results):
    """Results of a projection, without what the server says about them."""
    return [{name: value for name, value in result.items() if name not in ("@metadata", "Id")} for result in results]


def matches(case, session, results, in_order):
    """Compares the results of a query with what the case expects: ids, or rows."""
    found = keys(session, results) if "ids" in case else rows(results)
    expected = case["ids"] if "ids" in case else case["rows"]
    if not in_order:
        found, expected = (sorted(some, key=str) for some in (found, expected))
    assert found == expected


def each_of_indexes(name):
    """Parametrizes a case by an index of a file and one of the queries that are asked of it."""
    asked = [(index, query) for index in read(name) for query in index["queries"]]
    return pytest.mark.parametrize(("index", "case"), [pytest.param(index, query, id=f"{query['name']} ({index['index']})".replace(" ", "_")) for index, query in asked])
