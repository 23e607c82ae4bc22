//! Doors for the fuzz targets.

use std::sync::Arc;

use bytes::BytesMut;

use super::pattern::Extent;
use super::{Context, Decoder, Forms, Hidden, Placeholders, Progress, REDACTED, Scrubber, Watch};
use crate::secret::Placeholder;

/// More than that is not looked at.
const MOST_DECODED: usize = 4 * 1024 * 1024;

/// Hides some values.
pub struct Scrubbing(Arc<Forms>);

impl Scrubbing {
    /// Of `values`, in every form, and long parts of them.
    pub fn of(values: &[&str]) -> Self {
        Self::with(values, Extent::Parts)
    }

    /// Of whole values only.
    pub fn of_whole(values: &[&str]) -> Self {
        Self::with(values, Extent::Whole)
    }

    fn with(values: &[&str], extent: Extent) -> Self {
        let hidden = |value| Hidden {
            value,
            shown: REDACTED,
        };
        let values: Vec<Hidden<'_>> = values.iter().copied().map(hidden).collect();
        Self(Arc::new(Forms::of(&values, extent)))
    }

    /// What is left of a stream.
    pub fn scrubbed<'a>(&self, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
        let mut scrubber = Scrubber::new(Arc::clone(&self.0));
        let mut out = BytesMut::new();
        for piece in pieces {
            scrubber.feed(piece, &mut out);
        }
        scrubber.finish(&mut out);
        out.into()
    }
}

/// Watches for a placeholder.
pub struct Watching(Option<Arc<Placeholders>>);

impl Watching {
    /// For `text`, in every form.
    pub fn of(text: &str) -> Self {
        let placeholder = Placeholder {
            service: String::new(),
            text: text.to_owned(),
        };
        Self(Placeholders::new(&[placeholder]).map(Arc::new))
    }

    /// Whether it is noticed in a stream.
    pub fn notices<'a>(&self, pieces: impl IntoIterator<Item = &'a [u8]>) -> bool {
        let mut watch = self.0.clone().map(Watch::new);
        let mut notices = |piece| {
            watch
                .as_mut()
                .is_some_and(|watch| watch.feed(piece).is_err())
        };
        pieces.into_iter().any(&mut notices)
    }
}

/// The content, if it is valid and not too large.
pub fn decoded<'a>(encoding: &str, pieces: impl IntoIterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
    let mut decoder = Decoder::new(encoding).ok()??;
    let mut out = BytesMut::new();
    for mut piece in pieces {
        while decoder.decode(&mut piece, &mut out).ok()? == Progress::More {
            if out.len() > MOST_DECODED {
                return None;
            }
        }
    }
    decoder.finish().ok()?;
    (out.len() <= MOST_DECODED).then(|| out.into())
}

/// A body of some type with `secret` in the place of `held`, where it may be
/// put there.
pub fn substituted(held: &str, secret: &str, body: &[u8], kind: &str) -> Option<Vec<u8>> {
    let placeholder = Placeholder {
        service: String::new(),
        text: held.to_owned(),
    };
    let placeholders = Placeholders::new(&[placeholder])?;
    placeholders.check_body("", body, (kind, "")).ok()?;
    let out = placeholders.substitute(body, Context::of(kind), &|_| Some(secret));
    Some(out.into_owned())
}
