//! `/api/v1/compare`: two conversations side by side.

use axum::http::StatusCode;
use polylogue_core::{Body, Event, Message, Name, Store as _};
use polylogue_wire::Scope;
use polylogue_wire::compare::{ComparedMessage, Comparison, Pair};
use serde_json::{Map, Value, json};

use crate::call::{Call, Reply, json_reply};
use crate::conversation::{describe, find};
use crate::problem::Problem;
use crate::route::Route;

/// The most pairs of messages that are returned.
const PAIRS: usize = 1000;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/compare", Scope::Read, compare)
            .about("Compare two conversations")
            .query(&["a", "b"]),
    ]
}

async fn compare(call: Call) -> Reply {
    let token = call.token()?;
    let tenant = call.app.tenant(token)?;
    let id = |name: &str| {
        let missing = || Problem::bad_request(format!("the query has no `{name}`"));
        call.query(name).ok_or_else(|| missing().hint("`a` and `b` are the ids of two conversations"))
    };
    let (a, b) = (find(&tenant, token, id("a")?).await?, find(&tenant, token, id("b")?).await?);
    let store = tenant.runtime.store();
    let (of_a, of_b) = (store.read(&a.id, 0).await?, store.read(&b.id, 0).await?);
    let common = common(&of_a, &of_b);
    let (messages, has_more) = pairs(rest(&of_a, common), rest(&of_b, common));
    let usage = |usage: &polylogue_core::TotalUsage| {
        polylogue_wire::usage::known(usage).map_err(|error| Problem::internal(error.to_string()))
    };
    let mut difference_of = differences(&usage(&a.summary.usage)?, &usage(&b.summary.usage)?);
    difference_of.insert("turns".into(), difference(&json!(a.summary.turns), &json!(b.summary.turns)));
    let (a, b) = (describe(&tenant, &a).await?, describe(&tenant, &b).await?);
    let body = Comparison { a, b, common, messages, has_more, difference: difference_of };
    json_reply(StatusCode::OK, &body)
}

/// The number of events with which both begin. Times do not count.
fn common(a: &[Event], b: &[Event]) -> usize {
    let is_same = |(a, b): &(&Event, &Event)| a.chat == b.chat && a.body == b.body;
    a.iter().zip(b).take_while(is_same).count()
}

fn rest(events: &[Event], from: usize) -> Vec<ComparedMessage> {
    events.iter().skip(from).filter_map(said).collect()
}

/// What an event adds to the conversation; `None` if that is no message.
fn said(event: &Event) -> Option<ComparedMessage> {
    let message = |who: &Name, text: &str, private| {
        let (at, who, text) = (event.chat.clone(), who.clone(), text.to_owned());
        ComparedMessage { seq: event.seq, chat: at, who, text, private }
    };
    let written =
        |written: &Message| Some(message(&written.from, &written.to_text(), written.to.is_private()));
    match &event.body {
        Body::Message(said) | Body::Posted(said) | Body::Sent(said) => written(said),
        Body::Reopened { message: Some(said), .. } => written(said),
        Body::InputProvided { to, text, .. } => Some(message(to, text, false)),
        _ => None,
    }
}

/// The messages next to each other, and whether there are more.
fn pairs(a: Vec<ComparedMessage>, b: Vec<ComparedMessage>) -> (Vec<Pair>, bool) {
    let longest = a.len().max(b.len());
    let (mut a, mut b) = (a.into_iter(), b.into_iter());
    let pairs = (0..longest.min(PAIRS)).map(|_| Pair { a: a.next(), b: b.next() }).collect();
    (pairs, longest > PAIRS)
}

/// How much more `b` used than `a`, for each number of either.
fn differences(a: &Value, b: &Value) -> Map<String, Value> {
    let names = [a, b].into_iter().filter_map(Value::as_object).flat_map(Map::keys);
    let zero = json!(0);
    let pair = |name: &String| (a.get(name).unwrap_or(&zero).clone(), b.get(name).unwrap_or(&zero).clone());
    let numbers = names.map(|name| (name.clone(), pair(name)));
    let numbers = numbers.filter(|(_, (a, b))| a.is_number() && b.is_number());
    numbers.map(|(name, (a, b))| (name, difference(&a, &b))).collect()
}

fn difference(a: &Value, b: &Value) -> Value {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => json!(b.saturating_sub(a)),
        _ => json!(b.as_f64().unwrap_or_default() - a.as_f64().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use polylogue_core::Path;

    use super::*;

    #[test]
    fn a_number_that_only_one_has_is_compared_with_zero() {
        let of =
            differences(&json!({"input": 5, "cost": 0.5}), &json!({"input": 3, "output": 2, "saved": {}}));
        assert_eq!(Value::from(of), json!({"input": -2, "cost": -0.5, "output": 2}));
    }

    #[test]
    fn the_shorter_side_ends_with_null() {
        let said = |seq| ComparedMessage {
            seq,
            chat: Path::root(),
            who: Name::user(),
            text: String::new(),
            private: false,
        };
        let (of, has_more) = pairs(vec![said(1)], vec![said(2), said(3)]);
        let both = Pair { a: Some(said(1)), b: Some(said(2)) };
        assert_eq!((of, has_more), (vec![both, Pair { a: None, b: Some(said(3)) }], false));
        assert!(pairs(vec![said(1); PAIRS + 1], Vec::new()).1);
    }
}
