//! Joins a reply with the rest of it that another response has.

use std::sync::Arc;

use polylogue_core::{Part, RawArguments, Reply, Seal, Seals, Verbatim};

use crate::wire::protocol::Protocol;

/// `reply` with its `rest`, which begins where `reply` stopped: perhaps within a text, which becomes one.
pub(super) fn joined<P: Protocol>(reply: Reply, rest: Reply) -> Reply {
    let Reply { mut parts, verbatim, usage, .. } = reply;
    let (one, other) = (verbatim.unwrap_or_default(), rest.verbatim.clone().unwrap_or_default());
    let mut later = rest.parts.iter();
    let joint = parts.last().zip(later.as_slice().first()).and_then(|(last, first)| joint(last, first));
    let sealed = joint.as_ref().and_then(|joint| {
        let (last, first) = (parts.last()?, later.as_slice().first()?);
        let seals = (one.seal(parts.len() - 1, last), other.seal(0, first));
        P::joint_seal(seals.0, length(last), seals.1).map(|data| Seal::new(parts.len() - 1, joint, data))
    });
    let is_split = joint.is_some();
    if let (Some(joint), Some(last), Some(_)) = (joint, parts.last_mut(), later.next()) {
        *last = joint;
    }
    let begins = parts.len() - usize::from(is_split);
    parts.extend(later.cloned());
    let verbatim = both(&one, &other, begins, is_split, sealed).some().map(Arc::new);
    Reply { parts, usage: usage.and(rest.usage), verbatim, ..rest }
}

/// Two pieces of one text or one thought.
fn joint(last: &Part, first: &Part) -> Option<Part> {
    match (last, first) {
        (Part::Text(last), Part::Text(first)) => Some(Part::text(format!("{last}{first}"))),
        (Part::Thought(last), Part::Thought(first)) => Some(Part::Thought(format!("{last}{first}").into())),
        _ => None,
    }
}

fn length(part: &Part) -> usize {
    match part {
        Part::Text(text) | Part::Thought(text) => text.len(),
        _ => 0,
    }
}

/// What both replies have verbatim, the second of which begins with the part at `begins`. `sealed` is the seal of the part
/// that both have a piece of, if they do.
fn both(one: &Verbatim, other: &Verbatim, begins: usize, is_split: bool, sealed: Option<Seal>) -> Verbatim {
    let arguments = other.arguments.iter().map(|raw| RawArguments { part: raw.part + begins, ..raw.clone() });
    let arguments = one.arguments.iter().cloned().chain(arguments).collect();
    let of = |verbatim: &Verbatim, from: usize| -> Vec<Seal> {
        let seals = verbatim.seals.iter().flat_map(|seals| &seals.parts);
        let moved = seals.cloned().map(|mut seal| {
            seal.part += from;
            seal
        });
        moved.filter(|seal| !is_split || seal.part != begins).collect()
    };
    // Both were sent after the same.
    let seals = one.seals.as_ref().or(other.seals.as_ref()).map(|seals| Seals {
        parts: [of(one, 0), sealed.into_iter().collect(), of(other, begins)].concat(),
        ..seals.clone()
    });
    Verbatim { arguments, seals, dropped_seals: one.dropped_seals.or(other.dropped_seals) }
}
