//! Memory: scopes are legal and used.

use crate::diagnostic::Report;
use crate::team::Team;
use crate::yaml::Node;

/// Reports memory settings without effect.
pub(super) fn check_built(root: &Node, team: &Team, report: &mut Report<'_>) {
    for (agent, node) in team.agents.iter().zip(root.get("agents").items()) {
        let Some(entry) = node.entry("memory") else { continue };
        if agent.memory().is_none() && !entry.value.entries().is_empty() {
            let hint = "leave out `tools: false`, or let it recall at least one fact";
            let message = format!("`{}` neither has the tools nor is reminded of anything", agent.name);
            report.error_with_hint(&entry.key_span, message, hint);
        }
        let Some(memory) = agent.memory() else { continue };
        if let Err(error) = team.memory_scope(&agent.name, memory) {
            let at = root.get("memory").entry("scope").map_or(&entry.key_span, |scope| &scope.value.span);
            return report.error(at, error.to_string());
        }
    }
    if let Some(entry) = root.entry("memory").filter(|_| !team.needs_memory()) {
        let hint = "add `memory: true` to an agent, or leave it out";
        report.warning(&entry.key_span, "no agent of the team has a memory", hint);
    }
}
