//! A DAG of chats: each starts when its dependencies are finished.

use std::sync::Arc;

use polylogue_core::{Error, Name, PatternError, Policy, Result, Step, Transcript, TurnRequest, UnknownName};

use super::graph::{self, Graph, Link};
use crate::stop::LibraryStopReason;

/// Runs chats by their dependencies: a policy for a chat whose participants are chats.
///
/// All chats without open dependencies run at the same time: first those without dependencies, then those whose
/// dependencies are finished, and so on. Chats that start together form a wave and are awaited together, so that the
/// input of later chats does not depend on timing; the slowest chat of a wave delays the next one. A participant that
/// is not listed has no dependencies.
///
/// # A report that needs two other chats
/// ```
/// # fn example(writer: polylogue::kernel::chat::ChatBuilder, facts: polylogue::Chat, prices: polylogue::Chat) -> polylogue::Result<()> {
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
/// let report = Carryover::message("Write the report.").dependencies_of(&order).apply_to(writer).build()?;
/// let work = Chat::builder("work").participant(facts).participant(prices).participant(report).policy(order).build()?;
/// # let _ = work;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Dag(Arc<Graph>);

impl Dag {
    /// Creates the DAG of `chats`, each with its dependencies.
    ///
    /// # Errors
    /// When a name is illegal, a chat is listed twice, a dependency is not listed, or dependencies form a cycle.
    pub fn new<N: AsRef<str>>(chats: impl IntoIterator<Item = (N, Vec<N>)>) -> Result<Self> {
        let (mut nodes, mut needs) = (Vec::new(), Vec::new());
        for (chat, before) in chats {
            let chat = Name::new(chat)?;
            if nodes.contains(&chat) {
                return Err(PatternError::ListedTwice { kind: "chat", name: chat.to_string() }.into());
            }
            nodes.push(chat);
            needs.push(before);
        }
        let mut links = Vec::new();
        for (to, before) in needs.iter().enumerate() {
            for name in before.iter().map(AsRef::as_ref) {
                let from = nodes.iter().position(|node| node.as_str() == name);
                let from = from.ok_or_else(|| unknown(name, nodes.get(to), &nodes))?;
                links.push(Link::new(from, to));
            }
        }
        let before = |chat: usize| links.iter().filter(move |link| link.to == chat).map(|link| link.from);
        match graph::cycle(nodes.len(), before) {
            None => Ok(Self(Arc::new(Graph::of_dependencies(nodes, links)))),
            Some(cycle) => {
                let chats = cycle.into_iter().filter_map(|chat| nodes.get(chat)).cloned().collect();
                Err(PatternError::Cycle { chats }.into())
            }
        }
    }

    /// Returns the dependencies of `chat`.
    pub fn of(&self, chat: &Name) -> Vec<Name> {
        self.0.sources(chat)
    }
}

fn unknown(name: &str, chat: Option<&Name>, nodes: &[Name]) -> Error {
    let place = format!("in the dependencies of `{}`", chat.map_or("", Name::as_str));
    UnknownName::new("chat", name).within(place).known(nodes).into()
}

impl Policy for Dag {
    fn next(&self, chat: &Transcript) -> Step {
        let (listed, participants) = (self.0.nodes(), chat.participants());
        if let Some(unknown) = listed.iter().find(|name| !participants.contains(name)) {
            return Step::Fail(format!("has `{unknown}` in its order, who is not a participant").into());
        }
        let free = chat.present().filter(|name| !listed.contains(name) && chat.turns_of(name) == 0);
        let free = free.cloned().map(TurnRequest::to_all);
        let mut turns: Vec<_> =
            graph::ready(&self.0, chat).unwrap_or_default().into_iter().chain(free).collect();
        turns.sort_by_key(|turn| participants.iter().position(|name| *name == turn.who));
        Step::turns(turns).unwrap_or_else(|| LibraryStopReason::DagComplete.close(chat))
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
            "chats depend on each other: a -> b -> a"
        );
        assert_eq!(refused(&[("a", &["a"])]), "chats depend on each other: a -> a");
        assert_eq!(refused(&[("a", &[]), ("b", &["z"])]), "unknown chat `z` in the dependencies of `b`");
        assert_eq!(refused(&[("a", &[]), ("a", &[])]), "the chat `a` is listed twice");
        assert_eq!(refused(&[("", &[])]), "the name `` is empty");
    }

    #[test]
    fn a_cycle_is_named_without_chats_that_only_wait_for_it() {
        let cycle = refused(&[("a", &["b"]), ("b", &["c"]), ("c", &["d"]), ("d", &["b"])]);
        assert_eq!(cycle, "chats depend on each other: b -> c -> d -> b");
    }

    #[test]
    fn a_long_chain_is_no_cycle() {
        let name = |n: usize| format!("c{n}");
        let chain = (0..300).map(|n| (name(n), if n == 0 { vec![] } else { vec![name(n - 1)] }));
        assert!(Dag::new(chain).is_ok());
    }
}
