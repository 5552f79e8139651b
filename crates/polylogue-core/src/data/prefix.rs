//! What keeps a provider's prompt cache from being read: changes of what every request of an agent begins with.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::digest::RequestPrefix;
use super::history_summary::CallPurpose;
use super::name::Name;
use super::path::Path;
use super::reply::ModelReply;
use super::usage::Usage;

/// The reason why the prompt cache of an agent's last request could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PrefixChange {
    /// The system message is another one.
    System,
    /// The tools are others.
    Tools,
}

impl fmt::Display for PrefixChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::System => {
                "the system message changed between two calls, so the prompt cache was not read: keep dates, times and \
                 counters out of it"
            }
            Self::Tools => {
                "the tools changed between two calls, so the prompt cache was not read: offer the same tools in each call"
            }
        })
    }
}

/// Finds the changes that kept prompt caches from being read, from the replies of a log in order.
///
/// Each cause is found once for each agent. A shorter history is none: windows cut it on purpose.
#[derive(Debug, Clone, Default)]
pub struct PrefixChanges {
    /// The last request of each agent: its model, its beginning, and the tokens that the cache then had of it.
    last: HashMap<(Path, Name), (Arc<str>, RequestPrefix, u64)>,
    found: BTreeSet<(Name, PrefixChange)>,
}

impl PrefixChanges {
    /// Returns the cause if the prompt cache was not read for `reply`, the next one, though the request before had filled it.
    pub fn cause(&self, at: &Path, reply: &ModelReply) -> Option<PrefixChange> {
        let prefix = reply.prefix.filter(|_| !reply.cached)?;
        let (model, before, had) = self.last.get(&(at.clone(), reply.who.clone()))?;
        let change = if before.system != prefix.system {
            PrefixChange::System
        } else if before.tools != prefix.tools {
            PrefixChange::Tools
        } else {
            return None;
        };
        let is_missed = *model == reply.model && reply.usage.cached.unwrap_or(0) < *had;
        (is_missed && !self.found.contains(&(reply.who.clone(), change))).then_some(change)
    }

    /// Reads the next reply, and returns its [cause](Self::cause).
    pub fn read(&mut self, at: &Path, reply: &ModelReply) -> Option<PrefixChange> {
        if reply.purpose == CallPurpose::Compaction {
            return None;
        }
        let cause = self.cause(at, reply);
        self.found.extend(cause.map(|cause| (reply.who.clone(), cause)));
        let filled = in_cache(&reply.usage);
        let key = (at.clone(), reply.who.clone());
        match reply.prefix {
            Some(prefix) => drop(self.last.insert(key, (Arc::clone(&reply.model), prefix, filled))),
            None => drop(self.last.remove(&key)),
        }
        cause
    }

    /// Returns the changes found so far, with their agents.
    pub fn found(&self) -> impl Iterator<Item = (&Name, PrefixChange)> {
        self.found.iter().map(|(who, change)| (who, *change))
    }
}

/// The fewest tokens that the caches of providers keep that fill themselves and have many users; some begin at more.
const LEAST_KEPT: u64 = 1_024;

/// The tokens that the prompt cache has of a request after its reply, at least. Caches that fill themselves report nothing that they
/// write: half of a long request is what they have in any case, if it begins as the one before.
fn in_cache(usage: &Usage) -> u64 {
    let Usage { input, cached, written, .. } = *usage;
    let read = cached.unwrap_or(0);
    match (written, input) {
        (None, Some(input)) if input >= LEAST_KEPT => read.max(input / 2),
        (written, _) => read.saturating_add(written.unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digest;

    fn reply(model: &str, system: u8, tools: u8, cached: u64, written: Option<u64>) -> ModelReply {
        let prefix = Some(RequestPrefix { system: Digest([system; 16]), tools: Digest([tools; 16]) });
        let usage = Usage { input: Some(900), cached: Some(cached), written, ..Usage::default() };
        let reply = ModelReply::new(Name::new("Ann").unwrap(), model, Digest([0; 16]), Vec::new());
        ModelReply { prefix, usage, ..reply }
    }

    fn found(replies: &[ModelReply]) -> Vec<Option<PrefixChange>> {
        let mut changes = PrefixChanges::default();
        replies.iter().map(|reply| changes.read(&Path::root(), reply)).collect()
    }

    /// Such as a clock in the system message: the cache never has more than what is before it.
    #[test]
    fn a_change_in_every_call_is_found_where_no_writes_are_reported() {
        let long = |system, cached, input| {
            let reply = reply("m", system, 1, cached, None);
            ModelReply { usage: Usage { input: Some(input), ..reply.usage }, ..reply }
        };
        for cached in [0, 1_024] {
            let replies = [1, 2, 3].map(|minute| long(minute, cached, 30_000));
            assert_eq!(found(&replies), [None, Some(PrefixChange::System), None], "{cached}");
        }
        // What changed was after most of the request, or the request is too short to be kept.
        assert_eq!(found(&[long(1, 20_000, 30_000), long(2, 20_000, 30_000)]), [None, None]);
        assert_eq!(found(&[long(1, 0, 1_000), long(2, 0, 1_000)]), [None, None]);
    }

    #[test]
    fn a_cause_is_found_once_and_only_if_the_cache_had_something() {
        use PrefixChange::{System, Tools};
        let replies = [
            reply("m", 1, 1, 0, Some(800)),
            reply("m", 1, 1, 800, None),
            reply("m", 2, 1, 0, Some(800)),
            reply("m", 3, 1, 0, Some(800)),
            reply("m", 3, 2, 0, Some(800)),
        ];
        assert_eq!(found(&replies), [None, None, Some(System), None, Some(Tools)]);
        // Nothing was in the cache, or it was read all the same.
        assert_eq!(found(&[reply("m", 1, 1, 0, None), reply("m", 2, 1, 0, None)]), [None, None]);
        assert_eq!(found(&[reply("m", 1, 1, 500, None), reply("m", 2, 1, 500, None)]), [None, None]);
        // Another model has another cache, and a window cuts on purpose.
        assert_eq!(found(&[reply("m", 1, 1, 500, None), reply("n", 2, 1, 0, None)]), [None, None]);
        assert_eq!(found(&[reply("m", 1, 1, 500, None), reply("m", 1, 1, 0, None)]), [None, None]);
    }
}
