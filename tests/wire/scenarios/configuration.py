"""Client configuration and settings of a database."""

from step import Step

STEPS = [
    Step("none yet", "GET", "/configuration/client"),
    Step("put", "PUT", "/admin/configuration/client", body={"Etag": 0, "Disabled": False, "MaxNumberOfRequestsPerSession": 80, "ReadBalanceBehavior": "None", "LoadBalanceBehavior": "None", "LoadBalancerContextSeed": 0, "IdentityPartsSeparator": "/"}),
    Step("get", "GET", "/configuration/client"),
    Step("a client that knows an older one", "GET", "/docs?id=x&id=y", headers={"Client-Configuration-Etag": '"0"'}),
    Step("a client that knows none", "GET", "/docs?id=x&id=y", headers={"Client-Configuration-Etag": '"None"'}),
    Step("a client that says nothing", "GET", "/docs?id=x&id=y"),
    Step("a client with an old topology", "GET", "/docs?id=x&id=y", headers={"Topology-Etag": '"-1"'}),
    Step("a client with the newest topology", "GET", "/docs?id=x&id=y", headers={"Topology-Etag": '"999999999"'}),
    Step("put no JSON", "PUT", "/admin/configuration/client", body="nonsense", refused=True),
    Step("settings", "PUT", "/admin/configuration/settings", body={"Indexing.MapBatchSize": "100"}),
    Step("they are in the record", "GET", "/admin/record", ignore=("Topology", "Client", "IndexesHistory", "SupportedFeatures", "Etag", "EtagForBackup")),
]
