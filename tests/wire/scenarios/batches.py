"""`bulk_docs`: every save of every session. One transaction, results by position, all or nothing."""

from step import Step


def put(identifier, document, **more):
    return {"Id": identifier, "Type": "PUT", "Document": document, "ChangeVector": None, **more}


def delete(identifier, **more):
    return {"Id": identifier, "Type": "DELETE", "ChangeVector": None, **more}


def user(name):
    return {"Name": name, "@metadata": {"@collection": "Users"}}


def batch(name, commands, **more):
    return Step(name, "POST", "/bulk_docs", body={"Commands": commands}, **more)


STEPS = [
    batch("two puts", [put("users/1", user("Ann")), put("users/2", user("Bob"))], capture={"first": "body.Results.0.@change-vector"}),
    batch("nothing", []),
    batch("put and delete", [put("users/3", user("Cid")), delete("users/2")]),
    batch("delete a missing one", [delete("users/none")]),
    batch("put and delete the same", [put("users/4", user("Dan")), delete("users/4")]),
    batch("delete and put the same", [delete("users/3"), put("users/3", user("Cid 2"))]),
    batch("put the same twice", [put("users/5", user("once")), put("users/5", user("twice"))]),
    Step("the last one counts", "GET", "/docs?id=users/5"),
    batch("ids by the server", [put("people/", user("a")), put("people|", user("b")), put("people|", user("c")), put("", user("d")), put(None, user("e"))], ignore=("Results.3.@id", "Results.4.@id")),
    batch("put with the right change vector", [put("users/1", user("Ann 2"), ChangeVector="${first}")], capture={"second": "body.Results.0.@change-vector"}),
    batch("put with a stale change vector", [put("users/8", user("no")), put("users/1", user("never"), ChangeVector="${first}")]),
    Step("nothing of that batch happened", "GET", "/docs?id=users/8"),
    batch("put of what must be new, and is not", [put("users/1", user("never"), ChangeVector="")]),
    batch("put of what must be new, and is", [put("users/9", user("new"), ChangeVector="")]),
    batch("delete with a stale change vector", [put("users/8", user("no")), delete("users/1", ChangeVector="${first}")]),
    batch("delete with the right change vector", [delete("users/1", ChangeVector="${second}")]),
    batch("delete of what is gone, with a change vector", [delete("users/1", ChangeVector="${second}")]),
    batch("properties that Python and Node add", [{"Id": "users/1", "ChangeVector": None, "OriginalChangeVector": "A:1-AAAAAAAAAAAAAAAAAAAAAA", "Document": user("x"), "Type": "PUT", "Unknown": {"a": [1]}}]),
    batch("type last, in another casing of PUT", [{"Document": user("x"), "Id": "users/1", "Type": "Put"}], refused=True),
    batch("an unknown command", [put("users/8", user("no")), {"Id": "users/8", "Type": "EXPLODE"}], refused=True),
    batch("a command without a type", [{"Id": "users/8", "Document": user("no")}], refused=True),
    batch("a put without a document", [{"Id": "users/8", "Type": "PUT"}], refused=True),
    batch("a put of an array", [{"Id": "users/8", "Type": "PUT", "Document": [1]}], refused=True),
    batch("a delete without an id", [{"Type": "DELETE"}]),
    Step("nothing of these happened", "GET", "/docs?id=users/8"),
    Step("a batch without commands", "POST", "/bulk_docs", body={}, refused=True),
    Step("a batch that is an array", "POST", "/bulk_docs", body=[1], refused=True),
    Step("a batch that is no JSON", "POST", "/bulk_docs", body='{"Commands":[{"Id":', refused=True),
    Step("an empty body", "POST", "/bulk_docs", refused=True),
    Step("transaction mode before the commands", "POST", "/bulk_docs", body={"TransactionMode": "SingleNode", "Commands": [put("users/10", user("z"))]}),
    Step("wait for indexes, of which there are none", "POST", "/bulk_docs?waitForIndexesTimeout=00:00:15&waitForIndexThrow=true", body={"Commands": [put("users/11", user("z"))]}),
    Step("wait for indexes, as Python writes it", "POST", "/bulk_docs??&waitForIndexesTimeout=00:00:15&waitForIndexThrow=false", body={"Commands": [put("users/12", user("z"))]}),
    Step("unknown options", "POST", "/bulk_docs?raft-request-id=0f5b18a1-2c70-4c2d-9a57-6c2c9a4b8a41&nodeTag=A", body={"Commands": [put("users/13", user("z"))]}),
    Step("what is left", "GET", "/docs?startsWith=users/1"),
]
