//! How fast trees are in plain memory, without transactions, journal or file:
//! `cargo test --release -p jackdaw-storage btree::measure -- --ignored --nocapture --test-threads 1`

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::time::Instant;

use super::tests::Chance;
use super::*;
use crate::pages_in_memory::PagesInMemory;
use crate::visit::Findings;

struct Bench {
    pages: PagesInMemory,
    state: TreeState,
    hint: InsertHint,
}

impl Bench {
    fn new() -> Bench {
        Bench { pages: PagesInMemory::new(), state: TreeState::default(), hint: InsertHint::default() }
    }

    fn tree(&self) -> Tree<'_, PagesInMemory> {
        Tree::new(&self.pages, &self.state)
    }

    fn tree_mut(&mut self) -> TreeMut<'_, PagesInMemory> {
        TreeMut::new(&mut self.pages, &mut self.state, &mut self.hint)
    }

    fn report(&self, raw: u64) {
        let mut findings = Findings::default();
        let found = self.tree().check(&mut findings).unwrap();
        assert_eq!(findings.problems, []);
        let pages = found.leaf_pages + found.branch_pages;
        println!(
            "    depth {}, {} leaves {:.1}% full, {} branches {:.1}% full, {:.3}x raw",
            self.state.depth,
            found.leaf_pages,
            100.0 * found.leaf_bytes_used as f64 / (found.leaf_pages * PAGE_BODY_SIZE as u64) as f64,
            found.branch_pages,
            100.0 * found.branch_bytes_used as f64
                / (found.branch_pages.max(1) * PAGE_BODY_SIZE as u64) as f64,
            (pages * crate::format::PAGE_SIZE as u64) as f64 / raw as f64,
        );
    }
}

fn time(name: &str, count: u64, work: impl FnOnce()) {
    let begin = Instant::now();
    work();
    let taken = begin.elapsed();
    let each = taken.as_nanos() as f64 / count as f64;
    println!("{name:<44} {each:8.1} ns each, {:6.2} M/s", 1e3 / each);
}

fn random_key(i: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&Chance(i).next().to_be_bytes());
    key[8..].copy_from_slice(&Chance(!i).next().to_be_bytes());
    key
}

fn walks(bench: &Bench, count: u64) {
    for _ in 0..2 {
        time("  scan, keys and values summed", count, || {
            let mut cursor = bench.tree().cursor();
            let (mut entries, mut sum) = (0, 0u64);
            while cursor.next().unwrap() {
                entries += 1;
                sum += cursor.key()[0] as u64 + cursor.value().unwrap()[0] as u64;
            }
            assert_eq!(entries, count);
            std::hint::black_box(sum);
        });
    }
    time("  scan backwards", count, || {
        let mut cursor = bench.tree().cursor();
        let mut entries = 0;
        while cursor.prev().unwrap() {
            entries += 1;
            std::hint::black_box(cursor.value().unwrap());
        }
        assert_eq!(entries, count);
    });
}

