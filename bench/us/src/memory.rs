//! A sorted map in memory under a lock: no storage engine, but the cost of the harness itself, and what its tests run on. It keeps
//! nothing from process to process, so only the workloads that write can measure it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use anyhow::Result;

use crate::engine::{Batch, Engine, Entry, Purpose, Reader};

/// The entry for [`crate::run`].
pub const ENTRY: Entry = Entry { name: "memory", by_default: false, open };

type Map = BTreeMap<Box<[u8]>, Box<[u8]>>;

#[derive(Default)]
struct Memory(RwLock<Map>);

fn open(_: &Path, _: Purpose) -> Result<Box<dyn Engine>> {
    Ok(Box::<Memory>::default())
}

impl Memory {
    fn items(&self) -> RwLockReadGuard<'_, Map> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine for Memory {
    fn write(&self, batch: &Batch) -> Result<()> {
        let mut map = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for (key, value) in batch.iter() {
            map.insert(key.into(), value.into());
        }
        Ok(())
    }

    fn read(&self, f: &mut dyn FnMut(&mut dyn Reader) -> Result<()>) -> Result<()> {
        f(&mut self.items())
    }

    fn open_readers(&self, count: u64) -> Result<()> {
        for _ in 0..count {
            drop(std::hint::black_box(self.items()));
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

impl Reader for RwLockReadGuard<'_, Map> {
    fn get(&mut self, key: &[u8], f: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Ok(BTreeMap::get(self, key).map(|value| f(value)).is_some())
    }

    fn scan(&mut self, f: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        self.iter().for_each(|(key, value)| f(key, value));
        Ok(())
    }
}
