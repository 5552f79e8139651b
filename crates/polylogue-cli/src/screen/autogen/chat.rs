//! Who is in a chat, and what its open turns are at.

use polylogue_core::{Audience, Message, Name, Opening, Path, TurnRequest};

use crate::screen::chat_name::participant;
use polylogue_runtime::presentation::TurnKey;

/// A chat.
#[derive(Default)]
pub(super) struct ChatState {
    /// Its participants.
    pub(super) with: Vec<Name>,
    /// The author of its opening who is not a participant.
    host: Option<Name>,
    /// Messages that are printed when a participant here does more than run a nested chat.
    pub(super) held: Vec<Message>,
    /// Whether chats ran in turns here.
    pub(super) has_chats: bool,
    /// Whether a participant did something else in a turn.
    pub(super) has_speakers: bool,
    /// All its messages, also those that are not printed.
    pub(super) all: Vec<Message>,
}

impl ChatState {
    pub(super) fn of(opening: &Opening) -> Self {
        let with = opening.participants.clone();
        let author = opening.messages.iter().map(|message| &message.from).find(|from| !with.contains(from));
        let all = opening.messages.clone();
        Self { host: author.cloned(), held: all.clone(), all, with, ..Self::default() }
    }

    /// Skips what was said in the chat that this one continues: the longest of the earlier ones `before` with which its opening begins,
    /// in whatever order they come.
    pub(super) fn continue_from<'c>(&mut self, before: impl Iterator<Item = &'c Self>) {
        // One message is that of any chat that begins so. Most chats open with one, for which none of the earlier ones is looked at.
        if self.held.len() < 2 {
            return;
        }
        let said = before.map(|before| before.all.as_slice()).filter(|said| said.len() > 1);
        let continued = said.filter(|said| self.held.starts_with(said)).map(<[_]>::len).max();
        self.held.drain(..continued.unwrap_or_default());
    }

    /// Whether a participant is an author of the opening.
    pub(super) fn begins_by_member(&self) -> bool {
        self.held.iter().any(|message| self.with.contains(&message.from))
    }
}

/// A turn that is open.
#[derive(Default)]
pub(super) struct Turn {
    /// Whether only the policy sees its message.
    pub(super) is_private: bool,
    /// Whether its beginning is still to be printed.
    pub(super) next: bool,
    /// Whether there was a choice of speakers.
    pub(super) chosen: bool,
    /// The result of the chat that ran in it last.
    pub(super) within: Option<String>,
    /// What the reply said besides.
    pub(super) text: Option<String>,
    /// A question that is printed together with its answer.
    pub(super) asked: Option<String>,
    /// Whether the person left the reply to the program.
    pub(super) skipped: bool,
}

impl Turn {
    pub(super) fn of(request: &TurnRequest, is_group: bool) -> Self {
        let is_private = request.to.is_private();
        let chosen = !is_private && request.choice.is_some();
        Self { is_private, chosen, next: !is_private && (chosen || is_group), ..Self::default() }
    }
}

/// In whose turn, in which chat, the chat `at` runs.
pub(super) fn outer(at: &Path) -> Option<TurnKey> {
    Some((at.ancestors().next()?, Name::new(participant(at)?).ok()?))
}

/// Whom a message is said to: the other of two, those it is for alone, or the chat.
pub(super) fn addressee(chat: Option<&ChatState>, at: &Path, title: &str, message: &Message) -> String {
    if let Audience::Only(names) = &message.to {
        return names.iter().map(Name::as_str).collect::<Vec<_>>().join(", ");
    }
    let members = chat.map(|chat| chat.with.as_slice()).unwrap_or_default();
    let mut others = members.iter().filter(|name| **name != message.from);
    let is_member = members.contains(&message.from);
    match (others.next(), others.next()) {
        (Some(other), None) if is_member || members.len() == 1 => other.to_string(),
        (None, _) if is_member => chat.and_then(|chat| chat.host.as_ref()).map_or(title, Name::as_str).into(),
        _ => participant(at).unwrap_or(title).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_continues_the_longest_of_those_with_which_it_begins() {
        let chat = |texts: &[&str]| {
            let all: Vec<Message> = texts.iter().map(|text| Message::new(Name::user(), *text)).collect();
            ChatState { held: all.clone(), all, ..ChatState::default() }
        };
        let earlier = [chat(&["a", "b"]), chat(&["a", "b", "c", "d"]), chat(&["c", "d"]), chat(&["a"])];
        let left = |texts: &[&str], before: &mut dyn Iterator<Item = &ChatState>| {
            let mut chat = chat(texts);
            chat.continue_from(before);
            chat.held.iter().map(|message| message.text().into_owned()).collect::<Vec<_>>()
        };
        for (texts, expected) in [
            (&["a", "b", "c", "d", "e"][..], &["e"][..]),
            (&["a", "b", "c"], &["c"]),
            (&["a", "x"], &["a", "x"]),
            (&["a"], &["a"]),
        ] {
            assert_eq!(left(texts, &mut earlier.iter()), expected, "{texts:?}");
            assert_eq!(left(texts, &mut earlier.iter().rev()), expected, "{texts:?}");
        }
    }
}
