//! Paths: where a chat stands among those around it.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::name::{Name, is_label};

/// The path of a chat: empty for the outermost, `/critic.2` for the second turn of its participant `critic` that is a
/// chat itself, `/critic.2/judge.1` one level deeper. The second chat that one turn runs is `/critic.2.2`. The chat
/// in which an agent is called repeatedly has no number: `/blogger/writer` is where `blogger` calls its
/// `writer`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Path(Arc<str>);

impl Path {
    /// Returns the path of the outermost chat.
    pub fn root() -> Self {
        Self("".into())
    }

    /// Returns the path of the chat that `who` runs in its `turn`-th turn here, counted from 1.
    #[must_use]
    pub fn child(&self, who: &Name, turn: u64) -> Self {
        Self(format!("{}/{who}.{turn}", self.0).into())
    }

    /// Returns the path below this one at which the agent with this label is called: its chat continues with every call.
    /// `items.0` is the path `0` within `items`.
    ///
    /// # Errors
    /// When a part of the label between dots is empty, or has characters that a [`Name`] cannot have.
    pub fn agent(&self, label: &str) -> Result<Self, LabelError> {
        if !label.split('.').all(is_label) {
            return Err(LabelError(label.to_owned()));
        }
        Ok(Self(format!("{}/{}", self.0, label.replace('.', "/")).into()))
    }

    /// Returns the path of the background task `number` that `who` started here.
    #[must_use]
    pub fn background(&self, who: &Name, number: u64) -> Self {
        Self(format!("{}/{who}.b{number}", self.0).into())
    }

    /// Returns the agent and the number of the background task, started in the chat `outer`, that this path is that of or within.
    pub fn as_background_of(&self, outer: &Self) -> Option<(&str, u64)> {
        background_segment(self.segment_below(outer)?)
    }

    /// Its part that follows the path `outer`, if it is below that.
    fn segment_below(&self, outer: &Self) -> Option<&str> {
        self.0.strip_prefix(&*outer.0)?.strip_prefix('/')?.split('/').next()
    }

    /// Returns whether the path is that of a background task.
    pub fn is_background(&self) -> bool {
        self.0.rsplit('/').next().and_then(background_segment).is_some()
    }

    /// The `nth` chat, from 0, of those that one turn runs: this path is that of the first.
    #[must_use]
    pub(crate) fn sibling(&self, nth: u64) -> Self {
        if nth == 0 { self.clone() } else { Self(format!("{}.{}", self.0, nth + 1).into()) }
    }

    /// Whether it is the first, or only, chat of a turn, and not one in which an agent is called.
    pub(crate) fn is_first(&self) -> bool {
        let last = self.0.rsplit('/').next().unwrap_or_default();
        last.matches('.').count() == 1 && !self.is_background()
    }

    /// Whether it is within a turn of `who` in the chat `outer`, or within a chat there in which an agent is called. A background task
    /// is in no turn.
    pub(crate) fn is_of_turn(&self, outer: &Self, who: &Name) -> bool {
        self.segment_below(outer).is_some_and(|first| {
            background_segment(first).is_none()
                && first.split_once('.').is_none_or(|(name, _)| name == who.as_str())
        })
    }

    /// Whether it is within a chat that `who` runs in a turn in the chat `outer`, or in which it calls an agent there, or that of such a
    /// chat.
    pub(crate) fn is_run_by(&self, outer: &Self, who: &Name) -> bool {
        self.segment_below(outer).is_some_and(|first| {
            let is_own = outer.is_of_called() || first.split('.').next() == Some(who.as_str());
            is_own && background_segment(first).is_none()
        })
    }

    /// Whether it is that of a chat in which an agent is called. All turns in it are of that agent, and the agents that it calls have
    /// paths below without its name.
    fn is_of_called(&self) -> bool {
        !self.is_root() && (self.owner().is_none() || self.is_background())
    }

    /// Whether the agent `who` runs this chat in a turn, or is called in it by its own name.
    pub(crate) fn is_named(&self, who: &Name) -> bool {
        let last = self.0.rsplit('/').next().unwrap_or_default();
        last.split('.').next() == Some(who.as_str())
    }

    /// The participant that runs this chat in a turn; `None` for the outermost and for chats of called agents.
    pub(crate) fn owner(&self) -> Option<Name> {
        let last = self.0.rsplit('/').next().unwrap_or_default();
        Name::new(last.split_once('.')?.0).ok()
    }

