//! SQLite: WAL with `synchronous=FULL`, so that a commit is durable when it returns; a mapped file, a cache of 512 MiB, a table
//! without row ids, prepared statements; one connection that writes, behind a mutex, and one per reader.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use jackdaw_bench::engine::{Batch, Engine, Entry, Purpose, Reader};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

/// The entry for the harness.
pub(crate) const ENTRY: Entry = Entry { name: "sqlite", by_default: true, open };

struct Sqlite {
    writer: Mutex<Connection>,
    path: PathBuf,
}

struct Snapshot(Connection);

fn connect(path: &Path) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.set_prepared_statement_cache_capacity(16);
    connection.execute_batch(
        "PRAGMA page_size=4096; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;
         PRAGMA cache_size=-524288; PRAGMA mmap_size=17179869184; PRAGMA temp_store=MEMORY;
         CREATE TABLE IF NOT EXISTS t(k BLOB PRIMARY KEY, v BLOB) WITHOUT ROWID;",
    )?;
    Ok(connection)
}

fn open(path: &Path, _: Purpose) -> Result<Box<dyn Engine>> {
    let path = path.join("db.sqlite");
    Ok(Box::new(Sqlite { writer: Mutex::new(connect(&path)?), path }))
}

impl Engine for Sqlite {
    fn write(&self, batch: &Batch) -> Result<()> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut insert = transaction.prepare_cached("INSERT OR REPLACE INTO t VALUES(?1,?2)")?;
            for (key, value) in batch.iter() {
                insert.execute((key, value))?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn read(&self, f: &mut dyn FnMut(&mut dyn Reader) -> Result<()>) -> Result<()> {
        let connection = connect(&self.path)?;
        connection.execute_batch("BEGIN")?;
        f(&mut Snapshot(connection))
    }

    /// On one open connection. A transaction gets its snapshot with its first read, so that is a part of it.
    fn open_readers(&self, count: u64) -> Result<()> {
        let connection = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut begin = connection.prepare_cached("BEGIN")?;
        let mut read = connection.prepare_cached("SELECT 1 FROM t LIMIT 1")?;
        let mut end = connection.prepare_cached("COMMIT")?;
        for _ in 0..count {
            begin.execute(())?;
            read.query_row((), |_| Ok(()))?;
            end.execute(())?;
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        let writer = self.writer.into_inner().unwrap_or_else(PoisonError::into_inner);
        writer.flush_prepared_statement_cache();
        Ok(writer.close().map_err(|(_, error)| error)?)
    }
}

impl Reader for Snapshot {
    fn get(&mut self, key: &[u8], f: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let mut select = self.0.prepare_cached("SELECT v FROM t WHERE k=?1")?;
        let found = select.query_row([key], |row| {
            f(row.get_ref(0)?.as_blob()?);
            Ok(())
        });
        Ok(found.optional()?.is_some())
    }

    fn scan(&mut self, f: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let mut select = self.0.prepare_cached("SELECT k,v FROM t ORDER BY k")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            f(row.get_ref(0)?.as_blob()?, row.get_ref(1)?.as_blob()?);
        }
        Ok(())
    }
}
