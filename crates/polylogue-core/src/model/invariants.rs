//! The rules that every request satisfies (invariant 9).

use std::collections::HashSet;

use super::Request;
use crate::{Entry, Part, ToolCall};

impl Request<'_> {
    /// Checks the rules for which providers reject histories.
    ///
    /// A request has entries; the first is not a system message, and the last is not the agent's own; no entry is
    /// empty; nothing contains notes, or thoughts without a seal; every tool call is answered right after the entry that makes it, in
    /// the order of the calls, and by nothing else; ids are unique. Roles can have any other order: where a provider
    /// needs another one, its encoder merges messages and adds texts between them.
    ///
    /// # Errors
    /// Returns the first entry that breaks a rule, and the rule.
    pub fn check(&self) -> Result<(), String> {
        let Some(last) = self.entries.last() else { return Err("the request has no entries".into()) };
        let mut awaited: Vec<&ToolCall> = Vec::new();
        let mut ids = HashSet::new();
        let before = std::iter::once(None).chain(self.entries.iter().map(Some));
        for (index, (entry, before)) in self.entries.iter().zip(before).enumerate() {
            check_order(before, entry).map_err(|rule| format!("entry {index} {rule}"))?;
            check_entry(entry, &mut awaited, &mut ids).map_err(|rule| format!("entry {index} {rule}"))?;
        }
        if let Some(call) = awaited.first() {
            return Err(format!("the call `{}` of `{}` is not answered", call.id, call.tool));
        }
        match last {
            Entry::Assistant { .. } => Err("the last entry is the agent's own words".into()),
            _ => Ok(()),
        }
    }
}

fn check_order(before: Option<&Entry>, entry: &Entry) -> Result<(), String> {
    match (before, entry) {
        (None, Entry::System { .. }) => Err("is a system text where the first words should be".into()),
        _ => Ok(()),
    }
}

fn check_entry<'a>(
    entry: &'a Entry,
    awaited: &mut Vec<&'a ToolCall>,
    ids: &mut HashSet<&'a str>,
) -> Result<(), String> {
    if let Entry::Tool { id, tool, .. } = entry {
        return match awaited.first() {
            Some(call) if call.id == *id && call.tool == *tool => {
                awaited.remove(0);
                Ok(())
            }
            Some(call) => Err(format!("answers `{id}` where `{}` is awaited", call.id)),
            None => Err(format!("answers `{id}`, which was not called")),
        };
    }
    if let Some(call) = awaited.first() {
        return Err(format!("stands before the answer to `{}`", call.id));
    }
    let own = matches!(entry, Entry::Assistant { .. });
    let parts = entry.parts();
    if parts.iter().all(Part::is_thought) {
        return Err("has no content".into());
    }
    for (at, part) in parts.iter().enumerate() {
        match part {
            Part::ToolResult(_) => return Err("holds the outcome of a call as a part".into()),
            Part::ToolCall(_) if !own => return Err("calls a tool, but is not the agent's own".into()),
            Part::ToolCall(call) if !ids.insert(&call.id) => {
                return Err(format!("uses the id `{}` again", call.id));
            }
            Part::ToolCall(call) => awaited.push(call),
            Part::Thought(_) if is_sealed(entry, at) => {}
            Part::Thought(_) => return Err("holds a thought".into()),
            Part::Note(_) | Part::Cut(_) => return Err("holds a note for programs".into()),
            part if part.is_blank() => return Err("has an empty text".into()),
            _ => {}
        }
    }
    Ok(())
}

/// Whether the part of `entry` at `index` has a seal.
fn is_sealed(entry: &Entry, index: usize) -> bool {
    let Entry::Assistant { parts, verbatim: Some(verbatim) } = entry else { return false };
    parts.get(index).is_some_and(|part| verbatim.seal(index, part).is_some())
}
