//! The ids of calls in the form that an API accepts.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use polylogue_core::{Entry, Part};

/// The ids of the calls of a conversation for an API that accepts only so many letters and digits. The log keeps one
/// id for each call; here each has another, the same in every request.
#[derive(Debug, Default)]
pub(crate) struct CallIds(HashMap<String, String>);

impl CallIds {
    /// The ids of `entries` with exactly `length` letters and digits. From the front, so that a later call never
    /// changes the id of an earlier one.
    pub(crate) fn of(entries: &[Entry], length: usize) -> Self {
        let (mut ids, mut taken) = (HashMap::new(), HashSet::new());
        for part in entries.iter().flat_map(Entry::parts) {
            let Part::ToolCall(call) = part else { continue };
            if !ids.contains_key(&call.id) {
                let id = free(&call.id, length, &taken);
                taken.insert(id.clone());
                ids.insert(call.id.clone(), id);
            }
        }
        Self(ids)
    }

    /// The id for the call that the log calls `id`.
    pub(crate) fn get<'a>(&'a self, id: &'a str) -> &'a str {
        self.0.get(id).map_or(id, String::as_str)
    }
}

/// `id`, or another one that depends on nothing but `id` if that has characters or a length that APIs refuse.
pub(crate) fn legal_id(id: &str) -> Cow<'_, str> {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    match (1..=64).contains(&id.len()) && id.bytes().all(is_legal) {
        true => Cow::Borrowed(id),
        false => Cow::Owned(format!("call_{}", hashed(id, 0, 24))),
    }
}

/// `id`, or another one that depends on nothing but `id` if that is longer than `most` bytes.
pub(crate) fn bounded_id(id: &str, most: usize) -> Cow<'_, str> {
    match id.len() > most {
        true => Cow::Owned(format!("call_{}", hashed(id, 0, 24))),
        false => Cow::Borrowed(id),
    }
}

/// An id that is not taken: `id` itself if it has the form, or else one that depends on nothing but `id` and, at a
/// collision, on those before.
fn free(id: &str, length: usize, taken: &HashSet<String>) -> String {
    let has_form = id.len() == length && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let own = has_form.then(|| id.to_owned());
    let hashed = (0_u64..=taken.len() as u64).map(|nth| hashed(id, nth, length));
    own.into_iter().chain(hashed).find(|id| !taken.contains(id)).unwrap_or_else(|| id.to_owned())
}

fn hashed(id: &str, nth: u64, length: usize) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut hasher = blake3::Hasher::new();
    hasher.update(&nth.to_le_bytes()).update(id.as_bytes());
    let mut bytes = vec![0; length];
    hasher.finalize_xof().fill(&mut bytes);
    let digit =
        |byte: u8| DIGITS.get(usize::from(byte) % DIGITS.len()).map_or('0', |digit| char::from(*digit));
    bytes.into_iter().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use polylogue_core::ToolCall;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn call(id: &str) -> Entry {
        Entry::own(vec![Part::ToolCall(ToolCall { id: id.into(), tool: "t".into(), args: json!({}) })])
    }

    proptest! {
        #[test]
        fn ids_have_the_form_are_unique_and_stay_when_calls_are_added(
            ids in proptest::collection::hash_set("[a-zA-Z0-9_-]{1,12}", 1..60), length in 2..10usize,
        ) {
            let entries: Vec<Entry> = ids.iter().map(|id| call(id)).collect();
            let all = CallIds::of(&entries, length);
            let made: HashSet<&str> = ids.iter().map(|id| all.get(id)).collect();
            prop_assert_eq!(made.len(), ids.len());
            for id in made {
                prop_assert!(id.len() == length && id.bytes().all(|byte| byte.is_ascii_alphanumeric()));
            }
            let first = CallIds::of(&entries[..entries.len() / 2], length);
            for id in ids.iter().take(entries.len() / 2) {
                prop_assert_eq!(first.get(id), all.get(id));
            }
        }
    }

    #[test]
    fn an_illegal_id_has_always_the_same_legal_one() {
        for legal in ["toolu_01A-b", "0"] {
            assert_eq!(legal_id(legal), legal);
        }
        let long = "x".repeat(65);
        let made = || -> HashSet<String> {
            ["", "functions.look:0", "é", &long].map(|id| legal_id(id).into_owned()).into()
        };
        let first = made();
        assert_eq!((first.len(), made()), (4, first.clone()));
        for id in first {
            let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
            assert!((1..=64).contains(&id.len()) && id.bytes().all(is_legal), "{id}");
            assert_eq!(legal_id(&id), id);
        }
    }

    #[test]
    fn an_id_that_has_the_form_stays() {
        let ids = CallIds::of(&[call("aB3dE6gH9"), call("call_aB3dE6gH9")], 9);
        assert_eq!(ids.get("aB3dE6gH9"), "aB3dE6gH9");
        assert_ne!(ids.get("call_aB3dE6gH9"), "aB3dE6gH9");
        assert_eq!(ids.get("unknown"), "unknown");
    }
}