#[test]
#[ignore = "a measurement"]
fn measure() {
    let count = 1_000_000;
    for round in 0..2 {
        let mut bench = Bench::new();
        time("append 8/8", 4 * count, || {
            for i in 0..4 * count {
                bench.tree_mut().put(&i.to_be_bytes(), &i.to_le_bytes()).unwrap();
            }
        });
        if round == 1 {
            bench.report(16 * 4 * count);
            walks(&bench, 4 * count);
        }
    }
    for round in 0..2 {
        let mut bench = Bench::new();
        time("append 16/128", count, || {
            let mut key = [b'k'; 16];
            for i in 0..count {
                key[8..].copy_from_slice(&i.to_be_bytes());
                bench.tree_mut().put(&key, &[i as u8; 128]).unwrap();
            }
        });
        if round == 1 {
            bench.report(144 * count);
            walks(&bench, count);
        }
    }
    let mut bench = Bench::new();
    time("random put 16/128, growing to 1M", count, || {
        for i in 0..count {
            bench.tree_mut().put(&random_key(i), &[i as u8; 128]).unwrap();
        }
    });
    bench.report(144 * count);
    walks(&bench, count);
    let mut chance = Chance(77);
    time("  put over, random", count, || {
        for _ in 0..count {
            bench.tree_mut().put(&random_key(chance.next() % count), &[1; 128]).unwrap();
        }
    });
    for _ in 0..2 {
        time("  get, random, found", count, || {
            let tree = bench.tree();
            for _ in 0..count {
                let value = tree.get(&random_key(chance.next() % count)).unwrap().unwrap();
                std::hint::black_box(value[0]);
            }
        });
    }
    time("  get, random, not found", count, || {
        let tree = bench.tree();
        for _ in 0..count {
            assert_eq!(tree.get(&random_key(count + chance.next() % count)).unwrap(), None);
        }
    });
    time("  (making a random key)", count, || {
        for _ in 0..count {
            std::hint::black_box(random_key(chance.next() % count));
        }
    });
    time("  put, random, 1M to 2M", count, || {
        for i in count..2 * count {
            bench.tree_mut().put(&random_key(i), &[i as u8; 128]).unwrap();
        }
    });
    time("  delete, random, all 2M", 2 * count, || {
        for i in 0..2 * count {
            assert!(bench.tree_mut().delete(&random_key(i)).unwrap());
        }
    });
    assert!(bench.pages.in_use().is_empty());
    let mut bench = Bench::new();
    time("random put 8/8, growing to 1M", count, || {
        for i in 0..count {
            bench.tree_mut().put(&Chance(i).next().to_be_bytes(), &i.to_le_bytes()).unwrap();
        }
    });
    bench.report(16 * count);
    time("  get, random", count, || {
        let tree = bench.tree();
        for _ in 0..count {
            let key = Chance(chance.next() % count).next().to_be_bytes();
            std::hint::black_box(tree.get(&key).unwrap().unwrap());
        }
    });
}

/// The least of several rounds, which says more than the mean where others use the machine too.
fn time_least(name: &str, count: u64, mut work: impl FnMut()) {
    let mut least = f64::MAX;
    for _ in 0..7 {
        let begin = Instant::now();
        work();
        least = least.min(begin.elapsed().as_nanos() as f64 / count as f64);
    }
    println!("{name:<44} {least:8.1} ns each, {:6.2} M/s, least of 7", 1e3 / least);
}

#[test]
#[ignore = "a measurement"]
fn measure_reads() {
    for (name, count) in [("1M", 1_000_000), ("4K", 4_000)] {
        let mut bench = Bench::new();
        for i in 0..count {
            bench.tree_mut().put(&random_key(i), &[i as u8; 128]).unwrap();
        }
        let mut chance = Chance(77);
        let reads = 300_000;
        time_least(&format!("{name}: get, random"), reads, || {
            let tree = bench.tree();
            for _ in 0..reads {
                let value = tree.get(&random_key(chance.next() % count)).unwrap().unwrap();
                std::hint::black_box(value[0]);
            }
        });
        time_least(&format!("{name}: put over, random"), reads, || {
            for _ in 0..reads {
                bench.tree_mut().put(&random_key(chance.next() % count), &[1; 128]).unwrap();
            }
        });
        time_least(&format!("{name}: seek and 10 next"), reads / 10, || {
            let mut cursor = bench.tree().cursor();
            for _ in 0..reads / 10 {
                cursor.seek(&random_key(chance.next())).unwrap();
                for _ in 0..10 {
                    cursor.next().unwrap();
                    std::hint::black_box(cursor.value().unwrap().first());
                }
            }
        });
        time_least(&format!("{name}: scan"), count, || {
            let mut cursor = bench.tree().cursor();
            let mut sum = 0u64;
            while cursor.next().unwrap() {
                sum += cursor.key()[0] as u64 + cursor.value().unwrap()[0] as u64;
            }
            std::hint::black_box(sum);
        });
    }
}
