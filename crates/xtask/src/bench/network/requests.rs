//! Small requests over connections that are kept alive, sent with wrk.

use anyhow::{Context as _, Result, bail};

use super::contest::{Contest, Unit};
use super::field::{Field, Place};
use super::server::SMALL;
use crate::bench::bounded::Ended;
use crate::bench::procfs::field as line_after;
use crate::bench::scale::Scale;

const WAYS: &[(&str, Place)] = &[
    ("direct", Place::Outside),
    ("ringfence, forward proxy", Place::Proxied),
    ("ringfence, transparent", Place::Transparent),
    ("srt, forward proxy", Place::Srt),
];

/// wrk knows no proxies: it is sent to the one in the variable, with the whole
/// URL as the path. The script is written where every sandbox may write.
const THROUGH_PROXY: &str = r#"
proxy=${HTTP_PROXY#*://} proxy=${proxy%/} url=$3 host=${3#*://}
{
    echo "wrk.path = '$url'; wrk.headers['Host'] = '${host%%/*}'"
    case $proxy in *@*)
        token=$(printf %s "${proxy%@*}" | base64 -w 0)
        echo "wrk.headers['Proxy-Authorization'] = 'Basic $token'"
    esac
} > proxy.lua
exec wrk -t 1 -c "$1" -d "$2" -s proxy.lua "http://${proxy##*@}/"
"#;

pub(super) fn contest(field: &Field, scale: Scale, connections: usize) -> Contest {
    let plural = if connections == 1 { "" } else { "s" };
    let entry = |(name, place): &(&'static str, Place)| {
        field.entry(name, *place, client(field, *place, scale, connections))
    };
    Contest {
        title: format!("Small requests over {connections} connection{plural}"),
        unit: Unit::RequestsPerSecond,
        rounds: scale.rounds,
        reading: Box::new(rate),
        entries: WAYS.iter().map(entry).collect(),
    }
}

fn client(field: &Field, place: Place, scale: Scale, connections: usize) -> Vec<String> {
    let url = format!("http://{}:{}/{SMALL}", place.host(), field.server.http);
    let connections = connections.to_string();
    let time = format!("{}s", scale.request_seconds);
    let words: &[&str] = match place {
        Place::Outside | Place::Transparent | Place::Inspected | Place::Bound => {
            &["wrk", "-t", "1", "-c", &connections, "-d", &time, &url]
        }
        Place::Proxied | Place::Srt => {
            &["sh", "-c", THROUGH_PROXY, "sh", &connections, &time, &url]
        }
    };
    words.iter().map(ToString::to_string).collect()
}

/// Requests per second, if each was answered well.
pub(super) fn rate(ended: &Ended) -> Result<f64> {
    for problem in ["Non-2xx or 3xx responses:", "Socket errors:"] {
        if let Some(line) = ended.printed.lines().find(|line| line.contains(problem)) {
            bail!("{}", line.trim());
        }
    }
    let rate = line_after(&ended.printed, "Requests/sec:").context("wrk says no rate")?;
    rate.parse().context("wrk says no rate")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "  9 requests in 1.00s, 2KB read\nRequests/sec:   1234.50\n";

    #[test]
    fn a_rate_with_refusals_or_broken_connections_does_not_count() {
        let rate_of = |text: &str| rate(&Ended::printing(text));
        assert_eq!(rate_of(GOOD).unwrap().to_string(), "1234.5");
        for problem in [
            "  Non-2xx or 3xx responses: 9\n",
            "  Socket errors: connect 0, read 2, write 0, timeout 0\n",
        ] {
            assert!(rate_of(&format!("{problem}{GOOD}")).is_err());
        }
        assert!(rate_of("").is_err());
    }
}
