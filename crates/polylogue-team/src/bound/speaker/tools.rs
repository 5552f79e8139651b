//! The tools of an agent: what their calls return at most, and what they cost.

use polylogue::Assistant;
use polylogue::policies::handoff::Handoff;
use polylogue::tools::background::{MAX_NOTICE_BYTES, RESULT_TOOLS};
use polylogue::tools::search::{ToolSearch, longest_result};
use polylogue_core::{AnyTool, Tool as _, ToolSpec};

use super::super::amount::NO_LIMIT;
use super::super::case::{self, CALL, CALL_TOKENS, Case, MESSAGE, PROMPT};
use super::{Dialog, Speaker, Tools, bytes};
use crate::agent::{Agent, ModelKeys};
use crate::working::tool_of;

/// Bytes of the note of what a truncated text lacks.
const NOTICE: u128 = 64;

/// Bytes of the result of a call of a tool that there is not, besides the names of those that there are.
const MISTAKE: u128 = 240;

impl Tools {
    pub(super) fn of(
        agent: &Agent,
        keys: &ModelKeys,
        assistant: &Assistant,
        speaker: &Speaker,
    ) -> Option<Self> {
        let specs = assistant.specs();
        if specs.is_empty() {
            return None;
        }
        let searched: Vec<&ToolSpec> = assistant.searched().collect();
        let asked = if agent.approval.is_some() { case::answer(agent).saturating_add(PROMPT) } else { 0 };
        let longest = |most: &dyn Fn(&ToolSpec) -> u128| {
            longest_of(agent, keys, (specs, searched.as_slice()), most).saturating_add(asked)
        };
        let agents: Vec<(String, bool)> =
            keys.agent_tools.iter().map(|tool| (tool_of(tool), tool.background)).collect();
        let returns_result = |tool: &str| agent.starts_background() && RESULT_TOOLS.contains(&tool);
        // What these return besides is why a call is refused, or that a task has begun.
        let without_agents = |spec: &ToolSpec| match agents.iter().find(|(name, _)| *name == spec.name) {
            Some((_, false)) => PROMPT,
            Some((_, true)) => MAX_NOTICE_BYTES as u128,
            None if returns_result(&spec.name) => MAX_NOTICE_BYTES as u128,
            None => spec.max_bytes as u128,
        };
        let result = longest(&|spec: &ToolSpec| spec.max_bytes as u128);
        let result_without_agents = longest(&without_agents);
        let one = speaker.params.parallel_tool_calls == Some(false);
        let calls = if one { 1 } else { (speaker.output(Case::Worst) / CALL_TOKENS).max(1) };
        let by_text = Dialog::of(agent, keys, specs, speaker);
        let own = specs.iter().filter(|spec| !is_suggested(keys, spec)).chain(searched);
        Some(Self {
            bytes: bytes(&specs),
            rounds: (*keys.max_tool_rounds).into(),
            result,
            result_without_agents,
            calls,
            cost: own.map(cost_of).max().unwrap_or_default(),
            by_text,
            suggests: !keys.suggests_tools.is_empty(),
            ends_turn: by_text.is_some() || specs.iter().any(|spec| spec.ends_turn),
        })
    }

    /// The most bytes that one round of calls adds.
    pub(super) fn results(&self, case: Case) -> u128 {
        self.round(case, self.result)
    }

    /// The same without what agents reply that are tools, and without results of background tasks.
    pub(super) fn results_without_agents(&self, case: Case) -> u128 {
        self.round(case, self.result_without_agents)
    }

    /// A round of calls with results of so many bytes.
    fn round(&self, case: Case, result: u128) -> u128 {
        let calls = case.times(self.most_calls(), 1);
        calls.saturating_mul(case.text(result).saturating_add(CALL).saturating_add(MESSAGE))
    }

    /// The most picodollars that one round of calls costs.
    pub(super) fn spends(&self, case: Case) -> u128 {
        case.times(self.most_calls(), 1).saturating_mul(self.cost)
    }

    fn most_calls(&self) -> u128 {
        if self.by_text.is_some_and(|dialog| dialog.is_certain) { 1 } else { self.calls }
    }
}

/// Whether another agent executes the tool `spec`.
fn is_suggested(keys: &ModelKeys, spec: &ToolSpec) -> bool {
    keys.suggests_tools.iter().any(|name| name.as_str() == spec.name)
}

/// The picodollars that a call of the tool `spec` costs at most, if it declares a cost.
fn cost_of(spec: &ToolSpec) -> u128 {
    spec.max_cost.map_or(0, |cost| cost.picodollars.into())
}

/// The most bytes of a result of one of `specs`, of a tool that is found among those `searched`, or of a call of another tool, after which the
/// turn continues: not that of a handoff. Those that are only suggested have results in the messages of others. Each has as many bytes as
/// `bytes_of` says.
fn longest_of(
    agent: &Agent,
    keys: &ModelKeys,
    (specs, searched): (&[ToolSpec], &[&ToolSpec]),
    bytes_of: &dyn Fn(&ToolSpec) -> u128,
) -> u128 {
    // A truncated result says how much is missing.
    let of = |spec: &ToolSpec| bytes_of(spec) + NOTICE;
    // The limits are those of its own tools, and not of agents as tools.
    let has_own_only = keys.agent_tools.is_empty();
    let most = if has_own_only { agent.tool_limits.max_output_bytes.into() } else { NO_LIMIT };
    // With an output schema the model reads what it said by a handoff.
    let is_handoff = |spec: &ToolSpec| {
        spec.ends_turn && spec.name.starts_with(Handoff::PREFIX) && keys.output_schema.is_none()
    };
    let is_search = |spec: &ToolSpec| !searched.is_empty() && ToolSearch::TOOLS.contains(&spec.name.as_str());
    let all = || specs.iter().chain(searched.iter().copied());
    let own = all().filter(|spec| !is_suggested(keys, spec) && !is_handoff(spec) && !is_search(spec));
    // Arguments that are no object are repeated in part.
    let longest = own.map(of).max().map_or(0, |longest| longest.min(most).max(PROMPT + NOTICE));
    // No limit cuts definitions.
    let found =
        if searched.is_empty() { 0 } else { longest_result(searched.iter().copied()) as u128 + NOTICE };
    let names: u128 = all().map(|spec| spec.name.len() as u128 + 4).sum();
    let failed = if specs.iter().any(is_handoff) { Handoff::MAX_FAILURE as u128 + NOTICE } else { 0 };
    longest.max(found).max(failed).max(names.saturating_add(MISTAKE))
}

/// The most bytes of a result of `tools`, which an agent has for others, and the most picodollars that a call costs.
pub(in crate::bound) fn of_others(tools: &[AnyTool]) -> (u128, u128) {
    let bytes = tools.iter().map(|tool| tool.spec().max_bytes as u128).max().unwrap_or_default();
    let cost = tools.iter().map(|tool| cost_of(tool.spec())).max().unwrap_or_default();
    (bytes.max(PROMPT) + NOTICE, cost)
}
