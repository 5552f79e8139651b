//! What one agent remembers of a chat, as messages.

use polylogue_core::{
    Body, CallPurpose, Event, ExecutedCall, HistoryEntry, Message, ModelReply, Name, Part, ToolCall,
    ToolResult, Transcript,
};

/// Returns what `who` remembers of `chat`, in order: messages of others that it saw, its prompts, its own messages, and its
/// tool calls with their results. Replayed in the same order, they make the same view.
pub fn remembered(chat: &Transcript, who: &Name) -> Vec<Message> {
    let mut memory = Memory {
        who,
        messages: Vec::new(),
        begun: 0,
        draft: None,
        is_unparsed: false,
        calls: Vec::new(),
        words: None,
    };
    chat.events().iter().for_each(|event| memory.take_in(event));
    memory.messages
}

struct Memory<'a> {
    who: &'a Name,
    messages: Vec<Message>,
    /// Index of the first message of the turn.
    begun: usize,
    /// A reply of its model that becomes a message only if the turn continues.
    draft: Option<Vec<Part>>,
    /// Whether its provider could not parse that reply.
    is_unparsed: bool,
    /// Open calls, with results that arrived early.
    calls: Vec<(ToolCall, Option<ToolResult>)>,
    words: Option<Vec<HistoryEntry>>,
}

impl Memory<'_> {
    fn take_in(&mut self, event: &Event) {
        let me = |who: &Name| who == self.who;
        match &event.body {
            Body::Opened(opening) => {
                opening.introduction.iter().for_each(|text| self.hear(text));
                opening.messages.iter().for_each(|message| self.said(message));
            }
            Body::Reopened { message: Some(message), sent: false, .. }
            | Body::Posted(message)
            | Body::Sent(message)
            | Body::Message(message) => {
                self.said(message);
            }
            Body::TurnStarted { turns: requests } => {
                if let Some(request) = requests.iter().find(|request| me(&request.who)) {
                    request.prompt.iter().for_each(|text| self.hear(text));
                    self.begun = self.messages.len();
                }
            }
            Body::ModelReplied(reply) if me(&reply.who) && reply.purpose == CallPurpose::Turn => {
                self.drafted(reply)
            }
            Body::Prompted { who, text } if me(who) => {
                self.settle();
                self.hear(text);
            }
            Body::ToolReturned { who, id, result: outcome } if me(who) => self.returned(id, outcome),
            Body::Remembered { who, entries: words } if me(who) => self.words = Some(words.clone()),
            Body::Cleared { of, keep, .. } if of.as_ref().is_none_or(me) => self.clear(*keep),
            Body::Passed { who } | Body::Stopped { who, .. } | Body::Left { who, .. } if me(who) => {
                self.end(None)
            }
            _ => {}
        }
    }

    fn said(&mut self, message: &Message) {
        if message.from == *self.who {
            self.end(Some(message));
        } else if message.to.includes(self.who) {
            self.messages.push(message.clone());
        }
    }

    fn hear(&mut self, text: &std::sync::Arc<str>) {
        self.messages.push(Message::new(Name::user(), std::sync::Arc::clone(text)));
    }

    fn drafted(&mut self, reply: &ModelReply) {
        // Nothing continues from a reply that is asked for again without a prompt.
        self.draft.take_if(|_| self.is_unparsed);
        self.settle();
        self.is_unparsed = reply.is_unparsed();
        self.calls = reply.parts.iter().filter_map(called).map(|call| (call, None)).collect();
        self.draft = Some(reply.parts.clone());
        if !self.calls.is_empty() {
            self.write_draft();
        }
    }

    fn returned(&mut self, id: &str, outcome: &ToolResult) {
        if let Some((_, answer)) = self.calls.iter_mut().find(|(call, _)| call.id == id) {
            answer.get_or_insert_with(|| outcome.clone());
        }
        if self.calls.iter().all(|(_, answer)| answer.is_some()) {
            self.write_outcomes();
        }
    }

    /// Ends its turn with its message, if any.
    fn end(&mut self, said: Option<&Message>) {
        if let Some(words) = self.words.take() {
            self.draft = None;
            self.calls.clear();
            self.messages.truncate(self.begun);
            let who = self.who;
            self.messages.extend(words.into_iter().map(|words| match words {
                HistoryEntry::Received(text) => Message::new(Name::user(), text),
                HistoryEntry::Sent(text) => Message::new(who.clone(), text),
            }));
            return;
        }
        let open = |part: &Part| called(part).is_some_and(|call| self.awaits(&call.id));
        // Calls for other participants are there already, as its model wrote them.
        if said.is_some_and(|message| message.parts.iter().any(open)) {
            return;
        }
        self.draft = None;
        self.write_outcomes();
        self.messages.extend(said.cloned());
    }

    fn awaits(&self, id: &str) -> bool {
        self.calls.iter().any(|(call, answer)| call.id == id && answer.is_none())
    }

    fn settle(&mut self) {
        self.write_draft();
        self.write_outcomes();
    }

    fn write_draft(&mut self) {
        let Some(mut parts) = self.draft.take() else { return };
        parts.retain(|part| !part.is_thought() && !part.is_blank());
        if !parts.is_empty() {
            self.messages.push(Message { parts, ..Message::new(self.who.clone(), "") });
        }
    }

    fn write_outcomes(&mut self) {
        let outcome = |(call, outcome): (ToolCall, Option<ToolResult>)| {
            let outcome = outcome?;
            Some(Part::ToolResult(ExecutedCall {
                to: self.who.clone(),
                id: call.id,
                tool: call.tool,
                result: outcome,
            }))
        };
        let parts: Vec<Part> = std::mem::take(&mut self.calls).into_iter().filter_map(outcome).collect();
        if !parts.is_empty() {
            self.messages.push(Message { parts, ..Message::new(Name::user(), "") });
        }
    }

    /// Drops all but the last `keep` exchanges; results stay with their calls.
    fn clear(&mut self, keep: usize) {
        let begins =
            |message: &Message| !message.parts.iter().all(|part| matches!(part, Part::ToolResult(_)));
        let starts: Vec<usize> =
            (0..self.messages.len()).filter(|&at| self.messages.get(at).is_some_and(begins)).collect();
        let keep = keep.max(usize::from(!self.calls.is_empty()));
        let Some(dropped) = starts.len().checked_sub(keep) else { return };
        let cut = starts.get(dropped).copied().unwrap_or(self.messages.len());
        self.messages.drain(..cut);
        self.begun = self.begun.saturating_sub(cut);
    }
}

fn called(part: &Part) -> Option<ToolCall> {
    match part {
        Part::ToolCall(call) => Some(call.clone()),
        _ => None,
    }
}
