//! Reading a kit's files from git's own store.

use std::path::Path;

use super::error::GitError;
use super::tool::Git;
use crate::kits::collect::{Collected, FILES, KitBytes, MOST_FILES, SPEC};
use crate::kits::error::KitError;
use crate::kits::reference::GitReference;

/// A file of a commit.
struct Blob {
    id: String,
    path: String,
    executable: bool,
}

/// Reads the kit at `commit`.
pub(super) fn read(
    (git, repository): (&Git, &Path),
    commit: &str,
    reference: &GitReference,
    kit: &mut Collected,
) -> Result<(), KitError> {
    let blobs = list((git, repository), commit, reference, kit)?;
    let ids: Vec<&str> = blobs.iter().map(|blob| blob.id.as_str()).collect();
    let ids = ids.join("\n");
    let words = ["cat-file", "--batch"];
    let printed = git.run(repository, None, "read the kit", &words, ids.as_bytes())?;
    let mut rest = printed.as_slice();
    for blob in blobs {
        let (bytes, after) = next(rest, &blob.id).ok_or(GitError::Answer("cat-file"))?;
        rest = after;
        let file = KitBytes {
            bytes: bytes.to_vec(),
            executable: blob.executable,
        };
        kit.add(&blob.path, file)?;
    }
    Ok(())
}

/// The files of the kit, their sizes summed up before any is read.
fn list(
    (git, repository): (&Git, &Path),
    commit: &str,
    reference: &GitReference,
    kit: &Collected,
) -> Result<Vec<Blob>, KitError> {
    let below = |name: &str| match &reference.folder {
        Some(folder) => format!("{folder}/{name}"),
        None => name.to_owned(),
    };
    let (spec, files) = (below(SPEC), below(FILES));
    let mut words = vec!["ls-tree", "-r", "-z", "-l", "--full-tree", commit, "--"];
    words.extend([spec.as_str(), files.as_str()]);
    let printed = git.run(repository, None, "list the kit", &words, b"")?;
    let printed = String::from_utf8(printed).map_err(|_| GitError::Answer("ls-tree"))?;
    let mut blobs = Vec::new();
    let mut room = kit.room();
    for line in printed.split('\0').filter(|line| !line.is_empty()) {
        let entry = Entry::parse(line).ok_or(GitError::Answer("ls-tree"))?;
        let prefix = below("");
        let path = entry.path.strip_prefix(&prefix).unwrap_or(entry.path);
        if !["100644", "100755", "100664"].contains(&entry.mode) {
            return Err(kit.special(path));
        }
        if !kit.wants(path)? {
            continue;
        }
        room = room
            .checked_sub(entry.size)
            .ok_or_else(|| kit.too_large())?;
        if blobs.len() > MOST_FILES {
            return Err(kit.too_large());
        }
        blobs.push(Blob {
            id: entry.id.to_owned(),
            path: path.to_owned(),
            executable: entry.mode == "100755",
        });
    }
    Ok(blobs)
}

/// One line of `ls-tree -l`: `MODE TYPE ID SIZE<tab>PATH`.
struct Entry<'a> {
    mode: &'a str,
    id: &'a str,
    size: usize,
    path: &'a str,
}

impl<'a> Entry<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (fields, path) = line.split_once('\t')?;
        let mut fields = fields.split_ascii_whitespace();
        let (mode, _kind, id) = (fields.next()?, fields.next()?, fields.next()?);
        // Links to other repositories have none.
        let size = fields.next()?.parse().unwrap_or(0);
        Some(Self {
            mode,
            id,
            size,
            path,
        })
    }
}

/// The next answer of `cat-file --batch`: `ID TYPE SIZE`, the bytes, a line end.
fn next<'a>(printed: &'a [u8], id: &str) -> Option<(&'a [u8], &'a [u8])> {
    let end = printed.iter().position(|byte| *byte == b'\n')?;
    let head = std::str::from_utf8(&printed[..end]).ok()?;
    let size = head
        .strip_prefix(id)?
        .strip_prefix(" blob ")?
        .parse()
        .ok()?;
    let rest = &printed[end + 1..];
    let (bytes, after) = rest.split_at_checked(size)?;
    Some((bytes, after.strip_prefix(b"\n")?))
}
