//! HTTP as it is spoken over connections that stay: several requests, other
//! protocols after them, and rules that look at each request.

use super::{Host, PLAIN_WAYS};

/// What each way has before the path of a request, and where it connects to.
const WAYS: [(&str, &str, &str); 2] = [
    ("transparent", "", "web.example.org:80"),
    ("http-proxy", "http://web.example.org", "localhost:3128"),
];

#[test]
fn a_connection_that_becomes_something_else_stays_open() {
    let host = Host::new();
    for (via, prefix, place) in WAYS {
        let script = format!(
            "printf 'GET {prefix}/chat HTTP/1.1\\r\\nHost: web.example.org\\r\\n\
             Connection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\nhello' | socat -t 60 - tcp:{place}"
        );
        let to = "web.example.org:80";
        let run = host.run(&["--allow", to], &script).expect_code(0);
        let shown = run.stdout();
        assert!(shown.starts_with("HTTP/1.1 101 "), "{via}: {shown}");
        assert!(
            shown.ends_with("\r\n\r\nhello\ntotal 5\n"),
            "{via}: {shown}"
        );
        assert_eq!(run.told(), [format!("allowed {to} {via} socat {to}")]);
    }
}

/// Tells the trailers that came, and sends one back.
const TRAILERS: &str = "require('http').createServer((asked, answer) => {
    asked.resume().on('end', () => {
        if (asked.headers.trailer) answer.setHeader('Trailer', 'X-Sum');
        answer.write(JSON.stringify(asked.trailers));
        answer.addTrailers({'X-Sum': 'of the answer'});
        answer.end();
    });
}).listen(8008, '0.0.0.0');
";

#[test]
fn g1_g11_trailers_pass_both_ways_but_those_that_are_headers() {
    let host = Host::new();
    host.write("trailers.py", include_str!("scripts/trailers.py"));
    let server = host.net().program_in_the_world("/usr/bin/node");
    let _server = server.args(["-e", TRAILERS]).start();
    let is_up = "until curl -s http://v4.example.org:8008/ > /dev/null; do sleep 0.05; done";
    host.online.outside(is_up).expect_code(0);
    let ask = |way: &str, names: &str| format!("/usr/bin/python3 trailers.py {way} {names}");
    let forbidden = "authorization cookie proxy-authorization content-length host expect";
    let outside = host.online.outside(&ask("direct", "x-sum")).expect_code(0);
    let both = "200 {\"x-sum\":\"of the request\"} X-Sum: of the answer\n";
    assert_eq!(outside.stdout, both.repeat(2));
    let outside = host
        .online
        .outside(&ask("direct", forbidden))
        .expect_code(0);
    assert!(
        outside.stdout.contains("{\"authorization\":"),
        "{}",
        outside.stdout
    );
    for way in ["direct", "proxy"] {
        let allow = ["--allow", "v4.example.org:8008"];
        let run = host.run(&allow, &ask(way, "x-sum")).expect_code(0);
        assert_eq!(run.stdout(), both.repeat(2), "{way}");
        let run = host.run(&allow, &ask(way, forbidden)).expect_code(0);
        let refused: Vec<&str> = run.stdout().lines().map(str::trim).collect();
        assert_eq!(refused, ["400"; 12], "{way}");
    }
}

/// Requests of one curl, with the status of each.
fn requests(flags: &str, requests: &[&str]) -> String {
    let each = requests
        .iter()
        .map(|request| format!("-sS {flags} -o /dev/null -w '%{{http_code}} ' {request}"));
    format!("curl {}", each.collect::<Vec<_>>().join(" --next "))
}

