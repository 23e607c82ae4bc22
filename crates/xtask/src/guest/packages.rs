//! What a guest is made of, from Debian's packages, unpacked into the build
//! folder. Nothing is installed on this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::{process, programs};

/// Always points to the newest kernel of the release.
const KERNEL: &str = "linux-image-amd64";
const BUSYBOX: &str = "busybox-static";
const DEBOOTSTRAP: &str = "debootstrap";
const QEMU: &str = "qemu-system-x86";
const QEMU_PROGRAM: &str = "qemu-system-x86_64";
/// What must be here to fetch, unpack and use them.
const NEEDS: [&str; 9] = [
    "apt-cache",
    "apt-get",
    "dpkg-deb",
    "mke2fs",
    "nice",
    "setpriv",
    "strip",
    "unshare",
    "wget",
];
/// Seconds that a fetch may take.
const LONGEST_FETCH: &str = "300";

/// The unpacked packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Packages {
    root: PathBuf,
}

impl Packages {
    /// The packages in `folder`, fetched if they are not there yet.
    pub(super) fn fetch(folder: &Path) -> Result<Self> {
        for need in NEEDS {
            if find(need).is_none() {
                bail!("there is no {need}");
            }
        }
        let root = folder.join("debian");
        if !root.exists() {
            let fresh = folder.join("debian.new");
            let _ = fs::remove_dir_all(&fresh);
            unpack(&fresh).context("Debian's packages cannot be had")?;
            fs::rename(&fresh, &root)?;
        }
        Ok(Self { root })
    }

    /// Where they keep `file`.
    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.root.join(file)
    }

    pub(super) fn busybox(&self) -> PathBuf {
        self.root.join("bin/busybox")
    }

    /// The kernel's image.
    pub(super) fn kernel(&self) -> Result<PathBuf> {
        let name = |path: &Path| {
            let name = path.file_name().unwrap_or_default();
            name.to_string_lossy().starts_with("vmlinuz-")
        };
        let boot = list(&self.root.join("boot"))?;
        let kernel = boot.into_iter().find(|path| name(path));
        kernel.context("the kernel's package has no kernel")
    }

    /// The folder of the kernel's modules.
    pub(super) fn modules(&self) -> Result<PathBuf> {
        let versions = list(&self.root.join("lib/modules"))?;
        let version = versions.into_iter().next();
        version.context("the kernel's package has no modules")
    }

    /// QEMU: this machine's own, else the unpacked one with its libraries.
    /// It dies with the caller's thread and gives way to everything else.
    pub(super) fn qemu(&self) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "nice", "-n", "10"]);
        if let Some(program) = find(QEMU_PROGRAM) {
            command.arg(program);
            return command;
        }
        let libraries = ["usr/lib", "lib"].map(|folder| {
            let folder = self.root.join(folder).join("x86_64-linux-gnu");
            folder.display().to_string()
        });
        command
            .env("LD_LIBRARY_PATH", libraries.join(":"))
            .env(
                "QEMU_MODULE_DIR",
                self.root.join("usr/lib/x86_64-linux-gnu/qemu"),
            )
            .arg(self.root.join("usr/bin").join(QEMU_PROGRAM));
        for data in ["usr/share/qemu", "usr/share/seabios"] {
            command.arg("-L").arg(self.root.join(data));
        }
        command
    }
}

fn find(program: &str) -> Option<PathBuf> {
    programs::find(program, &programs::own_path())
}

fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)
        .with_context(|| format!("cannot list {}", folder.display()))?
        .map(|entry| Ok(entry?.path()));
    entries.collect()
}

fn unpack(root: &Path) -> Result<()> {
    if rustix::process::geteuid().is_root() {
        process::run(fetching("apt-get").args(["update", "-qq"]))?;
    }
    let mut names = vec![BUSYBOX.to_string(), DEBOOTSTRAP.to_string(), kernel_name()?];
    if find(QEMU_PROGRAM).is_none() {
        names.extend(missing_for(QEMU)?);
    }
    let fetched = root.join("packages");
    fs::create_dir_all(&fetched)?;
    println!("guest: fetching {}", names.join(" "));
    let mut download = fetching("apt-get");
    download.args(["download", "-qq"]).args(names);
    process::run(download.current_dir(&fetched))?;
    for package in list(&fetched)? {
        let mut unpacking = Command::new("dpkg-deb");
        process::run(unpacking.arg("-x").arg(package).arg(root))?;
    }
    fs::remove_dir_all(&fetched)?;
    Ok(())
}

fn fetching(program: &str) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--signal", "KILL", LONGEST_FETCH, program]);
    command
}

fn printed(command: &mut Command) -> Result<String> {
    Ok(String::from_utf8(process::stdout_of(command)?)?)
}

fn kernel_name() -> Result<String> {
    let answer = printed(Command::new("apt-cache").args(["depends", KERNEL]))?;
    kernel_in(&answer).with_context(|| format!("no package {KERNEL} is known here"))
}

/// The kernel that the package named in apt's answer stands for.
fn kernel_in(answer: &str) -> Option<String> {
    let depends = answer
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "));
    let mut kernels = depends.filter(|name| name.starts_with("linux-image-"));
    kernels.next().map(str::to_string)
}

/// `package` and those it needs that are not installed here.
fn missing_for(package: &str) -> Result<Vec<String>> {
    let mut asking = Command::new("apt-get");
    asking.args(["install", "--print-uris", "-qq", "--no-install-recommends"]);
    Ok(names_in(&printed(asking.arg(package))?))
}

/// The packages in what apt prints of what it would fetch.
fn names_in(answer: &str) -> Vec<String> {
    let files = answer
        .lines()
        .filter(|line| line.starts_with('\''))
        .filter_map(|line| line.split(' ').nth(1));
    let names = files.filter_map(|file| file.split('_').next());
    names.map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_what_its_package_depends_on() {
        let answer = "linux-image-amd64\n  Depends: linux-image-6.1.0-9-amd64\n  Suggests: x\n";
        assert_eq!(kernel_in(answer).unwrap(), "linux-image-6.1.0-9-amd64");
        assert_eq!(kernel_in("linux-image-amd64\n"), None);
    }

    #[test]
    fn packages_are_named_by_their_files() {
        let answer = "Reading lists\n\
                      'http://mirror.test/l/libx0_1%3a2-3_amd64.deb' libx0_1%3a2-3_amd64.deb 9 MD5Sum:0\n\
                      'http://mirror.test/q/qemu-x_7_all.deb' qemu-x_7_all.deb 9 MD5Sum:0\n";
        assert_eq!(names_in(answer), ["libx0", "qemu-x"]);
    }
}
