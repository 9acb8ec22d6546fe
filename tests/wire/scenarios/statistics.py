"""Statistics of a database that has a few documents, a tombstone and an identity."""

from step import Step

MACHINE = ("@metadata", "SizeOnDisk", "TempBuffersSizeOnDisk", "Pager", "NumberOfTransactionMergerQueueOperations", "LastIndexingTime", "Indexes.*.LastIndexingTime")
STEPS = [
    Step("of an empty database", "GET", "/stats", ignore=MACHINE),
    Step("collections of an empty database", "GET", "/collections/stats"),
    *[Step(f"put users/{n}", "PUT", f"/docs?id=users/{n}", body={"N": n, "@metadata": {"@collection": "Users"}}) for n in (1, 2, 3)],
    Step("put orders/1", "PUT", "/docs?id=orders/1", body={"N": 1, "@metadata": {"@collection": "Orders"}}),
    Step("delete users/3", "DELETE", "/docs?id=users/3"),
    Step("an identity", "POST", "/identity/next?name=users%7C"),
    Step("a value", "PUT", "/cmpxchg?key=k&index=0", body={"Object": 1}),
    Step("of the database", "GET", "/stats", ignore=MACHINE),
    Step("with a wish to wait", "GET", "/stats?wait-for-indexing", ignore=MACHINE),
    Step("as a failure check", "GET", "/stats?failure=check", ignore=MACHINE),
    Step("detailed", "GET", "/stats/detailed", ignore=MACHINE),
    Step("essential", "GET", "/stats/essential", ignore=MACHINE),
    Step("collections", "GET", "/collections/stats"),
    Step("collections, detailed", "GET", "/collections/stats/detailed"),
    Step("health", "GET", "/healthcheck"),
]
