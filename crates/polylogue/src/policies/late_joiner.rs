//! Late joiners: participants that join during the chat.
//!
//! # Visibility
//!
//! - With [`JoinHistory::All`] a late joiner sees all earlier messages to all participants or to it, as if present from
//!   the start; with [`JoinHistory::New`] only later ones. The opening counts as messages.
//! - Other participants do not see the joining itself. Announce it in a message, if they should know.
//! - A participant who leaves, with [`Act::Leave`](polylogue_core::Act::Leave), gets no turns and sees no messages
//!   until it joins again. Its messages stay.
//! - Participants are in order of joining: those from the start come first.
//!
//! # An expert who joins on demand
//! ```
//! use polylogue::stop::{max_turns, says};
//! use polylogue::kernel::log::JoinHistory;
//! use polylogue::policies::{with_late_joiner, with_termination};
//! use polylogue::{AnyModel, Assistant, Chat, Group, Name};
//!
//! # fn example(model: AnyModel) -> Result<(), Box<dyn std::error::Error>> {
//! let lawyer = Name::new("Lawyer")?;
//! let group = with_late_joiner(Group::round_robin(), lawyer, says("legal"), JoinHistory::All);
//! let chat = Chat::builder("team")
//!     .participant(Assistant::new("Ann", model.clone())?)
//!     .participant(Assistant::new("Bob", model.clone())?)
//!     .late_joiner(Assistant::new("Lawyer", model)?)
//!     .policy(with_termination(group, max_turns(12)))
//!     .build()?;
//! # Ok(())
//! # }
//! ```

use polylogue_core::{Condition, JoinHistory, Name, Policy, Step, Transcript, wrap_policy};

/// Wraps `policy` so that a participant joins late: `who`, added to the chat with
/// [`late_joiner`](polylogue_core::ChatBuilder::late_joiner), joins as soon as `when` holds.
///
/// A participant who left does not rejoin by this. Nest calls for several late joiners.
pub fn with_late_joiner(
    policy: impl Policy,
    who: Name,
    when: impl Condition,
    sees: JoinHistory,
) -> impl Policy {
    wrap_policy(policy, move |policy, chat: &Transcript| {
        let awaited = !chat.participants().contains(&who) && chat.ended_by().is_none();
        if awaited && when.now(chat).is_some() {
            return Step::Admit { who: who.clone(), sees };
        }
        policy.next(chat)
    })
}
