//! The record of a database: what the server knows of it beside its documents.
//!
//! A record goes out with all keys that clients know. One that comes in may leave most of them out or null; what it asks for beyond what
//! this server can do is refused and not dropped, because a database that silently lacks a feature is worse than none.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::error::{ErrorKind, Result};
use crate::wire::client_configuration::ClientConfiguration;

/// The tag of the only node.
pub(crate) const NODE_TAG: &str = "A";

/// What may be deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LockMode {
    /// The database can be deleted.
    #[default]
    Unlock,
    /// Deleting it does nothing.
    PreventDeletesIgnore,
    /// Deleting it is an error.
    PreventDeletesError,
}

/// A record, as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct DatabaseRecord {
    pub(crate) database_name: String,
    pub(crate) disabled: bool,
    pub(crate) lock_mode: LockMode,
    /// Changes whenever the record does.
    pub(crate) etag: i64,
    /// The index of the command that last changed the topology; clients compare it.
    pub(crate) topology_etag: i64,
    pub(crate) nodes_modified_at: String,
    pub(crate) topology_id: String,
    /// As the database itself says; empty until it was first opened.
    pub(crate) cluster_transaction_id: String,
    /// The order of nodes, when somebody fixed it.
    pub(crate) priority_order: Vec<String>,
    pub(crate) settings: Map<String, Value>,
    pub(crate) client: Option<ClientConfiguration>,
    pub(crate) studio: Option<Value>,
    /// Its files are being deleted; nothing else can be done with it.
    pub(crate) is_being_deleted: bool,
    /// The id of the request that made it: who sends that again made it.
    #[serde(default)]
    pub(crate) made_by: Option<String>,
}

/// Keys of a record that need nothing from this server, or that it makes itself.
const TAKEN: &[&str] = &[
    "DatabaseName",
    "Disabled",
    "LockMode",
    "Settings",
    "Client",
    "Studio",
    "Etag",
    "EtagForBackup",
    "DatabaseState",
    "Topology",
    "UnusedDatabaseIds",
    "SupportedFeatures",
    "TruncatedClusterTransactionCommandsCount",
    "DeletionInProgress",
    "RollingIndexes",
    "IndexesHistory",
];

/// Keys of a record as they go out, between the settings and the client configuration, with what they hold when nothing is set.
const NULLS: &[&str] = &[
    "Revisions",
    "RevisionsBin",
    "TimeSeries",
    "RevisionsForConflicts",
    "Expiration",
    "Refresh",
    "DataArchival",
    "Integrations",
];
const LISTS: &[&str] =
    &["PeriodicBackups", "ExternalReplications", "SinkPullReplications", "HubPullReplications"];
const MAPS: &[&str] = &[
    "RavenConnectionStrings",
    "SqlConnectionStrings",
    "OlapConnectionStrings",
    "ElasticSearchConnectionStrings",
    "QueueConnectionStrings",
    "SnowflakeConnectionStrings",
    "AiConnectionStrings",
];
const MORE_LISTS: &[&str] = &[
    "AiAgents",
    "RavenEtls",
    "SqlEtls",
    "ElasticSearchEtls",
    "OlapEtls",
    "QueueEtls",
    "QueueSinks",
    "SnowflakeEtls",
    "EmbeddingsGenerations",
    "GenAis",
];

