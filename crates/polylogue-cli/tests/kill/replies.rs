//! The team that is killed, and the model that speaks for it: a pure function of the request.

use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::hash::Hasher;
use std::time::Duration;

use polylogue_test::server::{Answer, Behavior, Playbook, Quirk, Received};
use serde_json::{Value, json};

/// Two who talk for long, each with a tool.
pub(crate) const TEAM: &str = "
name: long-talk
task: Tell one another everything
agents:
  - {name: Ann, system: You are Ann., tools: [get_history]}
  - {name: Bob, system: You are Bob., tools: [get_history]}
chat:
  participants: [Ann, Bob]
  stop: {says: {text: DONE, whole: true, by: [Bob]}, max_turns: 90}
";

/// How many turns each of the two has.
pub(crate) const TURNS_EACH: usize = 32;

/// A model call of a conversation: the agent, and how much it had said and called before.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Asked {
    who: String,
    nth: usize,
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.who, self.nth)
    }
}

impl Asked {
    /// Which call `received` asks for.
    pub(crate) fn by(received: &Received) -> Self {
        let system = received.system().unwrap_or_default();
        let who = system.trim_start_matches("You are ").trim_end_matches('.').to_owned();
        Self { who, nth: received.turn() }
    }

    /// Which call the reply in this event answers, if it is the event of a finished call.
    pub(crate) fn finished(event: &Value) -> Option<Self> {
        if event["type"] != "model_replied" {
            return None;
        }
        let text = event["parts"][0]["text"].as_str().unwrap_or_default();
        // The last reply is a bare word, so that it ends the chat.
        let Some((who, nth)) = text.split(':').next().unwrap_or_default().split_once('.') else {
            return Some(Self { who: event["who"].as_str()?.to_owned(), nth: LAST });
        };
        Some(Self { who: who.to_owned(), nth: nth.parse().unwrap() })
    }
}

/// Assistant messages before the last reply: one a turn, and one more where the tool was called.
const LAST: usize = TURNS_EACH - 1 + TURNS_EACH.div_ceil(LOOKS_EVERY);

/// In which of its turns an agent looks at the conversation before it speaks.
const LOOKS_EVERY: usize = 4;

/// A model whose replies come at once or in paces, by turns: programs are killed while they wait, read, and write down.
pub(crate) fn model() -> Behavior {
    let book = Playbook::new(|received, _| match received.turn() % 3 {
        0 => reply(received).with(Quirk::Pace(Duration::from_millis(1))),
        _ => reply(received),
    });
    Behavior::from(book).latency(Duration::from_millis(1))
}

fn reply(received: &Received) -> Answer {
    let asked = Asked::by(received);
    let spoken = received.messages().iter().filter(|message| is_speech(message)).count();
    let has_looked = received.messages().last().is_some_and(|message| message["role"] == "tool");
    let words = words(received);
    if spoken % LOOKS_EVERY == 0 && !has_looked {
        let limit = 1 + spoken % 5;
        return Answer::text(format!("{asked}: I look. {words}"))
            .pieces(4)
            .call("get_history", json!({"limit": limit}));
    }
    if asked.who == "Bob" && spoken + 1 == TURNS_EACH {
        return Answer::text("DONE");
    }
    Answer::text(format!("{asked}: {words}")).pieces(8)
}

fn is_speech(message: &Value) -> bool {
    message["role"] == "assistant" && message.get("tool_calls").is_none()
}

/// Words that follow from every byte of the request: when a request is not what it was before, neither is its reply.
pub(crate) fn words(received: &Received) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(&received.bytes);
    let hash = hasher.finish();
    let word = |at: u64| format!("{:05x}", hash.rotate_left(u32::try_from(at * 7).unwrap()) & 0xf_ffff);
    (0..9).map(word).collect::<Vec<_>>().join(" ")
}
