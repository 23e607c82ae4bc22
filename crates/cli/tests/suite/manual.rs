//! `ringfence man`: pages that formatters take without a word.

use ringfence_testkit::{Folder, Program};

use super::ringfence;

#[test]
fn every_page_is_written_and_renders_without_a_warning() {
    let folder = Folder::new();
    let out = folder.join("man/man1");
    let words = ["man", "--out", out.to_str().unwrap()];
    let written = ringfence().args(words).run().expect_code(0).stdout;
    let pages: Vec<&str> = written.lines().collect();
    assert!(pages.iter().any(|page| page.ends_with("/ringfence.1")));
    assert!(pages.len() > 30, "{written}");
    let has_groff = Program::new("sh")
        .args(["-c", "command -v groff"])
        .run()
        .code()
        == 0;
    if !has_groff {
        eprintln!("skipped: there is no groff to render pages with");
        return;
    }
    for page in pages {
        let rendered = Program::new("groff")
            .args(["-man", "-ww", "-Tutf8", "-P-cbou", page])
            .run()
            .expect_code(0);
        assert_eq!(rendered.stderr, "", "{page}");
        assert!(rendered.stdout.contains("SYNOPSIS"), "{page}");
    }
}

#[test]
fn one_page_is_printed_as_it_is_written() {
    let folder = Folder::new();
    let words = ["man", "--out", folder.text()];
    ringfence().args(words).run().expect_code(0);
    for (words, file) in [
        (&["man"][..], "ringfence.1"),
        (&["man", "run"], "ringfence-run.1"),
        (&["man", "policy", "explain"], "ringfence-policy-explain.1"),
    ] {
        let printed = ringfence().args(words.iter().copied()).run();
        assert_eq!(printed.expect_code(0).stdout, folder.read(file), "{file}");
    }
    let unknown = ringfence().args(["man", "walk"]).run().expect_code(1);
    assert!(unknown.stderr.contains("unknown-command"), "{unknown:?}");
    let both = ringfence().args(["man", "run", "--out", folder.text()]);
    both.run().expect_code(2);
}
