//! The keys of the shared state that something in a team can set.

use std::collections::BTreeSet;

use polylogue_tools::Chess;

use super::replies::Replies;
use crate::built_in::{FILES, SET_STATE, known_tool_names};
use crate::condition::Condition;
use crate::output_blocks::RunsOutputBlocks;
use crate::suggest;
use crate::team::Team;
use crate::tooling::ToolEntry;

/// The key of structured values that set the state: results of tools, and replies.
const STATE: &str = "state";

/// The keys of the shared state that something in a team can set.
pub(super) struct StateKeys<'t> {
    known: BTreeSet<&'t str>,
    /// Whether any other key can be set.
    is_open: bool,
}

impl<'t> StateKeys<'t> {
    /// Those of a team with these structured `replies`, which set the state as results of tools do.
    pub(super) fn of_team(team: &'t Team, replies: &Replies<'_>) -> Self {
        let is_open = !team.teams.is_empty() || replies.may_have(STATE);
        let mut all = Self { known: BTreeSet::new(), is_open };
        let described: BTreeSet<String> =
            known_tool_names().chain(team.declared_tools()).chain([FILES.to_owned()]).collect();
        for given in team.given_tools() {
            match given {
                ToolEntry::Mcp(_) => all.is_open = true,
                ToolEntry::Own(own) if own.sets_keys() => {
                    all.known.extend(own.keys.iter().map(String::as_str));
                }
                ToolEntry::Own(own) => all.add(&own.tool, &described),
            }
        }
        for agent in &team.agents {
            let blocks = agent.runs_output_blocks.iter().flat_map(RunsOutputBlocks::tools);
            let run = agent.executes_tools.iter().map(|run| &run.tool).chain(blocks);
            run.for_each(|tool| all.add(tool, &described));
        }
        all
    }

    /// Adds what `tool` sets. Nothing is known of tools other than those `described`, which are those of a program.
    fn add(&mut self, tool: &str, described: &BTreeSet<String>) {
        match tool {
            "chess" => self.known.extend(Chess::STATE_KEYS),
            SET_STATE => self.is_open = true,
            _ => self.is_open |= !described.contains(tool),
        }
    }

    /// What `condition` reads that is never set, each with a hint.
    pub(super) fn mistakes(&self, condition: &Condition) -> Vec<(String, String)> {
        if self.is_open {
            return Vec::new();
        }
        if self.known.is_empty() {
            let message = "`state` is always empty: no agent can set it";
            let hint = "give an agent `tools: [set_state]`, or remove the condition";
            return vec![(message.to_owned(), hint.to_owned())];
        }
        let unset = condition.state_keys().into_iter().filter(|key| !self.known.contains(key));
        let mistake = |key: &str| {
            let message = format!("no agent can set `{key}` in `state`");
            (message, suggest::hint(key, self.known.iter().copied()))
        };
        unset.map(mistake).collect()
    }
}
