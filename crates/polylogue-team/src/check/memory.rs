//! Memory: scopes are legal and used.

use polylogue_config::Switch;

use crate::diagnostic::Report;
use crate::team::Team;

/// Reports memory settings without effect.
pub(super) fn check_built(team: &Team, report: &mut Report<'_>) {
    for agent in &team.agents {
        let Some(keys) = agent.model().filter(|keys| keys.memory.given().is_some()) else { continue };
        let Some(memory) = agent.memory() else {
            if matches!(*keys.memory, Switch::On(_)) {
                let hint = "leave out `tools: false`, or let it recall at least one fact";
                let message = format!("`{}` neither has the tools nor is reminded of anything", agent.name);
                report.error_with_hint(keys.memory.key(), message, hint);
            }
            continue;
        };
        if let Err(error) = team.memory_scope(&agent.name, memory) {
            let at = team.memory.scope.as_ref().map_or(keys.memory.key(), |scope| &scope.span);
            return report.error(at, error.to_string());
        }
    }
    if let Some(at) = team.memory.given().filter(|_| !team.needs_memory()) {
        let hint = "add `memory: true` to an agent, or leave it out";
        report.warning(at, "no agent of the team has a memory", hint);
    }
}
