//! What goes over the changes socket: commands from the client, messages from the server.

use jackdaw_database::notifications::{ChangeKind, Event, IndexChangeKind, Topic};
use serde::Deserialize;
use serde_json::{Value, json};

/// What the server says first: that it tells of topology changes, and of changes that make cached answers stale.
pub(crate) const CAPABILITIES: &str = r#"[{"TopologyChange":true,"AggressiveCachingChange":true}]"#;
/// What it says when there is nothing to say.
pub(crate) const HEARTBEAT: &str = "[]";

/// A frame from the client.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Command {
    /// What the confirmation names.
    pub(crate) command_id: i64,
    command: String,
    #[serde(default)]
    param: Value,
    #[serde(default)]
    params: Option<Vec<String>>,
}

/// What a command asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// To hear of a topic.
    Watch(Topic),
    /// To hear of it no more.
    Unwatch(Topic),
    /// Of something that never happens here.
    Nothing,
}

impl Command {
    /// What it asks for.
    ///
    /// Errors: the command is not known, or lacks its parameter; the text is for the client.
    pub(crate) fn action(&self) -> Result<Action, String> {
        let name = self.command.to_ascii_lowercase();
        let (verb, subject) = match (name.strip_prefix("watch-"), name.strip_prefix("unwatch-")) {
            (Some(subject), _) => (Action::Watch as fn(Topic) -> Action, subject),
            (None, Some(subject)) => (Action::Unwatch as fn(Topic) -> Action, subject),
            (None, None) => return Err(format!("unknown command '{}'", self.command)),
        };
        let topic = match subject {
            "docs" => Topic::AllDocuments,
            "doc" => Topic::Document(self.parameter()?.to_owned()),
            "prefix" => Topic::Prefix(self.parameter()?.to_owned()),
            "collection" => Topic::Collection(self.parameter()?.to_owned()),
            "operations" => Topic::AllOperations,
            "operation" => Topic::Operation(self.number()?),
            "topology-change" => Topic::Topology,
            "aggressive-caching" => Topic::Staleness,
            "indexes" => Topic::AllIndexes,
            "index" => Topic::Index(self.parameter()?.to_owned()),
            // Counters and time series come with their issues; clients wait for the confirmation all the same.
            "counters" | "all-timeseries" => return Ok(Action::Nothing),
            "counter" | "document-counters" | "timeseries" | "all-document-timeseries" => {
                self.parameter()?;
                return Ok(Action::Nothing);
            }
            "document-counter" | "document-timeseries" => {
                return match self.params.as_deref() {
                    Some([_, _]) => Ok(Action::Nothing),
                    _ => Err(format!("'{}' needs two values in Params", self.command)),
                };
            }
            _ => return Err(format!("unknown command '{}'", self.command)),
        };
        Ok(verb(topic))
    }

    fn parameter(&self) -> Result<&str, String> {
        self.param.as_str().ok_or_else(|| format!("'{}' needs a text in Param", self.command))
    }

    /// Clients send ids of operations as text.
    fn number(&self) -> Result<i64, String> {
        let number = match &self.param {
            Value::String(text) => text.trim().parse().ok(),
            other => other.as_i64(),
        };
        number.ok_or_else(|| format!("'{}' needs a number in Param", self.command))
    }
}

