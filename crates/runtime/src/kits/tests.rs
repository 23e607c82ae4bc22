use std::path::Path;
use std::process::Command;

use super::*;
use crate::host_env::HostEnv;
use crate::secrets::Approvals;

const SPEC: &str = r#"schemaVersion: "2"
kind: mixin
name: forge
args:
  host: {default: api.forge.test}
permissions:
  network:
    allow: ["${{ kit.args.host }}"]
credentials:
  - service: forge
    apiKey:
      name: FORGE_TOKEN
      inject: [{domain: "${{ kit.args.host }}", scheme: bearer}]
"#;

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn kit_folder(spec: &str) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    write(place.path(), "spec.yaml", spec);
    place
}

fn store(directory: &Path) -> KitStore {
    let found = std::env::var_os("PATH").unwrap_or_default();
    let variables = vec![("PATH".into(), found)];
    KitStore {
        directory: directory.to_path_buf(),
        env: HostEnv::new(variables, None),
    }
}

fn load(folder: &Path, arguments: &[&str]) -> Result<LoadedKit, KitError> {
    let reference = KitReference::Folder(folder.to_path_buf());
    let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    let kits = load_kits(
        &[reference],
        &arguments,
        &store(Path::new("/none")),
        Freshness::Pinned,
    )?;
    Ok(kits.into_iter().next().unwrap())
}

#[test]
fn every_byte_and_argument_counts_in_the_sum() {
    let place = kit_folder(SPEC);
    let plain = load(place.path(), &[]).unwrap().digest();
    let given = load(place.path(), &["host=api.forge.test"])
        .unwrap()
        .digest();
    write(place.path(), "files/home/a", "x");
    let with_file = load(place.path(), &[]).unwrap().digest();
    write(place.path(), "files/home/a", "y");
    let changed = load(place.path(), &[]).unwrap().digest();
    write(place.path(), "README.md", "x");
    assert_eq!(load(place.path(), &[]).unwrap().digest(), changed);
    let mut sums = vec![plain, given, with_file, changed];
    sums.dedup();
    assert_eq!(sums.len(), 4);
}

#[test]
fn arguments_reach_files_and_unknown_ones_are_errors() {
    let place = kit_folder(SPEC);
    write(
        place.path(),
        "files/home/url",
        "https://${{ kit.args.host }}/",
    );
    let kit = load(place.path(), &["host=b.forge.test"]).unwrap();
    assert_eq!(kit.brought()[0].content.bytes, b"https://b.forge.test/");
    assert_eq!(kit.kit.allow[0].text, "b.forge.test");
    let code = |arguments: &[&str]| load(place.path(), arguments).unwrap_err().code();
    assert_eq!(code(&["port=1"]), "kit-arg-unknown");
    assert_eq!(code(&["host"]), "kit-arg-form");
    write(place.path(), "files/home/other", "${{ kit.args.other }}");
    assert_eq!(code(&[]), "kit-arg-unknown");
}

#[test]
fn g9_references_cannot_make_a_kit_larger_than_it_may_be() {
    let value = "x".repeat(4096);
    let spec =
        format!("schemaVersion: \"2\"\nkind: mixin\nname: k\nargs: {{a: {{default: {value}}}}}\n");
    let place = kit_folder(&spec);
    let text = "${{kit.args.a}}".repeat(1000);
    for number in 0..17 {
        write(place.path(), &format!("files/home/{number}"), &text);
    }
    let error = load(place.path(), &[]).unwrap_err();
    assert_eq!(error.code(), "kit-too-large");
}

#[test]
fn two_kits_of_one_name_are_refused() {
    let (one, two) = (kit_folder(SPEC), kit_folder(SPEC));
    let named = [one.path(), two.path()].map(|path| KitReference::Folder(path.to_path_buf()));
    let inputs = KitInputs {
        kits: named.to_vec(),
        ..KitInputs::default()
    };
    let state = tempfile::tempdir().unwrap();
    let approvals = Approvals::open(state.path()).unwrap();
    let loaded = inputs.load(Path::new("/w"), &store(Path::new("/none")), &approvals);
    assert_eq!(loaded.unwrap_err().code(), "kit-same-name");
}

