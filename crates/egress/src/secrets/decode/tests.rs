//! Encoded bodies, whole, cut, broken and blown up.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::*;

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zlib(text: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn bare(text: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn br(text: &[u8]) -> Vec<u8> {
    let mut encoder = ::brotli::CompressorWriter::new(Vec::new(), 4096, 3, 22);
    encoder.write_all(text).unwrap();
    encoder.into_inner()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    compress_to_vec(text, CompressionLevel::Fastest)
}

type Encode = fn(&[u8]) -> Vec<u8>;
const ENCODINGS: [(&str, Encode); 5] = [
    ("gzip", gzip),
    ("deflate", zlib),
    ("deflate", bare),
    ("br", br),
    ("zstd", zstd),
];

/// Everything that comes out, and how much at most in one step.
fn decoded<'a>(
    encoding: &str,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<(Vec<u8>, usize), DecodeError> {
    let mut decoder = Decoder::new(encoding)?.unwrap();
    let mut all = Vec::new();
    let mut most = 0;
    for mut piece in pieces {
        let mut out = BytesMut::new();
        while decoder.decode(&mut piece, &mut out)? == Progress::More {
            most = most.max(out.len());
            all.extend_from_slice(&out.split());
        }
        assert!(piece.is_empty());
        all.extend_from_slice(&out);
    }
    decoder.finish()?;
    Ok((all, most))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_encoding_comes_off_whatever_the_pieces(
        text in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..300),
            "[ab]{0,2000}".prop_map(|text| text.repeat(200).into_bytes()),
        ],
        size in 1usize..5000,
    ) {
        for (encoding, encode) in ENCODINGS {
            let body = encode(&text);
            let (out, _) = decoded(encoding, body.chunks(size)).unwrap();
            prop_assert!(out == text, "{}", encoding);
        }
    }

    #[test]
    fn broken_content_is_an_error_or_something_else_but_no_panic(
        text in "[a-f]{1,400}",
        (at, byte) in (any::<prop::sample::Index>(), any::<u8>()),
        size in 1usize..64,
    ) {
        for (encoding, encode) in ENCODINGS {
            let mut body = encode(text.as_bytes());
            let at = at.index(body.len());
            body[at] = byte;
            let _ = decoded(encoding, body.chunks(size));
        }
    }

    #[test]
    fn two_encodings_come_off_in_their_order(text in "[a-z]{0,3000}", size in 1usize..500) {
        for (first, encode_first) in ENCODINGS {
            for (second, encode_second) in ENCODINGS {
                let body = encode_second(&encode_first(text.as_bytes()));
                let encoding = format!("{first}, {second}");
                if [first, second].iter().all(|one| ["br", "zstd"].contains(one)) {
                    prop_assert_eq!(decoded(&encoding, [&body[..]]), Err(DecodeError::Windows));
                    continue;
                }
                let (out, _) = decoded(&encoding, body.chunks(size)).unwrap();
                prop_assert!(out == text.as_bytes(), "{}", encoding);
            }
        }
    }
}

#[test]
fn an_early_end_is_noticed() {
    for (encoding, encode) in ENCODINGS {
        let body = encode(b"some text, long enough to be cut");
        for end in 1..body.len() {
            let cut = decoded(encoding, [&body[..end]]);
            assert!(cut.is_err(), "{encoding} at {end}");
        }
    }
}

#[test]
fn what_follows_gzip_is_another_member_or_left_out() {
    let text = b"some text, ".repeat(300);
    let whole = gzip(&text);
    for (rest, times) in [
        (gzip(&text), 2),
        (b"\0\0\0\0".to_vec(), 1),
        (b"garbage, and more of it".repeat(200), 1),
        (b"\x1f".to_vec(), 1),
        (b"\x1f\x8b".to_vec(), 1),
        (b"\x1f\x8b\x07 no method".to_vec(), 1),
        ([gzip(&text), b"end".to_vec()].concat(), 2),
    ] {
        let body = [whole.clone(), rest].concat();
        for size in [1, 7, body.len()] {
            let (found, _) = decoded("gzip", body.chunks(size)).unwrap();
            assert_eq!(found, text.repeat(times), "{size}");
        }
    }
    // The content itself is still checked.
    let mut wrong = whole.clone();
    let last = wrong.len() - 5;
    wrong[last] ^= 1;
    wrong.extend_from_slice(b"garbage");
    assert!(decoded("gzip", [&wrong[..]]).is_err());
    // A member with a header is one, wrong as it may be, in whatever pieces.
    let broken = [&gzip(b"")[..], &gzip(b"")[..10], &[0xf2; 60]].concat();
    for size in [1, 3, 7, 1024] {
        assert!(decoded("gzip", broken.chunks(size)).is_err(), "{size}");
    }
}

