//! What agents of a session remember, by path: read, written, forgotten.

use std::fmt;

use polylogue_core::{Agent, AnyAgent, Body, Error, Message, Name, Path, Result};
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Session, remembered};

/// What an agent and those that it asks remember: lists of messages under the keys `memory`, `writer.memory`,
/// `items.0.memory` and the like, in the order in which agents are made of others.
///
/// As JSON it is an object with these keys, in this order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State(Vec<(String, Vec<Message>)>);

/// What of an agent is to be forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forget<'a> {
    /// What the agent itself remembers.
    Own,
    /// That, and what those remember that it asks, and those that they ask.
    All,
    /// What one of those remembers: `writer`, or `items.0`.
    Layer(&'a str),
}

impl State {
    /// The keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| &**key)
    }

    /// What is remembered under `key`.
    #[must_use]
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

/// A room that an agent of the session has, or may come to have.
struct Room {
    key: String,
    at: Path,
    who: Name,
}

impl Session {
    /// What `agent`, and those that it asks, remember of this session. One that was never called remembers nothing; those
    /// that it asks without telling of them as its [layers](Agent::layers) are in it when they were asked.
    ///
    /// # Errors
    /// When the log is no valid conversation, or a layer has an illegal label.
    pub async fn state(&self, agent: &(impl Agent + Clone)) -> Result<State> {
        let rooms = self.all_rooms(agent).await?;
        let mut state = State::default();
        for Room { key, at, who } in rooms {
            state.0.push((key, remembered(&self.log.transcript_of(&at).await?, &who)));
        }
        Ok(state)
    }

    /// Lets `agent`, and those that it asks, remember what `state` says, and nothing else of this session: also those that are no
    /// [layers](Agent::layers) of it and were asked in the session that `state` is of. Returns the keys that belong to none of them:
    /// what is under these is left out.
    ///
    /// # Errors
    /// When `state` has no entry for one of them: the error names all that are missing. When a call is not over, or the log
    /// cannot be written. Nothing is changed then.
    pub async fn load(&self, agent: &(impl Agent + Clone), state: &State) -> Result<Vec<String>> {
        let declared = self.rooms(agent).await?;
        let missing: Vec<String> = declared
            .iter()
            .filter(|room| state.get(&room.key).is_none())
            .map(|room| format!("`{}`", room.key))
            .collect();
        if !missing.is_empty() {
            let who = agent.name();
            return Err(Error::Config(format!("the state of `{who}` has no {}", missing.join(", "))));
        }
        let mut rooms = self.all_rooms(agent).await?;
        let home = self.home(agent.name()).await?;
        for (key, messages) in &state.0 {
            if !rooms.iter().any(|room| room.key == *key) {
                rooms.extend(asked(key, messages, &home, agent.name()));
            }
        }
        let unknown = |key: &&str| !rooms.iter().any(|room| room.key == **key);
        let extra = state.keys().filter(unknown).map(str::to_owned).collect();
        let messages = |key: &str| state.get(key).unwrap_or_default().to_vec();
        let loaded: Vec<_> = rooms.into_iter().map(|room| (room.at, room.who, messages(&room.key))).collect();
        self.log.set_rooms(loaded).await?;
        Ok(extra)
    }

    /// Lets `agent`, or those that it asks, forget what they remember of this session. The log keeps it.
    ///
    /// # Errors
    /// When there is no such layer, a call is not over, or the log cannot be written.
    pub async fn reset(&self, agent: &(impl Agent + Clone), forget: Forget<'_>) -> Result<()> {
        let mut rooms = self.all_rooms(agent).await?;
        match forget {
            Forget::Own => rooms.truncate(1),
            Forget::All => {}
            Forget::Layer(label) => {
                let key = format!("{label}.memory");
                rooms.retain(|room| room.key == key);
                if rooms.is_empty() {
                    let who = agent.name();
                    return Err(Error::Config(format!("`{who}` has no layer `{label}`")));
                }
            }
        }
        let forgotten: Vec<_> = rooms.into_iter().map(|room| (room.at, room.who, Vec::new())).collect();
        self.log.set_rooms(forgotten).await
    }

    /// Its own room, those of its layers, and those of others that it asked.
    async fn all_rooms(&self, agent: &(impl Agent + Clone)) -> Result<Vec<Room>> {
        let mut rooms = self.rooms(agent).await?;
        let home = self.home(agent.name()).await?;
        for event in self.log.events().await {
            let Body::Opened(opening) = &event.body else { continue };
            let is_new = event.at.is_within(&home) && !rooms.iter().any(|room| room.at == event.at);
            let below = event.at.as_str().strip_prefix(home.as_str()).unwrap_or_default();
            if let ([who], true, false) = (&*opening.participants, is_new, below.contains('.')) {
                let key = below.trim_start_matches('/').replace('/', ".");
                rooms.push(Room { key: format!("{key}.memory"), at: event.at.clone(), who: who.clone() });
            }
        }
        Ok(rooms)
    }

    /// Its own room, and those of its layers: each before those of its own.
    async fn rooms(&self, agent: &(impl Agent + Clone)) -> Result<Vec<Room>> {
        let (at, who) = (self.log.room_of(agent.name()).await?, agent.name().clone());
        let mut rooms = vec![Room { key: "memory".into(), at, who }];
        let home = self.home(agent.name()).await?;
        descend(&AnyAgent::new(agent.clone()), &home, "", &mut rooms)?;
        Ok(rooms)
    }

    /// Below which those have their rooms whom `who` asks.
    async fn home(&self, who: &Name) -> Result<Path> {
        let at = self.log.room_of(who).await?;
        if at.is_root() { at.room(who.as_str()) } else { Ok(at) }
    }
}

/// The room that `key` is of, where an agent asks another without telling of it as a layer: whose memory it is, its label says,
/// or else who spoke last in it.
fn asked(key: &str, messages: &[Message], home: &Path, asker: &Name) -> Option<Room> {
    let label = key.strip_suffix(".memory")?;
    let last = messages.iter().rev().map(|message| &message.from);
    let authors = || last.clone().filter(|from| **from != *asker && **from != Name::user());
    let own = label.rsplit('.').next().unwrap_or_default();
    let who = authors().find(|from| from.as_str() == own).or_else(|| authors().next())?.clone();
    Some(Room { key: key.to_owned(), at: home.room(label).ok()?, who })
}

fn descend(agent: &AnyAgent, home: &Path, prefix: &str, rooms: &mut Vec<Room>) -> Result<()> {
    for layer in agent.layers() {
        let (at, prefix) = (home.room(&layer.label)?, format!("{prefix}{}.", layer.label));
        let key = format!("{prefix}memory");
        rooms.push(Room { key, at: at.clone(), who: layer.agent.name().clone() });
        descend(&layer.agent, &at, &prefix, rooms)?;
    }
    Ok(())
}
