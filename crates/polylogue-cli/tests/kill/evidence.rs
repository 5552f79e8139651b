//! What was found on disk and at the server, and what must hold of it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::place::Place;
use crate::replies::Asked;

/// A look at the store and then at the server, while no program runs.
#[derive(Default, PartialEq)]
pub(crate) struct Look {
    /// The log, one event a line; `None` when there is no conversation yet.
    pub(crate) log: Option<Vec<String>>,
    /// How many requests had come.
    asked: usize,
}

impl Look {
    pub(crate) fn at(place: &Place) -> Self {
        let log = place.shown();
        // Counted after the store was read: the request of a call that is in the store has come by now, so one for it
        // that comes later is a second one, even if the server was slow to read it.
        Self { log, asked: place.server.count() }
    }

    pub(crate) fn events(&self) -> Vec<Value> {
        self.log.iter().flatten().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Whether the conversation is over.
    pub(crate) fn is_over(&self) -> bool {
        self.events().last().is_some_and(|event| event["type"] == "closed" && event.get("chat").is_none())
    }

    /// What happened last.
    pub(crate) fn last(&self) -> String {
        match (&self.log, self.events().last()) {
            (None, _) => "nothing".to_owned(),
            (_, None) => "created".to_owned(),
            (_, Some(event)) => event["type"].as_str().unwrap().to_owned(),
        }
    }

    /// Nothing that was there at `earlier` is lost or changed, to the letter.
    pub(crate) fn follows(&self, earlier: &Self) -> Result<(), String> {
        let (before, now) =
            (earlier.log.as_deref().unwrap_or_default(), self.log.as_deref().unwrap_or_default());
        match before.iter().zip(now).find(|(before, now)| before != now) {
            Some((before, now)) => Err(format!("an event changed:\n  {before}\n  {now}")),
            None if now.len() < before.len() => {
                Err(format!("there were {} events, and {} are left", before.len(), now.len()))
            }
            None => Ok(()),
        }
    }

    /// What a program has shown is in the log.
    pub(crate) fn holds(&self, shown: &[Value]) -> Result<(), String> {
        let events = self.events();
        let lost = shown.iter().find(|event| !events.contains(event));
        lost.map_or(Ok(()), |event| Err(format!("an event was shown and is not in the log:\n  {event}")))
    }

    /// No call that was finished at this look was asked for afterward.
    pub(crate) fn check_later_requests(&self, place: &Place) -> Result<(), String> {
        let finished: BTreeSet<Asked> = self.events().iter().filter_map(Asked::finished).collect();
        let later = place.server.requests().into_iter().skip(self.asked);
        let again = later.map(|received| Asked::by(&received)).find(|asked| finished.contains(asked));
        again.map_or(Ok(()), |asked| Err(format!("the call {asked} was finished and was asked for again")))
    }
}

/// What a conversation came to: its events without their times, and the requests in their order, those that came again
/// right after one another once.
#[derive(PartialEq)]
pub(crate) struct Course {
    pub(crate) events: Vec<Value>,
    pub(crate) requests: Vec<String>,
}

impl Course {
    /// The course of a conversation that is over, and how many requests came again.
    pub(crate) fn of(place: &Place, look: &Look) -> (Self, usize) {
        let mut events = look.events();
        for event in &mut events {
            let event = event.as_object_mut().unwrap();
            event.shift_remove("time_ms").unwrap();
            event.shift_remove("ran_ms");
        }
        // Calls that may have been in flight are counted when a conversation is resumed; everything else is equal.
        events.retain(|event| event["type"] != "charged");
        for (seq, event) in events.iter_mut().enumerate() {
            event["seq"] = seq.into();
        }
        let requests = place.server.requests();
        let mut bodies: Vec<String> =
            requests.iter().map(|received| String::from_utf8(received.bytes.clone()).unwrap()).collect();
        let all = bodies.len();
        bodies.dedup();
        let again = all - bodies.len();
        (Self { events, requests: bodies }, again)
    }

    /// Whether this is the course of an undisturbed conversation, to the letter.
    pub(crate) fn check(&self, undisturbed: &Self) -> Result<(), String> {
        first_difference("event", &undisturbed.events, &self.events)?;
        first_difference("request", &undisturbed.requests, &self.requests)
    }
}

fn first_difference<T: PartialEq + std::fmt::Display>(
    what: &str,
    wanted: &[T],
    found: &[T],
) -> Result<(), String> {
    for (at, (wanted, found)) in wanted.iter().zip(found).enumerate() {
        if wanted != found {
            return Err(format!("{what} {at} would have been\n  {wanted}\nand is\n  {found}"));
        }
    }
    match wanted.len() == found.len() {
        true => Ok(()),
        false => Err(format!("{} {what}s would have been, and {} are", wanted.len(), found.len())),
    }
}
