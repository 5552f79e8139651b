//! Agents that reason: in rounds with tools, by a plan, by evidence, by criticism.
//!
//! Each is an agent like any other: it can be called in a [`Session`](crate::Session), take its turns in a chat, and be a piece
//! of another. What it does in a turn is in the log, so that a run which is cut in the middle of a plan goes on there.
//!
//! | you want | look at |
//! |---|---|
//! | tools called until there is an answer | [`Assistant`](crate::Assistant) alone does that; [`React`] also ends when it takes too long, or writes its calls as text |
//! | a plan first, and each step solved by itself | [`PlanAndSolve`] |
//! | a plan that names its evidence, gathered without a model | [`Rewoo`] |
//! | a draft that is made better by criticism | [`Refine`] |
//! | the best of several drafts | [`Best`] |
//!
//! # A plan, and what came of it
//! ```
//! # fn example(model: polylogue_core::AnyModel, search: polylogue_core::AnyTool) -> polylogue_core::Result<()> {
//! use polylogue::Assistant;
//! use polylogue::reason::PlanAndSolve;
//!
//! let planner = Assistant::new("planner", model.clone())?;
//! let solver = Assistant::new("solver", model)?.tool(search);
//! let analyst = PlanAndSolve::new("analyst", planner, solver)?;
//! # let _ = analyst;
//! # Ok(())
//! # }
//! ```

mod best;
mod plan;
mod react;
mod refine;
mod rewoo;

pub use self::best::{Best, ChoiceTexts};
pub use self::plan::PlanAndSolve;
pub use self::react::React;
pub use self::refine::Refine;
pub use self::rewoo::Rewoo;

use std::sync::Arc;

use polylogue_core::{AnyAgent, Chat, ChatBuilder, Error, Result, Status, Turn};

use crate::order::sequence;

/// A conversation of its own for one turn of `agent`. What came of it is what the agent said, and nothing if it said nothing.
fn alone(agent: &AnyAgent) -> ChatBuilder {
    use polylogue_core::Agent;
    Chat::named(agent.name().as_str()).participant(agent.clone()).policy(sequence())
}

/// What came of a conversation within the turn.
async fn came_of(turn: &mut Turn<'_>, chat: &Chat, task: &str) -> Result<Arc<str>> {
    use polylogue_core::Agent;
    match turn.run(chat, task).await {
        Ok(Status::Closed { summary, .. }) => Ok(summary),
        Ok(Status::Waiting(_)) => Err(Error::Waiting),
        Ok(Status::Halted) => Err(Error::Cancelled),
        Err(error @ (Error::Model(_) | Error::Agent(_) | Error::Config(_))) => {
            Err(Error::Within { at: format!("{}.{}", turn.me(), chat.name()), error: Box::new(error) })
        }
        Err(error) => Err(error),
    }
}
