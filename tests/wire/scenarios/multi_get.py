"""`multi_get`: the requests of lazy operations, each with a status of its own."""

from step import Step


def sub(path, query="", method="GET", **more):
    return {"Url": f"/databases/${{db}}{path}", "Query": query, "Method": method, "Headers": {}, **more}


def ask(name, requests, **more):
    return Step(name, "POST", "/multi_get", body={"Requests": requests}, **more)


STEPS = [
    Step("put users/1", "PUT", "/docs?id=users/1", body={"Name": "Ann", "Friend": "users/2", "@metadata": {"@collection": "Users"}}, capture={"cv": "body.ChangeVector"}),
    Step("put users/2", "PUT", "/docs?id=users/2", body={"Name": "Bob", "@metadata": {"@collection": "Users"}}),
    Step("put a value", "PUT", "/cmpxchg?key=k&index=0", body={"Object": 5}),
    ask("nothing", []),
    ask("one document", [sub("/docs", "?&id=users/1")]),
    ask("a missing one", [sub("/docs", "?id=users/none")]),
    ask("several, and a prefix", [sub("/docs", "?id=users/2&id=users/1"), sub("/docs", "?startsWith=users/&pageSize=1")]),
    ask("with an include", [sub("/docs", "?id=users/1&include=Friend")]),
    ask("not modified", [sub("/docs", "?id=users/1", Headers={"If-None-Match": '"${cv}"'})]),
    ask("ids in the content", [sub("/docs", "?loadHash=1", "POST", Content={"Ids": ["users/1", "users/2"]})]),
    ask("ids in a content that is text", [sub("/docs", "?loadHash=1", "POST", Content='{"Ids":["users/1"]}')]),
    ask("compare exchange", [sub("/cmpxchg", "?key=k"), sub("/cmpxchg", "?key=none"), sub("/cmpxchg", "?startsWith=k")]),
    ask("no method", [{"Url": "/databases/${db}/docs", "Query": "?id=users/2"}]),
    ask("a database that does not exist", [{"Url": "/databases/no-such-database/docs", "Query": "?id=users/2", "Method": "GET", "Headers": {}}]),
    Step("no list of requests", "POST", "/multi_get", body={}, refused=True),
    Step("no JSON", "POST", "/multi_get", body="nonsense", refused=True),
]
