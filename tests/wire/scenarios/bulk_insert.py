"""Bulk insert: one long array of commands, plain and compressed, good and bad."""

import gzip
import json

from step import Step


def put(identifier, **document):
    return {"Id": identifier, "Type": "PUT", "Document": {**document, "@metadata": {"@collection": "Users"}}}


def array(*commands):
    return json.dumps(list(commands))


THREE = array(put("users/1", Name="Ann"), put("users/2", Name="Bob"), put("users/3", Name="Cid"))
FOUR = array(put("users/4", Name="Dan")).encode()
STEPS = [
    Step("an operation id", "GET", "/operations/next-operation-id", capture={"op": "body.Id"}, ignore=("Id",)),
    Step("three documents", "POST", "/bulk_insert?id=${op}&skipOverwriteIfUnchanged=false", body=THREE),
    Step("one of them", "GET", "/docs?id=users/2"),
    Step("the operation", "GET", "/operations/state?id=${op}", ignore=("Progress", "Result.$type", "$type", "Result.Message", "Result.Details")),
    Step("an empty array", "POST", "/bulk_insert?id=901", body="[]"),
    Step("the same again, unchanged ones skipped", "POST", "/bulk_insert?id=902&skipOverwriteIfUnchanged=true", body=THREE),
    Step("its change vector is the old one", "GET", "/docs?id=users/2"),
    Step("the same again, overwritten", "POST", "/bulk_insert?id=903&skipOverwriteIfUnchanged=false", body=THREE),
    Step("its change vector is a new one", "GET", "/docs?id=users/2"),
    Step("compressed by gzip", "POST", "/bulk_insert?id=904", headers={"Content-Encoding": "gzip"}, body=gzip.compress(FOUR, mtime=0)),
    Step("came through", "GET", "/docs?id=users/4"),
    Step("in chunks", "POST", "/bulk_insert?id=905", headers={"Transfer-Encoding": "chunked"}, body=array(put("users/5", Name="Eve"))),
    Step("came together", "GET", "/docs?id=users/5"),
    Step("with heartbeats", "POST", "/bulk_insert?id=906", body='[{"Type":"HeartBeat"},' + json.dumps(put("users/6", Name="Fay")) + ',{"Type":"HeartBeat"}]'),
    Step("the document between them", "GET", "/docs?id=users/6"),
    Step("an array that does not end", "POST", "/bulk_insert?id=907", body="[" + json.dumps(put("users/7", Name="Gus")), refused=True),
    Step("a body that is no array", "POST", "/bulk_insert?id=908", body='{"a":1}', refused=True),
    Step("a command that is none", "POST", "/bulk_insert?id=909", body='[{"Id":"users/9","Type":"EXPLODE"}]', refused=True),
    Step("the failed operation", "GET", "/operations/state?id=909", ignore=("Progress", "$type", "Result.$type", "Result.Message", "Result.Error")),
    Step("broken JSON", "POST", "/bulk_insert?id=910", body='[{"Id":"users/9","Type":"PUT","Document":{"a":}}]', refused=True),
    Step("broken compression", "POST", "/bulk_insert?id=911", headers={"Content-Encoding": "gzip"}, body=b"\x1f\x8b\x08\x00nonsense", refused=True),
    Step("nothing came of these", "GET", "/docs?id=users/9"),
    Step("without an operation id", "POST", "/bulk_insert", body=THREE, refused=True),
]
