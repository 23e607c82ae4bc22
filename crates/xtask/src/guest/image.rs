//! The guest's files: the archive that its kernel starts from, and the disk.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::archive::Archive;
use super::modules::Modules;
use super::packages::Packages;
use crate::process;

/// What the disk needs, and what ringfence's network does.
const MODULES: &[&str] = &[
    "virtio_pci",
    "virtio_blk",
    "crc32c_generic",
    "ext4",
    "nf_tables",
    "nft_tproxy",
];
const FIRST: &[u8] = include_bytes!("first.sh");
/// The disk's scripts, by name.
const SCRIPTS: &[(&str, &str)] = &[
    ("guest/main.sh", include_str!("main.sh")),
    ("guest/places.sh", include_str!("places.sh")),
    ("guest/cases.sh", include_str!("cases.sh")),
    ("guest/shell.sh", include_str!("shell.sh")),
    ("guest/login.sh", include_str!("login.sh")),
];
/// What makes systemd run them, and where it looks for what to start.
const SERVICE: (&str, &str) = (
    "etc/systemd/system/guest.service",
    include_str!("guest.service"),
);
const STARTED: &str = "etc/systemd/system/multi-user.target.wants/guest.service";
/// Without one systemd would ask at the console what to call the machine.
const MACHINE: (&str, &str) = ("etc/machine-id", "0123456789abcdef0123456789abcdef\n");
const ROOT_USER: &str = "root:x:0:0::/root:/bin/sh\n";
const ROOT_GROUP: &str = "root:x:0:\n";
/// An ordinary user; the star means that there is no password to be looked up.
const USER: &str = "someone:*:1000:1000::/home/someone:/bin/sh\n";
const GROUP: &str = "someone:*:1000:\n";
/// Folders of the disk.
const FOLDERS: &[&str] = &[
    "bin",
    "dev",
    "etc",
    "guest",
    "home/someone/work",
    "proc",
    "root",
    "run",
    "srv/work",
    "sys",
    "tmp",
    "usr/bin",
    "usr/lib",
    "var/lib",
    "var/tmp",
];
/// Only what is written to it takes room.
const DISK_SIZE: &str = "1G";

/// The archive that the kernel starts from.
pub(super) fn first_files(packages: &Packages) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    for folder in ["bin", "dev", "disk", "modules"] {
        archive.folder(folder);
    }
    archive.program("init", FIRST);
    archive.program("bin/busybox", &read(&packages.busybox())?);
    let mut order = String::new();
    for module in Modules::find(&packages.modules()?)?.in_order(MODULES)? {
        archive.program(&format!("modules/{}", module.name), &module.content);
        order.push_str(&module.name);
        order.push('\n');
    }
    archive.program("modules/order", order.as_bytes());
    Ok(archive.finish())
}

/// What is put on a disk.
pub(super) struct Content<'a> {
    pub(super) packages: &'a Packages,
    pub(super) ringfence: &'a Path,
    /// The list of cases.
    pub(super) list: String,
}

/// A disk at `image` with only the content.
pub(super) fn bare_disk(image: &Path, content: &Content<'_>) -> Result<()> {
    let tree = Tree(image.with_extension("tree"));
    let _ = fs::remove_dir_all(&tree.0);
    fs::create_dir_all(tree.0.join("etc"))?;
    fs::write(tree.0.join("etc/passwd"), ROOT_USER)?;
    fs::write(tree.0.join("etc/group"), ROOT_GROUP)?;
    tree.fill(content)?;
    let made = tree.write_to(image);
    // What is left is removed by the next one at the same place.
    let _ = fs::remove_dir_all(&tree.0);
    made
}

/// A disk at `image` with the content and the system in the folder `system`.
pub(super) fn system_disk(image: &Path, content: &Content<'_>, system: PathBuf) -> Result<()> {
    let tree = Tree(system);
    for (name, text) in [SERVICE, MACHINE] {
        fs::write(tree.0.join(name), text)?;
    }
    let started = tree.0.join(STARTED);
    let _ = fs::remove_file(&started);
    symlink("../guest.service", &started)?;
    tree.fill(content)?;
    tree.write_to(image)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// A folder that becomes a disk.
struct Tree(PathBuf);

impl Tree {
    fn fill(&self, content: &Content<'_>) -> Result<()> {
        for folder in FOLDERS {
            fs::create_dir_all(self.0.join(folder))?;
        }
        self.add("bin/busybox", &read(&content.packages.busybox())?)?;
        for (name, text) in SCRIPTS {
            self.add(name, text.as_bytes())?;
        }
        self.add("guest/list", content.list.as_bytes())?;
        self.append("etc/passwd", USER)?;
        self.append("etc/group", GROUP)?;
        // Without its symbols it is a third as large.
        let mut strip = Command::new("strip");
        strip.arg("-o").arg(self.0.join("usr/bin/ringfence"));
        process::run(strip.arg(content.ringfence))
    }

    fn add(&self, name: &str, content: &[u8]) -> Result<()> {
        let path = self.0.join(name);
        fs::write(&path, content)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(())
    }

    /// Adds a line that may be there from an earlier time.
    fn append(&self, name: &str, line: &str) -> Result<()> {
        let path = self.0.join(name);
        let mut text = fs::read_to_string(&path)?;
        if !text.contains(line) {
            text.push_str(line);
            fs::write(&path, text)?;
        }
        Ok(())
    }

    fn write_to(&self, image: &Path) -> Result<()> {
        let _ = fs::remove_file(image);
        let mut format = Command::new("mke2fs");
        format.args(["-q", "-t", "ext4", "-d"]).arg(&self.0);
        process::run(format.arg(image).arg(DISK_SIZE))
    }
}
