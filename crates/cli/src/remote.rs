//! A database of a running server, as commands use it.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, anyhow, bail};
use jackdaw_smuggler::Report;
use serde_json::Value;
use ureq::SendBody;

/// Bytes of an answer that is no dump.
const ANSWER_SIZE_MAX: u64 = 64 << 20;

/// `http://HOST:PORT/databases/NAME`.
pub(crate) struct DatabaseUrl {
    url: String,
    agent: ureq::Agent,
}

impl DatabaseUrl {
    /// The URL that a command's argument is; none if it is a path.
    ///
    /// Error: it is a URL, but not one of a database.
    pub(crate) fn parse(argument: &Path) -> Result<Option<DatabaseUrl>> {
        let Some(text) = argument.to_str().filter(|text| text.contains("://")) else {
            return Ok(None);
        };
        let text = text.trim_end_matches('/');
        let name = text.strip_prefix("http://").and_then(|rest| rest.split_once("/databases/"));
        match name {
            Some((host, name)) if !host.is_empty() && !name.is_empty() && !name.contains('/') => {
                // A status that is no success has a body that says why.
                let config = ureq::Agent::config_builder().http_status_as_error(false).build();
                Ok(Some(DatabaseUrl { url: text.to_owned(), agent: config.into() }))
            }
            _ => bail!("{text} is not the URL of a database: http://HOST:PORT/databases/NAME is expected"),
        }
    }

    /// Sends a file to be imported, and counts its bytes in `sent`.
    pub(crate) fn import(
        &self,
        input: impl Read,
        query: &[(&'static str, String)],
        sent: &Arc<AtomicU64>,
    ) -> Result<Report> {
        let mut input = Counted { input, sent };
        let mut request = self.agent.post(format!("{}/import", self.url));
        for (name, value) in query {
            request = request.query(name, value);
        }
        let response = request
            .content_type("application/octet-stream")
            .send(SendBody::from_reader(&mut input))
            .with_context(|| format!("cannot send to {}", self.url))?;
        let mut answer = answered(response)?;
        serde_json::from_value(answer["Report"].take()).context("the server's answer has no report of ours")
    }

    /// The dump of an export, as it arrives.
    pub(crate) fn export(&self, options: &Value) -> Result<impl Read + use<>> {
        let response = self
            .agent
            .post(format!("{}/smuggler/export", self.url))
            .content_type("application/json")
            .send(options.to_string())
            .with_context(|| format!("cannot ask {}", self.url))?;
        if !response.status().is_success() {
            answered(response)?;
            bail!("the server refused");
        }
        Ok(response.into_body().into_with_config().limit(u64::MAX).reader())
    }
}

/// The JSON of an answer; an error that it holds becomes ours.
fn answered(response: ureq::http::Response<ureq::Body>) -> Result<Value> {
    let status = response.status();
    let text = response.into_body().into_with_config().limit(ANSWER_SIZE_MAX).read_to_string();
    let text = text.context("the server's answer cannot be read")?;
    let json: Value = serde_json::from_str(&text).unwrap_or_default();
    if status.is_success() {
        return Ok(json);
    }
    let message = json["Message"].as_str().unwrap_or(&text).to_owned();
    Err(anyhow!("the server answered {status}: {message}"))
}

struct Counted<'s, R> {
    input: R,
    sent: &'s AtomicU64,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.sent.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn urls_and_paths_are_told_apart() {
        let parse = |text: &str| DatabaseUrl::parse(Path::new(text));
        assert!(parse("data/Databases/shop").unwrap().is_none());
        assert_eq!(
            parse("http://127.0.0.1:8080/databases/shop/").unwrap().unwrap().url,
            "http://127.0.0.1:8080/databases/shop"
        );
        for text in
            ["http://127.0.0.1:8080", "http://h/databases/", "http://h/databases/a/b", "ftp://h/databases/a"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