#[test]
fn what_follows_the_content_is_left_out() {
    for (encoding, encode) in [("deflate", ENCODINGS[1].1), ("br", ENCODINGS[3].1)] {
        let body = [&encode(b"text")[..], b"more and more"].concat();
        assert_eq!(decoded(encoding, body.chunks(5)).unwrap().0, b"text");
    }
    let members = [gzip(b"one "), gzip(b"two")].concat();
    assert_eq!(decoded("gzip", members.chunks(3)).unwrap().0, b"one two");
    let skipped = [0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    let frames = [&zstd(b"one ")[..], &skipped, &zstd(b"two")].concat();
    assert_eq!(decoded("zstd", frames.chunks(3)).unwrap().0, b"one two");
    assert!(decoded("gzip", [&b"no gzip at all"[..]]).is_err());
}

#[test]
fn a_small_body_that_becomes_large_comes_in_small_steps() {
    let large = vec![b'x'; 8_000_000];
    for (encoding, encode) in ENCODINGS {
        let body = encode(&large);
        assert!(body.len() < 80_000, "{encoding}");
        let (out, most) = decoded(encoding, [&body[..]]).unwrap();
        assert_eq!(out.len(), large.len());
        assert!(most < 300_000, "{encoding}: {most}");
        let twice = gzip(&body);
        let (out, _) = decoded(&format!("{encoding}, gzip"), [&twice[..]]).unwrap();
        assert_eq!(out.len(), large.len());
    }
}

#[test]
fn what_a_server_flushes_comes_out_at_once() {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    let mut brotli = ::brotli::CompressorWriter::new(Vec::new(), 4096, 3, 22);
    let mut decoders = ["gzip", "br"].map(|name| Decoder::new(name).unwrap().unwrap());
    for _ in 0..3 {
        for encoder in [&mut gzip as &mut dyn Write, &mut brotli] {
            encoder.write_all(b"data: event\n\n").unwrap();
            encoder.flush().unwrap();
        }
        let sent = [
            std::mem::take(gzip.get_mut()),
            std::mem::take(brotli.get_mut()),
        ];
        for (decoder, sent) in decoders.iter_mut().zip(&sent) {
            let mut out = BytesMut::new();
            let mut input = &sent[..];
            while decoder.decode(&mut input, &mut out).unwrap() == Progress::More {}
            assert_eq!(&out[..], b"data: event\n\n");
        }
    }
}

#[test]
fn unknown_and_too_many_encodings_are_refused() {
    for (value, want) in [
        ("compress", DecodeError::Unknown("compress".to_owned())),
        (
            "gzip, aes128gcm",
            DecodeError::Unknown("aes128gcm".to_owned()),
        ),
        ("gzip, br, zstd", DecodeError::Stacked),
    ] {
        assert_eq!(Decoder::new(value).err(), Some(want), "{value}");
    }
    for value in ["", "identity", " , identity"] {
        assert!(Decoder::new(value).unwrap().is_none(), "{value}");
    }
    assert!(Decoder::new("GZIP,identity, x-gzip").unwrap().is_some());
}

#[test]
fn a_window_that_is_too_large_is_refused() {
    // The window's exponent is the upper five bits, from 10 on.
    let frame = |window: u8| [&[0x28, 0xb5, 0x2f, 0xfd, 0, window << 3][..], &[1, 0, 0]].concat();
    assert_eq!(decoded("zstd", [&frame(13)[..]]).unwrap().0, b"");
    assert_eq!(
        decoded("zstd", [&frame(14)[..]]),
        Err(DecodeError::Malformed("zstd"))
    );
}
