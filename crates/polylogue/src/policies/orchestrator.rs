//! An orchestrator with a ledger, as in Magentic-One: a planner writes down facts and a plan, and before each turn
//! fills in a ledger that says whether the task is done, whether there is progress, and who does what next.
//!
//! In private turns the planner is asked for the facts, then for a plan, which is posted in the chat; then, before each
//! turn, for the [`Progress`] as JSON. Its instruction is posted in its name, and the selected participant has a turn.
//! After too many loops or turns without progress, the planner writes facts and plan again; when the limit on plans is
//! reached, the chat ends. In all cases the planner gives the final answer, which is the summary.
//!
//! # A planner and two workers
//! ```
//! use polylogue::policies::orchestrator::Orchestrator;
//! use polylogue::{AnyModel, Assistant, Chat};
//! # fn example(model: AnyModel) -> Result<Chat, polylogue::Error> {
//! let coder = Assistant::new("Coder", model.clone())?.description("Writes and runs programs.");
//! let surfer = Assistant::new("Surfer", model.clone())?.description("Looks things up.");
//! let orchestrator = Orchestrator::new("Planner")?.participant(&coder).participant(&surfer).max_plans(2);
//! let chat = Chat::builder("lab")
//!     .participant(coder)
//!     .participant(surfer)
//!     .private_agent(Assistant::new("Planner", model)?)
//!     .policy(orchestrator)
//!     .build()?;
//! # Ok(chat)
//! # }
//! ```
//!
//! Models with structured output do better with it: use another participant for the ledger, an assistant whose
//! [`Params::schema`](polylogue_core::Params) is [`Progress::schema`], with [`Orchestrator::progress_agent`].

mod progress;
mod run;
mod words;

use polylogue_core::{Agent, Name, NameError};

pub use self::progress::{Answer, Progress};
pub use self::words::OrchestratorPrompts;

/// Plans the work and selects speakers: a [`Policy`](polylogue_core::Policy); see the [module](self).
///
/// The planner is a private agent ([`ChatBuilder::private_agent`](polylogue_core::ChatBuilder::private_agent)), or a
/// participant that is never selected to do the work.
#[derive(Debug, Clone)]
#[must_use]
pub struct Orchestrator {
    planner: Name,
    progress_agent: Name,
    /// Descriptions of the participants.
    known: Vec<(Name, String)>,
    words: OrchestratorPrompts,
    max_turns: u64,
    max_stalls: u64,
    max_plans: u64,
    max_retries: u32,
}

impl Orchestrator {
    /// Default limit on turns, as in AutoGen's MagenticOne.
    pub const DEFAULT_MAX_TURNS: u64 = 20;
    /// Default limit on turns without progress before the plan is made again, as in AutoGen's MagenticOne.
    pub const DEFAULT_MAX_STALLS: u64 = 3;
    /// Default limit on plans. MagenticOne has no such limit.
    pub const DEFAULT_MAX_PLANS: u64 = 3;
    /// Default limit on retries after a ledger that cannot be parsed. MagenticOne asks 10 times; a model that fails
    /// four times seldom succeeds later.
    pub const DEFAULT_MAX_RETRIES: u32 = 3;

    /// Creates an orchestrator with the participant `planner`, who also fills in the ledger.
    ///
    /// # Errors
    /// When the name is illegal.
    pub fn new(planner: impl AsRef<str>) -> Result<Self, NameError> {
        let planner = Name::new(planner)?;
        Ok(Self {
            progress_agent: planner.clone(),
            planner,
            known: Vec::new(),
            words: OrchestratorPrompts::default(),
            max_turns: Self::DEFAULT_MAX_TURNS,
            max_stalls: Self::DEFAULT_MAX_STALLS,
            max_plans: Self::DEFAULT_MAX_PLANS,
            max_retries: Self::DEFAULT_MAX_RETRIES,
        })
    }

    /// Adds the description of `agent` to the planner's prompts.
    pub fn participant(mut self, agent: &impl Agent) -> Self {
        self.known.push((agent.name().clone(), agent.description().to_owned()));
        self
    }

    /// Sets another participant to fill in the ledger.
    pub fn progress_agent(self, progress_agent: Name) -> Self {
        Self { progress_agent, ..self }
    }

    /// Sets the prompts.
    pub fn prompts(self, words: OrchestratorPrompts) -> Self {
        Self { words, ..self }
    }

    /// Sets the limit on turns of all participants together. The chat's own limit on turns, if lower, ends it without a
    /// final answer.
    pub fn max_turns(self, turns: u64) -> Self {
        Self { max_turns: turns, ..self }
    }

    /// Sets the number of turns without progress, at least 1, after which the plan is made again. A turn with progress
    /// cancels out one without.
    pub fn max_stalls(self, stalls: u64) -> Self {
        Self { max_stalls: stalls.max(1), ..self }
    }

    /// Sets the limit on plans, including the first, at least 1.
    pub fn max_plans(self, plans: u64) -> Self {
        Self { max_plans: plans.max(1), ..self }
    }

    /// Sets how often a ledger that cannot be parsed is requested again. After that, it counts as a turn without
    /// progress.
    pub fn max_retries(self, retries: u32) -> Self {
        Self { max_retries: retries, ..self }
    }
}
