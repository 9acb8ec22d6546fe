"""Cluster-wide transactions on one node: documents and compare-exchange values together, guarded, all or nothing."""

from step import Step


def user(name, **metadata):
    return {"Name": name, "@metadata": {"@collection": "Users", **metadata}}


def put(identifier, document, **more):
    return {"Id": identifier, "Type": "PUT", "Document": document, "ChangeVector": None, **more}


def save(name, commands, request, guards=True, **more):
    path = f"/bulk_docs?disableAtomicDocumentWrites={'false' if guards else 'true'}&raft-request-id=${{run}}-2c70-4c2d-9a57-{request:012}"
    return Step(name, "POST", path, body={"Commands": commands, "TransactionMode": "ClusterWide"}, headers={"Raven-Client-Version": "7.2.7"}, **more)


STEPS = [
    save("a document and a value", [put("users/1", user("Ann")), {"Type": "CompareExchangePUT", "Id": "names/ann", "Document": {"Object": "users/1"}, "Index": 0}], 1, capture={"cv": "body.Results.0.@change-vector", "index": "body.Results.1.Index"}),
    Step("the document", "GET", "/docs?id=users/1", headers={"Raven-Client-Version": "7.2.7"}),
    Step("the document, in a cluster-wide session", "GET", "/docs?id=users/1&txMode=ClusterWide", headers={"Raven-Client-Version": "7.2.7"}, capture={"guarded": "body.Results.0.@metadata.@change-vector"}),
    Step("the value", "GET", "/cmpxchg?key=names/ann"),
    Step("its guard", "GET", "/cmpxchg?key=rvn-atomic/users/1"),
    save("the same request again is not executed twice", [put("users/1", user("Ann")), {"Type": "CompareExchangePUT", "Id": "names/ann", "Document": {"Object": "users/1"}, "Index": 0}], 1),
    save("a value that exists", [put("users/2", user("Bob")), {"Type": "CompareExchangePUT", "Id": "names/ann", "Document": {"Object": "users/2"}, "Index": 0}], 2),
    Step("so no document either", "GET", "/docs?id=users/2"),
    save("a change of the document, guarded", [put("users/1", user("Ann 2"), ChangeVector="${guarded}")], 3),
    save("a change with the vector before that", [put("users/1", user("never"), ChangeVector="${guarded}")], 4),
    Step("an ordinary write in between", "PUT", "/docs?id=users/1", body=user("Ann 3")),
    Step("the vectors are joined", "GET", "/docs?id=users/1&txMode=ClusterWide", headers={"Raven-Client-Version": "7.2.7"}, capture={"joined": "body.Results.0.@metadata.@change-vector"}),
    save("change and delete of values", [{"Type": "CompareExchangePUT", "Id": "names/ann", "Document": {"Object": "users/9"}, "Index": 0}], 5),
    save("without guards", [put("plain/1", user("Cid"))], 6, guards=False),
    Step("no guard", "GET", "/cmpxchg?key=rvn-atomic/plain/1"),
    save("delete a document", [{"Id": "plain/1", "Type": "DELETE", "ChangeVector": None}], 7),
    Step("it is gone", "GET", "/docs?id=plain/1"),
    save("a guard of the user's own", [{"Type": "CompareExchangePUT", "Id": "rvn-atomic/x", "Document": {"Object": 1}, "Index": 0}], 8),
    save("an id that the server should make", [put("users/", user("x"))], 9),
    save("an identity", [put("people|", user("x"))], 10),
    save("no commands", [], 11),
    save("delete a missing value", [{"Type": "CompareExchangeDELETE", "Id": "names/none", "Index": 5}], 12),
]
