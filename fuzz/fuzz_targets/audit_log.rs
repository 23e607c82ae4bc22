//! The audit log: readers and the check take any bytes, and only a log without records is fine
//! without its key.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use ringfence_audit::{ExportFormat, Exporter, Filter, Records, Story, runs, verify};

/// One folder for the whole time: a new one for each input would take most of it.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("ringfence-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
});

/// What divides the input into the files of a log.
const DIVIDER: &[u8] = b"\n--\n";

fuzz_target!(|bytes: &[u8]| {
    let names = ["audit.jsonl", "audit.jsonl.1", "audit.head", "audit.key"];
    let mut rest = bytes;
    for name in names {
        let at = rest.windows(DIVIDER.len()).position(|part| part == DIVIDER);
        let (part, after) = rest.split_at(at.unwrap_or(rest.len()));
        std::fs::write(FOLDER.join(name), part).expect("a written file");
        rest = after.strip_prefix(DIVIDER).unwrap_or(after);
    }
    let found = verify(&FOLDER).expect("files that can be read");
    assert!(!found.is_fine() || found.records == 0);
    let listed = runs(&FOLDER).expect("files that can be read");
    let records = Records::open(&FOLDER, Filter::default()).expect("files that can be read");
    let records: Vec<_> = records.map(|it| it.expect("a record")).collect();
    let events: Vec<_> = records.iter().map(|record| record.event.clone()).collect();
    for run in listed.iter().map(|run| run.run) {
        let _ = serde_json::to_string(&Story::of(run, &events)).expect("a story");
    }
    for format in [
        ExportFormat::Json,
        ExportFormat::Csv,
        ExportFormat::Skillhub,
    ] {
        let mut out = Vec::new();
        let mut exporter = Exporter::new(format, &mut out).expect("a beginning");
        for record in &records {
            exporter.add(record).expect("a line");
        }
        exporter.finish().expect("an end");
        let lines = String::from_utf8(out).expect("text").lines().count();
        assert!(lines <= records.len() + 1);
    }
});
