//! Heads: what a writer stores about a log outside of it, namely how many events it has acknowledged, and its lease.
//! A log with fewer events has lost some.

use polylogue_core::{LEASE, LogId, Timestamp};

use polylogue_core::chain::Link;

/// The end of a log as its writer last knew it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) id: LogId,
    /// The fence of the claim that it was written under.
    pub(crate) fence: u64,
    /// The number of acknowledged events.
    pub(crate) events: u64,
    /// The link of the last one.
    pub(crate) link: Link,
    /// When the lease of the claim expires, in milliseconds by the clock that its store uses; 0 if it was released.
    pub(crate) lease_ms: u64,
}

impl Head {
    /// The serialized length. Fixed, so that it is overwritten in one piece.
    pub(crate) const BYTES: usize = 192;
    /// The length of the digest, by which a torn line is detected.
    const CHECK: usize = 16;

    /// The line that [`read`](Self::read) parses.
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

    /// Whether a line is that of the log `id`, torn or not.
    pub(crate) fn is_of(line: &[u8], id: &LogId) -> bool {
        line.strip_prefix(id.as_str().as_bytes()).is_some_and(|rest| rest.starts_with(b" "))
    }

    /// Parses a line; `None` if it is torn or not a head.
    pub(crate) fn read(line: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(line.get(..Self::BYTES)?).ok()?.trim_end();
        let (content, check) = text.split_at_checked(text.len().checked_sub(Self::CHECK)?)?;
        if !blake3::hash(content.as_bytes()).to_hex().starts_with(check) {
            return None;
        }
        let mut fields = content.split_ascii_whitespace();
        let id = LogId::new(fields.next()?).ok()?;
        let mut number = |_| fields.next()?.parse().ok();
        let (fence, events) = (number(())?, number(())?);
        let link = Link::parse(fields.next()?.as_bytes())?;
        Some(Self { id, fence, events, link, lease_ms: fields.next()?.parse().ok()? })
    }

    /// Of two heads of a log, the greater one was written later.
    pub(crate) const fn age(&self) -> (u64, u64) {
        (self.fence, self.events)
    }

    /// Whether its writer released the log after it.
    pub(crate) const fn is_released(&self) -> bool {
        self.lease_ms == 0
    }

    /// For how many seconds the lease lasts, by the clock of the system; `None` if it has expired.
    pub(crate) fn holds_for(&self) -> Option<u64> {
        self.holds_at(now_ms())
    }

    /// As [`holds_for`](Self::holds_for), when it is `now` by the clock that its store uses.
    pub(crate) fn holds_at(&self, now: u64) -> Option<u64> {
        // A lease longer than the maximum comes from a clock that was ahead.
        let left = self.lease_ms.checked_sub(now).filter(|left| *left > 0)?;
        Some((left / 1000 + 1).min(LEASE.as_secs()))
    }
}

/// The expiry of a lease that is renewed now.
pub(crate) fn lease_from_now() -> u64 {
    lease_from(now_ms())
}

/// The expiry of a lease that is renewed at `now`.
pub(crate) fn lease_from(now: u64) -> u64 {
    now.saturating_add(u64::try_from(LEASE.as_millis()).unwrap_or(u64::MAX))
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    Timestamp::now().0
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
    fn a_torn_line_is_not_read_as_another_head() {
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
