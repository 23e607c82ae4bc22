//! A kit in a git repository, fetched with the host's git and kept by commit.
//!
//! Nothing is ever checked out: files are read from git's own store, so that no
//! hook, filter, submodule or link of a repository takes part.

mod cache;
mod error;
mod path;
mod tool;
mod tree;

use std::path::Path;

pub(super) use error::GitError;

use self::cache::Cache;
use super::collect::Collected;
use super::error::KitError;
use super::load::Freshness;
use super::reference::GitReference;

/// Reads the kit at `reference`, and returns its commit. What was fetched once
/// is not fetched again, and a name means the commit that it meant then, unless
/// a fresh look is asked for.
pub(super) fn read(
    reference: &GitReference,
    cache: &Path,
    freshness: Freshness,
    kit: &mut Collected,
) -> Result<String, KitError> {
    let cache = Cache::open(cache, reference)?;
    let commit = match (cache.pinned()?, freshness) {
        (Some(commit), Freshness::Pinned) => commit,
        _ => cache.fetch()?,
    };
    tree::read(&cache.repository(&commit), &commit, reference, kit)?;
    Ok(commit)
}
