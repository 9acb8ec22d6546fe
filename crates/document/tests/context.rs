//! Contexts: what they keep, what they let go, and that a warm one allocates nothing.
#![allow(clippy::unwrap_used, missing_docs)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use jackdaw_document::{Context, ContextPool, Limits, Mode, Property, Style, TextStream};

/// Counts the allocations of the thread that asks.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator; counting touches only a thread-local cell without destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's own contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's own contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's own contract.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(action: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    action();
    ALLOCATIONS.get() - before
}

fn texts() -> Vec<String> {
    (0..500)
        .map(|i| {
            let optional = if i % 3 == 0 { format!(r#""Optional{}":[1,2.5,"x\n"],"#, i % 9) } else { String::new() };
            format!(
                r#"{{"Id":{i},"Name":"some name {i}",{optional}"Address":{{"City":"Berlin \"{i}\"","Zip":"{}"}},"Lines":[{{"Product":"products/{i}","Price":{i}.10}},{{"Product":"products/2","Price":1e3}}],"@metadata":{{"@collection":"Orders"}}}}"#,
                10_000 + i
            )
        })
        .collect()
}

#[test]
fn a_warm_context_parses_without_allocation() {
    let texts = texts();
    for mode in [Mode::Memory, Mode::Disk] {
        let mut context = Context::new();
        // The longest text first would hide growth, so all of them once.
        for text in &texts {
            context.parse_with(text.as_bytes(), mode).unwrap();
            context.reset();
        }
        let count = allocations(|| {
            for text in &texts {
                context.parse_with(text.as_bytes(), mode).unwrap();
                context.reset();
            }
        });
        assert_eq!(count, 0, "{mode:?}");
    }
}

#[test]
fn reading_and_printing_allocate_nothing() {
    let texts = texts();
    let context = Context::new();
    let properties = ["Id", "Name", "@metadata", "Lines", "missing"].map(Property::new);
    for mode in [Mode::Memory, Mode::Disk] {
        let documents: Vec<_> =
            texts.iter().map(|text| context.parse_with(text.as_bytes(), mode).unwrap()).collect();
        let mut out = Vec::with_capacity(1 << 20);
        let path = jackdaw_document::Path::parse("Lines[].Price").unwrap();
        let mut read = |documents: &[jackdaw_document::Document<'_>]| {
            let mut sum = 0.0;
            for document in documents {
                let document = jackdaw_document::Document::open(document.as_bytes()).unwrap();
                let object = document.object().unwrap();
                for property in &properties {
                    if property.get(&object).is_some_and(|value| value.is_null()) {
                        sum += 1.0;
                    }
                }
                for (name, value) in object.iter() {
                    out.clear();
                    name.append_to(&mut out);
                    sum += out.len() as f64 + value.as_f64().unwrap_or(0.0);
                }
                sum += object.get_f64("Id").unwrap_or(0.0);
                path.visit(&document.root(), |price| {
                    sum += price.as_f64().unwrap_or(0.0);
                    true
                });
                out.clear();
                document.print_to(&mut out, Style::Indented);
                sum += out.len() as f64;
                // Equality and a search by name.
                assert!(document == document && object.get("Name").is_some());
            }
            sum
        };
        let first = read(&documents);
        let mut second = 0.0;
        let count = allocations(|| second = read(&documents));
        assert_eq!(count, 0, "{mode:?}");
        assert_eq!(first, second);
    }
}

#[test]
fn statistics_tell_what_is_held() {
    let mut context = Context::new();
    for _ in 0..3 {
        for text in texts().iter().take(10) {
            context.parse(text).unwrap();
        }
        context.reset();
    }
    let statistics = context.statistics();
    assert_eq!((statistics.documents, statistics.reuses), (30, 3));
    assert!(statistics.allocated_bytes > 0 && statistics.peak_bytes >= statistics.allocated_bytes);
    let same = r#"{"a":1,"b":2}"#;
    for _ in 0..5 {
        context.parse(same).unwrap();
    }
    assert!(context.statistics().name_sections_reused >= 4);
}

#[test]
fn a_pool_reuses_contexts_and_lets_overgrown_ones_go() {
    let pool = ContextPool::with_limits(2, 1 << 20, Limits::default());
    {
        let first = pool.take();
        first.parse("[1]").unwrap();
        let _second = pool.take();
        let _third = pool.take();
        assert_eq!(pool.statistics().made, 3);
    }
    // Two are kept, one is let go.
    assert_eq!((pool.statistics().idle, pool.statistics().let_go), (2, 1));
    {
        let context = pool.take();
        context.parse(format!("[\"{}\"]", "x".repeat(2 << 20))).unwrap();
        assert_eq!(pool.statistics().reused, 1);
    }
    assert_eq!((pool.statistics().idle, pool.statistics().let_go), (1, 2));
}

#[test]
fn an_error_leaves_the_context_as_good_as_before() {
    let mut context = Context::new();
    let texts = texts();
    for (i, text) in texts.iter().enumerate() {
        let cut = &text[..text.len() * (i % 10) / 10];
        assert!(context.parse(cut).is_err());
        assert_eq!(context.parse(text).unwrap().to_json(Style::Compact), *text);
        context.reset();
    }
}

#[test]
fn chunks_may_end_anywhere() {
    let text = r#"{"Name":"é水😀 \ud83d\ude00","Lines":[1.25,true,null,"\\"]}"#;
    let context = Context::new();
    let whole = context.parse(text).unwrap();
    for size in 1..text.len() {
        let mut stream = TextStream::new(&context);
        for chunk in text.as_bytes().chunks(size) {
            stream.push(chunk).unwrap();
        }
        assert_eq!(stream.len(), text.len());
        assert_eq!(stream.finish(Mode::Memory).unwrap().as_bytes(), whole.as_bytes());
    }
    let small = Context::with_limits(Limits { text_size_max: 10, ..Limits::default() });
    let mut stream = TextStream::new(&small);
    stream.push(b"[1,2,3").unwrap();
    assert!(stream.push(b",4,5,6]").is_err());
    stream.push(b"]").unwrap();
    assert_eq!(stream.finish(Mode::Memory).unwrap().to_json(Style::Compact), "[1,2,3]");
}

#[test]
fn limits_have_names() {
    let text = r#"{"a":{"b":{"c":1}},"long name":[1,2,3]}"#;
    let cases = [
        (Limits { text_size_max: 10, ..Limits::default() }, "text"),
        (Limits { document_size_max: 20, ..Limits::default() }, "document"),
        (Limits { depth_max: 2, ..Limits::default() }, "depth"),
        (Limits { name_size_max: 5, ..Limits::default() }, "name"),
        (Limits { name_count_max: 3, ..Limits::default() }, "names"),
    ];
    for (limits, word) in cases {
        let error = Context::with_limits(limits).parse(text).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
        let document = Context::new();
        let document = document.parse(text).unwrap();
        if word != "text" {
            assert!(document.validate(&limits).is_err(), "{word}");
        }
    }
}

#[test]
fn the_text_of_a_compressed_string_lives_in_the_context() {
    let context = Context::new();
    let document =
        context.parse_with(br#"{"Title":"the quick brown fox and the lazy dog"}"#, Mode::Disk).unwrap();
    let text = document.get("Title").unwrap().as_text().unwrap();
    assert!(text.is_compressed() && text.as_str().is_none());
    assert_eq!(text.in_context(&context), "the quick brown fox and the lazy dog");
}
