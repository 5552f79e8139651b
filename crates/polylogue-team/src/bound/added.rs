//! The texts that a role-play adds to the requests of its agents.

use polylogue::tasks::RolePlay;
use polylogue::tasks::role_play::AddedTexts;

use super::case::Quoting;

/// Bytes of these texts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Added {
    /// The opening message to the user role.
    pub(super) opening: Quoting,
    /// The rules of both roles and of the critic.
    pub(super) user: Quoting,
    pub(super) assistant: Quoting,
    pub(super) critic: Quoting,
    /// The role and the prompt of the specifier, and of the planner.
    pub(super) specifier: Quoting,
    pub(super) planner: Quoting,
    /// The sentence on the language in prompts of the critic.
    pub(super) language: u128,
}

impl Added {
    pub(super) fn of(role_play: &RolePlay) -> Self {
        let of = |bytes: fn(&AddedTexts) -> usize| Quoting::of(|task| bytes(&role_play.added_texts(task)));
        Self {
            opening: of(|texts| texts.opening.len()),
            user: of(|texts| texts.user.len()),
            assistant: of(|texts| texts.assistant.len()),
            critic: of(|texts| texts.critic.len()),
            specifier: of(|texts| texts.specifier.iter().map(String::len).sum()),
            planner: of(|texts| texts.planner.iter().map(String::len).sum()),
            language: role_play.added_texts("").language.len() as u128,
        }
    }
}
