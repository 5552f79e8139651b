//! Work by a plan: a planner writes down what is known and how to go about it, and before each turn keeps a ledger that
//! says whether the work is done, whether it gets on, and who does what next.
//!
//! The planner is asked aside: first for the facts, then for a plan, which the room hears; then, before each turn, for the
//! [`Progress`] as JSON. The instruction it gives is said in the room in its name, and the member it chose has a turn.
//! When the work goes in circles or does not get on too often, the planner writes facts and plan anew; when it has done
//! that as often as it may, the chat is over. Whatever ends it, the planner gives the final answer, which is the summary.
//!
//! # A planner and two who do the work
//! ```
//! use polylogue::ledger::Ledger;
//! use polylogue::{AnyModel, Assistant, Chat};
//! # fn example(model: AnyModel) -> Result<Chat, polylogue::Error> {
//! let coder = Assistant::new("Coder", model.clone())?.description("Writes and runs programs.");
//! let surfer = Assistant::new("Surfer", model.clone())?.description("Looks things up.");
//! let ledger = Ledger::led_by("Planner")?.knowing(&coder).knowing(&surfer).max_plans(2);
//! let chat = Chat::named("lab")
//!     .with(coder)
//!     .with(surfer)
//!     .aside(Assistant::new("Planner", model)?)
//!     .policy(ledger)
//!     .build()?;
//! # Ok(chat)
//! # }
//! ```
//!
//! Models that can be held to a schema do better with it: give the ledger a keeper of its own, an assistant whose
//! [`Params::schema`](polylogue_core::Params) is [`Progress::schema`], by [`Orchestrator::scribe`].

mod progress;
mod run;
mod words;

use polylogue_core::{Agent, Name, NameError, Policy, Step, Transcript};

pub use self::progress::{Answer, Progress};
pub use self::words::OrchestratorPrompts;

/// Work by a plan: a [`Policy`]; see the [module](self).
///
/// The planner takes part beside the room ([`ChatBuilder::private_agent`](polylogue_core::ChatBuilder::private_agent)), or is a member that
/// is never chosen to do the work itself.
#[derive(Debug, Clone)]
pub struct Orchestrator {
    planner: Name,
    keeper: Name,
    /// What members are good at.
    known: Vec<(Name, String)>,
    words: OrchestratorPrompts,
    max_turns: u64,
    max_stalls: u64,
    max_plans: u64,
    max_retries: u32,
}

impl Orchestrator {
    /// How many turns there are at most, unless it is told otherwise. As in AutoGen's MagenticOne.
    pub const DEFAULT_MAX_TURNS: u64 = 20;
    /// After how many turns without progress the plan is made anew, unless it is told otherwise. As in AutoGen's
    /// MagenticOne.
    pub const DEFAULT_MAX_STALLS: u64 = 3;
    /// How many plans are made at most, unless it is told otherwise. MagenticOne has no such limit.
    pub const DEFAULT_MAX_PLANS: u64 = 3;
    /// How often the planner is asked again for a ledger that can be read, unless it is told otherwise. MagenticOne asks 10
    /// times; a model that does not get it in four tries seldom does.
    pub const DEFAULT_MAX_RETRIES: u32 = 3;

    /// Work planned by the participant `planner`, who keeps the ledger, too.
    ///
    /// # Errors
    /// When the name is illegal.
    pub fn new(planner: &str) -> Result<Self, NameError> {
        let planner = Name::new(planner)?;
        Ok(Self {
            keeper: planner.clone(),
            planner,
            known: Vec::new(),
            words: OrchestratorPrompts::default(),
            max_turns: Self::DEFAULT_MAX_TURNS,
            max_stalls: Self::DEFAULT_MAX_STALLS,
            max_plans: Self::DEFAULT_MAX_PLANS,
            max_retries: Self::DEFAULT_MAX_RETRIES,
        })
    }

    /// Tells the planner what `agent` is good at: its description.
    #[must_use]
    pub fn participant(mut self, agent: &impl Agent) -> Self {
        self.known.push((agent.name().clone(), agent.description().to_owned()));
        self
    }

    /// Lets another participant than the planner keep the ledger.
    #[must_use]
    pub fn scribe(self, keeper: Name) -> Self {
        Self { keeper, ..self }
    }

    /// Sets what the planner is asked.
    #[must_use]
    pub fn prompts(self, words: OrchestratorPrompts) -> Self {
        Self { words, ..self }
    }

    /// Sets how many turns the members have at most, all together. The cap of the chat ends it without a final answer, if
    /// it is lower.
    #[must_use]
    pub fn max_turns(self, turns: u64) -> Self {
        Self { max_turns: turns, ..self }
    }

    /// Sets after how many turns without progress, at least 1, the plan is made anew. One with progress makes up for one
    /// without.
    #[must_use]
    pub fn max_stalls(self, stalls: u64) -> Self {
        Self { max_stalls: stalls.max(1), ..self }
    }

    /// Sets how many plans are made at most, the first included, at least 1.
    #[must_use]
    pub fn max_plans(self, plans: u64) -> Self {
        Self { max_plans: plans.max(1), ..self }
    }

    /// Sets how often the keeper is asked again for a ledger that can be read. If it cannot be read then, it counts as a turn
    /// without progress.
    #[must_use]
    pub fn max_retries(self, retries: u32) -> Self {
        Self { max_retries: retries, ..self }
    }
}

impl Policy for Orchestrator {
    fn next(&self, chat: &Transcript) -> Step {
        run::next(self, chat)
    }
}
