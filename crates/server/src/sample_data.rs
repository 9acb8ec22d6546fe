//! The sample database Northwind, built into the binary: documents and indexes.

use std::io::Read;

use flate2::read::GzDecoder;
use jackdaw_database::{Database, IncomingDocument, PutOptions};
use jackdaw_document::Context;
use jackdaw_indexing::{IndexDefinition, Indexes};
use serde_json::Value;

use crate::contexts::with_context;
use crate::error::{ErrorKind, Result};

/// One file of newline-delimited JSON for each collection, packed; `samples/README.md` says where they are from.
const FILES: &[&[u8]] = &[
    include_bytes!("../../../samples/northwind/categories.ndjson.gz"),
    include_bytes!("../../../samples/northwind/companies.ndjson.gz"),
    include_bytes!("../../../samples/northwind/employees.ndjson.gz"),
    include_bytes!("../../../samples/northwind/orders.ndjson.gz"),
    include_bytes!("../../../samples/northwind/products.ndjson.gz"),
    include_bytes!("../../../samples/northwind/regions.ndjson.gz"),
    include_bytes!("../../../samples/northwind/shippers.ndjson.gz"),
    include_bytes!("../../../samples/northwind/suppliers.ndjson.gz"),
];

/// The indexes that newcomers' queries are asked of, as clients would put them.
const INDEXES: &str = include_str!("../../../samples/northwind/indexes.json");

/// Puts the indexes. Blocks until that is durable.
///
/// Errors: those of storing, and that one of the names is an index that is locked.
pub(crate) fn load_indexes(indexes: &Indexes) -> Result<()> {
    let wrong = |error: String| ErrorKind::Internal.error(format!("the sample's indexes: {error}"));
    let definitions: Vec<Value> = serde_json::from_str(INDEXES).map_err(|error| wrong(error.to_string()))?;
    let definitions: Result<Vec<_>, _> = definitions.iter().map(IndexDefinition::from_json).collect();
    indexes.put(definitions.map_err(|error| wrong(error.to_string()))?)?;
    Ok(())
}

/// Puts all documents into an empty database, in one transaction. Blocks until it is durable.
///
/// Errors: the database has documents; those of storing.
pub(crate) fn load(database: &Database) -> Result<()> {
    let is_empty = |count: u64| match count {
        0 => Ok(()),
        _ => Err(jackdaw_database::Error::InvalidOperation(
            "You cannot create sample data in a database that already contains documents".to_owned(),
        )),
    };
    is_empty(database.read()?.document_count()?)?;
    let documents = read(database)?;
    let stored = database.submit(move |transaction| {
        for (id, document) in &documents {
            // Whoever was first in the meantime has changed what is there.
            if transaction.get(id)?.is_some() {
                is_empty(1)?;
            }
            transaction.put(id, document, PutOptions::default())?;
        }
        Ok(())
    });
    Ok(stored.wait()?)
}

fn read(database: &Database) -> Result<Vec<(String, IncomingDocument)>> {
    let mut documents = Vec::new();
    for file in FILES {
        let mut text = String::new();
        GzDecoder::new(*file).read_to_string(&mut text).map_err(|error| {
            ErrorKind::Internal.error(format!("the sample data cannot be unpacked: {error}"))
        })?;
        for line in text.lines() {
            documents.push(with_context(|context| parse(line, context, database))?);
        }
    }
    Ok(documents)
}

/// A document, and the id that its metadata gives.
fn parse(line: &str, context: &Context, database: &Database) -> Result<(String, IncomingDocument)> {
    let document = context.parse(line)?;
    let id = document.get("@metadata").and_then(|metadata| metadata.as_object()?.get("@id"));
    let id = id.and_then(|id| Some(id.as_str()?.into_owned()));
    let id = id.ok_or_else(|| ErrorKind::Internal.error("a document of the sample data has no id"))?;
    Ok((id, IncomingDocument::new(&document, context, database)?))
}
