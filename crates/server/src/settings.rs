//! The settings of the server.
//!
//! Each has one name, used three ways: as a flag (`--data-dir X`), as an environment variable (`JACKDAW_DATA_DIR=X`) and as a key of a
//! settings file (`data-dir = "X"`). A flag goes before the environment, the environment before the file, the file before the default. A
//! name that is not in [`SETTINGS`] is an error in each of them.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

/// What every environment variable of ours begins with.
pub const ENVIRONMENT_PREFIX: &str = "JACKDAW_";

/// One setting, for help texts and documentation.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// As flags and files spell it.
    pub name: &'static str,
    /// What its value is, in a word.
    pub value: &'static str,
    /// The default, as one would write it.
    pub default: &'static str,
    /// What it does.
    pub help: &'static str,
}

/// All settings.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "host",
        value: "ADDRESS",
        default: "127.0.0.1",
        help: "The IP address to listen on. Any but a loopback address needs unsecured-access-allowed",
    },
    Setting {
        name: "port",
        value: "PORT",
        default: "8080",
        help: "The port to listen on; 0 takes a free one",
    },
    Setting {
        name: "public-url",
        value: "URL",
        default: "",
        help: "The URL under which clients reach the server, told to them in topologies. Default: the host they used",
    },
    Setting {
        name: "unsecured-access-allowed",
        value: "WHERE",
        default: "local",
        help: "Who may use the server without a certificate: local, private-network, public-network",
    },
    Setting {
        name: "data-dir",
        value: "DIR",
        default: "jackdaw-data",
        help: "Where everything is stored; made when missing",
    },
    Setting {
        name: "worker-threads",
        value: "N",
        default: "0",
        help: "Threads that serve connections; 0 means one for each core",
    },
    Setting {
        name: "connections-max",
        value: "N",
        default: "20000",
        help: "Connections open at a time; more are closed at once",
    },
    Setting {
        name: "request-head-size-max",
        value: "BYTES",
        default: "64K",
        help: "The longest head of a request, URL and headers together",
    },
    Setting {
        name: "request-body-size-max",
        value: "BYTES",
        default: "512M",
        help: "The largest body, decompressed, of requests that are read whole. Bulk inserts and imports stream and have no limit",
    },
    Setting {
        name: "request-head-timeout",
        value: "TIME",
        default: "15s",
        help: "How long the head of a request may take to arrive",
    },
    Setting {
        name: "request-body-timeout",
        value: "TIME",
        default: "60s",
        help: "How long a sender may be silent in the middle of a body",
    },
    Setting {
        name: "idle-timeout",
        value: "TIME",
        default: "130s",
        help: "How long a connection may be open without a request",
    },
    Setting {
        name: "write-timeout",
        value: "TIME",
        default: "60s",
        help: "How long a client may take none of the bytes of its answer",
    },
    Setting {
        name: "shutdown-timeout",
        value: "TIME",
        default: "10s",
        help: "How long requests may take to end when the server stops",
    },
    Setting {
        name: "database-idle-after",
        value: "TIME",
        default: "15m",
        help: "After how long without use a database is closed; it opens again on its next use",
    },
    Setting {
        name: "tombstone-cleanup-interval",
        value: "TIME",
        default: "5m",
        help: "How often what is left of deleted documents is removed; 0 turns it off",
    },
    Setting {
        name: "index-batch-memory",
        value: "BYTES",
        default: "128M",
        help: "About how much memory a batch of an index takes before it is written, 32M to 1G; twice as much is in use at the most",
    },
    Setting {
        name: "log-level",
        value: "LEVEL",
        default: "info",
        help: "error, warn, info, debug or trace; or a filter such as info,jackdaw_storage=debug",
    },
    Setting {
        name: "log-format",
        value: "FORMAT",
        default: "text",
        help: "text or json, a line each, to standard error",
    },
    Setting {
        name: "log-requests",
        value: "BOOL",
        default: "false",
        help: "Log every request with its status and duration",
    },
    Setting {
        name: "log-slow-requests",
        value: "TIME",
        default: "1s",
        help: "Log requests that take longer; 0 turns it off",
    },
];

/// Who may use a server that asks for no certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnsecuredAccess {
    /// Programs on this machine.
    Local,
    /// Machines of a private network too.
    PrivateNetwork,
    /// Anyone.
    PublicNetwork,
}

/// What lines of the log look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One object a line.
    Json,
}

