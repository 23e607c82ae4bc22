//! Kits of both versions on a host that is online: the secret is added outside,
//! to the bound host alone, once it was approved.

use ringfence_testkit::{Folder, Web};

use super::{V1, V2};
use crate::suite::clients::{Host, Run};
use crate::suite::ringfence;

const HOST: &str = "api.my-service.test";
const TELEMETRY: &str = "telemetry.my-service.test";
const SECRET: &str = "s3cr3t-of-my-service-0123456789";
const APPROVED: [&str; 2] = ["--approve", "my-service"];

struct Kitted {
    host: Host,
    kits: Folder,
    own: Folder,
}

impl Kitted {
    fn new(spec: &str) -> Self {
        let host = Host::new();
        for name in [HOST, TELEMETRY] {
            host.net().web(name, Web::new());
        }
        let kits = Folder::durable();
        kits.write("k/spec.yaml", spec);
        Self {
            host,
            kits,
            own: Folder::durable(),
        }
    }

    fn kit(&self) -> String {
        self.kits.join("k").display().to_string()
    }

    fn run(&self, flags: &[&str], script: &str) -> Run {
        let kit = self.kit();
        let own = self.own.text();
        let flags: Vec<&str> = ["--kit", kit.as_str()]
            .into_iter()
            .chain(flags.iter().copied())
            .collect();
        let variables = [
            ("MY_SERVICE_TOKEN", SECRET),
            ("XDG_CACHE_HOME", own),
            ("XDG_STATE_HOME", own),
        ];
        self.host.run_with(&variables, &flags, script)
    }
}

#[test]
fn g5_both_versions_add_the_secret_outside() {
    for spec in [V1, V2] {
        let kitted = Kitted::new(spec);
        let script = format!("curl -sSf https://{HOST}/ >/dev/null; env; cat /proc/self/environ");
        let run = kitted.run(&APPROVED, &script).expect_code(0);
        assert!(!run.stdout().contains(SECRET), "{}", run.stdout());
        assert!(
            run.stdout().contains("MY_SERVICE_TOKEN="),
            "{}",
            run.stdout()
        );
        let wanted = format!("authorization: Bearer {SECRET}");
        assert!(
            kitted.host.net().saw(&wanted),
            "{:?}",
            kitted.host.net().connections()
        );
    }
}

/// As kits are published: the host only beside the credential, a text for its
/// variable, keys of later versions.
#[test]
fn g5_a_kit_as_partners_write_it_works() {
    let partners =
        V1.replace(
            "allowedDomains: [api.my-service.test]",
            "allowedDomains: []",
        )
        .replace(
            "proxyManaged: [MY_SERVICE_TOKEN]",
            "variables: {MY_SERVICE_TOKEN: ms_not-a-secret}",
        ) + "version: 2\nsourceURL: https://example.org/kit\nextends: claude\n";
    let kitted = Kitted::new(&partners);
    let script = format!(
        "curl -sSf -H \"Authorization: Bearer $MY_SERVICE_TOKEN\" https://{HOST}/ >/dev/null; \
         echo $MY_SERVICE_TOKEN"
    );
    let run = kitted.run(&APPROVED, &script).expect_code(0);
    assert_eq!(run.stdout(), "ms_not-a-secret\n");
    let wanted = format!("authorization: Bearer {SECRET}");
    assert!(kitted.host.net().saw(&wanted));
}

#[test]
fn g5_a_secret_that_nobody_approved_is_withheld_and_told() {
    for spec in [V1, V2] {
        let kitted = Kitted::new(spec);
        let script = format!("curl -sSf https://{HOST}/ >/dev/null; echo token=$MY_SERVICE_TOKEN");
        let run = kitted.run(&[], &script).expect_code(0);
        assert_eq!(run.stdout(), "token=\n");
        assert!(!kitted.host.net().saw(SECRET));
        let told = &run.outcome.stderr;
        assert!(
            told.contains("my-service") && told.contains("not approved"),
            "{told}"
        );
    }
}

#[test]
fn g3_a_deny_of_a_kit_holds_whatever_allows_the_host() {
    for spec in [V1, V2] {
        let kitted = Kitted::new(spec);
        let flags = ["--allow", TELEMETRY, "--allow", "**.my-service.test"];
        let script = format!("curl -sSf https://{TELEMETRY}/");
        let run = kitted.run(&flags, &script);
        assert_ne!(run.outcome.code(), 0);
        kitted.host.sent_nothing();
        let run = kitted.run(&flags, &format!("curl -sSf https://{HOST}/"));
        run.expect_code(0);
    }
}

#[test]
fn g5_an_approval_is_kept_until_the_kit_asks_for_more() {
    let kitted = Kitted::new(V2);
    let gets_secret = || {
        let run = kitted.run(&[], &format!("curl -sSf https://{HOST}/"));
        let told = run.expect_code(0).outcome.stderr;
        (kitted.host.net().saw(SECRET), told)
    };
    assert!(!gets_secret().0);
    let words = ["trust", &kitted.kit()];
    let own = kitted.own.path();
    let trust = || ringfence().args(words).env("XDG_STATE_HOME", own).run();
    trust().expect_code(0);
    let (got, told) = gets_secret();
    assert!(got && !told.contains("not approved"), "{told}");
    let noted = format!("{V2}# Another content that asks for the same.\n");
    kitted.kits.write("k/spec.yaml", &noted);
    assert!(gets_secret().0);
    // Its steps may run what is in files.
    kitted.kits.write("k/files/workspace/notes", "new");
    let (got, told) = gets_secret();
    assert!(!got && told.contains("added file"), "{told}");
    trust().expect_code(0);
    let wider = V2.replace("allow: [", "allow: [other.example.org, ");
    kitted.kits.write("k/spec.yaml", &wider);
    let (got, told) = gets_secret();
    assert!(!got, "{told}");
    let remark = "asks for more than was approved: added allow other.example.org";
    assert!(told.contains(remark), "{told}");
    trust().expect_code(0);
    assert!(gets_secret().0);
}
