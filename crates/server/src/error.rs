//! What a request can be refused with, and the one table from each kind of error to its status and .NET type name.
//!
//! Clients choose the exception they throw by the last part of `Type`, and build its text from `Error` (or `Message` with status
//! 409). Statuses 408, 502, 503 and 504 make them take the node for dead and try another one, so only what will pass by itself
//! uses those. A 404 with an empty body is a value ("there is none"), not an error, and is not made here.

use std::borrow::Cow;
use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use jackdaw_database::{ClusterViolation, Error as DatabaseError, ViolationKind};
use jackdaw_indexing::Error as IndexingError;
use jackdaw_query::Error as QueryError;
use jackdaw_smuggler::Error as SmugglerError;
use jackdaw_storage::Error as StorageError;
use serde_json::{Map, Value};

/// Result of an endpoint.
pub(crate) type Result<T, E = WireError> = std::result::Result<T, E>;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident => $status:ident, $type_name:literal;)*) => {
        /// What went wrong, as far as a client can tell the difference.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum ErrorKind {
            $($(#[$doc])* $kind,)*
        }

        impl ErrorKind {
            /// Status and full .NET type name.
            fn row(self) -> (StatusCode, &'static str) {
                match self {
                    $(ErrorKind::$kind => (StatusCode::$status, $type_name),)*
                }
            }
        }
    };
}

