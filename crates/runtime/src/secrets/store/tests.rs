use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const VALUE: &str = "a-value-of-some-length";

fn secret(value: &str) -> Secret {
    Secret::new(value.to_owned())
}

fn name(text: &str) -> SecretName {
    text.parse().unwrap()
}

/// A store with one secret and a key file.
fn with_key(folder: &Path) -> SecretStore {
    let store = SecretStore::new(folder, None);
    let protection = Protection::KeyFile;
    store
        .set(&name("forge"), &secret(VALUE), protection)
        .unwrap();
    store
}

/// A store that is told this passphrase, and how often it asked.
fn asking(folder: &Path, passphrase: &'static str) -> (SecretStore, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let ask: AskPassphrase = Box::new(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(Zeroizing::new(passphrase.to_owned()))
    });
    (SecretStore::new(folder, Some(ask)), asked)
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn g5_secrets_are_kept_encrypted_for_the_owner_alone() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("own");
    with_key(&folder);
    assert_eq!(files(&folder), ["key", "secrets"]);
    for file in files(&folder) {
        let path = folder.join(file);
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let bytes = std::fs::read(path).unwrap();
        for text in [VALUE, "forge"] {
            let found = bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes());
            assert!(!found, "{text}");
        }
    }
    let mode = folder.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn what_is_set_is_found_listed_replaced_and_removed() {
    let place = tempfile::tempdir().unwrap();
    let store = with_key(place.path());
    let other = SecretStore::new(place.path(), None);
    let get = |text: &str| other.get(&name(text)).unwrap();
    assert_eq!(get("forge").unwrap().expose(), VALUE);
    assert_eq!(get("none"), None);
    let rotated = secret("another-value");
    let protection = Protection::KeyFile;
    store.set(&name("forge"), &rotated, protection).unwrap();
    store.set(&name("a"), &secret(VALUE), protection).unwrap();
    assert_eq!(get("forge").unwrap().expose(), "another-value");
    let names: Vec<String> = other
        .list()
        .unwrap()
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(names, ["a", "forge"]);
    store.remove(&name("forge")).unwrap();
    let gone = store.remove(&name("forge")).unwrap_err();
    assert_eq!(gone.code(), "no-such-secret");
    store.remove(&name("a")).unwrap();
    assert!(files(place.path()).is_empty(), "nothing is left");
    assert!(store.list().unwrap().is_empty());
}

#[test]
fn a_store_that_is_not_there_has_nothing_and_is_not_made_by_looking() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("none");
    let store = SecretStore::new(&folder, None);
    store.unlock().unwrap();
    assert!(store.list().unwrap().is_empty());
    assert_eq!(store.get(&name("forge")).unwrap(), None);
    assert!(store.remove(&name("forge")).is_err());
    assert!(!folder.exists());
}

#[test]
fn g5_every_altered_byte_of_the_file_is_noticed() {
    let place = tempfile::tempdir().unwrap();
    let store = with_key(place.path());
    let file = place.path().join(FILE);
    let good = std::fs::read(&file).unwrap();
    for at in 0..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        std::fs::write(&file, bytes).unwrap();
        let error = store.list().unwrap_err();
        assert_eq!(error.code(), "secret-store-damaged", "byte {at}");
    }
    for end in 0..good.len() {
        std::fs::write(&file, &good[..end]).unwrap();
        assert!(store.list().is_err(), "cut at {end}");
    }
    std::fs::write(&file, &good).unwrap();
    store.list().unwrap();
}

#[test]
fn g5_another_key_or_none_does_not_open_it() {
    let place = tempfile::tempdir().unwrap();
    let store = with_key(place.path());
    let key = place.path().join(KEY_FILE);
    std::fs::write(&key, [7; 32]).unwrap();
    assert!(matches!(store.list(), Err(StoreError::Damaged { .. })));
    std::fs::write(&key, [7; 31]).unwrap();
    assert!(matches!(store.list(), Err(StoreError::KeySize { .. })));
    std::fs::remove_file(&key).unwrap();
    assert!(matches!(store.list(), Err(StoreError::NoKey { .. })));
    let error = store.set(&name("x"), &secret(VALUE), Protection::KeyFile);
    assert!(error.is_err(), "nothing is set over what cannot be read");
}

#[test]
fn g5_a_passphrase_is_asked_for_once_and_must_be_right() {
    let place = tempfile::tempdir().unwrap();
    let (store, _) = asking(place.path(), "correct horse");
    let protection = Protection::Passphrase;
    store.set(&name("a"), &secret(VALUE), protection).unwrap();
    assert_eq!(files(place.path()), ["secrets"]);
    let (store, asked) = asking(place.path(), "correct horse");
    store.unlock().unwrap();
    store
        .set(&name("b"), &secret(VALUE), Protection::KeyFile)
        .unwrap();
    assert_eq!(store.get(&name("b")).unwrap().unwrap().expose(), VALUE);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert_eq!(files(place.path()), ["secrets"], "no key file beside it");
    let (wrong, _) = asking(place.path(), "battery staple");
    assert_eq!(wrong.list().unwrap_err().code(), "wrong-passphrase");
    let nobody = SecretStore::new(place.path(), None);
    assert_eq!(nobody.list().unwrap_err().code(), "no-passphrase");
    let (short, _) = asking(place.path(), "short");
    assert_eq!(short.list().unwrap_err().code(), "bad-passphrase");
}

#[test]
fn a_store_with_a_key_file_does_not_get_a_passphrase() {
    let place = tempfile::tempdir().unwrap();
    with_key(place.path());
    let (store, asked) = asking(place.path(), "correct horse");
    let error = store.set(&name("b"), &secret(VALUE), Protection::Passphrase);
    assert_eq!(error.unwrap_err().code(), "secret-store-has-key");
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

#[test]
fn writers_at_the_same_time_lose_nothing() {
    let place = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let folder = place.path();
            scope.spawn(move || {
                let store = SecretStore::new(folder, None);
                for at in 0..5 {
                    let name = name(&format!("{writer}.{at}"));
                    store
                        .set(&name, &secret(VALUE), Protection::KeyFile)
                        .unwrap();
                }
            });
        }
    });
    let store = SecretStore::new(place.path(), None);
    assert_eq!(store.list().unwrap().len(), 20);
}
