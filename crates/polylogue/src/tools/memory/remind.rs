//! An agent that is reminded of what it wrote down, before it speaks.

use std::collections::BTreeSet;

use polylogue_core::{
    Act, Agent, AnyTool, Body, Name, Part, Result, Tool, ToolCall, ToolCx, ToolError, ToolResult, ToolSpec,
    ToolStatus, Transcript, Turn,
};

use serde_json::{Value, json};

use polylogue_memory::{Fact, Memory as _, Query, Scope};

use super::tools::LongTermMemory;
use super::words;

/// An agent that is prompted before each turn with facts that match the last message.
///
/// The lookup is a tool call of the agent's turn, so that the log has the result, and the facts are a prompt of that
/// turn: a resumed turn gets the same facts, whatever the memory holds by then. The prompt comes after the
/// conversation, so that it does not invalidate the prompt cache of the provider. Facts that are in the agent's last
/// turns, and that no compaction has replaced, are not repeated. Private turns, for a selection or a summary, get no
/// facts. When the memory fails, the error is logged, and the agent speaks without facts.
#[derive(Debug, Clone)]
pub struct Reminded<A> {
    agent: A,
    facts: usize,
    scope: Scope,
    tool: AnyTool,
}

impl LongTermMemory {
    /// Wraps `agent`: it is prompted before each turn with at most `facts` facts that match the last message.
    pub fn reminds<A: Agent>(&self, agent: A, facts: usize) -> Reminded<A> {
        Reminded::new(agent, self.clone(), facts)
    }
}

/// The name of the lookup in logs. Models are not offered it.
pub(super) const LOOKUP: &str = "recall_before_turn";

/// Number of the agent's last turns in which facts are not repeated.
const TURNS: usize = 8;

/// Length of the query taken from the last message, in characters.
const QUERY_CHARS: usize = 2_000;

impl<A: Agent> Reminded<A> {
    pub(super) fn new(agent: A, memory: LongTermMemory, facts: usize) -> Self {
        let parameters = json!({"type": "object"});
        let spec = ToolSpec::new(LOOKUP, "Finds facts for the next turn.", parameters).repeatable();
        let facts = facts.min(Query::MAX_LIMIT);
        let scope = memory.scope.clone();
        Self { agent, facts, scope, tool: AnyTool::new(Lookup(memory, spec)) }
    }

    async fn remind(&self, turn: &mut Turn<'_>) -> Result<()> {
        let Some(query) = query(turn).filter(|_| self.facts > 0) else { return Ok(()) };
        let nth = turn.transcript().turns_begun_by(turn.me());
        let known = known_facts(turn.transcript(), turn.me(), &self.scope);
        let mut args = json!({"query": query, "limit": self.facts});
        if !known.is_empty()
            && let Some(args) = args.as_object_mut()
        {
            args.insert("known".into(), json!(known));
        }
        let call = ToolCall { id: lookup_id(nth, &self.scope), tool: LOOKUP.into(), args };
        let outcomes = turn.call_tools(std::slice::from_ref(&self.tool), &[call]).await?;
        if let Some(found) = outcomes.first().filter(|outcome| !ids(outcome).is_empty()) {
            turn.prompt(words::reminder(facts_in(found))).await?;
        }
        Ok(())
    }
}

impl<A: Agent> Agent for Reminded<A> {
    forward_agent!(agent: name, description, sub_agents, background_agent);

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        self.remind(turn).await?;
        self.agent.act(turn).await
    }
}

/// The query: the last message to the agent, or the task of the chat.
fn query(turn: &Turn<'_>) -> Option<String> {
    if turn.request().to.is_private() {
        return None;
    }
    let last = turn.last_message().map(|line| line.message.text().into_owned());
    let last = last.filter(|text| !text.trim().is_empty());
    let text = last.unwrap_or_else(|| turn.transcript().task().to_owned());
    let prompt = turn.request().prompt.as_deref().unwrap_or_default();
    let text: String = format!("{text}\n{prompt}").trim().chars().take(QUERY_CHARS).collect();
    (!text.is_empty()).then_some(text)
}

/// The id of the lookup in the `nth` turn of an agent. The scope distinguishes lookups of several memories in one turn.
fn lookup_id(nth: u64, scope: &Scope) -> String {
    format!("{LOOKUP}-{nth}-{scope}")
}

/// Whether a call is a lookup in the memory of `scope`.
fn is_lookup(id: &str, scope: &Scope) -> bool {
    let rest = id.strip_prefix(LOOKUP).and_then(|rest| rest.strip_prefix('-'));
    rest.and_then(|rest| rest.split_once('-')).is_some_and(|(_, of)| of == scope.as_str())
}

/// The facts of `scope` that `me` received in its last turns and still sees.
fn known_facts(transcript: &Transcript, me: &Name, scope: &Scope) -> BTreeSet<u64> {
    let (mut known, mut within, mut turns) = (BTreeSet::new(), BTreeSet::new(), 0);
    let (mut forgotten, mut replaced): (bool, Option<u64>) = (false, None);
    for event in transcript.events().iter().rev() {
        match &event.body {
            // Unless a summary has replaced what was prompted.
            Body::ToolReturned { who, id, result: outcome }
                if who == me
                    && is_lookup(id, scope)
                    && replaced.is_none_or(|through| event.seq > through) =>
            {
                within = ids(outcome);
            }
            Body::Compacted(compacted) if compacted.who == *me => {
                replaced = replaced.max(Some(compacted.through));
            }
            // Its history of this turn was replaced.
            Body::Remembered { who, .. } if who == me => forgotten = true,
            Body::Cleared { of, .. } if of.as_ref().is_none_or(|of| of == me) => break,
            Body::TurnStarted { turns: requests } if requests.iter().any(|request| request.who == *me) => {
                let seen = std::mem::take(&mut within);
                known.extend(seen.into_iter().filter(|_| !forgotten));
                forgotten = false;
                turns += 1;
                if turns > TURNS {
                    break;
                }
            }
            _ => {}
        }
    }
    known
}