kinds! {
    // ---- the request itself ----
    /// No route has this path and method.
    RouteNotFound => BAD_REQUEST, "Raven.Client.Exceptions.Routing.RouteNotFoundException";
    /// The request makes no sense as it stands.
    BadRequest => BAD_REQUEST, "Raven.Client.Exceptions.BadRequestException";
    /// A parameter is missing or has a value that cannot be.
    Argument => BAD_REQUEST, "System.ArgumentException";
    /// The parameter is well-formed, but what it names does not exist (an operation's id).
    UnknownArgument => INTERNAL_SERVER_ERROR, "System.ArgumentException";
    /// A value that should be one of an enumeration, a date or a duration is not.
    Format => BAD_REQUEST, "System.FormatException";
    /// The body is not JSON, or not of the expected shape.
    InvalidData => BAD_REQUEST, "System.IO.InvalidDataException";
    /// The body, decoded, is over the limit.
    BodyTooLarge => PAYLOAD_TOO_LARGE, "Raven.Client.Exceptions.BadRequestException";
    /// `Content-Encoding` names a coding that is not known.
    UnknownEncoding => UNSUPPORTED_MEDIA_TYPE, "System.NotSupportedException";
    /// The sender stopped in the middle of the body.
    SlowBody => REQUEST_TIMEOUT, "System.TimeoutException";
    /// The connection ended before the body did.
    BrokenBody => BAD_REQUEST, "System.IO.IOException";
    /// A page of another site asks, with a browser that would let it.
    ForeignOrigin => FORBIDDEN, "Raven.Client.Exceptions.Security.AuthorizationException";
    // ---- databases ----
    /// There is no database of this name.
    DatabaseDoesNotExist => INTERNAL_SERVER_ERROR, "Raven.Client.Exceptions.Database.DatabaseDoesNotExistException";
    /// The database is switched off.
    DatabaseDisabled => SERVICE_UNAVAILABLE, "Raven.Client.Exceptions.Database.DatabaseDisabledException";
    /// The database cannot be opened: its files are damaged, or in use by another process.
    DatabaseLoadFailure => INTERNAL_SERVER_ERROR, "Raven.Client.Exceptions.Database.DatabaseLoadFailureException";
    /// The database is being made, closed or deleted right now; the request may be sent again.
    DatabaseBusy => SERVICE_UNAVAILABLE, "Raven.Client.Exceptions.Database.DatabaseConcurrentLoadTimeoutException";
    // ---- documents ----
    /// A change vector or index is not the one expected; also: a database of this name exists already.
    Concurrency => CONFLICT, "Raven.Client.Exceptions.ConcurrencyException";
    /// A cluster-wide transaction found another value than the one expected.
    ClusterTransactionConcurrency => CONFLICT, "Raven.Client.Exceptions.ClusterTransactionConcurrencyException";
    /// A document is in another collection.
    CollectionMismatch => INTERNAL_SERVER_ERROR, "Raven.Client.Exceptions.Documents.DocumentCollectionMismatchException";
    /// The cluster cannot agree on it.
    NotInCluster => INTERNAL_SERVER_ERROR, "Raven.Server.Rachis.RachisApplyException";
    /// A bulk insert ended before its end.
    BulkInsertAborted => INTERNAL_SERVER_ERROR, "Raven.Client.Exceptions.Documents.BulkInsert.BulkInsertAbortedException";
    /// A compare-exchange key over the limit.
    CompareExchangeKeyTooBig => INTERNAL_SERVER_ERROR, "Raven.Client.Exceptions.CompareExchangeKeyTooBigException";
    /// A compare-exchange key of no characters, or of ones that are not allowed.
    CompareExchangeInvalidKey => INTERNAL_SERVER_ERROR, "Raven.Client.Exceptions.CompareExchangeInvalidKeyException";
    // ---- indexes ----
    /// There is no index of this name.
    IndexDoesNotExist => INTERNAL_SERVER_ERROR, "Raven.Client.Exceptions.Documents.Indexes.IndexDoesNotExistException";
    /// The index cannot be made or changed.
    IndexCreation => INTERNAL_SERVER_ERROR, "Raven.Client.Exceptions.Documents.Indexes.IndexCreationException";
    /// A function of an index cannot be compiled.
    IndexCompilation => INTERNAL_SERVER_ERROR, "Raven.Client.Exceptions.Documents.Compilation.IndexCompilationException";
    /// A custom analyzer cannot be compiled.
    AnalyzerCompilation => INTERNAL_SERVER_ERROR, "Raven.Client.Exceptions.Documents.Compilation.AnalyzerCompilationException";
    /// A custom sorter cannot be compiled.
    SorterCompilation => INTERNAL_SERVER_ERROR, "Raven.Client.Exceptions.Documents.Compilation.SorterCompilationException";
    /// Documents were stored, but were not indexed in the time that the request gave.
    IndexingTimeout => REQUEST_TIMEOUT, "Raven.Client.Exceptions.RavenTimeoutException";
    // ---- queries ----
    /// The text of a query is not RQL.
    QueryParse => INTERNAL_SERVER_ERROR, "Raven.Server.Documents.Queries.Parser.QueryParser+ParseException";
    /// The text of a query makes no sense.
    InvalidQuery => INTERNAL_SERVER_ERROR, "Raven.Client.Exceptions.InvalidQueryException";
    /// There is no document that the query names.
    DocumentDoesNotExist => INTERNAL_SERVER_ERROR, "Raven.Client.Exceptions.Documents.DocumentDoesNotExistException";
    /// There is no sorter of this name.
    NoSorter => INTERNAL_SERVER_ERROR, "Raven.Client.Exceptions.Documents.Sorters.SorterDoesNotExistException";
    /// It took longer than the asker waits.
    TimedOut => INTERNAL_SERVER_ERROR, "System.TimeoutException";
    // ---- scripts ----
    /// A script failed: it threw, or exceeded its limits.
    JavaScript => INTERNAL_SERVER_ERROR, "Raven.Client.Exceptions.Documents.Patching.JavaScriptException";
    /// A script is none.
    JavaScriptParse => INTERNAL_SERVER_ERROR, "Raven.Client.Exceptions.Documents.Patching.JavaScriptParseException";
    // ---- everything else ----
    /// Not possible in the present state.
    InvalidOperation => INTERNAL_SERVER_ERROR, "System.InvalidOperationException";
    /// This server cannot do it (yet).
    NotSupported => NOT_IMPLEMENTED, "System.NotSupportedException";
    /// The operation was killed.
    Cancelled => INTERNAL_SERVER_ERROR, "System.OperationCanceledException";
    /// The disk is full.
    DiskFull => INSUFFICIENT_STORAGE, "System.IO.IOException";
    /// The server has as many of these as it may.
    TooMany => SERVICE_UNAVAILABLE, "Raven.Client.Exceptions.RavenException";
    /// A fault of the server or of the machine.
    Internal => INTERNAL_SERVER_ERROR, "Raven.Client.Exceptions.RavenException";
}

