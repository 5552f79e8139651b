//! What a writer says of a log outside of it: how many events it has acknowledged, and for how long its claim holds. A log that
//! has fewer has lost some.

use std::time::{SystemTime, UNIX_EPOCH};

use polylogue_core::{LEASE, LogId};

use polylogue_core::chain::Link;

/// The end of a log as its writer last knew it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) id: LogId,
    /// Of the claim that it was written under.
    pub(crate) fence: u64,
    /// How many events are kept for sure.
    pub(crate) events: u64,
    /// The link of the last of them.
    pub(crate) link: Link,
    /// Until when the claim holds, in milliseconds since 1970; 0 when it was given back.
    pub(crate) lease_ms: u64,
}

impl Head {
    /// How long one is, written down. Fixed, so that it is overwritten in one piece.
    pub(crate) const BYTES: usize = 192;
    /// How long the digest is that tells a whole one from a torn one.
    const CHECK: usize = 16;

    /// A line of text that [`read`](Self::read) reads.
    pub(crate) fn line(&self) -> Vec<u8> {
        let Self { id, fence, events, link, lease_ms } = self;
        let text = format!("{id:<64} {fence:>20} {events:>20} {link} {lease_ms:>20} ");
        let check = blake3::hash(text.as_bytes()).to_hex();
        let mut line = text.into_bytes();
        line.extend(check.bytes().take(Self::CHECK));
        line.resize(Self::BYTES - 1, b' ');
        line.push(b'\n');
        line
    }

    /// What a line says; `None` of one that is torn, or none.
    pub(crate) fn read(line: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(line.get(..Self::BYTES)?).ok()?.trim_end();
        let (said, check) = text.split_at_checked(text.len().checked_sub(Self::CHECK)?)?;
        if !blake3::hash(said.as_bytes()).to_hex().starts_with(check) {
            return None;
        }
        let mut words = said.split_ascii_whitespace();
        let id = LogId::new(words.next()?).ok()?;
        let mut number = |_| words.next()?.parse().ok();
        let (fence, events) = (number(())?, number(())?);
        let link = Link::parse(words.next()?.as_bytes())?;
        Some(Self { id, fence, events, link, lease_ms: words.next()?.parse().ok()? })
    }

    /// For how many seconds its claim still holds; `None` when it has run out.
    pub(crate) fn holds_for(&self) -> Option<u64> {
        // A lease that is longer than any was given by a clock that ran ahead.
        let left = self.lease_ms.checked_sub(now_ms()).filter(|left| *left > 0)?;
        Some((left / 1000 + 1).min(LEASE.as_secs()))
    }
}

/// Until when a claim holds that is renewed now.
pub(crate) fn lease_from_now() -> u64 {
    now_ms().saturating_add(u64::try_from(LEASE.as_millis()).unwrap_or(u64::MAX))
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Head {
        let id = LogId::new(&"x".repeat(64)).unwrap();
        Head { id, fence: u64::MAX, events: 7, link: Link::first(&[]), lease_ms: u64::MAX }
    }

    #[test]
    fn a_line_says_what_was_written() {
        let line = head().line();
        assert_eq!(line.len(), Head::BYTES);
        assert_eq!(Head::read(&line), Some(head()));
    }

    #[test]
    fn a_torn_line_says_nothing() {
        let whole = head().line();
        for at in 0..Head::BYTES - 16 {
            let mut torn = whole.clone();
            if let Some(byte) = torn.get_mut(at) {
                *byte ^= 1;
            }
            assert!(Head::read(&torn).is_none_or(|read| read == head()), "{at}");
        }
        assert_eq!(Head::read(b""), None);
        assert_eq!(Head::read(&[b' '; Head::BYTES]), None);
    }
}
