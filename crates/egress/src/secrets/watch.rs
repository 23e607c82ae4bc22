//! Notices placeholders in what leaves.
//!
//! Nothing is held back, so that nobody waits for a byte that is kept here: it
//! is enough that the piece with the last byte of a placeholder stays inside.

use std::sync::Arc;

use aho_corasick::AhoCorasick;

use super::matcher::{Matcher, Run};
use super::pattern::{Case, Extent};
use crate::secret::Placeholder;

/// The placeholders of one sandbox, compiled.
pub(crate) struct Placeholders {
    pub(super) all: Vec<Placeholder>,
    /// As they are.
    pub(super) texts: AhoCorasick,
    matcher: Matcher,
}

/// A placeholder that was about to leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// Whose secret it stands for.
    pub(crate) service: String,
}

impl Placeholders {
    /// `None` where there is nothing to watch for.
    pub(crate) fn new(placeholders: &[Placeholder]) -> Option<Self> {
        if placeholders.is_empty() {
            return None;
        }
        let texts = || placeholders.iter().map(|one| one.text.as_str());
        Some(Self {
            all: placeholders.to_vec(),
            texts: AhoCorasick::new(texts()).ok()?,
            matcher: Matcher::new(texts(), Case::Ignored, Extent::Whole),
        })
    }

    /// Whether the placeholder of `service` is in a text, in any form.
    pub(crate) fn holds(&self, service: &str, text: &[u8]) -> bool {
        let mut holds = false;
        Run::default().feed(&self.matcher, text, &mut |one| {
            holds |= self.all[one.owner].service == service;
        });
        holds
    }
}

/// Watches one stream of bytes.
pub(crate) struct Watch {
    placeholders: Arc<Placeholders>,
    /// The numbers of those that may pass.
    let_through: Vec<usize>,
    run: Run,
}

impl Watch {
    pub(crate) fn new(placeholders: Arc<Placeholders>) -> Self {
        Self {
            placeholders,
            let_through: Vec::new(),
            run: Run::default(),
        }
    }

    /// Lets the placeholders of these services pass.
    pub(crate) fn except(mut self, services: &[&str]) -> Self {
        let all = self.placeholders.all.iter().enumerate();
        self.let_through = all
            .filter(|(_, one)| services.contains(&one.service.as_str()))
            .map(|(number, _)| number)
            .collect();
        self
    }

    /// Looks at the next bytes. Where a placeholder is complete with them, none
    /// of them may leave.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<(), Found> {
        let mut found = None;
        let let_through = &self.let_through;
        self.run
            .feed(&self.placeholders.matcher, bytes, &mut |one| {
                if !let_through.contains(&one.owner) {
                    found.get_or_insert(one.owner);
                }
            });
        match found {
            None => Ok(()),
            Some(owner) => Err(Found {
                service: self.placeholders.all[owner].service.clone(),
            }),
        }
    }
}
