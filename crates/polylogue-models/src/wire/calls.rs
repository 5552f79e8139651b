//! Assembles tool calls from streamed pieces.

use std::sync::Arc;

use polylogue_core::{DeltaRef, Entry, Part, Request, ToolCall};
use serde_json::Value;

/// A piece of a call, or a whole call. Missing fields are empty.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Piece<'a> {
    /// The index the server gave.
    pub(crate) index: Option<u64>,
    pub(crate) id: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) args: &'a str,
    /// Whether it is a complete call.
    pub(crate) whole: bool,
}

/// Maximum number of calls in one reply. More indicate a runaway model or a broken server.
const MAX_CALLS: usize = 1024;

/// Ids shorter than this (`0`, `call_1`) are numbers that restart with every reply of the server.
const MIN_ID: usize = 9;

/// The calls of a reply so far.
#[derive(Debug, Default)]
pub(crate) struct Calls(Vec<Draft>);

/// A finished call.
pub(crate) struct Finished {
    pub(crate) call: ToolCall,
    /// Its arguments as the model wrote them, if that is not their JSON.
    pub(crate) raw: Option<Arc<str>>,
}

#[derive(Debug, Default)]
struct Draft {
    /// The index the server gave, which may have gaps or be missing.
    index: Option<u64>,
    id: String,
    tool: String,
    args: String,
}

/// What a fragment adds, as a delta.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Added {
    /// Which call, counted from 0 in the order they began.
    pub(crate) index: usize,
    /// Whether its tool's name became known just now.
    pub(crate) named: bool,
}

impl Calls {
    pub(crate) fn is_empty(&self) -> bool {
        !self.0.iter().any(Draft::is_call)
    }

    /// The name of a call's tool, as far as it has arrived.
    pub(crate) fn tool(&self, index: usize) -> &str {
        self.0.get(index).map_or("", |draft| &draft.tool)
    }

    /// All calls so far, each as one piece.
    pub(crate) fn deltas(&self) -> impl Iterator<Item = DeltaRef<'_>> {
        let drafts = self.0.iter().enumerate();
        drafts.map(|(index, draft)| DeltaRef::Call { index, tool: Some(&draft.tool), args: &draft.args })
    }

    /// Adds a piece to the call it belongs to. Returns `None` when there are too many calls.
    pub(crate) fn add(&mut self, piece: &Piece<'_>) -> Option<Added> {
        let index = match self.position(piece) {
            Some(index) => index,
            None if self.0.len() < MAX_CALLS => {
                self.0.push(Draft { index: piece.index, ..Draft::default() });
                self.0.len() - 1
            }
            None => return None,
        };
        let draft = self.0.get_mut(index)?;
        let named = draft.tool.is_empty() && !piece.tool.is_empty();
        if named {
            piece.tool.clone_into(&mut draft.tool);
        }
        if draft.id.is_empty() {
            piece.id.clone_into(&mut draft.id);
        }
        draft.args.push_str(piece.args);
        Some(Added { index, named })
    }

    /// The call that a piece continues, or `None` when it begins one.
    fn position(&self, piece: &Piece<'_>) -> Option<usize> {
        let at = match piece.index {
            _ if piece.whole => None,
            Some(_) => self.0.iter().rposition(|draft| draft.index == piece.index),
            None if piece.id.is_empty() => self.0.len().checked_sub(1),
            None => self.0.iter().rposition(|draft| draft.id == piece.id),
        }?;
        self.0.get(at).filter(|draft| !draft.is_other_than(piece)).map(|_| at)
    }

    /// The calls, with ids that are unique in the conversation of `request`'s agent; `None` for one that is empty.
    pub(crate) fn finish(self, request: &Request<'_>) -> Vec<Option<Finished>> {
        let mut taken: Vec<String> = Vec::new();
        let mut index = 0;
        let finished = |draft: Draft| {
            let id = unique_id(draft.id, index, request, &taken);
            (index, _) = (index + 1, taken.push(id.clone()));
            let (args, raw) = arguments(draft.args);
            Finished { call: ToolCall { id, tool: draft.tool, args }, raw }
        };
        let mut finished = finished;
        self.0.into_iter().map(|draft| draft.is_call().then(|| finished(draft))).collect()
    }
}

impl Draft {
    /// Whether it has any content. A call without a tool name counts: the model receives the error that there is no such tool.
    fn is_call(&self) -> bool {
        !self.tool.is_empty() || !self.args.is_empty()
    }

    /// Whether a piece that seems to continue this call begins another: some servers give every call the same index, or none, or the
    /// same id, and repeat the name with every piece or only with the first.
    fn is_other_than(&self, piece: &Piece<'_>) -> bool {
        let is_same_id = !piece.id.is_empty() && self.id == piece.id;
        let have_ids = !piece.id.is_empty() && !self.id.is_empty();
        // An id is that of several calls only where nothing else could tell them apart.
        if have_ids && (!is_same_id || self.index.is_some()) {
            return !is_same_id;
        }
        if piece.tool.is_empty() || self.tool.is_empty() {
            return false;
        }
        // With an index or an id, a name alone is a repetition rather than a new call.
        let begins_again = match piece.args.is_empty() {
            true => self.index.is_none() && !is_same_id,
            false => piece.args.trim_start().starts_with('{'),
        };
        self.tool != piece.tool || (begins_again && is_whole(&self.args))
    }
}

fn is_whole(args: &str) -> bool {
    args.trim_end().ends_with('}') && serde_json::from_str::<serde::de::IgnoredAny>(args).is_ok()
}

/// The model's text as an object, with the text if that is another one than the object's; else the text unchanged.
fn arguments(text: String) -> (Value, Option<Arc<str>>) {
    // Gateways send the empty object of Anthropic's first event before the pieces.
    let text = match text.strip_prefix("{}") {
        Some(rest) if rest.trim_start().starts_with('{') => rest.to_owned(),
        _ => text,
    };
    if text.trim().is_empty() {
        return (Value::Object(serde_json::Map::new()), None);
    }
    match serde_json::from_str(&text) {
        Ok(Value::Object(args)) => {
            let args = Value::Object(args);
            let json = args.to_string();
            let raw = (json != text).then(|| text.into());
            (args, raw)
        }
        _ => (Value::String(text), None),
    }
}

fn unique_id(given: String, index: usize, request: &Request<'_>, taken: &[String]) -> String {
    let free = |id: &str| !taken.iter().any(|other| other == id) && !is_used(request.entries, id);
    if given.len() >= MIN_ID && free(&given) {
        return given;
    }
    let own = own_id(request, index);
    let numbered = (2_u32..).map(|n| format!("{own}_{n}"));
    std::iter::once(own.clone()).chain(numbered).find(|id| free(id)).unwrap_or(own)
}

/// An id that is unique in the conversation: from the agent, its model call and the index. Names keep only legal characters.
fn own_id(request: &Request<'_>, index: usize) -> String {
    let legal = |c: &char| c.is_ascii_alphanumeric();
    let who: String = request.origin.who.as_str().chars().filter(legal).take(16).collect();
    format!("call_{who}_{}_{index}", request.origin.nth)
}

fn is_used(entries: &[Entry], id: &str) -> bool {
    let calls = |entry: &Entry| {
        entry.parts().iter().any(|part| matches!(part, Part::ToolCall(call) if call.id == id))
    };
    entries.iter().rev().filter(|entry| matches!(entry, Entry::Assistant { .. })).any(calls)
}