impl ErrorKind {
    /// The status that this error is answered with.
    pub(crate) fn status(self) -> StatusCode {
        self.row().0
    }

    /// The full .NET type name.
    pub(crate) fn type_name(self) -> &'static str {
        self.row().1
    }

    /// An error of this kind.
    pub(crate) fn error(self, message: impl Into<Cow<'static, str>>) -> WireError {
        let mut headers = HeaderMap::new();
        if self.passes_soon() {
            headers.insert(http::header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        WireError(Box::new(Inner { kind: self, message: message.into(), properties: Map::new(), headers }))
    }

    /// Whether the same request is likely to be taken a second later.
    fn passes_soon(self) -> bool {
        matches!(self, ErrorKind::DatabaseBusy | ErrorKind::TooMany)
    }
}

/// An error on its way to the client. One pointer wide, so that results of endpoints stay small.
pub(crate) struct WireError(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: Cow<'static, str>,
    properties: Map<String, Value>,
    headers: HeaderMap,
}

impl WireError {
    /// Adds a property to the body, beside `Url`, `Type`, `Message` and `Error`.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Value>) -> WireError {
        self.0.properties.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a header to the answer; a value that no header can have is left out.
    pub(crate) fn with_header(mut self, name: HeaderName, value: &str) -> WireError {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.0.headers.insert(name, value);
        }
        self
    }

    pub(crate) fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    pub(crate) fn message(&self) -> &str {
        &self.0.message
    }

    /// The headers that the answer has beside those of every answer.
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.0.headers
    }

    /// The same, to be added to.
    pub(crate) fn headers_mut(&mut self) -> &mut HeaderMap {
        &mut self.0.headers
    }

    /// The text that clients show: `<type>: <message>`.
    pub(crate) fn full_text(&self) -> String {
        format!("{}: {}", self.0.kind.type_name(), self.0.message)
    }

    /// The body of the answer to a request for `url` (path and query string).
    pub(crate) fn body(&self, url: &str) -> Vec<u8> {
        let mut body = Map::new();
        body.insert("Url".to_owned(), url.into());
        body.insert("Type".to_owned(), self.0.kind.type_name().into());
        body.insert("Message".to_owned(), (*self.0.message).into());
        body.insert("Error".to_owned(), self.full_text().into());
        body.extend(self.0.properties.iter().map(|(name, value)| (name.clone(), value.clone())));
        Value::Object(body).to_string().into_bytes()
    }
}

impl fmt::Debug for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({})", self.0.kind, self.0.message)
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for WireError {}

/// Errors of the storage engine, by what the client can do about them.
impl From<StorageError> for WireError {
    fn from(error: StorageError) -> WireError {
        storage_kind(&error).error(with_causes(&error))
    }
}

fn storage_kind(error: &StorageError) -> ErrorKind {
    match error {
        StorageError::DiskFull { .. } => ErrorKind::DiskFull,
        StorageError::Locked { .. }
        | StorageError::NotFound { .. }
        | StorageError::Foreign { .. }
        | StorageError::Version { .. }
        | StorageError::PageDamaged { .. }
        | StorageError::FileDamaged { .. } => ErrorKind::DatabaseLoadFailure,
        StorageError::Closed => ErrorKind::DatabaseBusy,
        StorageError::KeyEmpty | StorageError::KeyTooLong { .. } | StorageError::ValueTooLong { .. } => {
            ErrorKind::Argument
        }
        _ => ErrorKind::Internal,
    }
}