#[test]
fn g5_an_approval_holds_as_long_as_the_kit_is_not_wider() {
    let place = kit_folder(SPEC);
    let state = tempfile::tempdir().unwrap();
    let mut approvals = Approvals::open(state.path()).unwrap();
    let approval = |approvals: &Approvals| load(place.path(), &[]).unwrap().approval(approvals);
    assert_eq!(approval(&approvals), KitApproval::Never);
    let kit = load(place.path(), &[]).unwrap();
    kit.approve(&mut approvals, kit.services()).unwrap();
    let forge = vec!["forge".to_owned()];
    assert_eq!(approval(&approvals), KitApproval::Content(forge.clone()));
    let noted = format!("{SPEC}# Another content that asks for the same.\n");
    write(place.path(), "spec.yaml", &noted);
    assert_eq!(approval(&approvals), KitApproval::NotWider(forge));
    // Its steps may run what is in files.
    write(place.path(), "files/home/a", "x");
    assert!(matches!(approval(&approvals), KitApproval::Widened(_)));
    std::fs::remove_file(place.path().join("files/home/a")).unwrap();
    write(
        place.path(),
        "spec.yaml",
        &SPEC.replace(
            "\"${{ kit.args.host }}\"]",
            "\"${{ kit.args.host }}\", c.test.example.org]",
        ),
    );
    let widened = approval(&approvals);
    let KitApproval::Widened(new) = &widened else {
        panic!("{widened:?}")
    };
    assert_eq!(
        (new.len(), new[0].entry.as_str()),
        (1, "c.test.example.org")
    );
    assert_eq!(widened.services(), [""; 0]);
    assert!(
        widened
            .remark("forge")
            .unwrap()
            .contains("c.test.example.org")
    );
    let elsewhere = kit_folder(SPEC);
    write(elsewhere.path(), "files/home/b", "x");
    let foreign = load(elsewhere.path(), &[]).unwrap();
    assert_eq!(foreign.approval(&approvals), KitApproval::Never);
    let other = load(elsewhere.path(), &["host=evil.example.org"]).unwrap();
    assert_eq!(other.approval(&approvals), KitApproval::Never);
}

#[test]
fn a_kit_without_set_up_leaves_the_command_alone() {
    let place = kit_folder(SPEC);
    let kit = load(place.path(), &[]).unwrap();
    assert!(KitSetup::new(&[kit], Path::new("/w")).is_none());
}

#[test]
fn a_kit_with_files_gets_a_script_and_a_home() {
    let place = kit_folder(SPEC);
    write(place.path(), "files/workspace/a b", "x");
    let kit = load(place.path(), &[]).unwrap();
    let setup = KitSetup::new(&[kit], Path::new("/w")).unwrap();
    assert!(setup.layer().is_none(), "nothing goes to the home folder");
    let words = setup.wrap(vec!["make".into(), "-j".into()]);
    let words: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
    let script = "/run/ringfence/kits/setup.sh";
    assert_eq!(words, ["/bin/sh", script, "make", "-j"]);
    let given = setup.given();
    let text = String::from_utf8(given.last().unwrap().bytes.clone()).unwrap();
    let line = "put '/run/ringfence/kits/0' '/w/a b' '0644' 'keep'\n";
    assert!(text.contains(line), "{text}");
    write(place.path(), "files/home/a", "x");
    let kit = load(place.path(), &[]).unwrap();
    let setup = KitSetup::new(&[kit], Path::new("/w")).unwrap();
    let layer = setup.layer().unwrap();
    let home = &layer.environment.set["HOME"].value;
    assert_eq!(home, "/tmp/ringfence-home");
}

/// A repository with kits in it, and what its author can do.
struct Repository(tempfile::TempDir);

impl Repository {
    fn new() -> Self {
        let repository = Self(tempfile::tempdir().unwrap());
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        repository
    }

