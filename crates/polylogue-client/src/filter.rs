//! Which conversations a list has.

use polylogue_core::{LogId, Timestamp};

/// Which conversations a list has. Default: all, by pages of the server's size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// At most so many on a page: 200 or less.
    pub limit: Option<u64>,
    /// Where the page begins, as the page before says.
    pub cursor: Option<String>,
    /// The beginning of their ids.
    pub id: Option<String>,
    /// Their states, as the server has them or `polylogue runs` has them. Default: all.
    pub states: Vec<String>,
    /// The id of their team, or its name.
    pub team: Option<String>,
    /// A text that their tasks contain.
    pub task: Option<String>,
    /// The conversation that they were forked from.
    pub parent: Option<LogId>,
    /// They began at this time or later.
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