/// That a command is in force.
pub(crate) fn confirmation(command_id: i64) -> String {
    format!(r#"{{"CommandId":{command_id},"Type":"Confirm"}}"#)
}

/// That the client did something that ends the connection.
pub(crate) fn error(text: &str) -> String {
    json!({ "Type": "Error", "Exception": text }).to_string()
}

/// An event, as it is told to a client that reaches this server under `url` and calls the database `database`.
pub(crate) fn message(event: &Event, url: &str, database: &str) -> String {
    match event {
        Event::Document(change) => {
            let kind = match change.kind {
                ChangeKind::Put => "Put",
                ChangeKind::Delete => "Delete",
            };
            json!({
                "Type": "DocumentChange",
                "Value": {
                    "Type": kind,
                    "Id": change.id,
                    "CollectionName": &*change.collection,
                    "ChangeVector": change.change_vector,
                },
            })
            .to_string()
        }
        Event::Operation { id, state } => {
            format!(r#"{{"Type":"OperationStatusChange","Value":{{"OperationId":{id},"State":{state}}}}}"#)
        }
        Event::Index(change) => {
            let kind = match change.kind {
                IndexChangeKind::BatchCompleted => "BatchCompleted",
                IndexChangeKind::Added => "IndexAdded",
                IndexChangeKind::Removed => "IndexRemoved",
                IndexChangeKind::SideBySideReplace => "SideBySideReplace",
                IndexChangeKind::LockModeChanged => "LockModeChanged",
                IndexChangeKind::PriorityChanged => "PriorityChanged",
            };
            json!({ "Type": "IndexChange", "Value": { "Name": change.name, "Type": kind } }).to_string()
        }
        Event::Topology => {
            json!({ "Type": "TopologyChange", "Value": { "Url": url, "Database": database } }).to_string()
        }
        Event::Staleness => r#"{"Type":"AggressiveCacheChange"}"#.to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn action(text: &str) -> Result<Action, String> {
        serde_json::from_str::<Command>(text).map_err(|error| error.to_string())?.action()
    }

    #[test]
    fn commands_are_understood() {
        let document = |id: &str| Topic::Document(id.to_owned());
        for (command, param, expected) in [
            ("watch-docs", "null", Action::Watch(Topic::AllDocuments)),
            ("watch-doc", r#""users/1""#, Action::Watch(document("users/1"))),
            ("unwatch-doc", r#""users/1""#, Action::Unwatch(document("users/1"))),
            ("WATCH-Doc", r#""users/1""#, Action::Watch(document("users/1"))),
            ("watch-prefix", r#""""#, Action::Watch(Topic::Prefix(String::new()))),
            ("watch-collection", r#""Users""#, Action::Watch(Topic::Collection("Users".to_owned()))),
            ("watch-operations", "null", Action::Watch(Topic::AllOperations)),
            ("watch-operation", r#""17""#, Action::Watch(Topic::Operation(17))),
            ("unwatch-operation", "17", Action::Unwatch(Topic::Operation(17))),
            ("watch-topology-change", r#""""#, Action::Watch(Topic::Topology)),
            ("watch-aggressive-caching", "null", Action::Watch(Topic::Staleness)),
            ("watch-indexes", "null", Action::Watch(Topic::AllIndexes)),
            (
                "watch-index",
                r#""Orders/ByCompany""#,
                Action::Watch(Topic::Index("Orders/ByCompany".to_owned())),
            ),
            ("watch-counters", "null", Action::Nothing),
            ("unwatch-document-counters", r#""users/1""#, Action::Nothing),
        ] {
            let text = format!(r#"{{"CommandId":1,"Command":"{command}","Param":{param}}}"#);
            assert_eq!(action(&text), Ok(expected), "{text}");
        }
        let two = r#"{"CommandId":1,"Command":"watch-document-counter","Params":["users/1","likes"]}"#;
        assert_eq!(action(two), Ok(Action::Nothing));
    }

    #[test]
    fn what_makes_no_sense_is_an_error() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"CommandId":1}"#,
            r#"{"Command":"watch-docs"}"#,
            r#"{"CommandId":"x","Command":"watch-docs"}"#,
            r#"{"CommandId":1,"Command":"watch-everything"}"#,
            r#"{"CommandId":1,"Command":"docs"}"#,
            r#"{"CommandId":1,"Command":"watch-doc"}"#,
            r#"{"CommandId":1,"Command":"watch-doc","Param":7}"#,
            r#"{"CommandId":1,"Command":"watch-operation","Param":"x"}"#,
            r#"{"CommandId":1,"Command":"watch-document-counter","Params":["users/1"]}"#,
        ] {
            assert!(action(text).is_err(), "{text}");
        }
    }

    #[test]
    fn messages_have_what_clients_read() {
        let change = jackdaw_database::notifications::DocumentChange {
            kind: ChangeKind::Delete,
            id: "a\"\u{1F600}".to_owned(),
            collection: "Users".into(),
            change_vector: "A:1-x".to_owned(),
        };
        let text = message(&Event::Document(change), "http://h", "x");
        let expected = json!({
            "Type": "DocumentChange",
            "Value": { "Type": "Delete", "Id": "a\"\u{1F600}", "CollectionName": "Users", "ChangeVector": "A:1-x" },
        });
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), expected);
        let state = r#"{"Status":"Completed"}"#.to_owned();
        assert_eq!(
            message(&Event::Operation { id: 3, state }, "", ""),
            r#"{"Type":"OperationStatusChange","Value":{"OperationId":3,"State":{"Status":"Completed"}}}"#
        );
        assert_eq!(
            message(&Event::Topology, "http://h", "x"),
            r#"{"Type":"TopologyChange","Value":{"Url":"http://h","Database":"x"}}"#
        );
        assert_eq!(confirmation(-1), r#"{"CommandId":-1,"Type":"Confirm"}"#);
        assert_eq!(error("a\"b"), r#"{"Type":"Error","Exception":"a\"b"}"#);
    }
}
