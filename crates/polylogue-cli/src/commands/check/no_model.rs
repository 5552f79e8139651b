//! Agents that have no model, neither by their file nor by a default of the user.

use polylogue_config::source::Source;
use polylogue_core::Name;
use polylogue_core::text::enumerated;
use polylogue_team::Team;
use serde::Serialize;

/// The most agents that a row names.
const NAMED: usize = 5;

/// An agent without a model, so that a run needs `--model`.
#[derive(Debug, Serialize)]
pub(super) struct WithoutModel {
    agent: String,
    /// Its line in the team file; none for agents of other files, and for those that select speakers and write summaries.
    line: Option<usize>,
}

impl WithoutModel {
    /// Those of `team`, unless its script replies for all, or the `model` of the command line does.
    pub(super) fn of(team: &Team, model: Option<&str>) -> Vec<Self> {
        if model.is_some() || !team.script.is_empty() {
            return Vec::new();
        }
        let source = Source::new("", team.text().unwrap_or_default());
        let line = |name: &Name| {
            let mut agents = team.agents.iter().filter(|agent| agent.name.value == *name);
            let agent = agents.find(|agent| agent.model().is_some_and(|keys| keys.model.is_none()))?;
            Some(source.position(agent.name.span.start).line)
        };
        let who = team.answering_without_model().into_iter();
        who.map(|name| Self { agent: name.as_str().to_owned(), line: line(&name) }).collect()
    }

    /// A line for people on `all` of a team; nothing if there are none.
    pub(super) fn row(all: &[Self]) -> Option<String> {
        let more = all.len().checked_sub(NAMED).filter(|more| *more > 0).map(|more| format!("{more} more"));
        let who = enumerated(all.iter().take(NAMED).map(Self::in_words).chain(more));
        (!all.is_empty()).then(|| {
            format!(
                "  no model for {who}: set `model` in the file, `POLYLOGUE_MODEL`, or a default with `polylogue config set model PROVIDER:MODEL`"
            )
        })
    }

    fn in_words(&self) -> String {
        match self.line {
            Some(line) => format!("`{}` (line {line})", self.agent),
            None => format!("`{}`", self.agent),
        }
    }
}
