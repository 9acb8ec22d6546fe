"""Databases from creation to deletion: record, names, enabling, locking, topology."""

from step import Step

DATABASE = False
RECORD_IGNORED = (
    # Its own page of the record: features that are configured elsewhere, and history.
    "IndexesHistory", "Topology.DatabaseTopologyIdBase64", "Topology.ClusterTransactionIdBase64", "Topology.Stamp",
    "Etag", "EtagForBackup", "SupportedFeatures",
)
CREATED = ("Topology.Stamp", "Topology.DatabaseTopologyIdBase64", "Topology.ClusterTransactionIdBase64")
STEPS = [
    Step("create", "PUT", "//admin/databases?name=${db}&replicationFactor=1", body={"DatabaseName": "${db}"}, headers={"ETag": '"undefined"', "Content-Type": "application/json"}, ignore=CREATED),
    Step("create again", "PUT", "//admin/databases?name=${db}&replicationFactor=1", body={"DatabaseName": "${db}"}),
    Step("record", "GET", "//admin/databases?name=${db}", ignore=RECORD_IGNORED),
    Step("record, from inside", "GET", "/admin/record", ignore=RECORD_IGNORED),
    Step("topology", "GET", "//topology?name=${db}&first-topology-update&applicationIdentifier=0f5b18a1-2c70-4c2d-9a57-6c2c9a4b8a40", ignore=("Stamp", "Nodes.*.ServerVersion")),
    Step("topology, name in capitals", "GET", "//topology?name=WIRE-NO-SUCH"),
    Step("put into it", "PUT", "/docs?id=users/1", body={"Name": "Ann"}),
    Step("disable", "POST", "//admin/databases/disable", body={"DatabaseNames": ["${db}"]}, ignore=("Status.*.Reason",)),
    Step("get while disabled", "GET", "/docs?id=users/1"),
    Step("put while disabled", "PUT", "/docs?id=users/2", body={"Name": "Bob"}),
    Step("topology while disabled", "GET", "//topology?name=${db}", ignore=("*",)),
    Step("record while disabled", "GET", "//admin/databases?name=${db}", ignore=RECORD_IGNORED),
    Step("enable", "POST", "//admin/databases/enable", body={"DatabaseNames": ["${db}"]}, ignore=("Status.*.Reason",)),
    Step("get after enabling", "GET", "/docs?id=users/1"),
    Step("the put while disabled changed nothing", "GET", "/docs?id=users/2"),
    Step("lock against deletes, loudly", "POST", "//admin/databases/set-lock", body={"DatabaseNames": ["${db}"], "Mode": "PreventDeletesError"}),
    Step("delete while locked loudly", "DELETE", "//admin/databases", body={"DatabaseNames": ["${db}"], "HardDelete": True}, contains=("PreventDeletesError",)),
    Step("lock against deletes, silently", "POST", "//admin/databases/set-lock", body={"DatabaseNames": ["${db}"], "Mode": "PreventDeletesIgnore"}),
    Step("delete while locked silently", "DELETE", "//admin/databases", body={"DatabaseNames": ["${db}"], "HardDelete": True}, ignore=("RaftCommandIndex",)),
    Step("still there", "GET", "/docs?id=users/1"),
    Step("unlock", "POST", "//admin/databases/set-lock", body={"DatabaseNames": ["${db}"], "Mode": "Unlock"}),
    Step("reorder the members", "POST", "//admin/databases/reorder?name=${db}", body={"MembersOrder": ["A"], "Fixed": False}),
    Step("add a node that does not exist", "PUT", "//admin/databases/node?name=${db}"),
    Step("delete", "DELETE", "//admin/databases", body={"DatabaseNames": ["${db}"], "HardDelete": True}),
    Step("record after the deletion", "GET", "//admin/databases?name=${db}"),
    Step("get after the deletion", "GET", "/docs?id=users/1"),
    Step("create under the same name", "PUT", "//admin/databases?name=${db}&replicationFactor=1", body={"DatabaseName": "${db}"}, ignore=CREATED),
    Step("nothing of the old one is left", "GET", "/docs?id=users/1"),
    Step("create without a record", "PUT", "//admin/databases?name=${db}x&replicationFactor=1", body="", refused=True),
    Step("create with a record that is no JSON", "PUT", "//admin/databases?name=${db}x&replicationFactor=1", body="{nonsense", refused=True),
    Step("create with a space in the name", "PUT", "//admin/databases?name=a%20b&replicationFactor=1", body={"DatabaseName": "a b"}, refused=True),
    Step("create with a slash in the name", "PUT", "//admin/databases?name=a%2Fb&replicationFactor=1", body={"DatabaseName": "a/b"}, refused=True),
    Step("create with a path in the name", "PUT", "//admin/databases?name=..%2F..%2Fetc&replicationFactor=1", body={"DatabaseName": "../../etc"}, refused=True),
    Step("create without a name", "PUT", "//admin/databases?replicationFactor=1", body={"DatabaseName": ""}, refused=True),
]
