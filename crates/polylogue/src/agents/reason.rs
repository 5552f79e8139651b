//! Reasoning agents: ReAct, plan and solve, ReWOO, refinement, best of n.
//!
//! Each is an agent: it can be called in a [`Session`](crate::Session), take turns in a chat, and be a part of another
//! agent. All its steps are in the log, so an interrupted run continues in the middle of a plan.
//!
//! | you want | look at |
//! |---|---|
//! | tools called until there is an answer | [`Assistant`](crate::Assistant) does that; [`React`] adds a limit on rounds and calls as text |
//! | a plan first, then its steps one by one | [`PlanAndSolve`] |
//! | a plan that names its evidence, gathered without model calls | [`Rewoo`] |
//! | a draft improved by criticism | [`Refine`] |
//! | the best of several drafts | [`BestOfN`] |
//!
//! # A planner and a solver
//! ```
//! # fn example(model: polylogue_core::AnyModel, search: polylogue_core::AnyTool) -> polylogue_core::Result<()> {
//! use polylogue::Assistant;
//! use polylogue::agents::reason::PlanAndSolve;
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

pub use self::best::{BestOfN, ChoiceTexts};
pub use self::plan::PlanAndSolve;
pub use self::react::React;
pub use self::refine::Refine;
pub use self::rewoo::Rewoo;

use std::sync::Arc;

use polylogue_core::{AnyAgent, Chat, ChatBuilder, Error, Interrupt, Result, Status, Turn};

use crate::agents::tooling::one_turn;

/// A chat of `agent` alone for one turn. Its summary is the agent's message, or empty.
fn alone(agent: &AnyAgent) -> ChatBuilder {
    use polylogue_core::Agent;
    Chat::builder(agent.name().as_str()).participant(agent.clone()).policy(one_turn)
}

/// Runs `chat` within the turn and returns its summary.
async fn result_of(turn: &mut Turn<'_>, chat: &Chat, task: &str) -> Result<Arc<str>> {
    use polylogue_core::Agent;
    match turn.run(chat, task).await {
        // Nothing was said in it, and what follows has no shorter history.
        Ok(Status::Closed { reason, .. }) if reason.code() == "context_full" => {
            Err(Interrupt::Ended { who: chat.name().clone(), reason }.into())
        }
        Ok(Status::Closed { summary, .. }) => Ok(summary),
        Ok(Status::Waiting(_)) => Err(Interrupt::Waiting.into()),
        Ok(Status::Cancelled) => Err(Interrupt::Cancelled.into()),
        Err(error @ (Error::Model(_) | Error::Agent(_) | Error::Config(_))) => {
            Err(Error::Within { at: format!("{}.{}", turn.me(), chat.name()), error: Box::new(error) })
        }
        Err(error) => Err(error),
    }
}
