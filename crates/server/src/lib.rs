//! The HTTP server.
//!
//! ```no_run
//! # async fn run() -> Result<(), jackdaw_server::ServerError> {
//! use jackdaw_server::{LogControl, Server, Settings};
//!
//! let server = Server::start(Settings::default(), LogControl::none()).await?;
//! println!("{}", server.url());
//! server.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! | part | module |
//! | --- | --- |
//! | settings, log | `settings`, `logging` |
//! | bind, accept, stop; what is known of each connection | `listener`, `connection` |
//! | from a request to its answer | `service`, `router`, `routes` |
//! | requests, query strings, bodies | `request`, `query_string`, `body` |
//! | answers, compression, errors | `response`, `compression`, `error` |
//! | databases: records, loading, deleting | `databases` |
//! | definitions of indexes in dumps | `dumps` |
//! | work that goes on after its request | `operations` |
//! | WebSockets and their heartbeat | `websocket` |
//! | one file for each area of the API | `endpoints` |
//! | the JSON of the API | `wire` |
//!
//! The database knows no HTTP and this crate stores nothing but records of databases: what a document is, and when it is durable, is
//! `jackdaw-database`'s.
#![forbid(unsafe_code)]

mod body;
mod compression;
mod connection;
mod contexts;
mod databases;
pub mod dumps;
mod endpoints;
mod error;
mod json_text;
mod listener;
mod logging;
mod metrics;
mod operations;
mod query_string;
mod request;
mod response;
mod router;
mod routes;
mod sample_data;
mod service;
pub mod settings;
mod state;
mod websocket;
mod wire;

pub use listener::{Server, ServerError};
pub use logging::LogControl;
pub use routes::RouteTable;
pub use settings::{SETTINGS, Settings, SettingsError};