    fn git(&self, words: &[&str]) -> String {
        let done = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
            .args(["-c", "protocol.file.allow=always"])
            .args(words)
            .current_dir(self.0.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(done.status.success(), "{words:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    }

    fn commit(&self) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message=x"]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn reference(&self, fragment: &str) -> KitReference {
        let url = format!("git+file://{}/.git{fragment}", self.0.path().display());
        url.parse().unwrap()
    }
}

fn fetch(
    reference: &KitReference,
    cache: &Path,
    freshness: Freshness,
) -> Result<LoadedKit, KitError> {
    let kits = load_kits(
        std::slice::from_ref(reference),
        &[],
        &store(cache),
        freshness,
    )?;
    Ok(kits.into_iter().next().unwrap())
}

#[test]
fn a_kit_of_a_repository_is_pinned_and_kept() {
    let repository = Repository::new();
    write(repository.0.path(), "kits/forge/spec.yaml", SPEC);
    write(repository.0.path(), "kits/forge/files/home/a", "one");
    let first = repository.commit();
    let cache = tempfile::tempdir().unwrap();
    let cache = cache.path().join("kits");
    let reference = repository.reference("#ref=main&dir=kits/forge");
    let kit = fetch(&reference, &cache, Freshness::Pinned).unwrap();
    assert_eq!(kit.commit(), Some(first.as_str()));
    write(repository.0.path(), "kits/forge/files/home/a", "two");
    let second = repository.commit();
    let kit = fetch(&reference, &cache, Freshness::Pinned).unwrap();
    assert_eq!(kit.commit(), Some(first.as_str()));
    assert_eq!(kit.brought()[0].content.bytes, b"one");
    let kit = fetch(&reference, &cache, Freshness::Fresh).unwrap();
    assert_eq!(kit.commit(), Some(second.as_str()));
    let old = repository.reference(&format!("#ref={first}&dir=kits/forge"));
    std::fs::rename(
        repository.0.path().join(".git"),
        repository.0.path().join("gone"),
    )
    .unwrap();
    for (reference, content) in [(&reference, b"two"), (&old, b"one")] {
        let kit = fetch(reference, &cache, Freshness::Pinned).unwrap();
        assert_eq!(kit.brought()[0].content.bytes, content);
    }
    let error = fetch(&reference, &cache, Freshness::Fresh).unwrap_err();
    assert_eq!(error.code(), "kit-git");
    let left = std::fs::read_dir(&cache).unwrap().next().unwrap().unwrap();
    let left = std::fs::read_dir(left.path()).unwrap();
    let names = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(!names.into_iter().any(|name| name.starts_with("fetch-")));
}

#[test]
fn an_exact_commit_is_fetched_by_its_sum() {
    let repository = Repository::new();
    write(repository.0.path(), "spec.yaml", SPEC);
    let first = repository.commit();
    write(repository.0.path(), "files/home/a", "later");
    repository.commit();
    let cache = tempfile::tempdir().unwrap();
    let reference = repository.reference(&format!("#ref={first}"));
    let kit = fetch(&reference, cache.path(), Freshness::Pinned).unwrap();
    assert_eq!(kit.commit(), Some(first.as_str()));
    assert_eq!(kit.brought().len(), 0);
    let none = repository.reference("#ref=nowhere");
    let error = fetch(&none, cache.path(), Freshness::Pinned).unwrap_err();
    assert_eq!(error.code(), "kit-git");
    let empty = repository.reference("#dir=nowhere");
    let error = fetch(&empty, cache.path(), Freshness::Pinned).unwrap_err();
    assert_eq!(error.code(), "kit-no-spec");
}

#[test]
fn g4_files_are_what_is_kept_and_links_are_refused() {
    let repository = Repository::new();
    let place = repository.0.path();
    let pointer = "version https://lfs.example.org/spec/v1\n";
    write(place, "spec.yaml", SPEC);
    write(place, ".gitattributes", "files/** filter=lfs\n");
    write(place, "files/home/large", pointer);
    repository.commit();
    let cache = tempfile::tempdir().unwrap();
    let reference = repository.reference("");
    let kit = fetch(&reference, cache.path(), Freshness::Pinned).unwrap();
    assert_eq!(kit.brought()[0].content.bytes, pointer.as_bytes());
    std::os::unix::fs::symlink("/etc/passwd", place.join("files/home/link")).unwrap();
    repository.commit();
    let error = fetch(&reference, cache.path(), Freshness::Fresh).unwrap_err();
    assert_eq!(error.code(), "kit-special-file");
}