impl DatabaseRecord {
    /// A record as a client sends it to make a database. Etags, ids and dates are set by whoever stores it.
    ///
    /// Errors: no name, values of wrong types, anything asked for that this server cannot do.
    pub(crate) fn from_wire(sent: &Map<String, Value>) -> Result<DatabaseRecord> {
        let invalid = |key: &str, what: &str| {
            ErrorKind::InvalidData.error(format!("the database record's '{key}' must be {what}"))
        };
        let get = |key: &str| sent.get(key).filter(|value| !value.is_null());
        let name = match get("DatabaseName") {
            Some(Value::String(name)) => name.clone(),
            Some(_) => return Err(invalid("DatabaseName", "a string")),
            None => String::new(),
        };
        let disabled = match get("Disabled") {
            None => false,
            Some(value) => value.as_bool().ok_or_else(|| invalid("Disabled", "true or false"))?,
        };
        let settings = match get("Settings") {
            None => Map::new(),
            Some(value) => settings_of(value)?,
        };
        let lock_mode = get("LockMode").map(LockMode::deserialize).transpose()?;
        let client = get("Client").map(ClientConfiguration::deserialize).transpose()?;
        if let Some(members) = sent.get("Topology").and_then(|topology| topology.get("Members"))
            && let Some(other) =
                members.as_array().into_iter().flatten().find(|member| member.as_str() != Some(NODE_TAG))
        {
            return Err(ErrorKind::InvalidOperation.error(format!(
                "the database cannot be put on node {other}: this server is a cluster of one node, {NODE_TAG}"
            )));
        }
        for (key, value) in sent {
            if !TAKEN.contains(&key.as_str()) && !is_nothing(value) {
                return Err(ErrorKind::NotSupported.error(format!(
                    "the database record asks for '{key}', which this server does not support"
                )));
            }
        }
        Ok(DatabaseRecord {
            database_name: name,
            disabled,
            lock_mode: lock_mode.unwrap_or_default(),
            etag: 0,
            topology_etag: 0,
            nodes_modified_at: String::new(),
            topology_id: String::new(),
            cluster_transaction_id: String::new(),
            priority_order: Vec::new(),
            settings,
            client,
            studio: get("Studio").cloned(),
            is_being_deleted: false,
            made_by: None,
        })
    }

    /// The topology, as it is answered to whoever made the database.
    pub(crate) fn topology(&self) -> Value {
        json!({
            "Members": [NODE_TAG],
            "Promotables": [],
            "Rehabs": [],
            "PredefinedMentors": {},
            "DemotionReasons": {},
            "PromotablesStatus": {},
            "Stamp": { "Index": self.topology_etag, "Term": 1, "LeadersTicks": -2 },
            "DynamicNodesDistribution": false,
            "ReplicationFactor": 1,
            "PriorityOrder": self.priority_order,
            "NodesModifiedAt": self.nodes_modified_at,
            "DatabaseTopologyIdBase64": self.topology_id,
            "ClusterTransactionIdBase64": self.cluster_transaction_id,
        })
    }

    /// The record with every key that clients know.
    pub(crate) fn to_wire(&self) -> Value {
        let mut out = Map::new();
        let mut set = |key: &str, value: Value| {
            out.insert(key.to_owned(), value);
        };
        set("DatabaseName", self.database_name.as_str().into());
        set("Disabled", self.disabled.into());
        set("Encrypted", false.into());
        set("EtagForBackup", self.etag.into());
        let deletion = if self.is_being_deleted { json!({ NODE_TAG: "HardDelete" }) } else { json!({}) };
        set("DeletionInProgress", deletion);
        set("RollingIndexes", json!({}));
        set("DatabaseState", "Normal".into());
        set("LockMode", json!(self.lock_mode));
        set("Topology", self.topology());
        for key in ["Sharding", "ConflictSolverConfig", "DocumentsCompression"] {
            set(key, Value::Null);
        }
        for key in ["Sorters", "Analyzers", "Indexes", "IndexesHistory", "AutoIndexes"] {
            set(key, json!({}));
        }
        set("Settings", Value::Object(self.settings.clone()));
        NULLS.iter().for_each(|key| set(key, Value::Null));
        LISTS.iter().for_each(|key| set(key, json!([])));
        MAPS.iter().for_each(|key| set(key, json!({})));
        MORE_LISTS.iter().for_each(|key| set(key, json!([])));
        set("Client", json!(self.client));
        set("Studio", json!(self.studio));
        set("TruncatedClusterTransactionCommandsCount", 0.into());
        set("UnusedDatabaseIds", json!([]));
        set("Etag", self.etag.into());
        Value::Object(out)
    }
}

