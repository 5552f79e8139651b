//! Chats in the order of what they need: each begins when those it waits for are finished.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use polylogue_core::{Error, Name, Policy, Result, Step, StopReason, Transcript, TurnRequest};

/// The order of chats of which some need what comes of others: a policy, for a chat whose members are chats.
///
/// Whatever can begin does, at the same time: first every member that waits for none, then every member whose
/// prerequisites are finished, and so on. What begins together is waited for together, so that what the chats after it read
/// does not depend on who was faster: the slowest chat of a wave holds up the next wave. A member that is not listed waits
/// for none.
///
/// # A report that needs two other chats
/// ```
/// # fn example(writer: polylogue::ChatBuilder, facts: polylogue::Chat, prices: polylogue::Chat) -> polylogue::Result<()> {
/// use polylogue::Chat;
/// use polylogue::carry::Carry;
/// use polylogue::prerequisites::Prerequisites;
///
/// let order = Prerequisites::new([
///     ("facts", vec![]),
///     ("prices", vec![]),
///     ("report", vec!["facts", "prices"]),
/// ])?;
/// // `writer` is named `report`, and begins with what came of `facts` and `prices`.
/// let report = Carry::message("Write the report.").along(&order).begins(writer).build()?;
/// let work = Chat::named("work").with(facts).with(prices).with(report).policy(order).build()?;
/// # let _ = work;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Dag(Arc<BTreeMap<Name, Vec<Name>>>);

impl Dag {
    /// The order of `chats`, each with the chats that have to be finished before it.
    ///
    /// # Errors
    /// When a name is illegal, a chat is listed twice, a prerequisite is not listed, or chats wait for each other.
    pub fn new<N: AsRef<str>>(chats: impl IntoIterator<Item = (N, Vec<N>)>) -> Result<Self> {
        let mut needs: BTreeMap<Name, Vec<Name>> = BTreeMap::new();
        for (chat, before) in chats {
            let chat = Name::new(chat)?;
            let before = before.iter().map(Name::new).collect::<Result<Vec<_>, _>>()?;
            if needs.insert(chat.clone(), before).is_some() {
                return Err(Error::Config(format!("the chat `{chat}` is listed twice")));
            }
        }
        for (chat, before) in &needs {
            if let Some(unknown) = before.iter().find(|name| !needs.contains_key(*name)) {
                let known: Vec<String> = needs.keys().map(|name| format!("`{name}`")).collect();
                let known = known.join(", ");
                return Err(Error::Config(format!(
                    "`{chat}` waits for `{unknown}`, which is not listed; the chats are {known}"
                )));
            }
        }
        match circle(&needs) {
            None => Ok(Self(Arc::new(needs))),
            Some(circle) => {
                let names: Vec<String> = circle.iter().map(|name| format!("`{name}`")).collect();
                Err(Error::Config(format!("chats wait for each other: {}", names.join(" waits for "))))
            }
        }
    }

    /// What `chat` waits for.
    #[must_use]
    pub fn of(&self, chat: &Name) -> &[Name] {
        self.0.get(chat).map_or(&[], Vec::as_slice)
    }
}

/// Chats each of which waits for the next, the last of them being the first again, if there are such.
fn circle(needs: &BTreeMap<Name, Vec<Name>>) -> Option<Vec<&Name>> {
    let mut done: BTreeSet<&Name> = BTreeSet::new();
    loop {
        let ready = |(chat, before): &(&Name, &Vec<Name>)| {
            !done.contains(chat) && before.iter().all(|name| done.contains(name))
        };
        let wave: Vec<&Name> = needs.iter().filter(ready).map(|(chat, _)| chat).collect();
        if wave.is_empty() {
            break;
        }
        done.extend(wave);
    }
    // Each of those left waits for another of those left: following them leads into a circle.
    let mut way: Vec<&Name> = vec![needs.keys().find(|name| !done.contains(name))?];
    loop {
        let last = *way.last()?;
        let next = needs.get(last)?.iter().find(|name| !done.contains(name))?;
        let seen = way.iter().position(|name| *name == next);
        way.push(next);
        if let Some(start) = seen {
            return Some(way.split_off(start));
        }
    }
}

impl Policy for Dag {
    fn next(&self, chat: &Transcript) -> Step {
        if let Some(stranger) = self.0.keys().find(|name| !chat.participants().contains(name)) {
            return Step::Fail(format!("has `{stranger}` in its order, who is no member").into());
        }
        // Whoever left will not come to an end any more.
        let done = |name: &Name| chat.turns_of(name) > 0 || !chat.present().any(|here| here == name);
        let due = chat.present().filter(|name| chat.turns_of(name) == 0 && self.of(name).iter().all(done));
        let mut cues: Vec<TurnRequest> = due.cloned().map(TurnRequest::to_all).collect();
        match (cues.len(), cues.pop()) {
            (1, Some(cue)) => Step::Turn(cue),
            (_, Some(cue)) => {
                cues.push(cue);
                Step::Parallel(cues)
            }
            (_, None) => Step::close(StopReason::Finished, chat),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(chats: &[(&str, &[&str])]) -> String {
        Dag::new(chats.iter().map(|(chat, before)| (*chat, before.to_vec()))).unwrap_err().to_string()
    }

    #[test]
    fn an_order_that_cannot_be_is_refused() {
        assert_eq!(
            refused(&[("a", &["b"]), ("b", &["a"]), ("c", &[])]),
            "chats wait for each other: `a` waits for `b` waits for `a`"
        );
        assert_eq!(refused(&[("a", &["a"])]), "chats wait for each other: `a` waits for `a`");
        assert_eq!(
            refused(&[("a", &[]), ("b", &["z"])]),
            "`b` waits for `z`, which is not listed; the chats are `a`, `b`"
        );
        assert_eq!(refused(&[("a", &[]), ("a", &[])]), "the chat `a` is listed twice");
        assert_eq!(refused(&[("", &[])]), "the name `` is empty");
    }

    #[test]
    fn a_circle_is_named_without_those_who_only_wait_for_it() {
        let circle = refused(&[("a", &["b"]), ("b", &["c"]), ("c", &["d"]), ("d", &["b"])]);
        assert_eq!(circle, "chats wait for each other: `b` waits for `c` waits for `d` waits for `b`");
    }

    #[test]
    fn a_long_chain_is_no_circle() {
        let name = |n: usize| format!("c{n}");
        let chain = (0..300).map(|n| (name(n), if n == 0 { vec![] } else { vec![name(n - 1)] }));
        assert!(Dag::new(chain).is_ok());
    }
}
