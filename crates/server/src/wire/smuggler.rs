//! Options and results of exports and imports, as the clients' smuggler spells them.

use std::time::Duration;

use jackdaw_database::clock;
use jackdaw_smuggler::{ExportReport, IndexReport, Progress, Report};
use serde_json::{Map, Value, json};

use crate::error::{ErrorKind, Result};

/// Sections of a result that stay empty until there is something to put in them: name in a result, name in a dump.
const NOT_YET: &[(&str, &str)] = &[
    ("RevisionDocuments", "RevisionDocuments"),
    ("Conflicts", "Conflicts"),
    ("CompareExchangeTombstones", "CompareExchangeTombstones"),
    ("Subscriptions", "Subscriptions"),
    ("Counters", "CounterGroups"),
    ("TimeSeries", "TimeSeries"),
    ("TimeSeriesDeletedRanges", "TimeSeriesDeletedRanges"),
    ("ReplicationHubCertificates", "ReplicationHubCertificates"),
];

/// Which parts of a database are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ItemTypes {
    pub(crate) database_record: bool,
    pub(crate) documents: bool,
    pub(crate) tombstones: bool,
    pub(crate) indexes: bool,
    pub(crate) identities: bool,
    pub(crate) compare_exchange: bool,
}

impl ItemTypes {
    /// As `OperateOnTypes` says: a text of names, or an array of them. Names of what is not here yet are passed over.
    pub(crate) fn of(options: &Value) -> Result<ItemTypes> {
        let names = match property(options, "OperateOnTypes") {
            None | Some(Value::Null) => {
                // What the clients ask for when nobody says anything.
                return Ok(ItemTypes {
                    database_record: true,
                    documents: true,
                    tombstones: false,
                    indexes: true,
                    identities: true,
                    compare_exchange: true,
                });
            }
            Some(Value::String(names)) => names.split(',').map(|name| name.trim().to_owned()).collect(),
            Some(Value::Array(_)) => texts(options, "OperateOnTypes")?,
            Some(_) => {
                return Err(
                    ErrorKind::InvalidData.error("OperateOnTypes must be a text, or an array of texts")
                );
            }
        };
        let has = |name: &str| names.iter().any(|other| other.eq_ignore_ascii_case(name));
        Ok(ItemTypes {
            database_record: has("DatabaseRecord"),
            documents: has("Documents"),
            tombstones: has("Tombstones"),
            indexes: has("Indexes"),
            identities: has("Identities"),
            compare_exchange: has("CompareExchange"),
        })
    }
}

fn property<'v>(options: &'v Value, name: &str) -> Option<&'v Value> {
    options.as_object()?.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// A property that is an array of texts; none if it is missing or null.
pub(crate) fn texts(options: &Value, name: &str) -> Result<Vec<String>> {
    let wrong = || ErrorKind::InvalidData.error(format!("{name} must be an array of texts"));
    match property(options, name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(values)) => {
            values.iter().map(|value| value.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        }
        Some(_) => Err(wrong()),
    }
}

/// Whether fields of indexes are to lose their analyzers.
pub(crate) fn removes_analyzers(options: &Value) -> bool {
    property(options, "RemoveAnalyzers").and_then(Value::as_bool).unwrap_or(false)
}

/// Error: the options ask for what cannot be done yet, and leaving it out would give something else than was asked for.
pub(crate) fn refuse_unsupported(options: &Value) -> Result<()> {
    for (name, what) in [("TransformScript", "transform scripts"), ("EncryptionKey", "encrypted dumps")] {
        let is_given = match property(options, name) {
            None | Some(Value::Null) => false,
            Some(Value::String(text)) => !text.is_empty(),
            Some(_) => true,
        };
        if is_given {
            return Err(ErrorKind::NotSupported.error(format!("{what} are not supported yet")));
        }
    }
    Ok(())
}

/// The boundary that a multipart content type names, quoted or not, whatever kind of multipart it is.
pub(crate) fn boundary(content_type: &str) -> Option<String> {
    let (kind, parameters) = content_type.split_once(';')?;
    if !kind.trim().to_ascii_lowercase().starts_with("multipart/") {
        return None;
    }
    parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches('"');
        (name.trim().eq_ignore_ascii_case("boundary") && !value.is_empty()).then(|| value.to_owned())
    })
}

/// What an import did.
pub(crate) fn import_result(report: &Report, took: Duration) -> Value {
    let read = report.documents + report.unchanged + report.refused;
    let mut documents = counts(read);
    documents.insert("ErroredCount".to_owned(), report.refused.into());
    documents.insert("SkippedCount".to_owned(), report.unchanged.into());
    documents.insert("SizeInBytes".to_owned(), report.text_bytes.into());
    documents.insert("LastEtag".to_owned(), report.last_etag.into());
    let attachments = report.skipped.get("Attachments").copied().unwrap_or_default();
    documents.insert("Attachments".to_owned(), passed_over(attachments).into());
    let mut messages: Vec<String> = report
        .skipped
        .iter()
        .map(|(section, count)| {
            let is_known = section == "Attachments" || NOT_YET.iter().any(|(_, name)| name == section);
            let why = if is_known { "not supported yet" } else { "not asked for" };
            format!("[WARNING] {count} {section} passed over: {why}")
        })
        .collect();
    let IndexReport { taken, automatic, refused, refusals, .. } = &report.indexes;
    if *automatic > 0 {
        messages.push(format!("[INFO] {automatic} automatic indexes passed over: queries make them"));
    }
    messages.extend(refusals.iter().map(|refusal| format!("[ERROR] {refusal}")));
    messages.extend(report.refusals.iter().map(|refusal| format!("[ERROR] refused {refusal}")));
    let left_out = report.skipped.get("Indexes").copied().unwrap_or_default();
    let mut indexes = if left_out > 0 { passed_over(left_out) } else { counts(taken + automatic + refused) };
    indexes.insert("ErroredCount".to_owned(), (*refused).into());
    let sections = Sections {
        database_record: report.database_record.into(),
        documents,
        tombstones: report.deleted,
        indexes,
        identities: report.identities,
        compare_exchange: report.compare_exchange,
    };
    let passed = |section: &str| report.skipped.get(section).copied().unwrap_or_default();
    let mut result = result(sections, passed, messages, took);
    // Ours alone: the whole report, which `jackdaw import` tells.
    result.insert("Report".to_owned(), json!(report));
    Value::Object(result)
}

