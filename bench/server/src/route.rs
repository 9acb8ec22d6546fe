//! How long finding a route takes with all routes of the server.

use std::hint::black_box;
use std::time::Instant;

use http::Method;
use jackdaw_server::RouteTable;

use crate::measure;

/// Looked up in turn: short and long paths, few and many neighbours, found and not.
const PATHS: &[&str] = &[
    "/build/version",
    "/databases/northwind/docs",
    "/databases/northwind/bulk_docs",
    "/databases/northwind/operations/next-operation-id",
    "/databases/northwind/hilo/next",
    "/databases/northwind/collections/stats/detailed",
    "/admin/databases",
    "/databases/northwind/nothing/here",
];

/// Nanoseconds of processor time of one lookup: on a busy machine the clock on the wall tells of others.
pub(crate) fn nanoseconds(seconds: f64) -> f64 {
    let table = RouteTable::new();
    let (mut lookups, begun, used) = (0u64, Instant::now(), measure::cpu(Some(std::process::id())));
    while begun.elapsed().as_secs_f64() < seconds {
        for _ in 0..1000 {
            for path in PATHS {
                black_box(table.has(black_box(&Method::GET), black_box(path)));
            }
        }
        lookups += 1000 * PATHS.len() as u64;
    }
    (measure::cpu(Some(std::process::id())) - used) * 1e9 / lookups as f64
}
