//! Which conversations a list has.

use polylogue_core::{LogId, Timestamp};

/// A filter for lists of conversations. Default: all, by pages of the server's size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// The maximum number on a page, at most 200.
    pub limit: Option<u64>,
    /// The cursor of the page, as the page before has it.
    pub cursor: Option<String>,
    /// The beginning of the conversations' ids.
    pub id: Option<String>,
    /// The states of the conversations, as the server has them or `polylogue runs` has them. Default: all.
    pub states: Vec<String>,
    /// The id or the name of the team.
    pub team: Option<String>,
    /// A text that the tasks contain.
    pub task: Option<String>,
    /// The conversation that they were forked from.
    pub parent: Option<LogId>,
    /// The earliest time at which they began.
    pub since: Option<Timestamp>,
}

impl ListFilter {
    pub(crate) fn query(&self) -> Vec<(&'static str, String)> {
        let Self { limit, cursor, id, states, team, task, parent, since } = self;
        let states = Some(states.join(",")).filter(|states| !states.is_empty());
        let values = [
            ("limit", limit.map(|limit| limit.to_string())),
            ("cursor", cursor.clone()),
            ("id", id.clone()),
            ("state", states),
            ("team", team.clone()),
            ("q", task.clone()),
            ("parent", parent.as_ref().map(ToString::to_string)),
            ("since_ms", since.map(|since| since.0.to_string())),
        ];
        values.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}
