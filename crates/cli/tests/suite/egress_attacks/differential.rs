//! G3: our reading of a host against that of Python and curl.

use ringfence_policy::Target;

use super::{Host, host};

/// As they stand in a URL. What a URL could not hold as a host is in the tests
/// of the policy.
const SPELLINGS: &[&str] = &[
    "example.org",
    "EXAMPLE.org",
    "example.org.",
    "a.example.org",
    "evil-example.org",
    "example.org.evil.test",
    "_a.example.org",
    "xn--bcher-kva.example",
    "XN--BCHER-KVA.example",
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0X7F.0.0.0x1",
    "0177.0.0.1",
    "017700000001",
    "0",
    "0x0",
    "00",
    "0.0.0.0",
    "1.2.3.4.",
    "10.1.515",
    "167838211",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "256",
    "65536",
    "4294967295",
    "255.255",
    "1.2.3",
    "01.02.03.04",
    "0x1.2.3.4",
    "1.0x2.03.4",
    "0x.0x.0",
    "08.1.1.1",
    "1.2.3.4.5",
    "1.2.3.256",
    "256.1.1.1",
    "4294967296",
    "0x100000000",
    "1..2",
    "example.1",
    "example.0x1",
    "a.0",
    "0x",
    "0xg.1",
    "1e3.1",
    "1_0.1",
    "+1.1",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[64:ff9b::10.1.2.3]",
    "[2001:DB8::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::1%25lo]",
    "[::1.2.3]",
    "[::1.2.3.4.5]",
    "[1::2::3]",
    "[12345::]",
];

/// The host as Python's library reads and dials it; `-` for none.
const PYTHON: &str = "import ipaddress, json, socket, urllib.parse
def read(spelling):
    try:
        host = urllib.parse.urlsplit(f'http://{spelling}/').hostname
    except ValueError:
        return '-'
    if ':' in host:
        try:
            address = ipaddress.IPv6Address(host)
        except ValueError:
            return '-'
        return str(address.ipv4_mapped or address)
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        return host.rstrip('.').lower()
for spelling in json.load(open('spellings.json')):
    print(read(spelling))
";

/// The host that curl asks for: what it resolves, or the address it dials.
const CURL: &str = "while read -r spelling; do
    curl -gsv -m 20 --noproxy '*' --connect-timeout 20 --resolve '*:80:45.0.0.10' \"http://$spelling/\" 2>&1 \
        | tr -d '\\r' | sed -n 's/^> Host: //p' | grep . || echo -
done < spellings";

fn readings(host: &Host, script: &str) -> Vec<String> {
    let said = host.online.outside(script).expect_code(0).stdout;
    said.lines().map(str::to_owned).collect()
}

/// Without what makes no difference between hosts.
fn plain(text: &str) -> String {
    let text = text.trim_end_matches('.').to_ascii_lowercase();
    let inner = text.trim_matches(['[', ']']);
    match inner.parse::<std::net::IpAddr>() {
        Ok(address) => address.to_canonical().to_string(),
        Err(_) => inner.to_owned(),
    }
}

/// No name of the world ends in a number. Browsers take these for addresses,
/// and so do we, who refuse them more often for it.
fn is_nowhere(other: &str) -> bool {
    let last = other.rsplit('.').next().unwrap_or_default();
    let is_number = last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit());
    is_number && plain(other).parse::<std::net::IpAddr>().is_err()
}

#[track_caller]
fn agree(others: &[String], who: &str) {
    assert_eq!(others.len(), SPELLINGS.len(), "{who}");
    for (spelling, other) in SPELLINGS.iter().zip(others) {
        if let Ok(ours) = Target::parse(spelling)
            && other != "-"
            && !is_nowhere(other)
        {
            assert_eq!(
                plain(&ours.to_string()),
                plain(other),
                "{spelling} for {who}"
            );
        }
    }
    let taken = others.iter().filter(|other| *other != "-").count();
    assert!(taken > 20, "{who} reads {taken} of them");
}

#[test]
fn g3_python_and_curl_read_no_other_host() {
    let host = host();
    host.write(
        "spellings.json",
        &serde_json::Value::from(SPELLINGS).to_string(),
    );
    host.write("spellings", &(SPELLINGS.join("\n") + "\n"));
    host.write("read.py", PYTHON);
    agree(&readings(&host, "/usr/bin/python3 read.py"), "Python");
    agree(&readings(&host, CURL), "curl");
}
