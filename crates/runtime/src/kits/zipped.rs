//! A kit in a zip archive. Nothing of it is written to the disk.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use zip::ZipArchive;
use zip::read::ZipFile;

use super::collect::{Collected, KitBytes, MOST_BYTES, SPEC};
use super::error::KitError;

/// The most entries that are looked at, folders and other files included.
const MOST_ENTRIES: usize = 16 * 1024;

/// Reads what belongs to the kit in the archive at `path`.
pub(super) fn read(path: &Path, kit: &mut Collected) -> Result<(), KitError> {
    let damaged = |why: String| KitError::Zip {
        path: path.to_path_buf(),
        why,
    };
    let file = open(path, kit)?;
    let mut archive = ZipArchive::new(file).map_err(|error| damaged(error.to_string()))?;
    if archive.len() > MOST_ENTRIES {
        return Err(damaged(format!("more than {MOST_ENTRIES} entries")));
    }
    if archive.has_duplicate_names() {
        return Err(damaged("two entries have one name".to_owned()));
    }
    let folder = top_folder(&archive);
    for at in 0..archive.len() {
        let entry = archive.by_index(at);
        let mut entry = entry.map_err(|error| damaged(error.to_string()))?;
        let Some(name) = wanted(&entry, &folder, kit)? else {
            continue;
        };
        let executable = entry.unix_mode().is_some_and(|mode| mode & 0o100 != 0);
        let mut bytes = Vec::new();
        entry
            .by_ref()
            .take(kit.room() as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| damaged(error.to_string()))?;
        kit.add(&name, KitBytes { bytes, executable })?;
    }
    Ok(())
}

/// Opens the archive, which is a file and not too large. What is a pipe would
/// be waited for without end.
fn open(path: &Path, kit: &Collected) -> Result<File, KitError> {
    let unreadable = |error| KitError::Unreadable {
        path: path.to_path_buf(),
        error,
    };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty());
    let file = File::from(file.map_err(|errno| unreadable(errno.into()))?);
    let found = file.metadata().map_err(unreadable)?;
    if !found.is_file() {
        return Err(kit.special(&path.display().to_string()));
    }
    if found.len() > MOST_BYTES as u64 {
        return Err(kit.too_large());
    }
    Ok(file)
}

/// The path of an entry within the kit; `None` for what is no part of it.
fn wanted(
    entry: &ZipFile<'_, File>,
    folder: &str,
    kit: &Collected,
) -> Result<Option<String>, KitError> {
    let name = String::from_utf8_lossy(entry.name_raw());
    let kind = entry.unix_mode().map_or(FileType::RegularFile, file_type);
    // A folder's name with nothing behind it makes nothing.
    if kind == FileType::Directory || name.ends_with('/') {
        return Ok(None);
    }
    if kind != FileType::RegularFile || entry.is_symlink() || name.contains('\u{fffd}') {
        return Err(kit.special(&name));
    }
    let below = name.strip_prefix(folder);
    let is_wanted = kit.wants(below.unwrap_or(&name))?;
    Ok(below.filter(|_| is_wanted).map(str::to_owned))
}

/// What an entry is; archives made elsewhere do not say.
fn file_type(mode: u32) -> FileType {
    match mode & 0o170_000 {
        0 => FileType::RegularFile,
        _ => FileType::from_raw_mode(mode),
    }
}

/// The one folder that holds the kit, with a `/`; empty where it is the archive
/// itself.
fn top_folder(archive: &ZipArchive<File>) -> String {
    let names: Vec<&str> = archive
        .file_names_raw()
        .filter_map(|name| std::str::from_utf8(name).ok())
        .collect();
    let tops = names.iter().filter_map(|name| {
        let (top, rest) = name.split_once('/')?;
        (rest == SPEC && top != "..").then_some(top)
    });
    let tops: Vec<&str> = tops.collect();
    match tops.as_slice() {
        [top] if !names.contains(&SPEC) => format!("{top}/"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::PathBuf;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    struct Made {
        _place: tempfile::TempDir,
        path: PathBuf,
    }

    fn archive(entries: &[(&str, &[u8])]) -> Made {
        made(|writer| {
            for (name, bytes) in entries {
                writer
                    .start_file(*name, SimpleFileOptions::default())
                    .unwrap();
                writer.write_all(bytes).unwrap();
            }
        })
    }

    fn made(fill: impl FnOnce(&mut ZipWriter<File>)) -> Made {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("k.zip");
        let mut writer = ZipWriter::new(File::create(&path).unwrap());
        fill(&mut writer);
        writer.finish().unwrap();
        Made {
            _place: place,
            path,
        }
    }

    fn collected(path: &Path) -> Result<Vec<String>, KitError> {
        let mut kit = Collected::new("k");
        read(path, &mut kit)?;
        let (spec, files) = kit.finish()?;
        Ok(std::iter::once(spec).chain(files.into_keys()).collect())
    }

    #[test]
    fn an_archive_is_read_with_and_without_a_folder() {
        let plain: &[(&str, &[u8])] = &[("spec.yaml", b"x"), ("files/home/a", b"y")];
        let below: &[(&str, &[u8])] = &[
            ("kit-1/spec.yaml", b"x"),
            ("kit-1/README.md", b""),
            ("kit-1/files/home/a", b"y"),
        ];
        for entries in [plain, below] {
            let made = archive(entries);
            assert_eq!(collected(&made.path).unwrap(), ["x", "files/home/a"]);
        }
    }

    #[test]
    fn g4_names_that_lead_out_are_refused() {
        for name in [
            "../evil",
            "files/home/../../../evil",
            "/etc/evil",
            "files/home/..\\evil",
            "files/home/a\0b",
        ] {
            let made = archive(&[("spec.yaml", b"x"), (name, b"y")]);
            let error = collected(&made.path).unwrap_err();
            assert_eq!(error.code(), "kit-file-path", "{name:?}: {error}");
        }
    }

    #[test]
    fn g4_links_in_archives_are_refused() {
        let made = made(|writer| {
            let options = SimpleFileOptions::default();
            writer.start_file("spec.yaml", options).unwrap();
            writer
                .add_symlink("files/home/a", "/etc/passwd", options)
                .unwrap();
        });
        let error = collected(&made.path).unwrap_err();
        assert_eq!(error.code(), "kit-special-file");
    }

    #[test]
    fn g9_what_unpacks_to_too_much_is_refused() {
        let large = vec![0; MOST_BYTES / 2 + 1];
        let bomb = archive(&[
            ("spec.yaml", b"x"),
            ("files/home/a", &large),
            ("files/home/b", &large),
        ]);
        assert!(std::fs::metadata(&bomb.path).unwrap().len() < 1024 * 1024);
        assert_eq!(collected(&bomb.path).unwrap_err().code(), "kit-too-large");
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("k.zip");
        File::create(&path).unwrap().set_len(100_000_000).unwrap();
        assert_eq!(collected(&path).unwrap_err().code(), "kit-too-large");
    }

    #[test]
    fn what_is_no_archive_is_told() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("k.zip");
        std::fs::write(&path, "PK\u{3}\u{4} not really").unwrap();
        assert_eq!(collected(&path).unwrap_err().code(), "kit-zip");
        let none = place.path().join("none.zip");
        assert_eq!(collected(&none).unwrap_err().code(), "kit-unreadable");
    }
}
