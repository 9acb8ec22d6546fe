"""Streams of documents: by prefix and all of them, as one JSON object and as lines."""

from step import Step

STEPS = [
    *[Step(f"put items/{n}", "PUT", f"/docs?id=items/{n}", body={"N": n, "@metadata": {"@collection": "Items"}}) for n in range(1, 6)],
    Step("by prefix", "GET", "/streams/docs?startsWith=items/"),
    Step("by prefix, lines", "GET", "/streams/docs?startsWith=items/&format=jsonl"),
    Step("by prefix, a page", "GET", "/streams/docs?startsWith=items/&start=1&pageSize=2"),
    Step("by prefix, matches", "GET", "/streams/docs?startsWith=items/&matches=2%7C4"),
    Step("by prefix, exclude", "GET", "/streams/docs?startsWith=items/&exclude=2%7C4"),
    Step("by prefix, start after", "GET", "/streams/docs?startsWith=items/&startAfter=items/3"),
    Step("by a prefix of nothing", "GET", "/streams/docs?startsWith=nothing/"),
    Step("by a prefix of nothing, lines", "GET", "/streams/docs?startsWith=nothing/&format=jsonl"),
    Step("all", "GET", "/streams/docs"),
    Step("all, lines", "GET", "/streams/docs?format=jsonl"),
    Step("a page of all", "GET", "/streams/docs?start=2&pageSize=2"),
]