/// Errors of indexes, with the properties that clients read.
impl From<IndexingError> for WireError {
    fn from(error: IndexingError) -> WireError {
        let message = error.to_string();
        match error {
            IndexingError::NotFound(_) => ErrorKind::IndexDoesNotExist.error(message),
            IndexingError::InvalidDefinition(_) => ErrorKind::UnknownArgument.error(message),
            IndexingError::Compilation { property, text, .. } => ErrorKind::IndexCompilation
                .error(message)
                .with("IndexDefinitionProperty", property)
                .with("ProblematicText", text),
            IndexingError::AnalyzerCompilation(_) => ErrorKind::AnalyzerCompilation.error(message),
            IndexingError::Locked(_) => ErrorKind::IndexCreation.error(message),
            IndexingError::InvalidOperation(_) | IndexingError::Errored(_) | IndexingError::Closed(_) => {
                ErrorKind::InvalidOperation.error(message)
            }
            IndexingError::NotSupported(_) => ErrorKind::NotSupported.error(message),
            IndexingError::Database(error) => error.into(),
            other => ErrorKind::Internal.error(with_causes(&other)),
        }
    }
}

/// Errors of imports, exports and bulk inserts.
impl From<SmugglerError> for WireError {
    fn from(error: SmugglerError) -> WireError {
        let message = error.to_string();
        match error {
            SmugglerError::Database(error) => error.into(),
            SmugglerError::NotSupported { .. } => ErrorKind::NotSupported.error(message),
            SmugglerError::Options(_) => ErrorKind::Argument.error(message),
            SmugglerError::Cancelled => ErrorKind::Cancelled.error("The operation was canceled."),
            // The body's own error (a connection that broke, a sender too slow) comes through the reader.
            SmugglerError::Io { source, .. }
                if source.get_ref().is_some_and(|inner| inner.is::<WireError>()) =>
            {
                crate::body::unwrap(source)
            }
            _ => ErrorKind::InvalidData.error(message),
        }
    }
}

/// Errors of a database, with the properties that clients read.
impl From<DatabaseError> for WireError {
    fn from(error: DatabaseError) -> WireError {
        let message = error.to_string();
        match error {
            DatabaseError::Concurrency { id, expected, actual, .. } => ErrorKind::Concurrency
                .error(message)
                .with("Id", id)
                .with("ExpectedChangeVector", expected)
                .with("ActualChangeVector", actual),
            DatabaseError::ClusterConcurrency { violations, .. } => {
                let violations: Vec<Value> = violations.iter().map(violation).collect();
                ErrorKind::ClusterTransactionConcurrency
                    .error(message)
                    .with("Id", Value::Null)
                    .with("ExpectedChangeVector", Value::Null)
                    .with("ActualChangeVector", Value::Null)
                    .with("ConcurrencyViolations", violations)
            }
            DatabaseError::InvalidId(_) | DatabaseError::InvalidArgument(_) => {
                ErrorKind::Argument.error(message)
            }
            DatabaseError::CollectionMismatch { .. } => ErrorKind::CollectionMismatch.error(message),
            DatabaseError::NotInCluster(_) => ErrorKind::NotInCluster.error(message),
            DatabaseError::Script(_) => ErrorKind::JavaScript.error(message),
            DatabaseError::ScriptSyntax { .. } => ErrorKind::JavaScriptParse.error(message),
            DatabaseError::InvalidOperation(_) => ErrorKind::InvalidOperation.error(message),
            DatabaseError::NotSupported(_) => ErrorKind::NotSupported.error(message),
            DatabaseError::CompareExchangeKeyTooBig { .. } => {
                ErrorKind::CompareExchangeKeyTooBig.error(message)
            }
            DatabaseError::CompareExchangeKeyInvalid(_) => {
                ErrorKind::CompareExchangeInvalidKey.error(message)
            }
            DatabaseError::Closed(_) => ErrorKind::DatabaseBusy.error(message),
            DatabaseError::Document(error) => error.into(),
            DatabaseError::Storage(error) => storage_kind(&error).error(with_causes(&*error)),
            DatabaseError::Damaged(_) => ErrorKind::DatabaseLoadFailure.error(message),
            _ => ErrorKind::Internal.error(message),
        }
    }
}

