"""Indexes as the application defines them, in C# and JavaScript, with the client's classes for it (`cases/indexes.json`, `cases/map_reduce.json`)."""

import pytest
from ravendb import AbstractIndexCreationTask
from ravendb.documents.indexes.abstract_index_creation_tasks import AbstractJavaScriptIndexCreationTask, AbstractMultiMapIndexCreationTask
from ravendb.documents.indexes.definitions import FieldIndexing, FieldStorage, IndexFieldOptions

from cases import each_of_indexes, matches


def options(given):
    """The options of a field as the client names them."""
    return IndexFieldOptions(
        storage=FieldStorage(given["storage"]) if "storage" in given else None,
        indexing=FieldIndexing(given["indexing"]) if "indexing" in given else None,
        analyzer=given.get("analyzer"),
    )


def make(index):
    """An index of the application: a class of one of the client's kinds, whose name becomes that of the index."""
    java_script = index["maps"][0].startswith("map(")
    kind = AbstractJavaScriptIndexCreationTask if java_script else AbstractMultiMapIndexCreationTask if len(index["maps"]) > 1 else AbstractIndexCreationTask

    def start(self):
        kind.__init__(self)
        fields = index.get("fields", {})
        if java_script:
            self.maps = index["maps"]
            self.fields = {name: options(given) for name, given in fields.items()}
            self.reduce = index.get("reduce")
        else:
            if kind is AbstractIndexCreationTask:
                self.map = index["maps"][0]
            else:
                for text in index["maps"]:
                    self._add_map(text)
            if "reduce" in index:
                self.reduce = index["reduce"]
            for name, given in fields.items():
                set_options(self, name, given)
        if "configuration" in index:
            self.configuration = index["configuration"]
        if "sources" in index:
            self.additional_sources = index["sources"]

    return type(index["index"], (kind,), {"__init__": start})()


def set_options(task, name, given):
    if name == "__all_fields":
        task._store_all_fields(FieldStorage(given["storage"]))
        return
    if "storage" in given:
        task._store(name, FieldStorage(given["storage"]))
    if "indexing" in given:
        task._index(name, FieldIndexing(given["indexing"]))
    if "analyzer" in given:
        task._analyze(name, given["analyzer"])


@pytest.fixture(scope="module")
def indexed(shop):
    """Puts an index into the shop's database when the first case asks it."""
    there = set()

    def put(index):
        if index["index"] not in there:
            make(index).execute(shop)
            there.add(index["index"])
        return shop

    return put


def ask(indexed, index, case):
    with indexed(index).open_session() as session:
        query = session.advanced.raw_query(case["rql"], dict).wait_for_non_stale_results()
        for name, value in case.get("parameters", {}).items():
            query.add_parameter(name, value)
        if "error" in case:
            with pytest.raises(Exception, match=case["error"]):
                list(query)
        else:
            matches(case, session, list(query), "order by" in case["rql"])


@each_of_indexes("indexes")
def test_map(indexed, index, case):
    ask(indexed, index, case)


@each_of_indexes("map_reduce")
def test_map_reduce(indexed, index, case):
    ask(indexed, index, case)
