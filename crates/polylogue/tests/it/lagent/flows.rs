//! Agents composed of agents in ordinary code: sequences, branches, loops and graphs.

use polylogue::{Act, Agent, Function, Message, Name, Result};
use polylogue_core::{AgentCall, AnyAgent, Part};

fn joined(messages: Vec<Message>) -> Vec<Part> {
    messages.into_iter().flat_map(|message| message.parts).collect()
}

/// Calls `agents` one after the other, from the start again after the last one: `calls` calls in all.
pub(crate) fn in_order<const N: usize>(name: &str, agents: [AnyAgent; N], calls: usize) -> AnyAgent {
    let layers = agents.clone();
    let flow = Function::calling(name, layers, move |turn| {
        let agents = agents.clone();
        Box::pin(async move {
            let mut message = turn.message();
            for agent in agents.iter().cycle().take(calls) {
                message = turn.ask(agent, message).await?;
            }
            Ok(Act::Say(message.parts))
        })
    });
    AnyAgent::new(flow.unwrap())
}

/// Calls `agents` at the same time with the same message.
pub(crate) fn at_once<const N: usize>(name: &str, agents: [AnyAgent; N]) -> AnyAgent {
    let layers = agents.clone();
    let flow = Function::calling(name, layers, move |turn| {
        let agents = agents.clone();
        Box::pin(async move {
            let calls: Vec<_> = agents.iter().map(|agent| AgentCall::of(agent, turn.message())).collect();
            let replies: Vec<_> = turn.ask_all(calls).await.into_iter().collect::<Result<_>>()?;
            Ok(Act::Say(joined(replies)))
        })
    });
    AnyAgent::new(flow.unwrap())
}

/// Calls `agent` for each part of the message, `at_once` at a time. Each part has its own memory.
pub(crate) fn each_part(name: &str, agent: AnyAgent, at_once: usize) -> AnyAgent {
    let flow = Function::calling(name, [], move |turn| {
        let agent = agent.clone();
        Box::pin(async move {
            let message = turn.message();
            let part = |(nth, part): (usize, &Part)| {
                let message = Message { parts: vec![part.clone()], ..message.clone() };
                AgentCall::labeled(nth.to_string(), &agent, message)
            };
            let calls: Vec<_> = message.parts.iter().enumerate().map(part).collect();
            let mut replies = Vec::new();
            for some in calls.chunks(at_once) {
                for reply in turn.ask_all(some.to_vec()).await {
                    replies.push(reply?);
                }
            }
            Ok(Act::Say(joined(replies)))
        })
    });
    AnyAgent::new(flow.unwrap())
}

/// Calls the agent that `choose` selects; `None` passes the message on.
pub(crate) fn one_of<const N: usize>(
    name: &str,
    agents: [AnyAgent; N],
    choose: impl Fn(&str) -> Option<usize> + Send + Sync + 'static,
) -> AnyAgent {
    let layers = agents.clone();
    let flow = Function::calling(name, layers, move |turn| {
        let message = turn.message();
        let chosen = choose(&message.text()).map(|nth| agents[nth].clone());
        Box::pin(async move {
            match chosen {
                Some(agent) => Ok(Act::Say(turn.ask(&agent, message).await?.parts)),
                None => Ok(Act::Say(message.parts)),
            }
        })
    });
    AnyAgent::new(flow.unwrap())
}

/// Calls `agent` until its reply is `done`, for at most `rounds` rounds.
pub(crate) fn repeat(name: &str, agent: AnyAgent, rounds: usize, done: fn(&str) -> bool) -> AnyAgent {
    let flow = Function::calling(name, [agent.clone()], move |turn| {
        let agent = agent.clone();
        Box::pin(async move {
            let mut message = turn.message();
            for _ in 0..rounds {
                message = turn.ask(&agent, message).await?;
                if done(&message.text()) {
                    break;
                }
            }
            Ok(Act::Say(message.parts))
        })
    });
    AnyAgent::new(flow.unwrap())
}

/// A graph of four: the first calls the next two at the same time, the last receives both replies.
pub(crate) fn diamond(name: &str, agents: [AnyAgent; 4]) -> AnyAgent {
    let [first, left, right, last] = agents;
    let sides = at_once("sides", [left, right]);
    in_order(name, [first, sides, last], 3)
}

/// Asks one agent of a list, then all agents of a map at the same time.
#[derive(Clone)]
pub(crate) struct Panel {
    pub(crate) name: Name,
    pub(crate) items: Vec<AnyAgent>,
    pub(crate) desks: Vec<(&'static str, AnyAgent)>,
}

impl Agent for Panel {
    fn name(&self) -> &Name {
        &self.name
    }

    fn sub_agents(&self) -> Vec<polylogue_core::SubAgent> {
        let items = self.items.iter().enumerate();
        let items =
            items.map(|(nth, agent)| polylogue_core::SubAgent::labeled(format!("items.{nth}"), agent));
        let desks = self.desks.iter();
        items
            .chain(desks.map(|(key, agent)| polylogue_core::SubAgent::labeled(format!("d.{key}"), agent)))
            .collect()
    }

    async fn act(&self, turn: &mut polylogue::Turn<'_>) -> Result<Act> {
        let mut message = turn.message();
        if let Some((nth, last)) = self.items.iter().enumerate().next_back() {
            message = turn.ask_as(&format!("items.{nth}"), last, message).await?;
        }
        let call = |(key, agent): &(&str, AnyAgent)| AgentCall::labeled(format!("d.{key}"), agent, &message);
        let calls: Vec<_> = self.desks.iter().map(call).collect();
        let all: Vec<_> = turn.ask_all(calls).await.into_iter().collect::<Result<_>>()?;
        Ok(Act::Say(joined(all)))
    }
}
