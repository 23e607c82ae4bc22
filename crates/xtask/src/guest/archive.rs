//! The archive that a kernel unpacks as its first files: cpio in its "new
//! ASCII" form, where everything belongs to root.

/// The kinds of file, as in the mode of a file.
const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
/// Ends an archive.
const TRAILER: &str = "TRAILER!!!";

/// An archive under way.
#[derive(Debug, Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    count: u32,
}

impl Archive {
    /// Adds an empty folder; those above it come first.
    pub(super) fn folder(&mut self, path: &str) {
        self.entry(path, FOLDER, &[]);
    }

    /// Adds a file that may be executed.
    pub(super) fn program(&mut self, path: &str, content: &[u8]) {
        self.entry(path, PROGRAM, content);
    }

    /// The whole.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry(TRAILER, 0, &[]);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.count += 1;
        let (name, size) = (path.len() + 1, content.len());
        // Number, mode, owner, group, links, time, size, two devices of two
        // numbers each, length of the name, and a sum that is not used.
        let fields = [
            self.count as usize,
            mode as usize,
            0,
            0,
            1,
            0,
            size,
            0,
            0,
            0,
            0,
            name,
            0,
        ];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(path.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_padded_and_end_with_the_trailer() {
        let mut archive = Archive::default();
        archive.folder("bin");
        archive.program("bin/x", b"hello");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8(bytes).unwrap();
        let heads: Vec<usize> = text.match_indices("070701").map(|(at, _)| at).collect();
        assert_eq!(heads.len(), 3);
        // The head is 110 bytes long, then come the name and its zero.
        assert!(text[110..].starts_with("bin\0"));
        assert!(heads.iter().all(|at| at % 4 == 0));
        assert_eq!(&text[heads[1] + 14..heads[1] + 22], "000081ed");
        assert_eq!(&text[heads[1] + 54..heads[1] + 62], "00000005");
        assert!(text.contains("TRAILER!!!\0"));
    }
}
