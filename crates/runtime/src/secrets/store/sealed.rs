//! The store's file: a header that says how it is locked, and the rest under
//! XChaCha20-Poly1305, which covers the header as well.
//!
//! `RFSECRET`, version, lock (0: key file, 1: passphrase and its recipe),
//! nonce, ciphertext and tag.

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

use super::contents::Contents;
use super::error::StoreError;
use super::key::{Key, Recipe};
use crate::secrets::random;

const MAGIC: &[u8; 8] = b"RFSECRET";
const VERSION: u8 = 1;
const KEY_FILE: u8 = 0;
const PASSPHRASE: u8 = 1;
const NONCE_SIZE: usize = 24;
const TAG_SIZE: usize = 16;

/// What opens a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lock {
    /// The key in the file beside it.
    KeyFile,
    /// A passphrase.
    Passphrase(Recipe),
}

/// Why a file is no store that can be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SealError {
    /// It begins with something else.
    Foreign,
    /// Another version wrote it.
    Version(u8),
    /// It is cut or was altered, or the key is another.
    Damaged,
}

/// A file of the store as it was read.
pub(super) struct Sealed<'a> {
    pub(super) lock: Lock,
    header: &'a [u8],
    nonce: [u8; NONCE_SIZE],
    ciphertext: &'a [u8],
}

impl<'a> Sealed<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, SealError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(SealError::Foreign)?;
        let (version, rest) = rest.split_first().ok_or(SealError::Damaged)?;
        if *version != VERSION {
            return Err(SealError::Version(*version));
        }
        let (lock, rest) = read_lock(rest).ok_or(SealError::Damaged)?;
        let (nonce, ciphertext) = rest.split_first_chunk().ok_or(SealError::Damaged)?;
        Ok(Self {
            lock,
            header: &bytes[..bytes.len() - ciphertext.len()],
            nonce: *nonce,
            ciphertext,
        })
    }

    pub(super) fn open(&self, key: &Key) -> Result<Contents, SealError> {
        let mut bytes = Zeroizing::new(self.ciphertext.to_vec());
        let cipher = XChaCha20Poly1305::new((&**key).into());
        cipher
            .decrypt_in_place(&XNonce::from(self.nonce), self.header, &mut *bytes)
            .map_err(|_| SealError::Damaged)?;
        Contents::decode(&bytes).ok_or(SealError::Damaged)
    }
}

fn read_lock(bytes: &[u8]) -> Option<(Lock, &[u8])> {
    match bytes.split_first()? {
        (&KEY_FILE, rest) => Some((Lock::KeyFile, rest)),
        (&PASSPHRASE, rest) => {
            let (recipe, rest) = rest.split_first_chunk()?;
            Some((Lock::Passphrase(Recipe::decode(recipe)?), rest))
        }
        _ => None,
    }
}

/// The bytes of a store's file. The nonce is random and never used again: with
/// 24 bytes that needs no counter.
pub(super) fn seal(lock: &Lock, key: &Key, contents: &Contents) -> Result<Vec<u8>, StoreError> {
    let nonce: [u8; NONCE_SIZE] = random::bytes().map_err(StoreError::Random)?;
    let mut header = [&MAGIC[..], &[VERSION]].concat();
    match lock {
        Lock::KeyFile => header.push(KEY_FILE),
        Lock::Passphrase(recipe) => {
            header.push(PASSPHRASE);
            header.extend(recipe.encode());
        }
    }
    header.extend(nonce);
    let mut bytes = contents.encode(TAG_SIZE);
    let cipher = XChaCha20Poly1305::new((&**key).into());
    cipher
        .encrypt_in_place(&XNonce::from(nonce), &header, &mut *bytes)
        .map_err(|_| StoreError::Encrypt)?;
    header.extend(bytes.iter());
    Ok(header)
}