/// What an export wrote.
pub(crate) fn export_result(report: &ExportReport, took: Duration) -> Value {
    let mut documents = counts(report.documents);
    documents.insert("SkippedCount".to_owned(), 0.into());
    documents.insert("SizeInBytes".to_owned(), report.text_bytes.into());
    documents.insert("LastEtag".to_owned(), report.last_etag.into());
    documents.insert("Attachments".to_owned(), counts(0).into());
    let sections = Sections {
        database_record: 1,
        documents,
        tombstones: report.tombstones,
        indexes: counts(report.indexes),
        identities: report.identities,
        compare_exchange: report.compare_exchange,
    };
    Value::Object(result(sections, |_| 0, Vec::new(), took))
}

struct Sections {
    database_record: u64,
    documents: Map<String, Value>,
    tombstones: u64,
    indexes: Map<String, Value>,
    identities: u64,
    compare_exchange: u64,
}

fn result(
    sections: Sections,
    passed: impl Fn(&str) -> u64,
    messages: Vec<String>,
    took: Duration,
) -> Map<String, Value> {
    let mut result = Map::new();
    let mut put = |name: &str, value: Value| result.insert(name.to_owned(), value);
    put("$type", "Raven.Client.Documents.Smuggler.SmugglerResult, Raven.Client".into());
    put("DatabaseRecord", counts(sections.database_record).into());
    put("Documents", sections.documents.into());
    put("Tombstones", counts(sections.tombstones).into());
    put("Indexes", sections.indexes.into());
    put("Identities", counts(sections.identities).into());
    put("CompareExchange", counts(sections.compare_exchange).into());
    for (name, section) in NOT_YET {
        put(name, passed_over(passed(section)).into());
    }
    put("Messages", messages.into());
    put("Elapsed", span(took).into());
    result
}

fn counts(read: u64) -> Map<String, Value> {
    let counts = json!({
        "StartTime": clock::date_text(clock::now_ticks()),
        "Processed": true,
        "ReadCount": read,
        "Skipped": false,
        "ErroredCount": 0,
    });
    match counts {
        Value::Object(counts) => counts,
        _ => Map::new(),
    }
}

fn passed_over(count: u64) -> Map<String, Value> {
    let mut counts = counts(count);
    counts.insert("Skipped".to_owned(), true.into());
    counts
}

/// A duration as .NET writes it.
fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{:07}", seconds % 60, duration.subsec_nanos() / 100)
}

/// How far an export or import is.
pub(crate) fn progress(progress: &Progress) -> Value {
    let mut documents = counts(progress.documents() + progress.unchanged() + progress.refused());
    documents.insert("ErroredCount".to_owned(), progress.refused().into());
    json!({
        "$type": "Raven.Client.Documents.Smuggler.SmugglerProgress, Raven.Client",
        "Documents": documents,
        "ReadBytes": progress.read_bytes(),
        "Message": format!("{} documents", progress.documents()),
    })
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn types_are_a_text_or_an_array() {
        let all = ItemTypes::of(&Value::Null).unwrap();
        assert!(all.documents && !all.tombstones);
        let some = ItemTypes::of(&json!({"operateOnTypes": "Documents, Tombstones,Indexes"})).unwrap();
        assert!(some.documents && some.tombstones && !some.identities);
        let none = ItemTypes::of(&json!({"OperateOnTypes": ["DatabaseRecord"]})).unwrap();
        assert!(none.database_record && !none.documents);
        assert!(ItemTypes::of(&json!({"OperateOnTypes": 1})).is_err());
        assert!(texts(&json!({"Collections": [1]}), "Collections").is_err());
    }

    #[test]
    fn what_would_be_left_out_is_refused() {
        assert!(refuse_unsupported(&json!({"TransformScript": null, "EncryptionKey": ""})).is_ok());
        assert!(refuse_unsupported(&json!({"TransformScript": "this.a = 1"})).is_err());
    }

    #[test]
    fn boundaries_are_quoted_or_not() {
        let check =
            |text: &str, expected: Option<&str>| assert_eq!(boundary(text).as_deref(), expected, "{text}");
        check("multipart/form-data; boundary=abc", Some("abc"));
        check("Multipart/Mixed; charset=utf-8; Boundary=\"a b\"", Some("a b"));
        check("application/json; boundary=abc", None);
        check("multipart/form-data", None);
    }

    #[test]
    fn durations_are_spelt_as_in_dotnet() {
        assert_eq!(span(Duration::from_millis(3_723_004)), "01:02:03.0040000");
    }
}
