//! A kit in a git repository, fetched with the host's git and kept by commit.
//!
//! Nothing is ever checked out: files are read from git's own store, so that no
//! hook, filter, submodule or link of a repository takes part.

mod cache;
mod error;
mod path;
mod tool;
mod tree;

pub(super) use error::GitError;

use self::cache::Cache;
use self::tool::Git;
use super::collect::Collected;
use super::error::KitError;
use super::load::{Freshness, KitStore};
use super::reference::GitReference;

/// Reads the kit at `reference`, and returns its commit. What was fetched once
/// is not fetched again, and a name means the commit that it meant then, unless
/// a fresh look is asked for.
pub(super) fn read(
    reference: &GitReference,
    store: &KitStore,
    freshness: Freshness,
    kit: &mut Collected,
) -> Result<String, KitError> {
    let git = Git::of(&store.env);
    let cache = Cache::open(&store.directory, reference, &git)?;
    let commit = match (cache.pinned()?, freshness) {
        (Some(commit), Freshness::Pinned) => commit,
        _ => cache.fetch()?,
    };
    let repository = cache.repository(&commit);
    tree::read((&git, &repository), &commit, reference, kit)?;
    Ok(commit)
}
