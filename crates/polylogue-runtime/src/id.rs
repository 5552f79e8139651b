//! Ids of conversations.

use polylogue_core::LogId;

/// An id that is short and easy to paste: six of Crockford's 32 digits, which leave out letters that look like others.
#[must_use]
pub fn fresh_id() -> LogId {
    use std::hash::{BuildHasher, Hasher, RandomState};
    const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    loop {
        // The standard library's hasher is seeded by the system.
        let random = RandomState::new().build_hasher().finish();
        let digit = |at: u32| DIGITS.get((random >> (5 * at)) as usize % 32).copied().unwrap_or(b'0');
        let id: String = (0..6).map(|at| char::from(digit(at))).collect();
        // Every such text is an id.
        if let Ok(id) = LogId::new(&id) {
            return id;
        }
    }
}
