//! Whether a path lies in a folder, asked for hundreds of paths at each start.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The same as [`Path::starts_with`], which takes both apart into components
/// even where their texts tell.
pub(crate) fn is_within(path: &Path, folder: &Path) -> bool {
    let (text, above) = (path.as_os_str().as_bytes(), folder.as_os_str().as_bytes());
    match text.strip_prefix(above) {
        Some([] | [b'/', ..]) => true,
        _ => !(is_plain(text) && is_plain(above)) && path.starts_with(folder),
    }
}

/// Whether it is absolute, other than the root, and has one text only: no
/// component is empty or `.`, and nothing follows the last.
fn is_plain(text: &[u8]) -> bool {
    let Some(mut rest) = text.strip_prefix(b"/") else {
        return false;
    };
    loop {
        let end = rest.iter().position(|byte| *byte == b'/');
        let component = &rest[..end.unwrap_or(rest.len())];
        if matches!(component, [] | [b'.']) {
            return false;
        }
        match end {
            Some(end) => rest = &rest[end + 1..],
            None => return true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn it_says_what_components_say(path in "[/.ab]{0,8}", folder in "[/.ab]{0,5}") {
            let (path, folder) = (Path::new(&path), Path::new(&folder));
            prop_assert_eq!(is_within(path, folder), path.starts_with(folder));
        }
    }
}
