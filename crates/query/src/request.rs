//! What is asked: the query's text with its parameters and options.

use std::borrow::Cow;
use std::time::Duration;

use jackdaw_document::{Object, Value};

use crate::error::{Error, Result};
use crate::parameters::{Parameters, option};

/// How long a query waits for an index that is behind, unless it says.
const WAIT_DEFAULT: Duration = Duration::from_secs(15);

/// Where projected fields come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProjectionBehavior {
    /// Stored fields of the index, else the document.
    #[default]
    Default,
    /// Stored fields alone; others are left out.
    FromIndex,
    /// Stored fields alone; others are an error.
    FromIndexOrThrow,
    /// The document alone; others are left out.
    FromDocument,
    /// The document alone; others are an error.
    FromDocumentOrThrow,
}

impl ProjectionBehavior {
    /// The behaviour of this name, whatever its case.
    #[must_use]
    pub fn named(name: &str) -> Option<ProjectionBehavior> {
        [
            ("Default", ProjectionBehavior::Default),
            ("FromIndex", ProjectionBehavior::FromIndex),
            ("FromIndexOrThrow", ProjectionBehavior::FromIndexOrThrow),
            ("FromDocument", ProjectionBehavior::FromDocument),
            ("FromDocumentOrThrow", ProjectionBehavior::FromDocumentOrThrow),
        ]
        .into_iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, behavior)| behavior)
    }
}

/// A query as it was asked.
#[derive(Clone)]
pub struct Request<'a> {
    /// The text.
    pub text: Cow<'a, str>,
    pub(crate) parameters: Parameters<'a>,
    /// Results to leave out, beside those that the text says.
    pub skip: u64,
    /// Results to give at most, beside what the text says.
    pub take: u64,
    /// How long to wait for the index to have all that was written before; `None` not to wait.
    pub wait: Option<Duration>,
    /// Where projected fields come from.
    pub projection: ProjectionBehavior,
    /// Whether an index that is behind is an error.
    pub must_be_fresh: bool,
    /// Whether the same document may come up several times, once for each index entry.
    pub keep_duplicates: bool,
    /// Whether documents are answered without their content.
    pub metadata_only: bool,
    /// The answer that the asker has already.
    pub known_etag: Option<i64>,
}