/// The settings, checked.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address to listen on.
    pub host: IpAddr,
    /// The port to listen on; 0 takes a free one.
    pub port: u16,
    /// The URL that clients are told, without a slash at the end; `None`: the one they used.
    pub public_url: Option<String>,
    /// Who may connect without a certificate.
    pub unsecured_access_allowed: UnsecuredAccess,
    /// Where everything is stored.
    pub data_dir: PathBuf,
    /// Threads that serve connections; 0 means one for each core.
    pub worker_threads: usize,
    /// Connections open at a time.
    pub connections_max: usize,
    /// Bytes of the longest head of a request.
    pub request_head_size_max: u64,
    /// Bytes, decoded, of the largest body that is read whole.
    pub request_body_size_max: u64,
    /// How long a head may take to arrive.
    pub request_head_timeout: Duration,
    /// How long a sender may be silent inside a body.
    pub request_body_timeout: Duration,
    /// How long a connection may be open without a request.
    pub idle_timeout: Duration,
    /// How long a client may take none of its answer.
    pub write_timeout: Duration,
    /// How long requests may take to end when the server stops.
    pub shutdown_timeout: Duration,
    /// After how long without use a database is closed.
    pub database_idle_after: Duration,
    /// How often tombstones that nobody needs are removed; zero turns it off.
    pub tombstone_cleanup_interval: Duration,
    /// Bytes of memory that a batch of an index takes before it is written.
    pub index_batch_memory: u64,
    /// A level, or a filter of the `tracing` crates.
    pub log_level: String,
    /// What lines of the log look like.
    pub log_format: LogFormat,
    /// Log every request.
    pub log_requests: bool,
    /// Log requests that take longer; zero turns it off.
    pub log_slow_requests: Duration,
}

/// A setting that cannot be.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The name is none of ours.
    #[error("{source_name}: there is no setting '{name}'{}", nearest(name))]
    Unknown {
        /// Where it was given.
        source_name: String,
        /// The name.
        name: String,
    },
    /// The value makes no sense.
    #[error("{source_name}: the setting '{name}' cannot be '{value}': {reason}")]
    Invalid {
        /// Where it was given.
        source_name: String,
        /// The name.
        name: String,
        /// The value.
        value: String,
        /// What it must be.
        reason: String,
    },
    /// The settings file cannot be read.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
    /// Settings that do not go together.
    #[error("{0}")]
    Conflict(String),
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 8080,
            public_url: None,
            unsecured_access_allowed: UnsecuredAccess::Local,
            data_dir: PathBuf::from("jackdaw-data"),
            worker_threads: 0,
            connections_max: 20_000,
            request_head_size_max: 64 << 10,
            request_body_size_max: 512 << 20,
            request_head_timeout: Duration::from_secs(15),
            request_body_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(130),
            write_timeout: Duration::from_secs(60),
            shutdown_timeout: Duration::from_secs(10),
            database_idle_after: Duration::from_secs(15 * 60),
            tombstone_cleanup_interval: Duration::from_secs(5 * 60),
            index_batch_memory: 128 << 20,
            log_level: "info".to_owned(),
            log_format: LogFormat::Text,
            log_requests: false,
            log_slow_requests: Duration::from_secs(1),
        }
    }
}

impl Settings {
    /// Takes over what a settings file says: TOML, or JSON when its name ends in `.json`.
    pub fn read_file(&mut self, path: &std::path::Path) -> Result<(), SettingsError> {
        let source = path.display().to_string();
        let file_error = |reason: String| SettingsError::File { path: source.clone(), reason };
        let text = std::fs::read_to_string(path).map_err(|error| file_error(error.to_string()))?;
        let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        let values: serde_json::Map<String, serde_json::Value> = match is_json {
            true => serde_json::from_str(&text).map_err(|error| file_error(error.to_string()))?,
            false => toml::from_str(&text).map_err(|error| file_error(error.to_string()))?,
        };
        for (name, value) in values {
            let value = match value {
                serde_json::Value::String(text) => text,
                serde_json::Value::Bool(_) | serde_json::Value::Number(_) => value.to_string(),
                _ => {
                    return Err(invalid(
                        &source,
                        &name,
                        &value.to_string(),
                        "a text, a number, true or false",
                    ));
                }
            };
            self.set(&source, &name, &value)?;
        }
        Ok(())
    }

