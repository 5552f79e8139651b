//! Private agents of a chat: a selector or a summary author, named after the chat. They are not participants.

use polylogue_config::At;
use polylogue_core::Name;

use crate::parameters::Parameters;

/// An agent that calls a model, private or not.
pub(crate) struct ModelUser<'t> {
    pub(crate) name: Name,
    /// Its model, or a list of them, if one is named.
    pub(crate) models: Option<&'t str>,
    pub(crate) parameters: &'t At<Parameters>,
}

/// Role of a private agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PrivateRole {
    /// Writes a reflected summary.
    Summary,
    /// Selects the next speaker.
    Selector,
}

impl PrivateRole {
    /// All roles.
    pub(crate) const ALL: [Self; 2] = [Self::Summary, Self::Selector];

    /// Suffix of the agent's name, after the name of the chat.
    pub(crate) const fn suffix(self) -> &'static str {
        match self {
            Self::Summary => "_summary",
            Self::Selector => "_selector",
        }
    }

    /// The role in messages.
    pub(crate) const fn what(self) -> &'static str {
        match self {
            Self::Summary => "the author of its summary",
            Self::Selector => "its speaker selector",
        }
    }

    /// Name of the agent in the chat `chat`.
    pub(crate) fn name(self, chat: &str) -> String {
        format!("{chat}{}", self.suffix())
    }

    /// The name as a [`Name`]; none if it is too long, which the checks of a file report.
    pub(crate) fn of(self, chat: &Name) -> Option<Name> {
        Name::new(self.name(chat.as_str())).ok()
    }
}
