//! `/metrics`: everything that is counted, for Prometheus.

use std::sync::Arc;

use http::Method;
use jackdaw_storage::Stats;

use crate::databases::{LoadedDatabase, blocking};
use crate::error::Result;
use crate::metrics::Exposition;
use crate::request::ServerRequest;
use crate::response::Response;
use crate::routes::Routes;

pub(crate) fn routes(routes: &mut Routes) {
    routes.server(Method::GET, "/metrics", metrics);
}

async fn metrics(request: ServerRequest) -> Result<Response> {
    let state = request.state.clone();
    let text = blocking(move || {
        let mut out = Exposition::default();
        state.metrics().write(&mut out);
        out.gauge("jackdaw_http_connections", "Connections open.", state.connections().count());
        out.gauge("jackdaw_uptime_seconds", "Since the server started.", state.up_time().as_secs_f64());
        out.gauge("jackdaw_databases", "Databases that exist.", state.databases().count());
        let loaded: Vec<Loaded> =
            state.databases().all().iter().filter_map(|entry| entry.if_loaded()).map(Loaded::of).collect();
        out.gauge("jackdaw_databases_loaded", "Databases that are open.", loaded.len());
        out.gauge(
            "jackdaw_operations_running",
            "Operations going on, of the server and all open databases.",
            {
                let of_databases: usize =
                    loaded.iter().map(|loaded| loaded.database.operations().running()).sum();
                of_databases + state.operations().running()
            },
        );
        write_databases(&mut out, &loaded)?;
        Ok(out.into_text())
    });
    Ok(Response::bytes("text/plain; version=0.0.4; charset=utf-8", text.await?))
}

/// An open database with its storage's figures as of one moment.
struct Loaded {
    name: String,
    stats: Stats,
    database: Arc<LoadedDatabase>,
}

impl Loaded {
    fn of(database: Arc<LoadedDatabase>) -> Loaded {
        Loaded { name: database.record().database_name.clone(), stats: database.storage_stats(), database }
    }
}

type Figure = (&'static str, &'static str, &'static str, fn(&Stats) -> f64);

/// Name, kind, meaning and value of each figure of the storage engine.
const FIGURES: &[Figure] = &[
    ("jackdaw_storage_data_file_bytes", "gauge", "Size of the data file.", |s| s.data_file_size as f64),
    (
        "jackdaw_storage_journal_bytes",
        "gauge",
        "Size of the journal files that a recovery would read.",
        |s| s.journal_size as f64,
    ),
    ("jackdaw_storage_pages_free", "gauge", "Pages that nothing uses.", |s| s.free_pages as f64),
    ("jackdaw_storage_scratch_bytes", "gauge", "Changed pages in memory.", |s| s.scratch_used as f64),
    ("jackdaw_storage_readers", "gauge", "Open snapshots.", |s| s.readers as f64),
    ("jackdaw_storage_commits_total", "counter", "Commits.", |s| s.commits as f64),
    ("jackdaw_storage_journal_writes_total", "counter", "Writes to the journal.", |s| {
        s.journal_writes as f64
    }),
    ("jackdaw_storage_journal_written_bytes_total", "counter", "Bytes written to the journal.", |s| {
        s.journal_bytes as f64
    }),
    ("jackdaw_storage_flushes_total", "counter", "Flushes.", |s| s.flushes as f64),
    ("jackdaw_storage_flushed_bytes_total", "counter", "Bytes that flushes wrote.", |s| {
        s.bytes_flushed as f64
    }),
    ("jackdaw_storage_throttled_seconds_total", "counter", "How long writers were held back.", |s| {
        s.throttled_us as f64 / 1e6
    }),
    ("jackdaw_storage_failed", "gauge", "1 when the database takes no more writes.", |s| {
        f64::from(u8::from(s.failure.is_some()))
    }),
];

fn write_databases(out: &mut Exposition, loaded: &[Loaded]) -> Result<()> {
    out.head("jackdaw_documents", "gauge", "Documents of an open database.");
    for loaded in loaded {
        out.labelled(
            "jackdaw_documents",
            &[("database", &loaded.name)],
            loaded.database.read()?.document_count()?,
        );
    }
    out.head("jackdaw_writes_queued", "gauge", "Writes that wait for the writer of an open database.");
    for loaded in loaded {
        out.labelled("jackdaw_writes_queued", &[("database", &loaded.name)], loaded.database.queued_jobs());
    }
    for (name, kind, help, figure) in FIGURES {
        out.head(name, kind, help);
        for loaded in loaded {
            out.labelled(name, &[("database", &loaded.name)], figure(&loaded.stats));
        }
    }
    Ok(())
}
