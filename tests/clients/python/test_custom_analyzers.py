"""Analyzers of one's own, as C# classes: of a database and of the server."""

import uuid

import pytest
from ravendb import IndexDefinition
from ravendb.documents.indexes.analysis.definitions import AnalyzerDefinition
from ravendb.documents.indexes.definitions import FieldIndexing, IndexFieldOptions
from ravendb.documents.operations.indexes import DeleteIndexOperation, GetTermsOperation, PutIndexesOperation, ResetIndexOperation
from ravendb.serverwide.operations.analyzers import DeleteServerWideAnalyzerOperation, PutServerWideAnalyzersOperation

from cases import keys
from conftest import PEER

# A RavenDB 7.1 without a licence has one analyzer a database and none of the server.
of_the_server = pytest.mark.skipif(PEER, reason="an unlicensed RavenDB has no analyzers of the server")

FOLDING = """
using System.IO;
using Lucene.Net.Analysis;
using Lucene.Net.Analysis.Standard;

namespace MyAnalyzers
{
    public class NAME : StandardAnalyzer
    {
        public NAME() : base(Lucene.Net.Util.Version.LUCENE_30)
        {
        }

        public override TokenStream TokenStream(string fieldName, TextReader reader)
        {
            return new ASCIIFoldingFilter(base.TokenStream(fieldName, reader));
        }
    }
}
"""
STEMS = """
using System.Collections.Generic;
using System.IO;
using Lucene.Net.Analysis;

public class NAME : Analyzer
{
    private static readonly ISet<string> Stop = new HashSet<string> { "the", "of" };

    public override TokenStream TokenStream(string fieldName, TextReader reader)
    {
        TokenStream result = new LowerCaseTokenizer(reader);
        result = new StopFilter(true, result, Stop);
        result = new PorterStemFilter(result);
        return result;
    }
}
"""


@pytest.fixture
def name():
    return f"Mine{uuid.uuid4().hex}"


@pytest.fixture
def put(raw):
    def put(name, code):
        return raw("PUT", "/admin/analyzers", json={"Analyzers": [{"Name": name, "Code": code.replace("NAME", name)}]})

    return put


@pytest.fixture
def define(store):
    def define(analyzer):
        fields = {"text": IndexFieldOptions(indexing=FieldIndexing.SEARCH, analyzer=analyzer)}
        store.maintenance.send(PutIndexesOperation(IndexDefinition(name="I", maps={"from d in docs.Texts select new { d.text }"}, fields=fields)))

    return define


@pytest.fixture
def write(raw):
    def write(id, text):
        assert raw("PUT", f"/docs?id={id}", json={"text": text, "@metadata": {"@collection": "Texts"}}).status_code == 201

    return write


@pytest.fixture
def ask(store):
    def ask(words):
        with store.open_session() as session:
            query = session.advanced.raw_query("from index 'I' where search(text, $words)").add_parameter("words", words)
            return sorted(keys(session, query.wait_for_non_stale_results()))

    return ask


@pytest.fixture
def terms(store, ask):
    def terms():
        ask("anything")
        return sorted(store.maintenance.send(GetTermsOperation("I", "text", None)))

    return terms


def test_put_and_used(put, define, write, ask, terms, name):
    assert put(name, FOLDING).status_code == 201
    define(name)
    write("texts/1", "Crème Brûlée of the Café")
    assert terms() == ["brulee", "cafe", "creme"]
    assert ask("CAFÉ") == ask("cafe") == ["texts/1"]


def test_stems_and_stop_words(put, define, write, ask, terms, name):
    put(name, STEMS)
    define(name.lower())
    write("texts/1", "The Houses of Running")
    assert terms() == ["hous", "run"]
    assert ask("house runs") == ["texts/1"]
    assert ask("the") == []


def test_listed_and_deleted(put, raw, name):
    put(name, STEMS)
    assert [analyzer["Name"] for analyzer in raw("GET", "/analyzers").json()["Analyzers"]] == [name]
    assert raw("DELETE", f"/admin/analyzers?name={name}").status_code == 204
    assert raw("GET", "/analyzers").json()["Analyzers"] == []


def test_a_change_leaves_what_is_indexed(put, define, write, ask, terms, store, name):
    put(name, STEMS)
    define(name)
    write("texts/1", "Houses")
    assert terms() == ["hous"]
    put(name, FOLDING)
    write("texts/2", "Gardens")
    assert terms() == ["gardens", "hous"]
    assert ask("Houses") == []
    store.maintenance.send(ResetIndexOperation("I"))
    assert terms() == ["gardens", "houses"]
    assert ask("Houses") == ["texts/1"]


@pytest.mark.parametrize(("code", "message"), [
    (FOLDING.replace("return new", "retrun new"), "Failed to compile analyzer"),
    (FOLDING.replace("class NAME", "class Other").replace("public NAME", "public Other"), "Could not find type"),
    (FOLDING.replace("ASCIIFoldingFilter", "NoSuchFilter"), "NoSuchFilter"),
    ("", "Code"),
], ids=["syntax", "another_class", "an_unknown_filter", "no_code"])
def test_what_does_not_compile_is_refused(put, raw, name, code, message):
    answer = put(name, code)
    assert answer.status_code == 500
    assert message in answer.json()["Message"]
    assert raw("GET", "/analyzers").json()["Analyzers"] == []


def test_a_field_of_an_analyzer_that_is_not_there(define, name):
    with pytest.raises(Exception, match=f"Cannot find analyzer type '{name}'"):
        define(name)


@of_the_server
def test_of_the_server(server, define, write, ask, terms, store, name):
    server.maintenance.server.send(PutServerWideAnalyzersOperation(AnalyzerDefinition(name, STEMS.replace("NAME", name))))
    try:
        define(name)
        write("texts/1", "Houses")
        assert terms() == ["hous"]
    finally:
        store.maintenance.send(DeleteIndexOperation("I"))
        server.maintenance.server.send(DeleteServerWideAnalyzerOperation(name))
    with pytest.raises(Exception, match=f"Cannot find analyzer type '{name}'"):
        define(name)


@of_the_server
def test_those_of_the_database_come_first(server, put, define, write, terms, store, name):
    server.maintenance.server.send(PutServerWideAnalyzersOperation(AnalyzerDefinition(name, STEMS.replace("NAME", name))))
    try:
        put(name, FOLDING)
        define(name)
        write("texts/1", "Houses")
        assert terms() == ["houses"]
    finally:
        store.maintenance.send(DeleteIndexOperation("I"))
        server.maintenance.server.send(DeleteServerWideAnalyzerOperation(name))