impl DatabaseRecord {
    /// The record as it stands in a dump: what a database is made of anew, with its custom analyzers. Settings are a list there, of objects of one setting each.
    pub(crate) fn to_dump(&self, analyzers: Value) -> Value {
        let settings: Vec<Value> = self.settings.iter().map(|(key, value)| json!({ key: value })).collect();
        json!({
            "DatabaseName": self.database_name,
            "Encrypted": false,
            "UnusedDatabaseIds": [],
            "LockMode": self.lock_mode,
            "ConflictSolverConfig": null,
            "Settings": settings,
            "Client": self.client,
            "Sorters": {},
            "Analyzers": analyzers,
        })
    }
}

/// The settings of a database: names and texts.
///
/// Errors: a value that is no scalar.
pub(crate) fn settings_of(value: &Value) -> Result<Map<String, Value>> {
    let Value::Object(settings) = value else {
        return Err(ErrorKind::InvalidData.error("the settings of a database must be an object"));
    };
    let mut out = Map::new();
    for (key, value) in settings {
        let text = match value {
            Value::Null => Value::Null,
            Value::String(text) => text.as_str().into(),
            Value::Bool(_) | Value::Number(_) => value.to_string().into(),
            Value::Array(_) | Value::Object(_) => {
                return Err(
                    ErrorKind::InvalidData.error(format!("the value of the setting '{key}' must be a text"))
                );
            }
        };
        out.insert(key.clone(), text);
    }
    Ok(out)
}

/// Whether a value asks for nothing.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_nothing),
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn from_wire(text: &str) -> Result<DatabaseRecord> {
        DatabaseRecord::from_wire(&serde_json::from_str(text).expect("JSON"))
    }

    #[test]
    fn what_clients_send_is_a_record() {
        let text = r#"{"DatabaseName":"X","Disabled":false,"Encrypted":false,"EtagForBackup":0,"DeletionInProgress":null,
            "LockMode":null,"Topology":null,"Sorters":{},"Indexes":{},"IndexesHistory":null,"Settings":{"a":"b","n":1},
            "Revisions":null,"PeriodicBackups":[],"RavenConnectionStrings":{},"Sharding":{"Shards":{}}}"#;
        let record = from_wire(text).expect("a record");
        assert_eq!(record.database_name, "X");
        assert_eq!(Value::Object(record.settings.clone()), json!({ "a": "b", "n": "1" }));
        let again = from_wire(&record.to_wire().to_string()).expect("what goes out can come in");
        assert_eq!(again, record);
    }

    /// As RavenDB 5.4 writes them, and refuses anything else.
    #[test]
    fn settings_in_a_dump_are_a_list() {
        let record = from_wire(r#"{"DatabaseName":"X","Settings":{"a":"b","n":1}}"#).expect("a record");
        let dump = record.to_dump(json!({ "Mine": { "Code": "" } }));
        assert_eq!(dump["Settings"], json!([{ "a": "b" }, { "n": "1" }]));
        assert_eq!(dump["Analyzers"]["Mine"]["Code"], "");
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        for (text, kind) in [
            (r#"{"DatabaseName":1}"#, ErrorKind::InvalidData),
            (r#"{"DatabaseName":"X","Disabled":"no"}"#, ErrorKind::InvalidData),
            (r#"{"DatabaseName":"X","Settings":[]}"#, ErrorKind::InvalidData),
            (r#"{"DatabaseName":"X","Settings":{"a":{}}}"#, ErrorKind::InvalidData),
            (r#"{"DatabaseName":"X","LockMode":"Never"}"#, ErrorKind::InvalidData),
            (r#"{"DatabaseName":"X","Encrypted":true}"#, ErrorKind::NotSupported),
            (
                r#"{"DatabaseName":"X","Revisions":{"Default":{"Disabled":false,"MinimumRevisionsToKeep":5}}}"#,
                ErrorKind::NotSupported,
            ),
            (r#"{"DatabaseName":"X","Unheard":[1]}"#, ErrorKind::NotSupported),
            (r#"{"DatabaseName":"X","Topology":{"Members":["A","B"]}}"#, ErrorKind::InvalidOperation),
        ] {
            assert_eq!(from_wire(text).expect_err(text).kind(), kind, "{text}");
        }
    }
}
