//! A DAG of chats: each starts when its dependencies are finished.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use polylogue_core::{Error, Name, Policy, Result, Step, StopReason, Transcript, TurnRequest};

/// Runs chats by their dependencies: a policy for a chat whose participants are chats.
///
/// All chats without open dependencies run at the same time: first those without dependencies, then those whose
/// dependencies are finished, and so on. Chats that start together form a wave and are awaited together, so that the
/// input of later chats does not depend on timing; the slowest chat of a wave delays the next one. A participant that
/// is not listed has no dependencies.
///
/// # A report that needs two other chats
/// ```
/// # fn example(writer: polylogue::kernel::ChatBuilder, facts: polylogue::Chat, prices: polylogue::Chat) -> polylogue::Result<()> {
/// use polylogue::Chat;
/// use polylogue::policies::carryover::Carryover;
/// use polylogue::policies::dag::Dag;
///
/// let order = Dag::new([
///     ("facts", vec![]),
///     ("prices", vec![]),
///     ("report", vec!["facts", "prices"]),
/// ])?;
/// // `writer` is named `report`, and starts with the results of `facts` and `prices`.
/// let report = Carryover::message("Write the report.").dependencies_of(&order).begin(writer).build()?;
/// let work = Chat::named("work").participant(facts).participant(prices).participant(report).policy(order).build()?;
/// # let _ = work;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Dag(Arc<BTreeMap<Name, Vec<Name>>>);

impl Dag {
    /// The DAG of `chats`, each with its dependencies.
    ///
    /// # Errors
    /// When a name is illegal, a chat is listed twice, a dependency is not listed, or dependencies form a cycle.
    pub fn new<N: AsRef<str>>(chats: impl IntoIterator<Item = (N, Vec<N>)>) -> Result<Self> {
        let mut needs: BTreeMap<Name, Vec<Name>> = BTreeMap::new();
        for (chat, before) in chats {
            let chat = Name::new(chat)?;
            let before = before.iter().map(Name::new).collect::<Result<Vec<_>, _>>()?;
            if needs.insert(chat.clone(), before).is_some() {
                return Err(Error::config(format!("the chat `{chat}` is listed twice")));
            }
        }
        for (chat, before) in &needs {
            if let Some(unknown) = before.iter().find(|name| !needs.contains_key(*name)) {
                let known: Vec<String> = needs.keys().map(|name| format!("`{name}`")).collect();
                let known = known.join(", ");
                return Err(Error::config(format!(
                    "`{chat}` waits for `{unknown}`, which is not listed; the chats are {known}"
                )));
            }
        }
        match circle(&needs) {
            None => Ok(Self(Arc::new(needs))),
            Some(circle) => {
                let names: Vec<String> = circle.iter().map(|name| format!("`{name}`")).collect();
                Err(Error::config(format!("chats wait for each other: {}", names.join(" waits for "))))
            }
        }
    }

    /// The dependencies of `chat`.
    #[must_use]
    pub fn of(&self, chat: &Name) -> &[Name] {
        self.0.get(chat).map_or(&[], Vec::as_slice)
    }
}

/// A cycle of dependencies, if there is one.
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
    // Each remaining chat waits for another remaining one: following them leads into a cycle.
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
        // A chat that left will not finish.
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
