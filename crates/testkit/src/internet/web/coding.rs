//! Content in the codings of HTTP, and text in the forms in which it can come
//! back.

use std::fmt::Write as _;

use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL_NOPAD, HEXLOWER, HEXUPPER};
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// The text with some filling in these codings, the first applied first;
/// `None` if one is unknown. Nothing of the text can be read in the result.
pub(super) fn encode(text: &str, codings: &str) -> Option<Vec<u8>> {
    // Encoders leave what is short as it is.
    let filling: Vec<String> = (0..1000).map(|number: u32| number.to_string()).collect();
    let content = format!("{text}{}\n", filling.join(" ")).into_bytes();
    let mut codings = codings.split(',').map(str::trim);
    codings.try_fold(content, |content, coding| encode_once(&content, coding))
}

fn encode_once(content: &[u8], coding: &str) -> Option<Vec<u8>> {
    let best = Compression::best();
    let written = match coding {
        "identity" => Ok(content.to_vec()),
        "gzip" => finish(GzEncoder::new(Vec::new(), best), content, GzEncoder::finish),
        // Filled up, as some servers do.
        "gzip-filled" => {
            let filled = |mut bytes: Vec<u8>| {
                bytes.extend([0; 600]);
                bytes
            };
            finish(GzEncoder::new(Vec::new(), best), content, GzEncoder::finish).map(filled)
        }
        "deflate" => finish(
            ZlibEncoder::new(Vec::new(), best),
            content,
            ZlibEncoder::finish,
        ),
        // Wrong, and sent by some servers.
        "deflate-raw" => finish(
            DeflateEncoder::new(Vec::new(), best),
            content,
            DeflateEncoder::finish,
        ),
        "zstd" => Ok(compress_to_vec(content, CompressionLevel::Fastest)),
        "br" => brotli(content),
        _ => return None,
    };
    Some(written.expect("memory to write to"))
}

fn finish<W: std::io::Write>(
    mut encoder: W,
    content: &[u8],
    end: impl FnOnce(W) -> std::io::Result<Vec<u8>>,
) -> std::io::Result<Vec<u8>> {
    encoder.write_all(content)?;
    end(encoder)
}

fn brotli(content: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut written = Vec::new();
    let params = brotli::enc::BrotliEncoderParams::default();
    brotli::BrotliCompress(&mut &*content, &mut written, &params)?;
    Ok(written)
}

/// A text in each form that has a name, in which a server may give it back.
pub(super) fn forms(text: &str) -> Vec<(&'static str, String)> {
    let bytes = text.as_bytes();
    let shifted = |filling: &str| format!("{filling}{text}").into_bytes();
    let each = |format: fn(&mut String, u8)| {
        bytes.iter().fold(String::new(), |mut shown, byte| {
            format(&mut shown, *byte);
            shown
        })
    };
    vec![
        ("raw", text.to_owned()),
        ("base64", BASE64.encode(bytes)),
        ("base64-second", BASE64.encode(&shifted("u"))),
        ("base64-third", BASE64_NOPAD.encode(&shifted("u:"))),
        ("base64-url", BASE64URL_NOPAD.encode(bytes)),
        (
            "percent",
            each(|shown, byte| _ = write!(shown, "%{byte:02X}")),
        ),
        (
            "percent-lower",
            each(|shown, byte| _ = write!(shown, "%{byte:02x}")),
        ),
        (
            "json",
            each(|shown, byte| _ = write!(shown, "\\u{byte:04x}")),
        ),
        ("hex", HEXLOWER.encode(bytes)),
        ("hex-upper", HEXUPPER.encode(bytes)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_coding_shows_the_text() {
        for coding in ["gzip", "deflate", "deflate-raw", "zstd", "br", "gzip, br"] {
            let encoded = encode("a-text-to-be-hidden", coding).unwrap();
            let shown = String::from_utf8_lossy(&encoded).into_owned();
            assert!(!shown.contains("to-be-hidden"), "{coding}: {shown}");
        }
        assert_eq!(encode("text", "rot13"), None);
    }
}
