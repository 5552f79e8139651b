//! The memory of the agents of a session, by path: read, replace, clear.

use std::fmt;

use polylogue_core::{Agent, AnyAgent, Body, ConfigError, Message, Name, Path, Result, UnknownName};
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Session, remembered};

/// The memory of an agent and of the agents that it asks: lists of messages under keys such as `memory`,
/// `writer.memory` and `items.0.memory`, in the order of the [sub-agents](Agent::sub_agents).
///
/// As JSON it is an object with these keys, in this order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State(Vec<(String, Vec<Message>)>);

/// The memory to clear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forget<'a> {
    /// The agent's own memory.
    Own,
    /// The agent's own memory and that of all agents below it.
    All,
    /// The memory of the sub-agent with this label: `writer`, or `items.0`.
    SubAgent(&'a str),
}

impl State {
    /// Returns the keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| &**key)
    }

    /// Returns the messages under `key`.
    pub fn get(&self, key: &str) -> Option<&[Message]> {
        self.0.iter().find(|(other, _)| other == key).map(|(_, messages)| &**messages)
    }
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, messages) in &self.0 {
            map.serialize_entry(key, messages)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for State {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = State;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of lists of messages")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<State, A::Error> {
                let mut state = State::default();
                while let Some(entry) = map.next_entry()? {
                    state.0.push(entry);
                }
                Ok(state)
            }
        }
        deserializer.deserialize_map(Keys)
    }
}

/// An inner chat that an agent of the session has, or can get.
struct ChatMemory {
    key: String,
    at: Path,
    who: Name,
}

impl Session {
    /// Returns the memory of `agent` and of the agents that it asks, in this session. Empty for one that was never called.
    /// Agents that it asks without listing them as [sub-agents](Agent::sub_agents) are included once they were asked.
    ///
    /// # Errors
    /// When the log is invalid, or a sub-agent has an illegal label.
    pub async fn state(&self, agent: &(impl Agent + Clone)) -> Result<State> {
        let chats = self.all_chats(agent).await?;
        let mut state = State::default();
        for ChatMemory { key, at, who } in chats {
            state.0.push((key, remembered(&self.log.transcript_of(&at).await?, &who)));
        }
        Ok(state)
    }

    /// Replaces the memory of `agent` and of the agents that it asks with `state`, including agents that are not
    /// [sub-agents](Agent::sub_agents) and were asked in the session of `state`. Returns the keys that belong to none of them,
    /// which are ignored.
    ///
    /// # Errors
    /// When `state` has no entry for one of them: the error names all missing keys. When a call is open, or the log
    /// cannot be written. Nothing changes then.
    pub async fn load(&self, agent: &(impl Agent + Clone), state: &State) -> Result<Vec<String>> {
        let declared = self.chats(agent).await?;
        let missing: Vec<String> = declared
            .iter()
            .filter(|chat| state.get(&chat.key).is_none())
            .map(|chat| format!("`{}`", chat.key))
            .collect();
        if !missing.is_empty() {
            let state = format!("the state of `{}`", agent.name());
            return Err(ConfigError::missing(state, missing.join(", ")).into());
        }
        let mut chats = self.all_chats(agent).await?;
        let home = self.home(agent.name()).await?;
        for (key, messages) in &state.0 {
            if !chats.iter().any(|chat| chat.key == *key) {
                chats.extend(asked(key, messages, &home, agent.name()));
            }
        }
        let unknown = |key: &&str| !chats.iter().any(|chat| chat.key == **key);
        let extra = state.keys().filter(unknown).map(str::to_owned).collect();
        let messages = |key: &str| state.get(key).unwrap_or_default().to_vec();
        let loaded: Vec<_> = chats.into_iter().map(|chat| (chat.at, chat.who, messages(&chat.key))).collect();
        self.log.set_memories(loaded).await?;
        Ok(extra)
    }

    /// Clears the memory of `agent`, or of agents below it, in this session. The log keeps all events.
    ///
    /// # Errors
    /// When there is no such sub-agent, a call is open, or the log cannot be written.
    pub async fn reset(&self, agent: &(impl Agent + Clone), forget: Forget<'_>) -> Result<()> {
        let mut chats = self.all_chats(agent).await?;
        match forget {
            Forget::Own => chats.truncate(1),
            Forget::All => {}
            Forget::SubAgent(label) => {
                let key = format!("{label}.memory");
                chats.retain(|chat| chat.key == key);
                if chats.is_empty() {
                    let agent = format!("of `{}`", agent.name());
                    return Err(UnknownName::new("sub-agent", label).within(agent).into());
                }
            }
        }
        let forgotten: Vec<_> = chats.into_iter().map(|chat| (chat.at, chat.who, Vec::new())).collect();
        self.log.set_memories(forgotten).await
    }

    /// Its own inner chat, those of its sub-agents, and those of other agents that it asked.
    async fn all_chats(&self, agent: &(impl Agent + Clone)) -> Result<Vec<ChatMemory>> {
        let mut chats = self.chats(agent).await?;
        let home = self.home(agent.name()).await?;
        for event in self.log.events().await {
            let Body::Opened(opening) = &event.body else { continue };
            let is_new = event.chat.is_within(&home) && !chats.iter().any(|chat| chat.at == event.chat);
            let below = event.chat.as_str().strip_prefix(home.as_str()).unwrap_or_default();
            if let ([who], true, false) = (&*opening.participants, is_new, below.contains('.')) {
                let key = below.trim_start_matches('/').replace('/', ".");
                chats.push(ChatMemory {
                    key: format!("{key}.memory"),
                    at: event.chat.clone(),
                    who: who.clone(),
                });
            }
        }
        Ok(chats)
    }

    /// Its own inner chat and those of its sub-agents, parents first.
    async fn chats(&self, agent: &(impl Agent + Clone)) -> Result<Vec<ChatMemory>> {
        let (at, who) = (self.log.path_of(agent.name()).await?, agent.name().clone());
        let mut chats = vec![ChatMemory { key: "memory".into(), at, who }];
        let home = self.home(agent.name()).await?;
        descend(&AnyAgent::new(agent.clone()), &home, "", &mut chats)?;
        Ok(chats)
    }

    /// The path below which `who` has the inner chats of agents that it asks.
    async fn home(&self, who: &Name) -> Result<Path> {
        let at = self.log.path_of(who).await?;
        if at.is_root() { Ok(at.agent(who.as_str())?) } else { Ok(at) }
    }
}

/// The inner chat of `key`, for an agent that was asked without being declared as a sub-agent: its label names the owner of the memory,
/// or else its last speaker is.
fn asked(key: &str, messages: &[Message], home: &Path, asker: &Name) -> Option<ChatMemory> {
    let label = key.strip_suffix(".memory")?;
    let last = messages.iter().rev().map(|message| &message.from);
    let authors = || last.clone().filter(|from| **from != *asker && **from != Name::user());
    let own = label.rsplit('.').next().unwrap_or_default();
    let who = authors().find(|from| from.as_str() == own).or_else(|| authors().next())?.clone();
    Some(ChatMemory { key: key.to_owned(), at: home.agent(label).ok()?, who })
}

fn descend(agent: &AnyAgent, home: &Path, prefix: &str, chats: &mut Vec<ChatMemory>) -> Result<()> {
    for sub in agent.sub_agents() {
        let (at, prefix) = (home.agent(&sub.label)?, format!("{prefix}{}.", sub.label));
        let key = format!("{prefix}memory");
        chats.push(ChatMemory { key, at: at.clone(), who: sub.agent.name().clone() });
        descend(&sub.agent, &at, &prefix, chats)?;
    }
    Ok(())
}
