//! Entries and deletes across the segments of one commit, against a list of all entries.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::entry::{Entry, FieldValue};
use crate::index::Index;
use crate::options::{FieldOptions, Schema};
use crate::query::Query;
use crate::searcher::Searcher;
use crate::writer::Writer;

/// So little that a segment is full after a few hundred entries.
const LITTLE: usize = 2 << 20;

fn schema() -> Schema {
    let mut schema = Schema::default();
    schema.fields.insert("n".to_owned(), FieldOptions::default());
    schema.fields.insert("text".to_owned(), FieldOptions::default());
    schema
}

/// All entries, as keys and what is stored with them.
type Model = Vec<(String, String)>;

fn all(searcher: &Searcher) -> Model {
    let hits = searcher.stream(&Query::All, &[]).unwrap().map(Result::unwrap);
    hits.map(|hit| (hit.key, String::from_utf8(hit.stored).unwrap())).collect()
}

fn add(writer: &mut Writer, model: &mut Model, key: &str, stored: &str) {
    let long = stored.repeat(20);
    let fields = [("n", FieldValue::Long(stored.len() as i64)), ("text", FieldValue::Text(&long))];
    let entry = Entry { key, fields: &fields, stored: stored.as_bytes(), references: &[], boost: 1.0 };
    writer.add(&entry).unwrap();
    model.push((key.to_owned(), stored.to_owned()));
}

fn delete(writer: &mut Writer, model: &mut Model, key: &str) {
    writer.delete(key).unwrap();
    model.retain(|(other, _)| other != key);
}

fn copy(from: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        // A file may go away meanwhile, as it may before a crash.
        let _ = fs::copy(file.path(), to.path().join(file.file_name()));
    }
    to
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[test]
fn deletes_and_entries_keep_their_order_across_segments() {
    let directory = tempfile::tempdir().unwrap();
    let mut index = Index::open(directory.path(), schema()).unwrap();
    let mut random = Random(7);
    let mut model = Model::new();
    let mut segments_max = 0;
    for commit in 0..6 {
        let before = model.clone();
        let mut writer = Writer::new(Arc::clone(&index.core), LITTLE).unwrap();
        // Commits of few entries too, which no thread is started for.
        let steps = if commit == 3 { 50 } else { 1500 };
        for step in 0..steps {
            let key = format!("k/{}", random.below(400));
            if random.below(3) > 0 {
                delete(&mut writer, &mut model, &key);
            }
            if random.below(5) > 0 {
                add(&mut writer, &mut model, &key, &format!("{commit}/{step}"));
            }
            if random.below(10) == 0 {
                delete(&mut writer, &mut model, &key);
            }
        }
        if commit == 1 || commit == 4 {
            // What was given up is neither there nor in the way, also after a crash.
            index.sync().unwrap();
            let held = index.core.directory.hold();
            let crashed = copy(directory.path());
            drop(held);
            let reopened = Index::open(crashed.path(), schema()).unwrap();
            assert_eq!(all(&reopened.searcher()), before);
            writer.rollback().unwrap();
            assert_eq!(all(&index.searcher()), before);
            model = before;
            delete(&mut writer, &mut model, "k/1");
            add(&mut writer, &mut model, "k/1", "after");
        }
        writer.commit(&[commit as u8]).unwrap();
        drop(writer);
        let searcher = index.searcher();
        assert_eq!(all(&searcher), model, "commit {commit}");
        segments_max = segments_max.max(searcher.segments_count());
        match commit {
            2 => {
                drop(index);
                index = Index::open(directory.path(), schema()).unwrap();
                assert_eq!(all(&index.searcher()), model, "opened again");
            }
            3 => {
                index.quiesce().unwrap();
                assert_eq!(all(&index.searcher()), model, "merged");
            }
            _ => {}
        }
    }
    assert!(segments_max > 4, "{segments_max} segments were at most made");
}

#[test]
fn a_quiet_index_is_merged_and_searchers_see_it() {
    let directory = tempfile::tempdir().unwrap();
    let index = Index::open(directory.path(), schema()).unwrap();
    let mut model = Model::new();
    for commit in 0..4 {
        let mut writer = index.writer(0).unwrap();
        delete(&mut writer, &mut model, "0");
        for step in 0..30 {
            add(&mut writer, &mut model, &step.to_string(), &format!("{commit}/{step}"));
        }
        writer.commit(b"").unwrap();
    }
    assert_eq!(index.searcher().segments_count(), 4);
    // As if nothing had been written for a while.
    let while_ago = Instant::now().checked_sub(Duration::from_millis(1500)).unwrap();
    index.core.open_writer.lock().as_mut().unwrap().last_used = while_ago;
    index.core.keep_up();
    let begun = Instant::now();
    while index.searcher().segments_count() > 1 && begun.elapsed() < Duration::from_secs(60) {
        // The thread of upkeep is told when the merge is done.
        std::thread::yield_now();
    }
    assert_eq!(index.searcher().segments_count(), 1);
    assert_eq!(all(&index.searcher()), model);
    // What is written after that goes on in order.
    let mut writer = index.writer(0).unwrap();
    delete(&mut writer, &mut model, "3");
    add(&mut writer, &mut model, "3", "last");
    writer.commit(b"").unwrap();
    assert_eq!(all(&index.searcher()), model);
}

#[test]
fn a_closed_index_still_answers_and_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    let index = Index::open(directory.path(), schema()).unwrap();
    let mut model = Model::new();
    let mut writer = index.writer(0).unwrap();
    for step in 0..3000 {
        add(&mut writer, &mut model, &step.to_string(), "one");
        if step % 600 == 599 {
            writer.commit(b"").unwrap();
        }
    }
    assert!(matches!(index.close(), Err(crate::error::Error::Busy { .. })));
    // A merge of these is under way.
    let mut open = writer.open.take().unwrap();
    index.core.merge(&mut open, crate::merges::Pace::Quiet);
    writer.open = Some(open);
    drop(writer);
    index.close().unwrap();
    assert!(matches!(index.writer(0), Err(crate::error::Error::Busy { .. })));
    assert_eq!(all(&index.searcher()), model);
    let again = Index::open(directory.path(), schema()).unwrap();
    assert_eq!(all(&again.searcher()), model);
    // The first one has nothing more to write over it.
    drop(index);
    again.quiesce().unwrap();
    assert!(again.searcher().segments_count() < 5, "what was given up is made up for");
    assert_eq!(all(&again.searcher()), model);
}
