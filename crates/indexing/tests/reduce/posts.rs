//! The aggregations of a forum: sign-ups per month, questions per tag, per tag and month, over made-up questions, each compared with a plain
//! computation over the same questions; with reduce functions over documents as well.

use std::collections::BTreeMap;

use jackdaw_document::{Context, Mode};
use jackdaw_indexing::reduce::{
    Batch, DocumentReduction, Engine, Key, KeyValue, Options, Reduction, append_document, documents,
};
use jackdaw_storage::{Environment, Options as StorageOptions};
use jackdaw_testkit::{Random, temporary_directory};

struct Question {
    id: String,
    tags: Vec<String>,
    year: i64,
    month: i64,
    views: i64,
}

fn question(random: &mut Random, number: usize) -> Question {
    let tags = (0..1 + random.below(5)).map(|_| format!("tag-{}", random.skewed(9))).collect::<Vec<_>>();
    let mut distinct = tags.clone();
    distinct.sort();
    distinct.dedup();
    Question {
        id: format!("questions/{number}"),
        tags: distinct,
        year: 2008 + (number / 1200) as i64,
        month: 1 + (number / 100 % 12) as i64,
        views: random.skewed(16) as i64,
    }
}

/// `group r by new { r.Tag, r.Year, r.Month } into g select new { g.Key.Tag, .., Count = g.Sum(x => x.Count), Views = g.Sum(x => x.Views) }`
fn per_tag_and_month() -> impl Reduction {
    let context = Context::new();
    DocumentReduction(
        move |results: &mut dyn Iterator<Item = jackdaw_document::Document<'_>>,
              each: &mut dyn FnMut(&[u8])| {
            let (mut key, mut count, mut views) = (None, 0, 0);
            for result in results {
                let of = |name| result.get(name).and_then(|value| value.as_i64()).unwrap_or_default();
                count += of("Count");
                views += of("Views");
                key.get_or_insert_with(|| {
                    let tag = result.get("Tag").and_then(|tag| tag.as_str()).unwrap_or_default().into_owned();
                    (tag, of("Year"), of("Month"))
                });
            }
            let (tag, year, month) = key.unwrap_or_default();
            each(&bytes(&context, &tag, year, month, count, views));
            Ok(())
        },
    )
}

fn bytes(context: &Context, tag: &str, year: i64, month: i64, count: i64, views: i64) -> Vec<u8> {
    let document = context.build(Mode::Memory, |builder| {
        builder.begin_object()?;
        builder.name("Tag")?;
        builder.str(tag)?;
        for (name, value) in [("Year", year), ("Month", month), ("Count", count), ("Views", views)] {
            builder.name(name)?;
            builder.i64(value)?;
        }
        builder.end()
    });
    document.unwrap().as_bytes().to_vec()
}

fn map(batch: &mut Batch, context: &mut Context, question: &Question) {
    batch.begin(question.id.as_bytes(), false);
    for tag in &question.tags {
        let mut key = Key::of(KeyValue::Text(tag));
        key.push(KeyValue::Integer(question.year)).push(KeyValue::Integer(question.month));
        let mut pack = Vec::new();
        append_document(&mut pack, &bytes(context, tag, question.year, question.month, 1, question.views));
        batch.emit(key.as_bytes(), &pack);
    }
    context.reset();
}

#[test]
fn questions_per_tag_and_month() {
    let directory = temporary_directory();
    let environment = Environment::open(directory.path(), StorageOptions::default()).unwrap();
    let engine = Engine::open(environment, &Options::default()).unwrap();
    let mut random = Random::new(11);
    let mut questions: Vec<_> = (0..6000).map(|number| question(&mut random, number)).collect();
    let (mut batch, mut context) = (Batch::new(), Context::new());
    for some in questions.chunks(1000) {
        batch.clear();
        some.iter().for_each(|question| map(&mut batch, &mut context, question));
        engine.apply(&mut batch, &mut |_| Ok(Vec::new()), &per_tag_and_month, 2).unwrap();
    }
    // Some are asked anew, some move to another month, some go.
    for _ in 0..5 {
        batch.clear();
        for _ in 0..300 {
            let at = random.below(questions.len());
            let id = questions[at].id.clone();
            if random.one_in(3) {
                batch.begin(id.as_bytes(), false);
                questions.swap_remove(at);
            } else {
                let number = random.below(6000);
                questions[at] = Question { id, ..question(&mut random, number) };
                map(&mut batch, &mut context, &questions[at]);
            }
        }
        engine.apply(&mut batch, &mut |_| Ok(Vec::new()), &per_tag_and_month, 2).unwrap();
    }

    let mut expected: BTreeMap<(String, i64, i64), (i64, i64)> = BTreeMap::new();
    for question in &questions {
        for tag in &question.tags {
            let all = expected.entry((tag.clone(), question.year, question.month)).or_default();
            *all = (all.0 + 1, all.1 + question.views);
        }
    }
    let snapshot = engine.read().unwrap();
    assert_eq!(snapshot.check().unwrap(), Vec::<String>::new());
    let mut held = BTreeMap::new();
    snapshot
        .each_result(|result| {
            for document in documents(result.pack.unwrap()) {
                let document = document?;
                let of = |name| document.get(name).and_then(|value| value.as_i64()).unwrap();
                let tag = document.get("Tag").and_then(|tag| tag.as_str()).unwrap().into_owned();
                held.insert((tag, of("Year"), of("Month")), (of("Count"), of("Views")));
            }
            Ok::<(), jackdaw_indexing::reduce::Error>(())
        })
        .unwrap();
    assert_eq!(held, expected);
}
