//! Our own engine with its default settings.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use jackdaw_storage::{Environment, Error, Options, Tree, TreeMut};

use crate::engine::{Batch, Engine, Entry, OURS, Purpose, Reader, Recovered};

/// The entry for [`crate::run`].
pub const ENTRY: Entry = Entry { name: OURS, by_default: true, open };

/// The tree that holds all items.
const TREE: &[u8] = b"t";

/// So much that nothing is flushed, and the journal keeps everything.
const NEVER_FLUSH_SIZE: u64 = 16 << 30;

struct Jackdaw(Environment);

struct Snapshot<'t>(Tree<'t>);

fn open(path: &Path, purpose: Purpose) -> Result<Box<dyn Engine>> {
    let options = match purpose {
        Purpose::Ordinary => Options::default(),
        Purpose::LongJournal => Options::default()
            .scratch_size_max(NEVER_FLUSH_SIZE)
            .journal_size_before_flush(NEVER_FLUSH_SIZE)
            .flush_after_idle(Duration::from_secs(3600)),
    };
    let env = Environment::open(path, options)?;
    if env.last_transaction().0 == 0 {
        let mut transaction = env.write()?;
        transaction.create_tree(TREE)?;
        transaction.commit()?;
    }
    Ok(Box::new(Jackdaw(env)))
}

fn put_all(tree: &mut TreeMut<'_>, batch: &Batch) -> Result<(), Error> {
    for (key, value) in batch.iter() {
        tree.put(key, value)?;
    }
    Ok(())
}

impl Engine for Jackdaw {
    fn write(&self, batch: &Batch) -> Result<()> {
        let mut transaction = self.0.write()?;
        put_all(&mut transaction.tree_mut(TREE)?, batch)?;
        transaction.commit()?;
        Ok(())
    }

    fn write_merged(&self, batch: &Batch) -> Result<()> {
        Ok(self.0.submit(|transaction| put_all(&mut transaction.tree_mut(TREE)?, batch))?)
    }

    fn read(&self, f: &mut dyn FnMut(&mut dyn Reader) -> Result<()>) -> Result<()> {
        let transaction = self.0.read()?;
        f(&mut Snapshot(transaction.tree(TREE)?))
    }

    fn open_readers(&self, count: u64) -> Result<()> {
        for _ in 0..count {
            drop(std::hint::black_box(self.0.read()?));
        }
        Ok(())
    }

    fn recovered(&self) -> Option<Recovered> {
        let stats = self.0.stats();
        Some(Recovered { bytes: stats.recovered_bytes, seconds: stats.open_us as f64 / 1e6 })
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.0.close()?)
    }
}

impl Reader for Snapshot<'_> {
    fn get(&mut self, key: &[u8], f: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Ok(self.0.get(key)?.map(f).is_some())
    }

    fn scan(&mut self, f: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let mut items = self.0.iter()?;
        while let Some((key, value)) = items.next()? {
            f(key, value);
        }
        Ok(())
    }
}
