//! The log: set up from the settings, its level changed while the server runs.

use std::io::IsTerminal;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};

use crate::settings::{LogFormat, Settings, SettingsError};

/// Changes what is logged. Without a log (in tests) it only remembers.
#[derive(Clone)]
pub struct LogControl(Arc<Inner>);

struct Inner {
    handle: Option<reload::Handle<EnvFilter, Registry>>,
    level: Mutex<String>,
}

impl LogControl {
    /// Starts the log of this process, to standard error.
    ///
    /// Errors: the level is none; a log was started before.
    pub fn start(settings: &Settings) -> Result<LogControl, SettingsError> {
        let filter = filter(&settings.log_level)?;
        let (filter, handle) = reload::Layer::new(filter);
        let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
        let registry = tracing_subscriber::registry().with(filter);
        let started = match settings.log_format {
            LogFormat::Text => registry.with(lines).try_init(),
            LogFormat::Json => registry.with(lines.json()).try_init(),
        };
        started.map_err(|error| SettingsError::Conflict(format!("the log cannot be started: {error}")))?;
        Ok(LogControl(Arc::new(Inner {
            handle: Some(handle),
            level: Mutex::new(settings.log_level.clone()),
        })))
    }

    /// A control of nothing.
    pub fn none() -> LogControl {
        LogControl(Arc::new(Inner { handle: None, level: Mutex::new("info".to_owned()) }))
    }

    /// The level or filter as it is now.
    pub(crate) fn level(&self) -> String {
        self.0.level.lock().clone()
    }

    /// Changes the level or filter.
    pub(crate) fn set_level(&self, level: &str) -> Result<(), SettingsError> {
        let new = filter(level)?;
        if let Some(handle) = &self.0.handle {
            handle.reload(new).map_err(|error| SettingsError::Conflict(error.to_string()))?;
        }
        *self.0.level.lock() = level.to_owned();
        Ok(())
    }
}

fn filter(level: &str) -> Result<EnvFilter, SettingsError> {
    EnvFilter::try_new(level).map_err(|error| SettingsError::Invalid {
        source_name: "settings".to_owned(),
        name: "log-level".to_owned(),
        value: level.to_owned(),
        reason: error.to_string(),
    })
}
