"""What a client asks of a server before it has a database: version, topology, routes that do not exist."""

from step import Step

DATABASE = False
STEPS = [
    Step("build version", "GET", "//build/version", ignore=("CommitHash", "@metadata")),
    Step("cluster topology", "GET", "//cluster/topology", ignore=("@metadata", "LastStateChangeReason", "LeaderShipDuration", "NodeLicenseDetails", "Topology.TopologyId")),
    Step("cluster topology, as Python asks", "GET", "//cluster/topology?first-topology-update", headers={"Topology-Etag": '"None"', "Raven-Client-Version": "7.2.7"}, ignore=("@metadata", "LastStateChangeReason", "LeaderShipDuration", "NodeLicenseDetails", "Topology.TopologyId")),
    Step("node info", "GET", "//cluster/node-info", ignore=("@metadata", "LastStateChangeReason", "OsInfo", "BuildInfo", "Certificate", "CurrentState", "ClusterStatus", "ServerSchemaVersion", "InstalledMemoryInGb", "UsableMemoryInGb", "NumberOfCores", "HasFixedPort", "ServerRole", "*.Version")),
    Step("an unknown route", "GET", "//no/such/route"),
    Step("an unknown method of a known route", "PATCH", "//build/version"),
    Step("an unknown route below a missing database", "GET", "//databases/no-such-database/no-such-route"),
    Step("topology of a missing database", "GET", "//topology?name=no-such-database&first-topology-update&applicationIdentifier=0f5b18a1-2c70-4c2d-9a57-6c2c9a4b8a40"),
    Step("a document of a missing database", "GET", "//databases/no-such-database/docs?id=users/1"),
    Step("a write to a missing database", "PUT", "//databases/no-such-database/docs?id=users/1", body={"Name": "Ann"}),
    Step("changes of a missing database", "GET", "//databases/no-such-database/changes", headers={"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}),
    Step("record of a missing database", "GET", "//admin/databases?name=no-such-database"),
    Step("state of an unknown server-wide operation", "GET", "//operations/state?id=987654321"),
    Step("kill of an unknown server-wide operation", "POST", "//admin/operations/kill?id=987654321"),
    Step("server-wide client configuration", "GET", "//configuration/client"),
    Step("delete of a missing database", "DELETE", "//admin/databases", body={"DatabaseNames": ["no-such-database"], "HardDelete": True}, ignore=("RaftCommandIndex",)),
    Step("lock mode of a missing database", "POST", "//admin/databases/set-lock", body={"DatabaseNames": ["no-such-database"], "Mode": "Unlock"}),
    Step("reachability check", "GET", "//info/tcp?tcp=health-check", ignore=("*",)),
]
