//! The texts that a conversation has shown, by chat: so that none is shown again by a chat around or within it.

use std::collections::HashMap;

use polylogue_core::{Name, Path};
use serde_json::Value;

/// What the messages of a conversation said so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Said {
    /// The chats in which a text was said, and who said it.
    texts: HashMap<String, Vec<(Path, Name)>>,
    last: HashMap<Path, (Name, String)>,
}

/// The source of the summary of a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SummarySource {
    /// A text that is in no message.
    New,
    /// The last message, perhaps without the text that ended the chat.
    LastMessage,
    /// An earlier message, by this participant.
    EarlierMessage(Name),
}

impl Said {
    /// Notes that `who` said `text` in the chat `at`.
    pub(super) fn add(&mut self, at: &Path, who: &Name, text: &str) {
        self.note(at, who, text);
        self.last.insert(at.clone(), (who.clone(), text.trim().to_owned()));
    }

    fn note(&mut self, at: &Path, who: &Name, text: &str) {
        if !text.trim().is_empty() {
            self.texts.entry(normal(text)).or_default().push((at.clone(), who.clone()));
        }
    }

    /// Whether the chat `at` has a message.
    pub(super) fn has_begun(&self, at: &Path) -> bool {
        self.last.contains_key(at)
    }

    /// Whether a chat around `at` has this text.
    pub(super) fn is_known_around(&self, at: &Path, text: &str) -> bool {
        self.by(text).iter().any(|(chat, _)| at.is_within(chat))
    }

    /// Whether a chat within `at` has this text.
    pub(super) fn is_known_within(&self, at: &Path, text: &str) -> bool {
        self.by(text).iter().any(|(chat, _)| chat.is_within(at))
    }

    fn by(&self, text: &str) -> &[(Path, Name)] {
        self.texts.get(&normal(text)).map(Vec::as_slice).unwrap_or_default()
    }

    /// Where `summary` is from, with which the chat `at` is closed.
    pub(super) fn closed(&mut self, at: &Path, summary: &str) -> SummarySource {
        let Some((who, last)) = self.last.get(at) else { return SummarySource::New };
        if normal(last) == normal(summary) {
            return SummarySource::LastMessage;
        }
        if is_without_a_word(last, summary.trim()) {
            let who = who.clone();
            self.note(at, &who, summary);
            return SummarySource::LastMessage;
        }
        let said = self.by(summary).iter().rfind(|(chat, _)| chat == at);
        said.map_or(SummarySource::New, |(_, who)| SummarySource::EarlierMessage(who.clone()))
    }
}

/// The text that is the same for all ways to write it: blanks around it, and the layout of JSON, do not count.
fn normal(text: &str) -> String {
    let text = text.trim();
    let json = if text.starts_with(['{', '[']) { serde_json::from_str::<Value>(text).ok() } else { None };
    json.map_or_else(|| text.to_owned(), |value| value.to_string())
}

/// Whether `summary` is `text` but for its first or last word, such as `TERMINATE`.
fn is_without_a_word(text: &str, summary: &str) -> bool {
    let rest = text.strip_suffix(summary).or_else(|| text.strip_prefix(summary));
    rest.is_some_and(|rest| {
        !summary.is_empty() && rest.split_whitespace().count() == 1 && rest.trim() != rest
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_new_or_a_message_with_or_without_its_last_word() {
        let [ann, bob] = ["Ann", "Bob"].map(|name| Name::new(name).unwrap());
        let (root, mut said) = (Path::root(), Said::default());
        assert_eq!(said.closed(&root, "x"), SummarySource::New);
        said.add(&root, &ann, "It is 7.");
        said.add(&root, &bob, "Thank you. TERMINATE");
        assert_eq!(said.closed(&root, "Thank you. TERMINATE\n"), SummarySource::LastMessage);
        assert_eq!(said.closed(&root, "Thank you."), SummarySource::LastMessage);
        assert_eq!(said.closed(&root, "Thank"), SummarySource::New);
        assert_eq!(said.closed(&root, "It is 7."), SummarySource::EarlierMessage(ann));
        assert_eq!(said.closed(&root, "It is 8."), SummarySource::New);
    }

    #[test]
    fn chats_around_and_within_know_the_text_however_json_is_laid_out() {
        let ann = Name::new("Ann").unwrap();
        let (root, inner) = (Path::root(), Path::root().child(&ann, 1));
        let mut said = Said::default();
        said.add(&inner, &ann, "{\"a\": 1}");
        assert!(said.is_known_within(&root, "{\"a\":1}") && !said.is_known_around(&root, "{\"a\":1}"));
        assert!(said.is_known_around(&inner.child(&ann, 2), "{\"a\":1}"));
        assert!(!said.is_known_within(&inner, "{\"a\":1}"), "a chat may say it again");
    }
}
