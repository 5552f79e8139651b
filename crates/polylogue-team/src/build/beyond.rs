//! Debates, plans and graphs.

use polylogue::layers::reply::Stack;
use polylogue::policies::debate::{Debate, Tie};
use polylogue::policies::graph::{CheckedGraph, Edge, Graph, Join};
use polylogue::policies::orchestrator::{Orchestrator, OrchestratorPrompts};
use polylogue::{Error, Result};

use super::order::compile;
use crate::chat;
use crate::pattern;
use crate::team::Team;

pub(super) fn debate(given: &pattern::Debate) -> Result<Debate> {
    let debate = Debate::between(given.options.iter().map(|option| option.value.clone()))
        .map_err(Error::from)?
        .rounds(given.rounds);
    let debate = if given.one_by_one { debate.one_by_one() } else { debate };
    let debate = match given.voters.as_slice() {
        [] => debate,
        voters => debate.voters(voters.iter().cloned()),
    };
    Ok(debate.tie(match &given.tie {
        pattern::Tie::First => Tie::First,
        pattern::Tie::Undecided => Tie::Undecided,
        pattern::Tie::Chair(chair) => Tie::Chair(chair.clone()),
        pattern::Tie::Again(rounds) => Tie::Again(*rounds),
    }))
}

pub(super) fn plan(given: &pattern::Orchestrator, chat: &chat::Chat, team: &Team) -> Result<Orchestrator> {
    let mut ledger = Orchestrator::new(given.planner.as_str())?;
    for name in &chat.participants {
        // Only its name and description are used here.
        let known = Stack::new(name.as_str())?.description(team.description_of(name));
        ledger = ledger.participant(&known);
    }
    let pattern::Orchestrator { scribe, max_turns, max_stalls, max_plans, max_retries, .. } = given;
    if let Some(scribe) = scribe {
        ledger = ledger.scribe(scribe.value.clone());
    }
    let ledger =
        ledger.max_turns(*max_turns).max_stalls(*max_stalls).max_plans(*max_plans).max_retries(*max_retries);
    Ok(ledger.prompts(words(&given.prompts)))
}

fn words(given: &pattern::OrchestratorPrompts) -> OrchestratorPrompts {
    let usual = OrchestratorPrompts::default();
    let or = |given: &Option<String>, usual: String| given.clone().unwrap_or(usual);
    OrchestratorPrompts {
        facts: or(&given.facts, usual.facts),
        plan: or(&given.plan, usual.plan),
        briefing: or(&given.briefing, usual.briefing),
        progress: or(&given.progress, usual.progress),
        unreadable: or(&given.unreadable, usual.unreadable),
        updated_facts: or(&given.updated_facts, usual.updated_facts),
        updated_plan: or(&given.updated_plan, usual.updated_plan),
        answer: or(&given.answer, usual.answer),
    }
}

/// The graph of the participants. The checks of a file build it, too, to see whether it can be.
pub(crate) fn graph(given: &pattern::Graph, chat: &chat::Chat) -> Result<CheckedGraph> {
    let mut graph = Graph::of(chat.participants.iter().map(ToString::to_string));
    for start in &given.start {
        graph = graph.starts_with(start.as_str());
    }
    for (from, ways) in &given.edges {
        for way in ways {
            let edge = Edge::from((from.as_str(), way.to.as_str()));
            let edge = match (&way.says, &way.when) {
                _ if *way.otherwise => edge.otherwise(),
                (Some(text), _) => edge.says(text.as_str()),
                (None, Some(text)) => {
                    let condition = compile(text)?;
                    edge.given(move |chat| condition.holds_or_notes(chat))
                }
                (None, None) => edge,
            };
            graph = graph.edge(match way.max_uses {
                Some(times) => edge.at_most(times),
                None => edge,
            });
        }
    }
    for (name, join) in &given.join {
        let join = match join {
            pattern::Join::All => Join::All,
            pattern::Join::Any => Join::Any,
        };
        graph = graph.join(name.as_str(), join);
    }
    graph.build().map_err(Error::from)
}
