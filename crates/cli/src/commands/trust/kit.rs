//! A kit to approve.

use std::path::Path;

use ringfence_runtime::{Freshness, KitReference, LoadedKit, load_kits};

use crate::commands::kit::store;
use crate::error::Failure;

/// What makes a folder a kit.
const SPEC: &str = "spec.yaml";

/// How the kit is read.
#[derive(Debug, clap::Args)]
pub(super) struct KitArgs {
    /// A value for an argument of the kit, as it will be given to run (may be given several times)
    #[arg(long, value_name = "NAME=VALUE", conflicts_with_all = ["list", "remove"])]
    kit_arg: Vec<String>,
}

impl KitArgs {
    pub(super) fn read(&self, kit: &KitReference) -> Result<LoadedKit, Failure> {
        let store = store()?;
        let kits = std::slice::from_ref(kit);
        let mut read = load_kits(kits, &self.kit_arg, &store, Freshness::Pinned)?;
        read.pop().ok_or_else(|| {
            let message = format!("{kit} is no kit");
            Failure::new("nothing-to-approve", message, "name a kit")
        })
    }

    /// What is no kit takes no arguments.
    pub(super) fn refuse(&self) -> Result<(), Failure> {
        if self.kit_arg.is_empty() {
            return Ok(());
        }
        let message = "--kit-arg is for a kit, and this is none";
        Err(Failure::new("usage", message, "leave --kit-arg out"))
    }
}

/// The kit that is named so, if it is one: a URL, an archive, or a folder with
/// a specification in it.
pub(super) fn reference(given: &Path) -> Result<Option<KitReference>, Failure> {
    if given.join(SPEC).exists() {
        return Ok(Some(KitReference::Folder(given.to_path_buf())));
    }
    let text = given.to_string_lossy();
    let is_zip = given
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("zip"));
    if !is_zip && !text.contains("://") {
        return Ok(None);
    }
    let reference = text.parse::<KitReference>();
    let reference =
        reference.map_err(|error| Failure::new(error.code(), error.to_string(), error.hint()))?;
    Ok(Some(reference))
}
