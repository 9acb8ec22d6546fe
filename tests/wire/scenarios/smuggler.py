"""Dumps: out and in again."""

import json

from step import Step

DUMP = json.dumps({
    "BuildVersion": 71028,
    "Docs": [
        {"Name": "Ann", "@metadata": {"@collection": "Users", "@id": "users/1", "@change-vector": "A:1-AAAAAAAAAAAAAAAAAAAAAA", "@last-modified": "2026-11-21T10:00:00.0000000Z"}},
        {"Name": "Bob", "@metadata": {"@collection": "Users", "@id": "users/2", "@change-vector": "A:2-AAAAAAAAAAAAAAAAAAAAAA", "@last-modified": "2026-11-21T10:00:00.0000000Z"}},
    ],
    "Identities": [{"Key": "users|", "Value": "5"}],
    "CompareExchange": [{"Key": "k1", "Value": '{"Object":"v1"}'}],
})
BOUNDARY = "----wire"


def multipart(options, file):
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="importOptions"\r\nContent-Type: application/json\r\n\r\n{json.dumps(options)}\r\n'
    head += f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="x.ravendbdump"\r\nContent-Type: application/octet-stream\r\n\r\n'
    return head.encode() + file + f"\r\n--{BOUNDARY}--\r\n".encode()


FORM = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
OPTIONS = {"OperateOnTypes": "DatabaseRecord,Documents,Identities,CompareExchange", "IncludeExpired": True, "RemoveAnalyzers": False}
RESULT = ("$type", "Message", "Messages", "Elapsed", "*.SizeInBytes", "*.StartTime", "*.LastEtag", "*.Attachments")
STEPS = [
    Step("import a plain dump", "POST", "/smuggler/import?operationId=7001", headers=FORM, body=multipart(OPTIONS, DUMP.encode()), ignore=("*",)),
    Step("a document of it", "GET", "/docs?id=users/1", ignore=("Results.*.@metadata.@last-modified", "Results.*.@metadata.@change-vector")),
    Step("a value of it", "GET", "/cmpxchg?key=k1"),
    Step("an identity of it", "GET", "/debug/identities"),
    Step("the operation of the import", "GET", "/operations/state?id=7001", ignore=("Progress", "Result", "$type")),
    Step("export", "POST", "/smuggler/export?operationId=7002", body=OPTIONS, ignore=()),
    Step("the operation of the export", "GET", "/operations/state?id=7002", ignore=("Progress", "Result", "$type")),
    Step("import of no dump", "POST", "/smuggler/import?operationId=7003", headers=FORM, body=multipart(OPTIONS, b"nonsense"), refused=True),
    Step("counts after all", "GET", "/collections/stats"),
]
