//! `ringfence kit validate|show|diff`.

use super::{HEAD, Place, V1, V2, fails_with};

#[test]
fn a_right_kit_is_ok() {
    for spec in [V1, V2] {
        let place = Place::with(spec);
        let outcome = place.run_kit(&["validate", &place.kit("k")]).expect_code(0);
        assert_eq!(outcome.stdout, format!("{}: ok\n", place.kit("k")));
        assert_eq!(outcome.stderr, "");
    }
}

#[test]
fn a_wrong_kit_is_told_with_its_place() {
    for (spec, code, at) in [
        ("schemaVersion: \"3\"\n", "kit-version", "spec.yaml:1:16"),
        (
            &V2.replace("deny:", "denny:"),
            "malformed-document",
            "spec.yaml:7:5",
        ),
        (
            &V1.replace("Bearer %s", "Bearer"),
            "credential-format",
            "spec.yaml:9:17",
        ),
        (
            &V1.replace("Bearer %s", "%s%s"),
            "credential-format",
            "spec.yaml:9:17",
        ),
        (
            &V1.replace("Bearer %s", "%s\\r\\nX: y"),
            "credential-format",
            "spec.yaml:9:17",
        ),
        (
            &format!("{HEAD}environment: {{variables: {{SBX_X: y}}}}\n"),
            "kit-reserved-variable",
            "spec.yaml:4:34",
        ),
        (
            &format!(
                "{HEAD}args:\n  a: {{default: \"${{{{ kit.args.b }}}}\"}}\n  b: {{default: \"${{{{ kit.args.a }}}}\"}}\n"
            ),
            "kit-arg-circle",
            "spec.yaml:5:6",
        ),
        (
            &format!("{HEAD}security: {{privileged: true}}\n"),
            "kit-privileged",
            "spec.yaml:4",
        ),
        (
            "schemaVersion: 2\nkind: sandbox\nname: k\nsandbox: {image: x}\n",
            "kit-image",
            "spec.yaml:4",
        ),
    ] {
        let place = Place::with(spec);
        let told = fails_with(place.run_kit(&["validate", &place.kit("k")]), 1, code);
        assert!(told.contains(at), "{told}");
    }
}

#[test]
fn what_has_no_effect_is_told() {
    let place = Place::with_lines("ports: [{container: 80}]\nagentInstructions: {content: x}");
    let outcome = place.run_kit(&["validate", &place.kit("k")]).expect_code(0);
    for part in [": ok\n", "note[kit-ports]", "note[kit-not-handed-on]"] {
        assert!(outcome.stdout.contains(part), "{}", outcome.stdout);
    }
    let checked = place.json(&["validate", &place.kit("k")]);
    assert_eq!(checked[0]["ok"], true);
    assert_eq!(checked[0]["notes"][0]["code"], "kit-ports");
}

#[test]
fn several_kits_are_checked_at_once() {
    let place = Place::with(V1);
    place.kits.write("bad/spec.yaml", "schemaVersion: 9\n");
    let (good, bad) = (place.kit("k"), place.kit("bad"));
    let checked = place.json(&["validate", &good, &bad]);
    assert_eq!(checked[0]["ok"], true);
    assert_eq!(checked[1]["error"]["code"], "kit-version");
}

#[test]
fn both_versions_are_shown_alike() {
    let (one, two) = (Place::with(V1), Place::with(V2));
    let shown = [&one, &two].map(|place| place.json(&["show", &place.kit("k")]));
    assert_eq!(shown[0]["surface"], shown[1]["surface"]);
    assert_eq!(shown[0]["schemaVersion"], "1");
    assert_eq!(shown[1]["schemaVersion"], "2");
    let text = one.run_kit(&["show", &one.kit("k")]).expect_code(0).stdout;
    for part in [
        "allow       api.my-service.test",
        "deny        telemetry.my-service.test",
        "credential  my-service from $MY_SERVICE_TOKEN, secret my-service",
        "my-service: header authorization: Bearer %s to https://api.my-service.test:443",
        "my-service: a placeholder in MY_SERVICE_TOKEN",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
}

#[test]
fn arguments_are_given_and_checked() {
    let lines = "args: {region: {default: eu, enum: [eu, us]}}\npermissions: {network: {allow: [\"${{ kit.args.region }}.example.org\"]}}";
    let place = Place::with_lines(lines);
    let kit = place.kit("k");
    let shown = place.json(&["show", &kit, "--kit-arg", "region=us"]);
    assert_eq!(shown["surface"]["allow"][0], "us.example.org");
    assert_eq!(shown["arguments"]["region"], "us");
    for (argument, code) in [
        ("region=ap", "kit-arg-value"),
        ("other=x", "kit-arg-unknown"),
        ("region", "kit-arg-form"),
    ] {
        fails_with(
            place.run_kit(&["show", &kit, "--kit-arg", argument]),
            1,
            code,
        );
    }
}

#[test]
fn a_difference_is_shown_and_a_wider_one_fails() {
    let place = Place::with(V2);
    let mut number = 0;
    let mut differ = |new: &str| {
        number += 1;
        let name = format!("new{number}");
        place.kits.write(format!("{name}/spec.yaml"), new);
        place.run_kit(&["diff", &place.kit("k"), &place.kit(&name)])
    };
    let same = differ(V2).expect_code(0);
    assert_eq!(same.stdout, "no difference\n");
    let more = "allow: [api.my-service.test, other.example.org]";
    let new = V2.replace("allow: [api.my-service.test]", more);
    let wider = differ(&new).expect_code(1);
    assert_eq!(wider.stdout, "+  allow  other.example.org  wider\n");
    let undenied = differ(&V2.replace("    deny: [telemetry.my-service.test]\n", ""));
    let told = "-  deny  telemetry.my-service.test  wider\n";
    assert_eq!(undenied.expect_code(1).stdout, told);
    let source = differ(&V2.replace("name: MY_SERVICE_TOKEN", "name: OTHER_TOKEN"));
    let told = source.expect_code(1).stdout;
    assert!(
        told.contains("+  credential my-service source    $OTHER_TOKEN"),
        "{told}"
    );
    let variable = differ(&format!("{V2}environment: {{variables: {{A: b}}}}\n"));
    assert_eq!(variable.expect_code(1).stdout, "+  variable  A  wider\n");
    let denied = "deny: [telemetry.my-service.test, more.my-service.test]";
    let narrower = differ(&V2.replace("deny: [telemetry.my-service.test]", denied));
    let told = narrower.expect_code(0).stdout;
    assert_eq!(told, "+  deny  more.my-service.test\n");
    let command = differ(&format!("{V2}setup: {{install: [{{command: make}}]}}\n"));
    assert_eq!(command.expect_code(1).stdout, "+  install  make  wider\n");
    fails_with(differ("schemaVersion: 7\n"), 2, "kit-version");
    let json = place.json(&["diff", &place.kit("k"), &place.kit("new2")]);
    assert_eq!(json["widened"], true);
    assert_eq!(json["differences"][0]["part"], "allow");
}
