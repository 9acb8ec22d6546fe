"""Compressed answers, as asked for, and compressed requests."""

import gzip
import json
import zlib

from step import Step

DOCUMENT = json.dumps({"Text": "abc" * 100, "@metadata": {"@collection": "Texts"}}).encode()
STEPS = [
    Step("request in gzip", "PUT", "/docs?id=texts/1", headers={"Content-Encoding": "gzip"}, body=gzip.compress(DOCUMENT, mtime=0)),
    Step("answer in gzip", "GET", "/docs?id=texts/1", headers={"Accept-Encoding": "gzip"}),
    Step("answer as Python asks", "GET", "/docs?id=texts/1", headers={"Accept-Encoding": "gzip, deflate"}),
    Step("answer as it is", "GET", "/docs?id=texts/1", headers={"Accept-Encoding": "identity"}),
    Step("answer with nothing asked", "GET", "/docs?id=texts/1"),
    Step("error in gzip", "PUT", "/docs?id=texts/1", headers={"Accept-Encoding": "gzip", "If-Match": '"A:99-AAAAAAAAAAAAAAAAAAAAAA"'}, body=DOCUMENT),
    Step("nothing in gzip", "GET", "/docs?id=none", headers={"Accept-Encoding": "gzip"}),
    Step("request in a coding nobody knows", "PUT", "/docs?id=texts/2", headers={"Content-Encoding": "lzma"}, body=b"nonsense", refused=True),
    Step("request in gzip that is none", "PUT", "/docs?id=texts/2", headers={"Content-Encoding": "gzip"}, body=b"nonsense", refused=True),
    Step("nothing was stored", "GET", "/docs?id=texts/2"),
    Step("batch in gzip", "POST", "/bulk_docs", headers={"Content-Encoding": "gzip"}, body=gzip.compress(json.dumps({"Commands": [{"Id": "texts/3", "Type": "PUT", "Document": {"A": 1}}]}).encode(), mtime=0)),
    Step("batch in deflate", "POST", "/bulk_docs", headers={"Content-Encoding": "deflate"}, body=zlib.compress(json.dumps({"Commands": [{"Id": "texts/4", "Type": "PUT", "Document": {"A": 1}}]}).encode()), refused=True),
]
