//! Orchestrators: a planner writes a plan, and the next speaker is selected from a progress ledger.

use polylogue::Result;
use polylogue::layers::reply::Stack;
use polylogue::policies::orchestrator::{self as library, OrchestratorPrompts};
use polylogue_config::{At, Config};
use polylogue_core::Name;

use super::part::{Agents, Built, ChatFrame, Part};
use crate::diagnostic::Report;
use crate::flow::ChatFlow;
use crate::outline::Outline;
use crate::set::Set as _;
use crate::text::ParticipantRef;

/// Orchestrator: a planner writes a plan, and the next speaker is selected from a progress ledger.
/// Example: `pattern: {orchestrator: {planner: Editor, max_turns: 12}}`.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "Orchestrator")]
pub struct Orchestrator {
    /// Agent that writes the plan. It does not take part in the chat.
    #[key(as = ParticipantRef)]
    pub planner: At<Name>,
    /// Agent that writes the progress ledger.
    #[key(as = Option<ParticipantRef>, none = "the planner")]
    pub progress_agent: Option<At<Name>>,
    /// Maximum number of turns.
    #[key(default = library::Orchestrator::DEFAULT_MAX_TURNS, range = 1..=1_000_000)]
    pub max_turns: u64,
    /// Number of turns without progress after which the planner writes a new plan.
    #[key(default = library::Orchestrator::DEFAULT_MAX_STALLS, range = 1..=1_000_000)]
    pub max_stalls: u64,
    /// Maximum number of plans.
    #[key(default = library::Orchestrator::DEFAULT_MAX_PLANS, range = 1..=1000)]
    pub max_plans: u64,
    /// Maximum number of retries after a ledger that cannot be parsed.
    #[key(default = library::Orchestrator::DEFAULT_MAX_RETRIES, range = 0..=100)]
    pub max_retries: u32,
    /// Prompts that replace the built-in ones.
    #[key(as = PromptKeys)]
    pub prompts: OrchestratorPrompts,
}

/// Prompts of the orchestrator. `{task}`, `{team}`, `{names}`, `{facts}`, `{plan}`, `{schema}` and `{flaw}` are
/// replaced.
#[derive(Config)]
#[config(name = "OrchestratorPrompts", for = OrchestratorPrompts)]
struct PromptKeys {
    /// Prompt for the known facts.
    #[key(default = built_in().facts, none = "a built-in text")]
    facts: String,
    /// Prompt for the plan.
    #[key(default = built_in().plan, none = "a built-in text")]
    plan: String,
    /// Message that presents the task, the facts and the plan to the participants.
    #[key(default = built_in().briefing, none = "a built-in text")]
    briefing: String,
    /// Prompt for the progress ledger.
    #[key(default = built_in().progress, none = "a built-in text")]
    progress: String,
    /// Prompt for a retry after a ledger that cannot be parsed.
    #[key(default = built_in().unreadable, none = "a built-in text")]
    unreadable: String,
    /// Prompt for updated facts, before a new plan.
    #[key(default = built_in().updated_facts, none = "a built-in text")]
    updated_facts: String,
    /// Prompt for a new plan.
    #[key(default = built_in().updated_plan, none = "a built-in text")]
    updated_plan: String,
    /// Prompt for the final answer.
    #[key(default = built_in().answer, none = "a built-in text")]
    answer: String,
}

fn built_in() -> OrchestratorPrompts {
    OrchestratorPrompts::default()
}

impl Part for Orchestrator {
    fn check(&self, chat: &ChatFrame<'_>, _: &Outline<'_>, report: &mut Report<'_>) {
        for who in std::iter::once(&self.planner).chain(&self.progress_agent) {
            if who.ok && chat.has(who) {
                let hint = "remove it from `participants`: it does not take part in the chat";
                let message = format!("`{who}` is a participant and cannot be the planner");
                report.error_with_hint(&who.span, message, hint);
            }
        }
    }

    fn describe(&self, _: &ChatFrame<'_>) -> String {
        format!("as {} plans", self.planner)
    }

    fn has_own_result(&self) -> bool {
        true
    }

    fn flow<'c>(&'c self, _: &ChatFrame<'c>, _: &Outline<'c>) -> ChatFlow<'c> {
        let who = self.progress_agent.as_ref().unwrap_or(&self.planner);
        ChatFlow::selected(format!("selected by {who}")).ended_by("the progress ledger")
    }

    fn private_agents(&self) -> Vec<&Name> {
        std::iter::once(&*self.planner).chain(self.progress_agent.as_deref()).collect()
    }

    fn build(&self, chat: &ChatFrame<'_>, agents: &dyn Agents) -> Result<Built> {
        let mut orchestrator = library::Orchestrator::new(self.planner.as_str())?;
        for name in chat.participants {
            // Only its name and description are used here.
            let known = Stack::new(name.as_str())?.description(agents.description_of(name));
            orchestrator = orchestrator.participant(&known);
        }
        orchestrator = orchestrator.set(self.progress_agent.as_ref(), |orchestrator, progress_agent| {
            orchestrator.progress_agent(progress_agent.value.clone())
        });
        let orchestrator = orchestrator.max_turns(self.max_turns).max_stalls(self.max_stalls);
        let orchestrator = orchestrator.max_plans(self.max_plans).max_retries(self.max_retries);
        Built::policy(orchestrator.prompts(self.prompts.clone()))
    }
}
