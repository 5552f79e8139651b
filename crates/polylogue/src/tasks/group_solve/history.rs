//! The history of one side of a conversation.

use std::fmt;

use polylogue_core::{Body, Entry, HistoryEntry, Name, Part, ToolStatus, Transcript, View, ViewOptions};

/// The messages that an agent received and said, in order: a conversation from its point of view.
///
/// With two talking agents, it ends with the agent's own last turn: later messages have not been sent to its model yet.
/// With three or more, all participants see all messages, so it includes those.
///
/// Its display is one block per entry: the role in brackets, and below it the text.
///
/// ```text
/// [user]:
/// Propose one number.
///
/// [assistant]:
/// 2
///
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// The entries.
    pub entries: Vec<Entry>,
}

impl History {
    /// Returns the history of `who` at the end of `chat`, with the view of a [`Task`](crate::tasks::Task).
    pub fn from_transcript(chat: &Transcript, who: &Name) -> Self {
        Self::through(chat, who, ViewOptions { forget_private_turns: true, ..ViewOptions::default() })
    }

    /// Returns the history with other view options.
    pub fn through(chat: &Transcript, who: &Name, options: ViewOptions) -> Self {
        let received = received_last(chat, who, &options);
        let mut entries = View::of(chat, who, options).entries().to_vec();
        if chat.participants().len() < 3 {
            let last = entries.iter().rposition(|entry| matches!(entry, Entry::Assistant { .. }));
            entries.truncate(last.map_or(0, |last| last + 1 + received));
        }
        Self { entries }
    }

    /// Returns the entries of the history as text: role and content.
    pub fn blocks(&self) -> impl Iterator<Item = (String, String)> {
        self.entries.iter().map(|entry| (role(entry), words(entry.parts())))
    }
}

/// The number of messages after the agent's last reply that it remembers: with a tool history, it ends with the output
/// of the tool.
fn received_last(chat: &Transcript, who: &Name, options: &ViewOptions) -> usize {
    let (mut last, mut this, mut is_forgotten) = (0, 0, false);
    for event in chat.events() {
        match &event.body {
            Body::TurnStarted { turns: requests } => {
                if let Some(request) = requests.iter().find(|request| request.who == *who) {
                    (this, is_forgotten) = (0, options.forget_private_turns && request.to.is_private());
                }
            }
            Body::Remembered { who: me, entries: words } if me == who => {
                this =
                    words.iter().rev().take_while(|words| matches!(words, HistoryEntry::Received(_))).count();
            }
            Body::Message(message) if message.from == *who && !is_forgotten => last = this,
            Body::Passed { who: me } if me == who && !is_forgotten => last = this,
            _ => {}
        }
    }
    last
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entries
            .iter()
            .try_for_each(|entry| write!(f, "[{}]:\n{}\n\n", role(entry), words(entry.parts())))
    }
}

fn role(entry: &Entry) -> String {
    match entry {
        Entry::System { .. } => "system".into(),
        Entry::User { .. } => "user".into(),
        Entry::Assistant { .. } => "assistant".into(),
        Entry::Tool { tool, result: outcome, .. } if outcome.status == ToolStatus::Done => {
            format!("tool {tool}")
        }
        Entry::Tool { tool, .. } => format!("tool {tool} failed"),
    }
}

fn words(parts: &[Part]) -> String {
    let word = |part: &Part| match part {
        Part::Text(text) | Part::Thought(text) => text.as_ref().to_owned(),
        Part::Data(value) => value.to_string(),
        Part::Media(media) => format!("({media})"),
        Part::ToolCall(call) => format!("(calls `{}` with {})", call.tool, call.args),
        _ => String::new(),
    };
    parts.iter().map(word).collect::<Vec<_>>().join("\n\n")
}
