//! A model that speaks for many teams as their scripts do, and holds replies back from workers that are to be killed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use polylogue_test::server::{Answer, Behavior, PieceGate, Playbook, Received, Server};
use serde_json::Value;

use crate::place::of_type;

/// How many workers are killed, one after the other.
pub(crate) const KILLS: usize = 2;

/// What the model says for one team, and what it was asked.
pub(crate) struct Script {
    /// The replies of a run that nothing disturbed, in order.
    replies: Vec<Value>,
    /// The agents by their system texts, if some are asked at the same time: their calls come in any order.
    agents: Option<BTreeMap<String, String>>,
    /// After how many replies each worker that is killed receives no more.
    stops: [usize; KILLS],
    /// The agents that received replies, in order.
    given: Vec<String>,
    /// How many calls of the present worker wait for a reply that is held back.
    held: usize,
    /// All requests in order, and whether their replies were held back.
    asked: Vec<(Vec<u8>, bool)>,
}

impl Script {
    pub(crate) fn new(
        replies: Vec<Value>,
        agents: Option<BTreeMap<String, String>>,
        stops: [usize; KILLS],
    ) -> Self {
        Self { replies, agents, stops, given: Vec::new(), held: 0, asked: Vec::new() }
    }

    /// Holds nothing back. One call follows the other.
    pub(crate) fn undisturbed(replies: Vec<Value>) -> Self {
        Self::new(replies, None, [usize::MAX; KILLS])
    }

    /// The reply of the undisturbed run to a request, unless all were given.
    fn next(&self, received: &Received) -> Option<&Value> {
        let Some(agents) = &self.agents else { return self.replies.get(self.given.len()) };
        let who = agents.get(&*received.system()?)?;
        let nth = self.given.iter().filter(|given| *given == who).count();
        self.replies.iter().filter(|reply| reply["who"] == who.as_str()).nth(nth)
    }

    fn answer(&mut self, received: &Received, killed: usize, gate: &PieceGate) -> Answer {
        let is_held = self.stops.get(killed).is_some_and(|stop| self.given.len() >= *stop);
        self.asked.push((received.bytes.clone(), is_held));
        if is_held {
            self.held += 1;
            return held_back(gate);
        }
        let Some(reply) = self.next(received).cloned() else {
            return Answer::unexpected(format!("the script of `{}` has no reply to this", received.model()));
        };
        self.given.push(reply["who"].as_str().unwrap().to_owned());
        spoken(&reply)
    }
}

/// No reply of a script begins like this one, so that a client that takes it for the beginning of one is found.
fn held_back(gate: &PieceGate) -> Answer {
    Answer::text("This reply is never complete.").gated(gate)
}

/// A reply of a log as an answer of the server.
fn spoken(reply: &Value) -> Answer {
    let parts = reply["parts"].as_array().unwrap();
    let of = |kind: &'static str| parts.iter().filter_map(move |part| part.get(kind));
    let text = |kind| of(kind).next().and_then(Value::as_str).unwrap_or_default();
    let answer = Answer::text(text("text")).think(text("thought"));
    of("call").fold(answer, |answer, call| {
        answer.call_as(call["id"].as_str().unwrap(), call["tool"].as_str().unwrap(), call["args"].clone())
    })
}

/// The key of a worker, by which the server knows which one asks.
pub(crate) fn key(worker: usize) -> String {
    format!("worker-{worker}")
}

/// The scripts of all teams, by the names of their models.
pub(crate) struct Scripts(Arc<Mutex<State>>);

struct State {
    scripts: BTreeMap<String, Script>,
    /// How many workers were killed.
    killed: usize,
    /// Holds back the replies to the present worker.
    gate: PieceGate,
}

impl Scripts {
    pub(crate) fn new(scripts: BTreeMap<String, Script>) -> Self {
        Self(Arc::new(Mutex::new(State { scripts, killed: 0, gate: PieceGate::new() })))
    }

    /// A server that takes `latency` for each reply.
    pub(crate) fn serve(&self, latency: Duration) -> Server {
        let state = Arc::clone(&self.0);
        let book = Playbook::new(move |received, _| state.lock().unwrap().answer(received));
        let behavior = Behavior::from(book).latency(latency);
        Server::bind((Ipv4Addr::LOCALHOST, 0).into(), behavior).unwrap()
    }

    /// Whether a call of the team waits for its reply, and everything before it is in the team's log, which has these events.
    pub(crate) fn is_in_flight(&self, model: &str, events: &[Value]) -> bool {
        let state = self.0.lock().unwrap();
        let script = &state.scripts[model];
        let count = |kind| of_type(events, kind).len();
        // Where agents work at the same time, one may still run a tool while another one waits.
        let runs_tool = script.agents.is_some() && count("tool_called") != count("tool_returned");
        script.held > 0 && count("model_replied") == script.given.len() && !runs_tool
    }

    /// How many calls of all teams have finished.
    pub(crate) fn finished(&self) -> usize {
        self.0.lock().unwrap().scripts.values().map(|script| script.given.len()).sum()
    }

    /// Each call of the team was made, and none twice.
    #[track_caller]
    pub(crate) fn assert_calls_are_made_once(&self, model: &str) {
        let state = self.0.lock().unwrap();
        let Script { replies, given, asked, .. } = &state.scripts[model];
        assert_eq!([given.len(), asked.len()], [replies.len(); 2], "{model}");
    }

    /// The present worker was killed. The replies to the next one are held back when they have begun.
    pub(crate) fn killed(&self) {
        let mut state = self.0.lock().unwrap();
        state.killed += 1;
        state.gate = PieceGate::new();
        // The first chunk has no text.
        state.gate.open_until(2);
        state.scripts.values_mut().for_each(|script| script.held = 0);
    }

    /// Every worker that was killed had a call in flight; each such call was made again, and no other one was. Returns how many calls there
    /// were, and how many of them in flight.
    #[track_caller]
    pub(crate) fn assert_finished_calls_are_made_once(&self, model: &str) -> (usize, usize) {
        let state = self.0.lock().unwrap();
        let script = &state.scripts[model];
        assert_eq!(script.given.len(), script.replies.len(), "{model}: each call finishes once");
        let in_flight = script.asked.iter().filter(|(_, is_held)| *is_held).count();
        assert!(in_flight >= KILLS, "{model}: {in_flight} calls were in flight");
        let mut finished_later = BTreeSet::new();
        for (body, is_held) in script.asked.iter().rev() {
            if *is_held {
                let text = String::from_utf8_lossy(body);
                assert!(finished_later.contains(body), "{model}: a finished call was repeated: {text}");
            } else {
                finished_later.insert(body);
            }
        }
        (script.asked.len(), in_flight)
    }
}

impl State {
    fn answer(&mut self, received: &Received) -> Answer {
        let present = format!("Bearer {}", key(self.killed));
        if received.header("authorization") != Some(present.as_str()) {
            // Its worker was killed before the server read it.
            return held_back(&PieceGate::new());
        }
        match self.scripts.get_mut(received.model()) {
            Some(script) => script.answer(received, self.killed, &self.gate),
            None => Answer::unexpected(format!("no team has the model `{}`", received.model())),
        }
    }
}
