//! [`KitInputs`]: the kits of a run, and the arguments given for them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ringfence_policy::{Layer, declared_arguments};

use super::error::KitError;
use super::load::{Freshness, KitStore, LoadedKit, load_kits};
use super::reference::KitReference;
use super::setup::KitSetup;
use crate::secrets::Approvals;

/// What the operator gave.
#[derive(Debug, Clone, Default)]
pub struct KitInputs {
    /// The kits, in order.
    pub kits: Vec<KitReference>,
    /// `NAME=VALUE`, for every kit that declares it.
    pub arguments: Vec<String>,
}

/// The kits of a run, ready for use.
#[derive(Debug, Default)]
pub struct RunKits {
    /// What they say.
    pub layers: Vec<Layer>,
    /// What is done before the command.
    pub setup: Option<KitSetup>,
    /// What the operator should know, one sentence each.
    pub remarks: Vec<String>,
}

impl KitInputs {
    /// Reads the kits and looks up what was approved of them.
    pub fn load(
        &self,
        working_folder: &Path,
        store: &KitStore,
        approvals: &Approvals,
    ) -> Result<RunKits, KitError> {
        let kits = load_kits(&self.kits, &self.arguments, store, Freshness::Pinned)?;
        refuse_same_names(&kits)?;
        let setup = KitSetup::new(&kits, working_folder);
        let mut run = RunKits::default();
        for kit in &kits {
            let approval = kit.approval(approvals);
            run.layers.push(kit.layer(&approval));
            run.remarks.extend(approval.remark(&kit.kit.name));
            run.remarks.extend(fetched(kit));
        }
        run.layers.extend(setup.as_ref().and_then(KitSetup::layer));
        run.setup = setup;
        Ok(run)
    }
}

fn refuse_same_names(kits: &[LoadedKit]) -> Result<(), KitError> {
    let mut names = BTreeSet::new();
    let mut twice = kits.iter().filter(|kit| !names.insert(&kit.kit.name));
    match twice.next() {
        Some(kit) => Err(KitError::SameName(kit.kit.name.clone())),
        None => Ok(()),
    }
}

/// A name of a commit can move; what was fetched is told.
fn fetched(kit: &LoadedKit) -> Option<String> {
    let commit = kit.commit()?;
    Some(format!("kit {} is at commit {commit}", kit.kit.name))
}

/// Arguments as given, and which of them some kit had a use for.
#[derive(Debug)]
pub(super) struct GivenArguments {
    given: Vec<(String, String)>,
    used: BTreeSet<String>,
}

impl GivenArguments {
    pub(super) fn parse(words: &[String]) -> Result<Self, KitError> {
        let split = |word: &String| {
            let pair = word.split_once('=').filter(|(name, _)| !name.is_empty());
            let (name, value) = pair.ok_or_else(|| KitError::Argument(word.clone()))?;
            Ok((name.to_owned(), value.to_owned()))
        };
        Ok(Self {
            given: words.iter().map(split).collect::<Result<_, KitError>>()?,
            used: BTreeSet::new(),
        })
    }

    /// Those for the kit with this text; the last of several counts.
    pub(super) fn of(&mut self, spec: &str) -> BTreeMap<String, String> {
        let declared = declared_arguments(spec);
        let mut own = BTreeMap::new();
        for (name, value) in &self.given {
            if declared.contains(name) {
                self.used.insert(name.clone());
                own.insert(name.clone(), value.clone());
            }
        }
        own
    }

    /// An argument that nobody has is a mistake.
    pub(super) fn refuse_unused(&self) -> Result<(), KitError> {
        let unused = self
            .given
            .iter()
            .find(|(name, _)| !self.used.contains(name));
        match unused {
            Some((name, _)) => Err(KitError::ArgumentUnknown(name.clone())),
            None => Ok(()),
        }
    }
}
