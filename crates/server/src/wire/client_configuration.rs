//! What a server or a database tells its clients to do.

use serde::{Deserialize, Serialize};

/// Set by an administrator; clients fetch it when an answer says that it changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct ClientConfiguration {
    /// Present, but not to be used.
    pub(crate) disabled: bool,
    /// Grows with each change.
    pub(crate) etag: i64,
    pub(crate) max_number_of_requests_per_session: Option<i32>,
    pub(crate) read_balance_behavior: Option<ReadBalanceBehavior>,
    pub(crate) load_balance_behavior: Option<LoadBalanceBehavior>,
    pub(crate) load_balancer_context_seed: Option<i32>,
    /// What separates a collection from the number in ids.
    pub(crate) identity_parts_separator: Option<char>,
}

/// Which node clients read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ReadBalanceBehavior {
    None,
    RoundRobin,
    FastestNode,
}

/// Which node a session uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LoadBalanceBehavior {
    None,
    UseSessionContext,
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn missing_values_are_written_as_null() {
        let text = r#"{"Etag":0,"Disabled":false,"MaxNumberOfRequestsPerSession":80}"#;
        let configuration: ClientConfiguration = serde_json::from_str(text).expect("JSON");
        assert_eq!(
            serde_json::to_string(&configuration).expect("JSON"),
            r#"{"Disabled":false,"Etag":0,"MaxNumberOfRequestsPerSession":80,"ReadBalanceBehavior":null,"LoadBalanceBehavior":null,"LoadBalancerContextSeed":null,"IdentityPartsSeparator":null}"#
        );
    }
}
