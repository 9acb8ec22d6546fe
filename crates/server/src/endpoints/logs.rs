//! The log's configuration: its level can be read and changed while the server runs. In both spellings that clients know.

use http::Method;
use serde_json::{Value, json};

use crate::error::{ErrorKind, Result};
use crate::request::ServerRequest;
use crate::response::Response;
use crate::routes::Routes;

pub(crate) fn routes(routes: &mut Routes) {
    routes.server(Method::GET, "/admin/logs/configuration", get);
    routes.server(Method::POST, "/admin/logs/configuration", post);
}

/// Levels as the reference names them, and ours.
const LEVELS: &[(&str, &str)] = &[
    ("Trace", "trace"),
    ("Debug", "debug"),
    ("Info", "info"),
    ("Warn", "warn"),
    ("Error", "error"),
    ("Fatal", "error"),
    ("Off", "off"),
];

/// Modes of older clients.
const MODES: &[(&str, &str)] = &[("None", "off"), ("Operations", "info"), ("Information", "debug")];

/// What `level` is called in a list; a filter goes by its first word.
fn called(list: &[(&'static str, &str)], level: &str) -> &'static str {
    let level = level.split([',', '=']).next().unwrap_or_default();
    list.iter().find(|(_, ours)| ours.eq_ignore_ascii_case(level)).map_or("Info", |(theirs, _)| theirs)
}

async fn get(request: ServerRequest) -> Result<Response> {
    let level = request.state.log().level();
    let configured = called(LEVELS, &request.state.settings().log_level);
    let current = called(LEVELS, &level);
    let mode = match called(MODES, &level) {
        "None" => "None",
        "Information" => "Information",
        _ => "Operations",
    };
    Response::of(&json!({
        "CurrentMode": mode,
        "Mode": mode,
        "Path": null,
        "UseUtcTime": true,
        "RetentionTime": "3.00:00:00",
        "RetentionSize": null,
        "Compress": false,
        "Logs": {
            "Path": null,
            "CurrentMinLevel": current,
            "MinLevel": configured,
            "ArchiveAboveSizeInMb": 128,
            "MaxArchiveDays": 3,
            "MaxArchiveFiles": null,
            "EnableArchiveFileCompression": false,
            "CurrentFilters": [],
            "CurrentLogFilterDefaultAction": "Neutral",
        },
        "AuditLogs": {
            "Path": null,
            "Level": "Info",
            "ArchiveAboveSizeInMb": 128,
            "MaxArchiveDays": 3,
            "MaxArchiveFiles": null,
            "EnableArchiveFileCompression": false,
        },
        "MicrosoftLogs": { "CurrentMinLevel": "Error", "MinLevel": "Error" },
        "AdminLogs": { "CurrentMinLevel": "Trace", "CurrentFilters": [], "CurrentLogFilterDefaultAction": "Ignore" },
    }))
}

async fn post(mut request: ServerRequest) -> Result<Response> {
    let sent: Value = request.json().await?;
    let (list, name) = match (sent["Logs"]["MinLevel"].as_str(), sent["Mode"].as_str()) {
        (Some(level), _) => (LEVELS, level),
        (None, Some(mode)) => (MODES, mode),
        (None, None) => return Ok(Response::no_content()),
    };
    let Some((_, level)) = list.iter().find(|(theirs, _)| theirs.eq_ignore_ascii_case(name)) else {
        return Err(ErrorKind::Format.error(format!("'{name}' is no level of the log")));
    };
    let changed = request.state.log().set_level(level);
    changed.map_err(|error| ErrorKind::Internal.error(error.to_string()))?;
    Ok(Response::no_content())
}
