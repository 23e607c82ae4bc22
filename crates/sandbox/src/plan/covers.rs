//! What has to be laid anew when the host replaces what it lies on.

use super::files::Files;
use super::late::{LateFile, LateFiles};
use crate::view::{Content, Cover, Shows, View};
use crate::within::is_within;

/// The covers of a view that the host can take away and nothing else stands in for: masked files,
/// which are to stay readable, and what is hidden in places where Landlock grants reading as a
/// whole. What is hidden elsewhere stays unreadable.
pub(super) fn covers(files: &Files, view: &View, late: &LateFiles) -> Vec<Cover> {
    let is_granted = |path| {
        let mut private = files.private.iter();
        files.is_writable(path) || private.any(|folder| is_within(path, folder))
    };
    let overlays = view.overlays.iter();
    let covers = overlays.filter_map(|overlay| {
        let shows = match &overlay.content {
            Content::Masked(number) => match late.all().get(*number)? {
                LateFile::Masked(place) => Shows::Masked {
                    number: *number,
                    services: place.services.clone(),
                },
                LateFile::Trust(_) => return None,
            },
            Content::Hidden { .. } if is_granted(&overlay.path) => Shows::Nothing,
            _ => return None,
        };
        let path = overlay.path.clone();
        Some(Cover { path, shows })
    });
    covers.collect()
}