#[test]
fn each_request_on_a_kept_connection_is_written_down() {
    let host = Host::new();
    let site = "http://web.example.org";
    for (flags, via) in PLAIN_WAYS {
        let script = requests(
            flags,
            &[
                &format!("{site}/first?query"),
                &format!("-d x {site}/second"),
                &format!("-I {site}/third"),
            ],
        );
        let run = host
            .run(&["--allow", "web.example.org"], &script)
            .expect_code(0);
        assert_eq!(run.stdout(), "200 200 200 ", "{via}");
        let seen = run.decisions().map(|made| {
            let method = made.method.as_ref().map(ToString::to_string);
            let path = made.path.as_ref().map(ToString::to_string);
            (method.unwrap_or_default(), path.unwrap_or_default())
        });
        let seen: Vec<(String, String)> = seen.collect();
        let wanted = [("GET", "/first"), ("POST", "/second"), ("HEAD", "/third")];
        assert_eq!(
            seen,
            wanted.map(|(a, b)| (a.to_owned(), b.to_owned())),
            "{via}"
        );
        // One connection for all of them.
        let connections = host.net().connections();
        assert_eq!(connections.len(), 1, "{via}: {connections:?}");
    }
}

#[test]
fn a_tunnel_is_one_decision_however_many_requests_are_in_it() {
    let host = Host::new();
    let site = "https://web.example.org";
    for (flags, via) in [("", "connect"), ("--noproxy '*'", "transparent")] {
        let script = requests(flags, &[&format!("{site}/a"), &format!("{site}/b")]);
        let to = "web.example.org:443";
        let run = host.run(&["--allow", to], &script).expect_code(0);
        assert_eq!(run.stdout(), "200 200 ");
        assert_eq!(run.told(), [format!("allowed {to} {via} curl {to}")]);
    }
}

const PARTIAL: &str = "{allow: [{host: web.example.org, methods: [GET, PUT], paths: [/open/**]}]}";

#[test]
fn rules_about_methods_and_paths_hold_for_each_request() {
    let host = Host::new();
    let flags = host.policy(PARTIAL);
    let site = "http://web.example.org";
    let paths = [
        (format!("{site}/open/first"), "200"),
        (format!("-T policy.yaml {site}/open/second"), "200"),
        (format!("{site}/closed/third"), "403"),
        (format!("{site}/open/fourth"), "200"),
        (format!("-d x {site}/open/fifth"), "403"),
        (format!("--path-as-is {site}/open/../closed/sixth"), "403"),
        (
            format!("--path-as-is {site}/open/%2e%2e/closed/seventh"),
            "403",
        ),
    ];
    for (way, via) in PLAIN_WAYS {
        let lines = paths.each_ref().map(|(line, _)| line.as_str());
        let run = host.run(&flags, &requests(way, &lines)).expect_code(0);
        let codes = paths.each_ref().map(|(_, code)| *code).join(" ");
        assert_eq!(run.stdout().trim_end(), codes, "{via}");
        let refused = run
            .told()
            .into_iter()
            .filter(|one| one.starts_with("refused"));
        let reasons = ["path", "method", "path", "path"]
            .map(|what| format!("refused web.example.org:80 {via} curl {what}-not-allowed"));
        assert_eq!(refused.collect::<Vec<_>>(), reasons, "{via}");
        for name in ["third", "fifth", "sixth", "seventh"] {
            assert!(!host.net().saw(name), "{via}: {name}");
        }
        for name in ["first", "second", "fourth"] {
            assert!(host.net().saw(name), "{via}: {name}");
        }
    }
}

#[test]
fn rules_about_methods_and_paths_refuse_what_cannot_be_looked_into() {
    let host = Host::new();
    let flags = host.policy(PARTIAL);
    for port in [80, 443] {
        let script = &format!(
            "printf '\\001 hello' | socat -t 60 - tcp:web.example.org:{port} | grep hello"
        );
        let run = host.run(&flags, script);
        assert!((1..125).contains(&run.outcome.code()), "{:?}", run.outcome);
        let told = run.told();
        let last = told.last().expect("a decision");
        assert!(last.starts_with("refused web.example.org:"), "{told:?}");
        assert!(
            last.contains("transparent") && last.ends_with(" needs-inspection"),
            "{told:?}"
        );
        let seen = host.net().connections().into_iter().flat_map(|one| one.saw);
        let heard: Vec<String> = seen.filter(|one| !one.starts_with("error: ")).collect();
        assert!(heard.is_empty(), "{script}: {heard:?}");
    }
}
