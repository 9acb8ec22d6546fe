//! Real document sets, and streaming them into a database by bulk insert.

use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::http::Connection;
use crate::measure::{Run, Target};

/// One set of documents in memory, each split where its id goes, so that copies under other ids cost only a copy of bytes.
pub(crate) struct Set {
    documents: Vec<Document>,
}

struct Document {
    id: String,
    /// The document without the `@id` in its metadata: a server takes the id from the command.
    json: Vec<u8>,
}

impl Set {
    /// Documents that are made, by their ids.
    pub(crate) fn of(documents: impl Iterator<Item = (String, Value)>) -> Set {
        let documents = documents.map(|(id, json)| Document { id, json: json.to_string().into_bytes() });
        Set { documents: documents.collect() }
    }

    /// Reads `NAME.ndjson.gz` from `folder`.
    pub(crate) fn read(folder: &Path, name: &str) -> Result<Set> {
        let path = folder.join(format!("{name}.ndjson.gz"));
        let file = std::fs::File::open(&path).with_context(|| path.display().to_string())?;
        let mut documents = Vec::new();
        for line in BufReader::new(GzDecoder::new(file)).lines() {
            let line = line?;
            let bad = || format!("{}: a line without \"@metadata\":{{\"@id\":...", path.display());
            let (before, rest) = line.rsplit_once("\"@metadata\":{\"@id\":\"").with_context(bad)?;
            let (id, after) = rest.split_once("\",").with_context(bad)?;
            let json = [before, "\"@metadata\":{", after].concat().into_bytes();
            documents.push(Document { id: id.to_string(), json });
        }
        Ok(Set { documents })
    }
}

/// Streams the set in one bulk insert; copy n above 0 has `/n` behind each id. An op is a document.
pub(crate) async fn bulk_insert(target: &Target, database: &str, set: &Set, copy: usize) -> Result<Run> {
    const PIECE: usize = 64 << 10;
    let mut connection = Connection::open(&target.address).await?;
    let operation =
        get(&mut connection, &format!("/databases/{database}/operations/next-operation-id")).await?;
    let before = target.usage();
    let path =
        format!("/databases/{database}/bulk_insert?id={}&skipOverwriteIfUnchanged=false", operation["Id"]);
    connection.start_chunked(&path).await?;
    let (mut piece, mut framed) = (vec![b'['], Vec::new());
    let suffix = if copy == 0 { String::new() } else { format!("/{copy}") };
    for (n, document) in set.documents.iter().enumerate() {
        if n > 0 {
            piece.push(b',');
        }
        for part in [
            b"{\"Id\":\"",
            document.id.as_bytes(),
            suffix.as_bytes(),
            b"\",\"Type\":\"PUT\",\"Document\":",
            &document.json,
            b"}",
        ] {
            piece.extend_from_slice(part);
        }
        if piece.len() >= PIECE {
            connection.chunk(&piece, &mut framed).await?;
            piece.clear();
        }
    }
    piece.push(b']');
    connection.chunk(&piece, &mut framed).await?;
    let status = connection.finish_chunks().await?;
    ensure!(status < 400, "bulk insert: {status} {}", String::from_utf8_lossy(&connection.body));
    Ok(target.run_since(&before, set.documents.len() as u64))
}

/// GETs a JSON answer.
pub(crate) async fn get(connection: &mut Connection, path: &str) -> Result<Value> {
    connection.call("GET", path, b"").await?;
    Ok(serde_json::from_slice(&connection.body)?)
}

/// Makes the database unless it is there.
pub(crate) async fn create_database(connection: &mut Connection, db: &str) -> Result<()> {
    let body = json!({"DatabaseName": db, "Settings": {}, "Disabled": false, "Encrypted": false}).to_string();
    match connection
        .call("PUT", &format!("/admin/databases?name={db}&replicationFactor=1"), body.as_bytes())
        .await
    {
        Err(error) if !error.to_string().contains(": 409 ") => Err(error.into()),
        _ => Ok(()),
    }
}

pub(crate) async fn delete_database(connection: &mut Connection, db: &str) -> Result<()> {
    let body = json!({"DatabaseNames": [db], "HardDelete": true, "TimeToWaitForConfirmation": "00:01:00"})
        .to_string();
    connection
        .call("DELETE", "/admin/databases", body.as_bytes())
        .await
        .map(|_| ())
        .map_err(anyhow::Error::from)
}
