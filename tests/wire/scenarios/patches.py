"""Patches: one document changed by a script, alone and in batches."""

from step import Step

ORDER = '{"n":1,"price":1.10,"big":9007199254740993,"whole":10.0,"tags":["a","b"],"@metadata":{"@collection":"Orders"}}'


def script(text, **values):
    return {"Script": text, "Values": values}


def patch(name, text, identifier="orders/1", more="", missing=None, values=None, **options):
    body = {"Patch": script(text, **(values or {})), "PatchIfMissing": missing and script(missing)}
    return Step(name, "PATCH", f"/docs?id={identifier}{more}", body=body, **options)


def batch(name, *commands, **options):
    return Step(name, "POST", "/bulk_docs", body={"Commands": list(commands)}, **options)


def command(text, identifier="orders/1", **more):
    return {"Id": identifier, "Type": "PATCH", "ChangeVector": None, "Patch": script(text), **more}


STEPS = [
    Step("an order", "PUT", "/docs?id=orders/1", body=ORDER),
    patch("a change", "this.n = 2"),
    Step("what is left alone stays as it was", "GET", "/docs?id=orders/1"),
    patch("no change", "this.n = 2"),
    patch("arguments", "this.n += args.by; this.who = args.who", values={"by": 5, "who": {"a": [1, None]}}),
    patch("a list", "this.tags.push('c', 'd'); this.tags.splice(0, 1)"),
    patch("a deleted property", "delete this.who"),
    patch("reading from nothing", "this.x = this.nope.deep.er; this.l = this.nope.map(x => x)"),
    patch("values", "this.d = new Date(Date.UTC(2020, 1, 2)); this.f = 1.5; this.i = 5; this.t = [true, null, 'x']"),
    patch("a missing document", "this.n = 1", "orders/none"),
    patch("a missing document that is made", "this.n = 1", "orders/2", missing="this.n = 100; this['@metadata'] = {'@collection': 'Orders'}"),
    patch("and then changed", "this.n++", "orders/2", missing="this.n = 100"),
    patch("a script that throws", "this.n = 7; throw 5", refused=True),
    patch("a script that is none", "this.n = ;", refused=True),
    patch("a script without an end", "while (true) {}", refused=True),
    patch("another change vector", "this.n = 7", headers={"If-Match": '"A:1-AAAAAAAAAAAAAAAAAAAAAA"'}),
    patch("another change vector, passed over", "this.n = 7", more="&skipPatchIfChangeVectorMismatch=true", headers={"If-Match": '"A:1-AAAAAAAAAAAAAAAAAAAAAA"'}),
    patch("other documents", "put('copies/1', {a: load('orders/2').n, '@metadata': {'@collection': 'Copies'}}); this.gone = del('orders/none')"),
    Step("the copy", "GET", "/docs?id=copies/1"),
    patch("another collection", "this['@metadata']['@collection'] = 'Others'", refused=True),
    patch("metadata", "getMetadata(this)['x'] = 'y'; this.id = id(this)"),
    batch("a batch", command("this.n = 50"), command("this.n = 50"), command("this.n++", ReturnDocument=True), command("this.n = 1", "orders/none")),
    batch("a batch that makes one", command("this.n = 1", "orders/3", PatchIfMissing=script("this.m = 1"))),
    batch("several documents", {"Type": "BatchPATCH", "Ids": [{"Id": "orders/1"}, {"Id": "orders/2"}, {"Id": "orders/none"}], "Patch": script("this.all = 1")}),
    batch("a batch that fails", {"Id": "users/1", "Type": "PUT", "Document": {"a": 1}}, command("throw 'no'"), refused=True),
    Step("nothing of that batch happened", "GET", "/docs?id=users/1"),
    batch("a batch with another change vector", command("this.n = 1", ChangeVector="A:1-AAAAAAAAAAAAAAAAAAAAAA")),
    batch("a json patch", {"Id": "orders/1", "Type": "JsonPatch", "JsonPatch": {"Operations": [{"op": "replace", "path": "/n", "value": 7}, {"op": "add", "path": "/tags/-", "value": "z"}]}}),
    batch("a json patch of nothing", {"Id": "orders/1", "Type": "JsonPatch", "JsonPatch": {"Operations": [{"op": "remove", "path": "/nope"}]}}, refused=True),
    Step("a patch without a script", "PATCH", "/docs?id=orders/1", body={"Patch": {"Values": {}}}, refused=True),
    Step("a patch without a patch", "PATCH", "/docs?id=orders/1", body={}, refused=True),
    Step("a patch without an id", "PATCH", "/docs", body={"Patch": script("this.n = 1")}, refused=True),
    Step("what is left", "GET", "/docs?startsWith=orders/"),
]