fn violation(violation: &ClusterViolation) -> Value {
    let kind = match violation.kind {
        ViolationKind::Document => "Document",
        ViolationKind::CompareExchange => "CompareExchange",
    };
    serde_json::json!({
        "Id": violation.id, "Type": kind, "Expected": violation.expected, "Actual": violation.actual,
    })
}

/// Errors of queries.
impl From<QueryError> for WireError {
    fn from(error: QueryError) -> WireError {
        let message = error.to_string();
        match error {
            QueryError::Parse(_) => ErrorKind::QueryParse.error(message),
            QueryError::Invalid(_) => ErrorKind::InvalidQuery.error(message),
            QueryError::NoIndex(_) => ErrorKind::IndexDoesNotExist.error(message),
            QueryError::Argument(_) => ErrorKind::UnknownArgument.error(message),
            QueryError::InvalidOperation(_) => ErrorKind::InvalidOperation.error(message),
            QueryError::NotSupported(_) => ErrorKind::NotSupported.error(message),
            QueryError::TimedOut(_) => ErrorKind::TimedOut.error(message),
            QueryError::JavaScript(_) => ErrorKind::JavaScript.error(message),
            QueryError::Document(error) => error.into(),
            QueryError::Database(error) => error.into(),
            QueryError::NoDocument(_) => ErrorKind::DocumentDoesNotExist.error(message),
            QueryError::NoSorter(_) => ErrorKind::NoSorter.error(message),
            QueryError::Indexing(error) => error.into(),
            _ => ErrorKind::Internal.error(message),
        }
    }
}

/// A text that is no JSON, or no document that can be stored.
impl From<jackdaw_document::Error> for WireError {
    fn from(error: jackdaw_document::Error) -> WireError {
        ErrorKind::InvalidData.error(error.to_string())
    }
}

impl From<serde_json::Error> for WireError {
    fn from(error: serde_json::Error) -> WireError {
        ErrorKind::InvalidData.error(format!("the body is not what was expected: {error}"))
    }
}

/// The error's text with those of its causes behind it.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn the_body_has_what_clients_read() {
        let error = ErrorKind::Concurrency.error("stale").with("Id", "users/1");
        let body: Value = serde_json::from_slice(&error.body("/databases/x/docs?id=users/1")).expect("JSON");
        assert_eq!(body["Url"], "/databases/x/docs?id=users/1");
        assert_eq!(body["Type"], "Raven.Client.Exceptions.ConcurrencyException");
        assert_eq!(body["Message"], "stale");
        assert_eq!(body["Error"], "Raven.Client.Exceptions.ConcurrencyException: stale");
        assert_eq!(body["Id"], "users/1");
        assert_eq!(error.kind().status(), StatusCode::CONFLICT);
    }

    #[test]
    fn a_full_disk_says_so_with_its_cause() {
        let error = StorageError::DiskFull {
            what: "journal 7".to_owned(),
            bytes: 4096,
            source: std::io::ErrorKind::StorageFull.into(),
        };
        let error = WireError::from(error);
        assert_eq!(error.kind(), ErrorKind::DiskFull);
        assert!(
            error.message().starts_with("the disk is full: journal 7 needs 4096 more bytes: "),
            "{error}"
        );
    }
}