    /// Whether it is that of a chat that is run from outside: the outermost, or one in which an agent is called without a chat around it.
    pub(crate) fn is_outermost(&self) -> bool {
        self.is_root() || self.depth() == 1 && !self.0.contains('.')
    }

    /// Returns whether the path is that of the outermost chat.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the path is below `outer`.
    pub fn is_within(&self, outer: &Self) -> bool {
        self.0.strip_prefix(&*outer.0).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Returns the nesting depth: 0 for the outermost.
    pub fn depth(&self) -> usize {
        self.0.matches('/').count()
    }

    /// Returns the chats around this one, nearest first, ending with the outermost.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> + '_ {
        let mut rest: &str = &self.0;
        std::iter::from_fn(move || {
            rest = &rest[..rest.rfind('/')?];
            Some(Self(rest.into()))
        })
    }

    /// Returns the path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The agent and the number in the part of a path for a background task.
fn background_segment(segment: &str) -> Option<(&str, u64)> {
    let (who, number) = segment.split_once(".b")?;
    Some((who, number.parse().ok()?))
}

impl Default for Path {
    fn default() -> Self {
        Self::root()
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// The error for a text that is not a valid label of a called agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the label `{0}` must be made of the characters of names, in parts between dots")]
pub struct LabelError(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_know_their_ancestors() {
        let path = Path::root().child(&Name::new("a").unwrap(), 1).child(&Name::new("b").unwrap(), 2);
        let around: Vec<_> = path.ancestors().map(|p| p.to_string()).collect();
        assert_eq!(around, ["/a.1", ""]);
        assert_eq!(path.depth(), 2);
        assert_eq!(Path::root().ancestors().count(), 0);
    }

    #[test]
    fn paths_of_background_tasks_differ_from_those_of_turns() {
        let ann = Name::new("ann").unwrap();
        let task = Path::root().background(&ann, 2);
        assert_eq!(task.as_str(), "/ann.b2");
        assert!(task.is_background() && !task.is_first() && !task.is_of_turn(&Path::root(), &ann));
        let within = task.child(&Name::new("b").unwrap(), 1);
        assert_eq!(within.as_background_of(&Path::root()), Some(("ann", 2)));
        assert_eq!((within.as_background_of(&task), within.is_background()), (None, false));
        assert!(!Path::root().child(&ann, 2).is_background() && Path::root().child(&ann, 2).is_first());
    }

    #[test]
    fn chats_that_are_run_from_outside_are_the_root_and_those_of_agents_next_to_it() {
        let (root, ann) = (Path::root(), Name::new("ann").unwrap());
        let [solo, called] = ["solo", "ann.helper"].map(|label| root.agent(label).unwrap());
        for (path, is_outermost) in [
            (&root, true),
            (&solo, true),
            (&called, false),
            (&root.child(&ann, 1), false),
            (&root.background(&ann, 1), false),
            (&solo.agent("helper").unwrap(), false),
        ] {
            assert_eq!(path.is_outermost(), is_outermost, "{path}");
        }
    }

    #[test]
    fn chats_of_turns_are_those_of_the_agent_that_runs_them() {
        let [ann, bob] = ["ann", "bob"].map(|name| Name::new(name).unwrap());
        let root = Path::root();
        let desk = root.child(&ann, 1);
        let [called, other] = ["ann.helper", "bob.helper"].map(|label| root.agent(label).unwrap());
        let task = root.background(&ann, 1);
        for (outer, path, by_ann) in [
            (&root, desk.clone(), true),
            (&root, desk.sibling(1), true),
            (&root, desk.child(&bob, 1), true),
            (&root, called.clone(), true),
            (&root, called.child(&bob, 1), true),
            (&root, other, false),
            (&root, task.clone(), false),
            (&root, root.child(&bob, 1), false),
            (&root, root.clone(), false),
            (&desk, desk.agent("bob.helper").unwrap(), false),
            // Only the agent that is called has turns there.
            (&called, called.agent("reader").unwrap(), true),
            (&called, called.background(&ann, 1), false),
            (&task, task.agent("reader").unwrap(), true),
            (&called, called.clone(), false),
        ] {
            assert_eq!(path.is_run_by(outer, &ann), by_ann, "{path} in `{outer}`");
        }
    }
}