    /// Takes over the variables of an environment that begin with [`ENVIRONMENT_PREFIX`].
    pub fn read_environment(
        &mut self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(), SettingsError> {
        for (variable, value) in variables {
            if let Some(name) = variable.strip_prefix(ENVIRONMENT_PREFIX) {
                let name = name.to_ascii_lowercase().replace('_', "-");
                self.set(&format!("environment variable {variable}"), &name, &value)?;
            }
        }
        Ok(())
    }

    /// Sets one by its name; `source` says in errors where the value is from.
    pub fn set(&mut self, source: &str, name: &str, value: &str) -> Result<(), SettingsError> {
        let value = value.trim();
        let because = |reason: &str| invalid(source, name, value, reason);
        let number = || value.parse::<usize>().map_err(|_| because("it must be a number"));
        let size = || {
            size_of(value)
                .ok_or_else(|| because("it must be a number of bytes, such as 65536, 64K, 512M or 1G"))
        };
        let time =
            || time_of(value).ok_or_else(|| because("it must be a time, such as 500ms, 15s, 2m or 1h"));
        let flag = || value.parse::<bool>().map_err(|_| because("it must be true or false"));
        match name {
            "host" => self.host = value.parse().map_err(|_| because("it must be an IP address"))?,
            "port" => self.port = value.parse().map_err(|_| because("it must be a port, 0 to 65535"))?,
            "public-url" => {
                let url = value.trim_end_matches('/');
                if !url.is_empty() && !url.starts_with("http://") && !url.starts_with("https://") {
                    return Err(because("it must begin with http:// or https://"));
                }
                self.public_url = (!url.is_empty()).then(|| url.to_owned());
            }
            "unsecured-access-allowed" => {
                self.unsecured_access_allowed = match value {
                    "local" => UnsecuredAccess::Local,
                    "private-network" => UnsecuredAccess::PrivateNetwork,
                    "public-network" => UnsecuredAccess::PublicNetwork,
                    _ => return Err(because("it must be local, private-network or public-network")),
                };
            }
            "data-dir" if value.is_empty() => return Err(because("it must be a directory")),
            "data-dir" => self.data_dir = PathBuf::from(value),
            "worker-threads" => self.worker_threads = number()?,
            "connections-max" => self.connections_max = number()?.max(1),
            "request-head-size-max" => self.request_head_size_max = size()?.clamp(8 << 10, 16 << 20),
            "request-body-size-max" => self.request_body_size_max = size()?,
            "request-head-timeout" => self.request_head_timeout = time()?,
            "request-body-timeout" => self.request_body_timeout = time()?,
            "idle-timeout" => self.idle_timeout = time()?,
            "write-timeout" => self.write_timeout = time()?,
            "shutdown-timeout" => self.shutdown_timeout = time()?,
            "database-idle-after" => self.database_idle_after = time()?,
            "tombstone-cleanup-interval" => self.tombstone_cleanup_interval = time()?,
            "index-batch-memory" => self.index_batch_memory = size()?.clamp(32 << 20, 1 << 30),
            "log-level" => self.log_level = value.to_owned(),
            "log-format" => {
                self.log_format = match value {
                    "text" => LogFormat::Text,
                    "json" => LogFormat::Json,
                    _ => return Err(because("it must be text or json")),
                };
            }
            "log-requests" => self.log_requests = flag()?,
            "log-slow-requests" => self.log_slow_requests = time()?,
            _ => {
                return Err(SettingsError::Unknown { source_name: source.to_owned(), name: name.to_owned() });
            }
        }
        Ok(())
    }

    /// Checks what only all settings together can tell.
    ///
    /// Errors: the address can be reached from further away than access is allowed for.
    pub fn check(&self) -> Result<(), SettingsError> {
        let needed = access_needed(self.host);
        if needed > self.unsecured_access_allowed {
            let word = match needed {
                UnsecuredAccess::PublicNetwork => "public-network",
                _ => "private-network",
            };
            return Err(SettingsError::Conflict(format!(
                "the server would listen on {}, where anyone who reaches that address can read and change everything; if that is what you want, say so: --unsecured-access-allowed {word}",
                self.host
            )));
        }
        Ok(())
    }
}

/// From where an address can be reached, as far as it tells.
fn access_needed(host: IpAddr) -> UnsecuredAccess {
    match host {
        host if host.is_loopback() => UnsecuredAccess::Local,
        IpAddr::V4(host) if host.is_private() || host.is_link_local() => UnsecuredAccess::PrivateNetwork,
        IpAddr::V6(host) if host.is_unique_local() || host.is_unicast_link_local() => {
            UnsecuredAccess::PrivateNetwork
        }
        _ => UnsecuredAccess::PublicNetwork,
    }
}

fn invalid(source: &str, name: &str, value: &str, reason: &str) -> SettingsError {
    SettingsError::Invalid {
        source_name: source.to_owned(),
        name: name.to_owned(),
        value: value.to_owned(),
        reason: reason.to_owned(),
    }
}

/// `64K`, `512M`, `1G`, or bytes.
fn size_of(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match text[digits.len()..].trim().to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" => 10,
        "M" | "MB" => 20,
        "G" | "GB" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// `500ms`, `15s`, `2m`, `1h`, or seconds.
fn time_of(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let number: u64 = digits.parse().ok()?;
    let ms = match text[digits.len()..].trim() {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.checked_mul(ms).map(Duration::from_millis)
}

/// A hint at the setting that was probably meant.
fn nearest(name: &str) -> String {
    let near = SETTINGS.iter().find(|setting| {
        setting.name.starts_with(name) || name.starts_with(setting.name) || setting.name.ends_with(name)
    });
    near.map_or(String::new(), |setting| format!("; did you mean '{}'?", setting.name))
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn every_setting_of_the_list_can_be_set_to_its_default() {
        let mut settings = Settings::default();
        for setting in SETTINGS {
            settings.set("test", setting.name, setting.default).unwrap_or_else(|error| panic!("{error}"));
        }
        assert_eq!(format!("{settings:?}"), format!("{:?}", Settings::default()));
    }

    #[test]
    fn every_setting_is_documented() {
        let page = include_str!("../../../docs/operations/settings.md");
        for setting in SETTINGS {
            let default =
                if setting.default.is_empty() { String::new() } else { format!("`{}`", setting.default) };
            let line = format!("| `{}` | {default} | {} |", setting.name, setting.help);
            assert!(page.contains(&line), "docs/operations/settings.md lacks: {line}");
        }
    }

    #[test]
    fn what_is_unknown_or_makes_no_sense_is_refused() {
        for (name, value) in [
            ("colour", "red"),
            ("port", "65536"),
            ("port", "x"),
            ("host", "localhost"),
            ("public-url", "ftp://x"),
            ("idle-timeout", "soon"),
            ("request-body-size-max", "99999999999999G"),
            ("request-head-size-max", "-1"),
            ("log-format", "xml"),
            ("log-requests", "yes"),
            ("data-dir", ""),
            ("unsecured-access-allowed", "all"),
        ] {
            let error = Settings::default().set("--flag", name, value).expect_err(name).to_string();
            assert!(error.starts_with("--flag: ") && error.contains(name), "{error}");
        }
        let error = Settings::default().set("x", "data", "y").expect_err("unknown").to_string();
        assert!(error.ends_with("did you mean 'data-dir'?"), "{error}");
    }

    #[test]
    fn listening_to_others_must_be_asked_for() {
        let mut settings = Settings::default();
        assert!(settings.check().is_ok());
        for (host, allowed) in [
            ("10.1.2.3", "private-network"),
            ("0.0.0.0", "public-network"),
            ("::", "public-network"),
            ("8.8.8.8", "public-network"),
        ] {
            settings.set("", "host", host).expect("an address");
            settings.set("", "unsecured-access-allowed", "local").expect("a word");
            assert!(
                settings
                    .check()
                    .expect_err(host)
                    .to_string()
                    .ends_with(&format!("--unsecured-access-allowed {allowed}"))
            );
            settings.set("", "unsecured-access-allowed", allowed).expect("a word");
            assert!(settings.check().is_ok(), "{host}");
        }
    }

    #[test]
    fn files_are_toml_or_json() {
        let directory = tempfile::tempdir().expect("a directory");
        for (name, text) in [
            ("a.toml", "port = 81\n# a comment\nidle-timeout = \"1s\"\nlog-requests = true\n"),
            ("a.json", r#"{"port": "81", "idle-timeout": 1, "log-requests": true}"#),
        ] {
            let path = directory.path().join(name);
            std::fs::write(&path, text).expect("written");
            let mut settings = Settings::default();
            settings.read_file(&path).expect("settings");
            assert_eq!(
                (settings.port, settings.idle_timeout, settings.log_requests),
                (81, Duration::from_secs(1), true)
            );
        }
        let path = directory.path().join("b.toml");
        for text in ["prot = 81", "port = [1]", "port = ", "[server]\nport = 81"] {
            std::fs::write(&path, text).expect("written");
            let error = Settings::default().read_file(&path).expect_err(text).to_string();
            assert!(error.starts_with(&path.display().to_string()), "{error}");
        }
    }

    #[test]
    fn the_environment_is_read_by_its_prefix() {
        let variables =
            [("JACKDAW_DATA_DIR", "/x"), ("HOME", "/root")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        let mut settings = Settings::default();
        settings.read_environment(variables).expect("settings");
        assert_eq!(settings.data_dir, PathBuf::from("/x"));
        let unknown = [("JACKDAW_DATA".to_owned(), "x".to_owned())];
        assert!(settings.read_environment(unknown).is_err());
    }
}
