use super::*;

struct Place {
    working: tempfile::TempDir,
    state: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            working: tempfile::tempdir().unwrap(),
            state: tempfile::tempdir().unwrap(),
        }
    }

    fn project(&self) -> Project {
        let folder = self.working.path().canonicalize().unwrap();
        Project {
            paths: PathContext {
                home: "/home/u".into(),
                base: folder.clone(),
            },
            folder,
            approvals: self.state.path().join("approvals"),
        }
    }

    fn file(&self) -> PathBuf {
        self.project().folder.join(WORKING_FOLDER_FILE)
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.file()).unwrap()
    }

    fn add(&self, list: RuleList, entry: &str) -> Result<RuleChange, ProjectError> {
        let entry = RuleEntry::parse(entry, list)?;
        self.project().add(list, &[entry])
    }

    fn is_trusted(&self) -> bool {
        let approvals = Approvals::open(&self.project().approvals).unwrap();
        let found = Candidate::read(&self.file()).unwrap().unwrap();
        approvals.is_trusted(&found.subject())
    }
}

#[test]
fn a_file_that_is_not_there_is_made_and_trusted() {
    let place = Place::new();
    let change = place.add(RuleList::Allow, "API.example.org").unwrap();
    assert!(change.trusted && place.is_trusted());
    assert_eq!(
        place.text(),
        "version = 1\n\n[network]\nallow = [\"api.example.org\"]\n"
    );
    let again = place.add(RuleList::Allow, "api.example.org").unwrap();
    assert!(again.is_nothing() && again.known.len() == 1);
}

#[test]
fn comments_and_forms_stay_as_they_are() {
    let place = Place::new();
    let text = "# ours\nversion = 1 # the first\n\n[network] # out\nallow = [\n    \"a.example.org\", # one\n    {host = \"b.example.org\", methods = [\"GET\"]}\n]\n";
    std::fs::write(place.file(), text).unwrap();
    place.add(RuleList::Allow, "c.example.org:8443").unwrap();
    let expected = text.replace("[\"GET\"]}\n", "[\"GET\"]},\n    \"c.example.org:8443\"\n");
    assert_eq!(place.text(), expected);
}

#[test]
fn an_inline_table_is_added_to() {
    let place = Place::new();
    let text = "version = 1\nnetwork = {allow = [\"a.example.org\"]}\n";
    std::fs::write(place.file(), text).unwrap();
    place.add(RuleList::Deny, "10.9.0.0/16").unwrap();
    let found = Candidate::read(&place.file()).unwrap().unwrap();
    assert_eq!(found.asked(&place.project().paths).unwrap().rows.len(), 2);
}

#[test]
fn g1_what_was_not_trusted_does_not_become_so() {
    let place = Place::new();
    let text = "version = 1\n[network]\nallow = [\"evil.example.net\"]\n";
    std::fs::write(place.file(), text).unwrap();
    let change = place.add(RuleList::Allow, "a.example.org").unwrap();
    assert!(!change.trusted && !place.is_trusted());
    assert!(place.text().contains("\"a.example.org\""));
}

#[test]
fn the_other_list_gives_an_entry_up() {
    let place = Place::new();
    place.add(RuleList::Deny, "a.example.org").unwrap();
    let change = place.add(RuleList::Allow, "a.example.org").unwrap();
    assert_eq!(change.removed.len(), 1);
    assert!(!place.text().contains("deny"), "{}", place.text());
    assert!(place.is_trusted());
}

#[test]
fn nothing_is_written_that_makes_no_sense() {
    let place = Place::new();
    for (text, code) in [
        ("version = 1\nnetwork = 3\n", "file-malformed"),
        ("version = 1\n[network]\nallow = \"x\"\n", "file-malformed"),
        ("version = \n", "file-malformed"),
        (
            "version = 1\n[network]\nmode = \"deny\"\n",
            "entry-never-matches",
        ),
    ] {
        std::fs::write(place.file(), text).unwrap();
        let refused = place.add(RuleList::Allow, "a.example.org").unwrap_err();
        assert_eq!(refused.code(), code, "{text}: {refused}");
        assert_eq!(place.text(), text);
    }
    let refused = place.add(RuleList::Allow, "*.com").unwrap_err();
    assert_eq!(refused.code(), "pattern-too-broad");
}

#[test]
fn g4_a_link_is_not_followed() {
    let place = Place::new();
    let elsewhere = place.state.path().join("elsewhere");
    std::fs::write(&elsewhere, "version = 1\n").unwrap();
    std::os::unix::fs::symlink(&elsewhere, place.file()).unwrap();
    place.add(RuleList::Allow, "a.example.org").unwrap_err();
    assert_eq!(std::fs::read_to_string(elsewhere).unwrap(), "version = 1\n");
}

#[test]
fn g4_a_folder_that_became_a_link_is_not_written_through() {
    let place = Place::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let folder = place.project().folder.join("folder");
    std::os::unix::fs::symlink(elsewhere.path(), &folder).unwrap();
    let project = Project {
        folder,
        ..place.project()
    };
    let entry = RuleEntry::parse("a.example.org", RuleList::Allow).unwrap();
    let refused = project.add(RuleList::Allow, &[entry]);
    assert!(matches!(refused, Err(ProjectError::Unwritable { .. })));
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}
