//! Client processes one after the other, a connection each.

use super::contest::{Contest, Unit};
use super::field::{Field, Place};
use super::server::SMALL;
use crate::bench::scale::Scale;

const WAYS: &[(&str, Place)] = &[
    ("direct", Place::Outside),
    ("ringfence, forward proxy", Place::Proxied),
    ("ringfence, transparent", Place::Transparent),
    ("srt, forward proxy", Place::Srt),
];

const LOOP: &str = r#"
i=0
while [ "$i" -lt "$1" ]; do
    curl --silent --show-error --fail --output /dev/null --noproxy "$2" "$3" || exit
    i=$((i + 1))
done
"#;

pub(super) fn contest(field: &Field, scale: Scale) -> Contest {
    let entry = |(name, place): &(&'static str, Place)| {
        field.entry(name, *place, client(field, *place, scale.processes))
    };
    Contest {
        title: format!("{} processes of curl, one after the other", scale.processes),
        unit: Unit::Seconds,
        rounds: scale.rounds,
        reading: Box::new(|ended| Ok(ended.took.as_secs_f64())),
        entries: WAYS.iter().map(entry).collect(),
    }
}

fn client(field: &Field, place: Place, processes: usize) -> Vec<String> {
    let url = format!("http://{}:{}/{SMALL}", place.host(), field.server.http);
    let count = processes.to_string();
    let words = ["sh", "-c", LOOP, "sh", &count, place.unproxied(), &url];
    words.map(str::to_string).to_vec()
}
