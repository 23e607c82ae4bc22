//! Bounded collections that a story is put together in.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use super::FileLine;
use crate::event::Action;

/// The most lines that are kept apart.
const MOST_LINES: usize = 1000;
/// The most files of a folder that are told one by one.
const MOST_IN_FOLDER: usize = 10;

/// Lines by what tells them apart, in the order in which they came.
#[derive(Debug)]
pub(super) struct Tally<K, L> {
    places: HashMap<K, usize>,
    lines: Vec<L>,
}

impl<K, L> Default for Tally<K, L> {
    fn default() -> Self {
        Self {
            places: HashMap::new(),
            lines: Vec::new(),
        }
    }
}

impl<K: Hash + Eq, L> Tally<K, L> {
    /// The line of `key`; one more, which is then the last, for all that there
    /// is no room for.
    pub(super) fn entry(&mut self, key: K, make: impl FnOnce() -> L) -> &mut L {
        let count = self.lines.len();
        let at = match self.places.get(&key) {
            Some(at) => *at,
            None if count <= MOST_LINES => {
                self.places.insert(key, count);
                self.lines.push(make());
                count
            }
            None => count - 1,
        };
        &mut self.lines[at]
    }

    /// The lines, and the count of the one for all others.
    pub(super) fn into_lines(mut self, count: impl Fn(&L) -> u64) -> (Vec<L>, u64) {
        let rest = self.lines.split_off(self.lines.len().min(MOST_LINES));
        (self.lines, rest.iter().map(count).sum())
    }
}

/// What was done to files, by action and folder.
#[derive(Debug, Default)]
pub(super) struct Files {
    folders: BTreeMap<(Action, String), InFolder>,
}

#[derive(Debug, Default)]
struct InFolder {
    files: BTreeMap<String, u64>,
    /// Of files that are not told apart.
    more: u64,
}

impl Files {
    /// Adds what was done to `path`; with a slash at its end it stands for
    /// files of that folder that are not told apart.
    pub(super) fn add(&mut self, action: Action, path: &str, count: u64) {
        let folder = path
            .rsplit_once('/')
            .map(|(folder, _)| format!("{folder}/"));
        let inside = self.folder(action, folder.unwrap_or_default());
        let has_room = inside.files.contains_key(path) || inside.files.len() < MOST_LINES;
        if has_room && !path.ends_with('/') {
            *inside.files.entry(path.to_owned()).or_default() += count;
        } else {
            inside.more += count;
        }
    }

    fn folder(&mut self, action: Action, folder: String) -> &mut InFolder {
        let key = (action, folder);
        let is_new = !self.folders.contains_key(&key);
        let key = if is_new && self.folders.len() >= MOST_LINES {
            (action, "others".to_owned())
        } else {
            key
        };
        self.folders.entry(key).or_default()
    }

    /// One line for each file, or for a folder with many.
    pub(super) fn into_lines(self) -> Vec<FileLine> {
        let lines = self
            .folders
            .into_iter()
            .flat_map(|((action, folder), inside)| {
                let line = move |path: String, files: u64, count: u64| FileLine {
                    action,
                    path,
                    files,
                    count,
                };
                if inside.more == 0 && inside.files.len() <= MOST_IN_FOLDER {
                    let files = inside.files.into_iter();
                    return files.map(|(path, count)| line(path, 1, count)).collect();
                }
                let count = inside.files.values().sum::<u64>() + inside.more;
                vec![line(folder, inside.files.len() as u64, count)]
            });
        lines.collect()
    }
}
