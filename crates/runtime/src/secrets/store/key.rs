//! The key of the store: in a file of its own, or made from a passphrase.

use argon2::{Algorithm, Argon2, Params, Version};
use zeroize::Zeroizing;

use super::error::StoreError;
use crate::secrets::folder::{Locked, PrivateFolder};
use crate::secrets::random;

/// The file of the key.
pub(super) const KEY_FILE: &str = "key";
const KEY_SIZE: usize = 32;
const SALT_SIZE: usize = 16;

/// A key of the cipher.
pub(super) type Key = Zeroizing<[u8; KEY_SIZE]>;

/// How a key is made from a passphrase (Argon2id).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Recipe {
    /// KiB of memory.
    pub(super) memory: u32,
    pub(super) passes: u32,
    pub(super) lanes: u32,
    pub(super) salt: [u8; SALT_SIZE],
}

impl Recipe {
    /// Bytes of it in the header.
    pub(super) const SIZE: usize = 12 + SALT_SIZE;
    /// The memory and passes of the second recommendation in RFC 9106, in one
    /// lane, as we have no threads for more.
    const MEMORY: u32 = 64 * 1024;
    const PASSES: u32 = 3;
    const LANES: u32 = 1;
    /// A header asks for no more than this, or is none of ours: it is read
    /// before anything can tell whether somebody altered it.
    const MOST_MEMORY: u32 = 1024 * 1024;
    const MOST_PASSES: u32 = 64;
    const MOST_LANES: u32 = 16;

    /// One for a new store.
    pub(super) fn fresh() -> Result<Self, StoreError> {
        Ok(Self {
            memory: Self::MEMORY,
            passes: Self::PASSES,
            lanes: Self::LANES,
            salt: random::bytes().map_err(StoreError::Random)?,
        })
    }

    pub(super) fn encode(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let numbers = [self.memory, self.passes, self.lanes];
        for (place, number) in bytes.chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes[12..].copy_from_slice(&self.salt);
        bytes
    }

    pub(super) fn decode(bytes: &[u8; Self::SIZE]) -> Option<Self> {
        let (numbers, salt) = bytes.split_at(12);
        let (numbers, _) = numbers.as_chunks::<4>();
        let [memory, passes, lanes] = <[_; 3]>::try_from(numbers).ok()?.map(u32::from_le_bytes);
        let is_bounded =
            memory <= Self::MOST_MEMORY && passes <= Self::MOST_PASSES && lanes <= Self::MOST_LANES;
        is_bounded.then_some(Self {
            memory,
            passes,
            lanes,
            salt: salt.try_into().ok()?,
        })
    }

    /// Takes a good part of a second, and of memory, by design.
    pub(super) fn derive(&self, passphrase: &str) -> Result<Key, StoreError> {
        let params = Params::new(self.memory, self.passes, self.lanes, Some(KEY_SIZE));
        let params = params.map_err(|_| StoreError::Derive)?;
        let mut key = Key::default();
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into(passphrase.as_bytes(), &self.salt, &mut *key)
            .map_err(|_| StoreError::Derive)?;
        Ok(key)
    }
}

/// The key in its file, if it is there.
pub(super) fn read(folder: &PrivateFolder) -> Result<Option<Key>, StoreError> {
    let Some(bytes) = folder.read(KEY_FILE, KEY_SIZE)? else {
        return Ok(None);
    };
    let mut key = Key::default();
    if bytes.len() != key.len() {
        return Err(StoreError::KeySize {
            path: folder.path_of(KEY_FILE),
        });
    }
    key.copy_from_slice(&bytes);
    Ok(Some(key))
}

/// Makes a key and its file.
pub(super) fn make(locked: &Locked<'_>) -> Result<Key, StoreError> {
    let mut key = Key::default();
    random::fill(&mut *key).map_err(StoreError::Random)?;
    locked.replace(KEY_FILE, &*key)?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_is_read_as_it_was_written() {
        let recipe = Recipe::fresh().unwrap();
        assert_eq!(Recipe::decode(&recipe.encode()), Some(recipe));
        assert_ne!(recipe.salt, Recipe::fresh().unwrap().salt);
        for at in [0, 4, 8] {
            let mut bytes = recipe.encode();
            bytes[at..at + 4].fill(0xff);
            assert_eq!(Recipe::decode(&bytes), None, "{at}");
        }
    }

    #[test]
    fn g5_another_passphrase_or_salt_gives_another_key() {
        let recipe = Recipe {
            memory: 8,
            passes: 1,
            lanes: 1,
            salt: [1; SALT_SIZE],
        };
        let other = Recipe {
            salt: [2; SALT_SIZE],
            ..recipe
        };
        let key = recipe.derive("one").unwrap();
        assert_eq!(key, recipe.derive("one").unwrap());
        assert_ne!(key, recipe.derive("two").unwrap());
        assert_ne!(key, other.derive("one").unwrap());
    }
}
