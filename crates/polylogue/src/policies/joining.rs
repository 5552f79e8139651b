//! Those who join a conversation that has begun.
//!
//! # What is seen
//!
//! - Whoever joins with [`JoinHistory::All`] reads all that was said to everybody, or to them, before their first turn, as if they
//!   had been there; with [`JoinHistory::New`] only what is said from then on. The opening is part of what was said.
//! - The others see nothing of the joining but what is then said. Say it, if they are to know.
//! - Whoever leaves, by [`Act::Leave`](polylogue_core::Act::Leave), is given no turn and hears nothing until they join
//!   again. What they said stays.
//! - Members are in order of joining: those who were there from the beginning come first.
//!
//! # An expert who is called in
//! ```
//! use polylogue::stop::{max_turns, says};
//! use polylogue::{AnyModel, Assistant, Chat, Group, Name, Sees, joining, until};
//!
//! # fn example(model: AnyModel) -> Result<(), Box<dyn std::error::Error>> {
//! let lawyer = Name::new("Lawyer")?;
//! let group = joining(lawyer, says("legal"), Sees::All, Group::round_robin());
//! let chat = Chat::named("team")
//!     .with(Assistant::new("Ann", model.clone())?)
//!     .with(Assistant::new("Bob", model.clone())?)
//!     .later(Assistant::new("Lawyer", model)?)
//!     .policy(until(max_turns(12), group))
//!     .build()?;
//! # Ok(())
//! # }
//! ```

use polylogue_core::{JoinHistory, Name, Policy, Step, Transcript};

use crate::stop::Stop;

/// As `policy`, and `who`, added to the chat by [`later`](polylogue_core::ChatBuilder::late_joiner), joins as soon as `when` holds.
///
/// Whoever left does not come back by this. Wrap it several times for several who join.
pub fn joining(who: Name, when: impl Into<Stop>, sees: JoinHistory, policy: impl Policy) -> impl Policy {
    let when = when.into();
    move |chat: &Transcript| {
        let awaited = !chat.participants().contains(&who) && chat.ended_by().is_none();
        if awaited && when.now(chat).is_some() {
            return Step::Admit { who: who.clone(), sees };
        }
        policy.next(chat)
    }
}
