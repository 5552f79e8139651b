//! Whoever speaks in a chat by a model and is no participant: they are named after the chat.

use polylogue_core::Name;

/// What somebody does for a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PrivateRole {
    /// Writes a reflected summary.
    Summary,
    /// Picks the next speaker.
    Picker,
}

impl PrivateRole {
    /// All there are. Their suffixes are no longer than that of the summary.
    pub(crate) const ALL: [Self; 2] = [Self::Summary, Self::Picker];

    /// What stands behind the chat's name.
    pub(crate) const fn suffix(self) -> &'static str {
        match self {
            Self::Summary => "_summary",
            Self::Picker => "_picker",
        }
    }

    /// In words.
    pub(crate) const fn what(self) -> &'static str {
        match self {
            Self::Summary => "the author of its summary",
            Self::Picker => "whoever picks its speakers",
        }
    }

    /// What they are called in the chat `chat`.
    pub(crate) fn name(self, chat: &str) -> String {
        format!("{chat}{}", self.suffix())
    }

    /// The same as a name; nothing when the chat's is too long, which the checks of a file report.
    pub(crate) fn of(self, chat: &Name) -> Option<Name> {
        Name::new(self.name(chat.as_str())).ok()
    }
}
