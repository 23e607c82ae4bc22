//! What recording costs: the same work at each level of the audit, beside the
//! work without a sandbox and under `strace`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::alternatives;
use super::scale::Scale;
use super::timing::{self, Candidate, Timing};

/// One piece of work and what it takes at each level.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Work {
    pub(super) title: String,
    pub(super) timings: Vec<Timing>,
    pub(super) absent: Vec<String>,
}

/// Folders and files in each that are searched.
const FOLDERS: usize = 1000;
const STRACE: &str = "strace";
const LEVELS: [&str; 5] = ["off", "network", "standard", "security", "all"];

/// Modules of the standard library that a tool of some size imports.
const IMPORTS: &str = "import argparse, asyncio, base64, collections, csv, dataclasses, datetime, \
    email, hashlib, http.client, json, logging, pathlib, re, sqlite3, subprocess, urllib.request, \
    xml.etree.ElementTree";

/// Measures every piece of work; the first row of each is the level `off`.
pub(super) fn measure(ringfence: &Path, scale: Scale) -> Result<Vec<Work>> {
    let folder = std::env::current_dir()?.join("audit-work");
    fs::create_dir_all(&folder)?;
    std::env::set_current_dir(&folder)?;
    make_tree(scale.files_in_folder)?;
    let searched = FOLDERS * scale.files_in_folder;
    // A new one each time: one that was there before is protected inside.
    let git = "cd $(mktemp -d r.XXXXXX) && git init -q . && \
        for i in $(seq 200); do echo $i > f$i; done && git add . && \
        git -c user.name=n -c user.email=n@example.org commit -q -m m && git log > /dev/null";
    let works = [
        (
            format!("Searching {searched} files"),
            vec!["find", "tree", "-name", "none"],
        ),
        (
            "Making a repository of 200 files".to_owned(),
            vec!["sh", "-c", git],
        ),
        (
            "Importing 18 modules of Python".to_owned(),
            vec!["python3", "-c", IMPORTS],
        ),
    ];
    let measured = works
        .into_iter()
        .map(|(title, words)| work(title, &words, ringfence, scale.works))
        .collect();
    fs::remove_dir_all(&folder)?;
    measured
}

fn work(title: String, words: &[&str], ringfence: &Path, runs: usize) -> Result<Work> {
    let mut candidates = Vec::new();
    for level in LEVELS {
        let arguments = [&["run", "--quiet", "--audit", level, "--"], words].concat();
        let candidate = Candidate::new(&format!("--audit {level}"), ringfence, &arguments);
        candidate.check().with_context(|| title.clone())?;
        candidates.push(candidate);
    }
    let program = alternatives::locate(words[0]).with_context(|| words[0].to_owned())?;
    candidates.push(Candidate::new("without a sandbox", &program, &words[1..]));
    let mut absent = Vec::new();
    match alternatives::locate(STRACE) {
        Some(strace) => {
            let arguments = [&["-f", "-o", "/dev/null"], words].concat();
            candidates.push(Candidate::new("strace -f", &strace, &arguments));
        }
        None => absent.push(format!("{STRACE}: not installed")),
    }
    Ok(Work {
        title,
        timings: timing::measure(&candidates, runs)?,
        absent,
    })
}

fn make_tree(files: usize) -> Result<()> {
    let mut name = String::new();
    for folder in 0..FOLDERS {
        let folder = format!("tree/{}/{}", folder / 30, folder % 30);
        fs::create_dir_all(&folder)?;
        for file in 0..files {
            name.clear();
            let _ = write!(name, "{folder}/file-{file}");
            fs::write(&name, b"")?;
        }
    }
    Ok(())
}
