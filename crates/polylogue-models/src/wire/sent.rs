//! The entries of a conversation in the form that a provider receives, for people to read.

use polylogue_core::{BEGIN, CONTINUE, Entry};

use super::pictures;
use super::protocol::NOTED;

/// The formats of requests that depend on the provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestFormat {
    /// Whether roles alternate: consecutive messages of others are merged, and texts fill missing ones.
    pub merge: bool,
    /// Whether pictures that tools return are sent to the model ([`Capability::Vision`](polylogue_core::Capability::Vision)).
    pub vision: bool,
    /// Whether an assistant message separates the result of a tool from messages of others, because the model lacks
    /// [`Capability::UserAfterTool`](polylogue_core::Capability::UserAfterTool).
    pub bridge: bool,
}

impl RequestFormat {
    /// None of these formats.
    pub const NONE: Self = Self { merge: false, vision: false, bridge: false };

    /// Returns `entries` in the form in which they are sent.
    ///
    /// ```
    /// use polylogue_core::Entry;
    /// use polylogue_models::RequestFormat;
    /// let mut forms = RequestFormat::NONE;
    /// forms.merge = true;
    /// let sent = forms.sent(&[Entry::assistant("Hello."), Entry::user("Hi."), Entry::user("How are you?")]);
    /// assert_eq!(sent[0], Entry::user("Begin."));
    /// assert_eq!(sent.len(), 3);
    /// ```
    #[must_use]
    pub fn sent(self, entries: &[Entry]) -> Vec<Entry> {
        let mut sent = Vec::with_capacity(entries.len());
        for (at, entry) in entries.iter().enumerate() {
            let before = entries.get(..at).unwrap_or_default();
            let shows = !matches!(entry, Entry::Tool { .. }) && self.show(before, &mut sent);
            if !shows {
                sent.extend(self.between(before.last(), entry));
            }
            self.push(entry.clone(), &mut sent);
        }
        self.show(entries, &mut sent);
        sent
    }

    /// Adds the pictures of the last results of `entries`, if there are any.
    fn show(self, entries: &[Entry], sent: &mut Vec<Entry>) -> bool {
        let parts = if self.vision { pictures::shown(pictures::run(entries)) } else { Vec::new() };
        if parts.is_empty() {
            return false;
        }
        sent.extend(self.bridge.then(|| Entry::assistant(NOTED)));
        sent.push(Entry::User { parts });
        true
    }

    fn between(self, before: Option<&Entry>, next: &Entry) -> Option<Entry> {
        match (before, next) {
            (None, Entry::Assistant { .. }) if self.merge => Some(Entry::user(BEGIN)),
            (Some(Entry::Assistant { .. }), Entry::Assistant { .. }) if self.merge => {
                Some(Entry::user(CONTINUE))
            }
            (Some(Entry::Tool { .. }), Entry::User { .. } | Entry::System { .. }) if self.bridge => {
                Some(Entry::assistant(NOTED))
            }
            _ => None,
        }
    }

    fn push(self, entry: Entry, sent: &mut Vec<Entry>) {
        match (entry, sent.last_mut()) {
            (Entry::User { parts }, Some(Entry::User { parts: before })) if self.merge => {
                before.extend(parts)
            }
            (entry, _) => sent.push(entry),
        }
    }
}