/// The ids of the facts that a lookup returned.
fn ids(outcome: &ToolResult) -> BTreeSet<u64> {
    let data = outcome.parts.iter().find_map(|part| match part {
        Part::Data(value) => serde_json::from_value(value.clone()).ok(),
        _ => None,
    });
    data.unwrap_or_default()
}

/// The same as text, which comes first.
fn facts_in(outcome: &ToolResult) -> &str {
    match outcome.parts.first() {
        Some(Part::Text(text)) => text,
        _ => "",
    }
}

#[derive(Debug)]
struct Lookup(LongTermMemory, ToolSpec);

impl Tool for Lookup {
    fn spec(&self) -> &ToolSpec {
        &self.1
    }

    async fn call(&self, args: Value, cx: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let text = args.get("query").and_then(Value::as_str).unwrap_or_default().to_owned();
        let known: BTreeSet<u64> = args
            .get("known")
            .and_then(|known| serde_json::from_value(known.clone()).ok())
            .unwrap_or_default();
        let wanted = super::tools::limit(&args)?;
        // More than requested, since known facts are dropped.
        let limit = (wanted + known.len()).min(Query::MAX_LIMIT);
        let query = Query { scope: self.0.scope.clone(), text, limit };
        let recalled =
            self.0.memory.recall_metered(&query, cx.meter).await.map_err(|error| error.to_string())?;
        let fresh = recalled.facts.iter().filter(|fact| !known.contains(&fact.id)).take(wanted);
        let fresh: Vec<&Fact> = fresh.collect();
        let has_facts = !fresh.is_empty();
        let mut parts = match fresh.as_slice() {
            [] => vec![Part::text("nothing that fits")],
            facts => {
                let ids: Vec<u64> = facts.iter().map(|fact| fact.id).collect();
                vec![Part::text(words::lines(facts.iter().copied())), Part::Data(json!(ids))]
            }
        };
        parts.extend(recalled.missed.map(Part::text));
        let outcome = ToolResult::new(ToolStatus::Done, parts);
        let outcome = if has_facts { self.0.mark(outcome) } else { outcome };
        Ok(match recalled.used {
            Some(used) => outcome.with_usage(used),
            None => outcome,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;
    use std::sync::Arc;

    use polylogue_core::{Compacted, Event, Opening, Path, Timestamp, TurnRequest};

    use super::*;

    fn ann() -> Name {
        Name::new("Ann").unwrap()
    }

    fn scope(text: &str) -> Scope {
        Scope::new(text).unwrap()
    }

    fn found(nth: u64, of: &str, facts: &[u64]) -> Body {
        let outcome = ToolResult::new(ToolStatus::Done, vec![Part::text("facts"), Part::Data(json!(facts))]);
        Body::ToolReturned { who: ann(), id: lookup_id(nth, &scope(of)), result: outcome }
    }

    /// The facts of `of` that are known after these turns.
    fn known(of: &str, turns: &[&[Body]]) -> Vec<u64> {
        let opening = Opening { participants: vec![ann()], ..Opening::default() };
        let mut bodies = vec![Body::Opened(opening)];
        for turn in turns {
            bodies.push(Body::TurnStarted { turns: vec![TurnRequest::to_all(ann())] });
            bodies.extend(turn.iter().cloned());
            bodies.push(Body::Passed { who: ann() });
        }
        let event = |(seq, body)| {
            Arc::new(Event { seq, chat: Path::root(), time: Timestamp(0), ran_ms: 0, inbox: None, body })
        };
        let events: Vec<Arc<Event>> = (0..).zip(bodies).map(event).collect();
        let transcript = Transcript::from_events(&Path::root(), &events).unwrap();
        known_facts(&transcript, &ann(), &scope(of)).into_iter().collect()
    }

    #[test]
    fn each_memory_knows_its_own_facts() {
        let turn = [found(1, "team", &[1, 2]), found(1, "team-Ann", &[7])];
        assert_eq!(known("team", &[&turn]), [1, 2]);
        assert_eq!(known("team-Ann", &[&turn]), [7]);
        assert_eq!(known("Ann", &[&turn]), [0_u64; 0]);
    }

    #[test]
    fn facts_that_a_summary_has_replaced_are_not_known() {
        let compacted = |through| {
            Body::Compacted(Compacted {
                who: ann(),
                through,
                kept: Vec::new(),
                task: None,
                replaced: 1,
                tokens_before: 0,
                tokens_after: 0,
                summary: Default::default(),
            })
        };
        let [first, second] = [found(1, "team", &[1]), found(2, "team", &[2])];
        // The first lookup is event 2, and the second one event 5.
        for (through, left) in [(1, &[1_u64, 2][..]), (2, &[2]), (5, &[])] {
            let turns: [&[Body]; 3] = [from_ref(&first), from_ref(&second), &[compacted(through)]];
            assert_eq!(known("team", &turns), left, "{through}");
        }
    }
}