impl<'a> Request<'a> {
    /// A query of this text without parameters and options.
    #[must_use]
    pub fn new(text: impl Into<Cow<'a, str>>) -> Request<'a> {
        Request {
            text: text.into(),
            parameters: Parameters::new(None),
            skip: 0,
            take: u64::MAX,
            wait: None,
            projection: ProjectionBehavior::Default,
            must_be_fresh: false,
            keep_duplicates: false,
            metadata_only: false,
            known_etag: None,
        }
    }

    /// With these parameters.
    #[must_use]
    pub fn with_parameters(mut self, parameters: Option<Object<'a>>) -> Request<'a> {
        self.parameters = Parameters::new(parameters);
        self
    }

    /// The query that a client's JSON object describes. What is not known in it is ignored.
    ///
    /// Errors: there is no text, or a property has a value that it cannot have.
    pub fn parse(body: &Object<'a>) -> Result<Request<'a>> {
        let text = match option(body, "Query").map(|query| query.as_str()) {
            Some(Some(text)) => text,
            _ => {
                return Err(Error::InvalidOperation(
                    "Index query does not contain 'Query' field.".to_owned(),
                ));
            }
        };
        let parameters = match option(body, "QueryParameters") {
            None | Some(Value::Null) => None,
            Some(value) => {
                Some(value.as_object().ok_or_else(|| wrong("QueryParameters", "an object", &value))?)
            }
        };
        let mut request = Request::new(text).with_parameters(parameters);
        request.skip = number(body, "Start")?.unwrap_or(0);
        request.take = number(body, "PageSize")?.filter(|size| *size < i32::MAX as u64).unwrap_or(u64::MAX);
        if flag(body, "WaitForNonStaleResults")? {
            request.wait = Some(duration(body, "WaitForNonStaleResultsTimeout")?.unwrap_or(WAIT_DEFAULT));
        }
        request.keep_duplicates = flag(body, "SkipDuplicateChecking")?;
        if let Some(name) = option(body, "ProjectionBehavior").and_then(|value| value.as_str()) {
            request.projection = ProjectionBehavior::named(&name)
                .ok_or_else(|| Error::Argument(format!("'{name}' is no value of ProjectionBehavior")))?;
        }
        Ok(request)
    }
}

fn wrong(name: &str, expected: &str, found: &Value<'_>) -> Error {
    Error::Argument(format!("'{name}' must be {expected}, not {}", found.type_name()))
}

fn number(body: &Object<'_>, name: &str) -> Result<Option<u64>> {
    match option(body, name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_i64() {
            Some(number) if number >= 0 => Ok(Some(number.unsigned_abs())),
            Some(number) => Err(Error::Argument(format!("'{name}' must not be negative, it was {number}"))),
            None => Err(wrong(name, "an integer", &value)),
        },
    }
}

fn flag(body: &Object<'_>, name: &str) -> Result<bool> {
    match option(body, name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(value)) => Ok(value),
        Some(value) => Err(wrong(name, "true or false", &value)),
    }
}

/// A duration: milliseconds as a number, or `d.hh:mm:ss.fffffff`.
fn duration(body: &Object<'_>, name: &str) -> Result<Option<Duration>> {
    match option(body, name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => {
            let milliseconds = number.as_f64().clamp(0.0, 1e12);
            Ok(Some(Duration::from_secs_f64(milliseconds / 1e3)))
        }
        Some(value) => {
            let text = value.as_str().ok_or_else(|| wrong(name, "a duration", &value))?;
            parse_duration(&text).map(Some).ok_or_else(|| {
                Error::Argument(format!("'{name}' must be a duration such as 00:00:15, not '{text}'"))
            })
        }
    }
}

/// Reads `[d.]hh:mm[:ss[.fffffff]]`.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let (days, rest) = match (text.find('.'), text.find(':')) {
        (Some(point), Some(colon)) if point < colon => {
            (text[..point].parse::<u32>().ok()?, &text[point + 1..])
        }
        _ => (0, text),
    };
    let mut parts = rest.split(':');
    let hours: u32 = parts.next()?.parse().ok()?;
    let minutes: u32 = parts.next()?.parse().ok()?;
    let seconds: f64 = match parts.next() {
        Some(seconds) if seconds.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') => {
            seconds.parse().ok()?
        }
        Some(_) => return None,
        None => 0.0,
    };
    if parts.next().is_some() || hours > 23 || minutes > 59 || seconds >= 60.0 || days > 10_000_000 {
        return None;
    }
    let whole = (u64::from(days) * 24 + u64::from(hours)) * 3600 + u64::from(minutes) * 60;
    Some(Duration::from_secs(whole) + Duration::from_secs_f64(seconds))
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    use jackdaw_document::Context;

    #[test]
    fn durations() {
        for (text, expected) in [
            ("00:00:15", Some(15_000)),
            ("00:00:00.0050000", Some(5)),
            ("1.02:00", Some(26 * 3_600_000)),
            ("24:00:00", None),
            ("00:00:-1", None),
            ("15", None),
            ("", None),
        ] {
            assert_eq!(parse_duration(text).map(|found| found.as_millis()), expected, "{text}");
        }
    }

    #[test]
    fn what_clients_send_is_read_in_either_case() {
        let context = Context::new();
        for (body, skip, take, wait) in [
            (r#"{"Query":"from X","Start":null,"PageSize":2147483647,"Unknown":[1]}"#, 0, u64::MAX, None),
            (r#"{"query":"from X","start":3,"pageSize":4}"#, 3, 4, None),
            (
                r#"{"Query":"from X","WaitForNonStaleResults":true,"WaitForNonStaleResultsTimeout":1500}"#,
                0,
                u64::MAX,
                Some(1500),
            ),
            (
                r#"{"Query":"from X","WaitForNonStaleResults":true,"WaitForNonStaleResultsTimeout":"00:00:02"}"#,
                0,
                u64::MAX,
                Some(2000),
            ),
            (r#"{"Query":"from X","WaitForNonStaleResults":true}"#, 0, u64::MAX, Some(15_000)),
        ] {
            let document = context.parse(body).unwrap();
            let request = Request::parse(&document.object().unwrap()).unwrap();
            let found = (request.skip, request.take, request.wait.map(|wait| wait.as_millis()));
            assert_eq!(found, (skip, take, wait), "{body}");
        }
        for body in [
            r#"{}"#,
            r#"{"Query":5}"#,
            r#"{"Query":"from X","Start":-1}"#,
            r#"{"Query":"x","QueryParameters":[]}"#,
        ] {
            let document = context.parse(body).unwrap();
            assert!(Request::parse(&document.object().unwrap()).is_err(), "{body}");
        }
    }
}
