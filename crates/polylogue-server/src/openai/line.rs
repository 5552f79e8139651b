//! A text that is sent in pieces and cannot be taken back.

use polylogue_core::Delta;

/// A reply while it is written.
#[derive(Debug, Default)]
pub(super) struct Draft {
    text: String,
    /// How many bytes of it are of replies that are complete.
    complete: usize,
    /// Whether a call came after the last text: the next one is another part of the reply.
    is_apart: bool,
    /// Whether the model reasoned after the last text: whether the next one is another part is known when the reply is complete.
    is_held: bool,
    /// Whether pieces of it were not received.
    has_lost_pieces: bool,
}

impl Draft {
    /// What has been written, without white space around it.
    pub(super) fn text(&self) -> &str {
        if self.has_lost_pieces { "" } else { self.text.trim() }
    }

    /// The next piece of the reply.
    pub(super) fn delta(&mut self, delta: &Delta) {
        match delta {
            Delta::Text(text) => self.push(text),
            Delta::Restart | Delta::Retry { .. } | Delta::Fallback { .. } => self.restart(),
            Delta::Thought(_) => self.hold(),
            _ => self.part(),
        }
    }

    pub(super) fn push(&mut self, piece: &str) {
        if self.has_lost_pieces || self.is_held {
            return;
        }
        if std::mem::take(&mut self.is_apart) && self.text.len() > self.complete {
            self.text.push_str("\n\n");
        }
        self.text.push_str(if self.text.is_empty() { piece.trim_start() } else { piece });
    }

    /// The reply continues with something that is no text.
    pub(super) const fn part(&mut self) {
        self.is_apart = true;
    }

    /// The model reasons.
    fn hold(&mut self) {
        self.is_held |= self.text.get(self.complete..).is_some_and(|own| !own.trim().is_empty());
    }

    /// The reply begins again.
    pub(super) fn restart(&mut self) {
        self.text.truncate(self.complete);
        (self.is_apart, self.is_held, self.has_lost_pieces) = (false, false, false);
    }

    /// Pieces of it were not received: it is shown when it is complete.
    pub(super) fn lose_pieces(&mut self) {
        self.restart();
        self.has_lost_pieces = true;
    }

    /// The reply is complete: it is `text`.
    pub(super) fn complete(&mut self, text: &str) {
        self.restart();
        self.push(text);
        self.complete = self.text.len();
    }
}

/// A text of which a part has been sent. Where what was sent is wrong, a mark follows that says so.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// What stands before the text.
    head: String,
    sent: String,
}

impl Line {
    pub(super) fn new(head: String) -> Self {
        Self { head, sent: String::new() }
    }

    /// The next piece, while the text is written and is `draft` so far.
    pub(super) fn extend(&mut self, draft: &str) -> Option<String> {
        if draft.is_empty() || self.is_within(draft) { None } else { Some(self.send(draft)) }
    }

    /// The rest of the text, which is `text`.
    pub(super) fn finish(mut self, text: &str) -> String {
        self.send(text.trim())
    }

    /// The end of a text that has no rest.
    pub(super) fn discard(self) -> String {
        if self.sent.is_empty() { self.sent } else { mark(&self.sent) }
    }

    /// Whether `draft` is the beginning of what was sent: it has begun again, and is not as far yet.
    fn is_within(&self, draft: &str) -> bool {
        self.sent.strip_prefix(&self.head).is_some_and(|sent| sent.starts_with(draft))
    }

    fn send(&mut self, text: &str) -> String {
        let known = self.sent.strip_prefix(&self.head).and_then(|sent| text.strip_prefix(sent));
        if let Some(rest) = known.filter(|_| !self.sent.is_empty()) {
            self.sent.push_str(rest);
            return rest.to_owned();
        }
        let before = std::mem::take(&mut self.sent);
        self.sent = format!("{}{text}", self.head);
        if before.is_empty() { self.sent.clone() } else { mark(&before) + &self.sent }
    }
}

const MARK: [&str; 2] = ["\n\n[The ", " characters before this do not count: the reply broke off.]\n\n"];

/// Says that `sent` does not count.
fn mark(sent: &str) -> String {
    format!("{}{}{}", MARK[0], sent.chars().count(), MARK[1])
}

/// `text` without what does not count by its marks.
pub(super) fn without_broken(text: &str) -> String {
    let (mut counts, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(MARK[0]) {
        counts.push_str(before);
        let number =
            after.split_once(MARK[1]).and_then(|(number, after)| Some((number.parse().ok()?, after)));
        match number.and_then(|(number, after)| Some((beginning(&counts, number)?, after))) {
            Some((end, after)) => {
                counts.truncate(end);
                rest = after;
            }
            None => {
                counts.push_str(MARK[0]);
                rest = after;
            }
        }
    }
    counts + rest
}

/// Where the last `number` characters of `text` begin.
fn beginning(text: &str, number: usize) -> Option<usize> {
    match number {
        0 => None,
        number => text.char_indices().rev().nth(number - 1).map(|(at, _)| at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(drafts: &[&str], text: &str) -> String {
        let mut line = Line::new("**Ann:** ".into());
        let pieces: String = drafts.iter().filter_map(|draft| line.extend(draft)).collect();
        pieces + &line.finish(text)
    }

    #[test]
    fn pieces_are_the_text_and_what_was_wrong_is_marked() {
        assert_eq!(sent(&[], " one "), "**Ann:** one");
        assert_eq!(sent(&["o", "on", "one"], "one\n"), "**Ann:** one");
        // It begins again with the same words.
        assert_eq!(sent(&["on", "o", "on", "one"], "one"), "**Ann:** one");
        let again = sent(&["öne", "t", "two"], "two");
        assert_eq!(
            again,
            "**Ann:** öne\n\n[The 12 characters before this do not count: the reply broke off.]\n\n**Ann:** two"
        );
        assert_eq!(without_broken(&again), "**Ann:** two");
        assert_eq!(without_broken(&sent(&["one", "two"], "three")), "**Ann:** three");
        let mut broken = Line::new("**Ann:** ".into());
        let begun = broken.extend("one").unwrap();
        assert_eq!(without_broken(&(begun + &broken.discard())), "");
    }

    #[test]
    fn text_that_looks_like_a_mark_stays() {
        for text in
            ["", "a\n\n[The ", "a\n\n[The 5 characters before this do not count: the reply broke off.]\n\nb"]
        {
            assert_eq!(without_broken(text), text);
        }
    }

    #[test]
    fn a_draft_has_the_parts_of_a_reply_and_none_of_what_was_torn() {
        let mut draft = Draft::default();
        draft.push(" a");
        draft.part();
        draft.push("b ");
        assert_eq!(draft.text(), "a\n\nb");
        draft.restart();
        draft.push("c");
        draft.complete("cd");
        draft.push("e");
        assert_eq!(draft.text(), "cde");
        draft.lose_pieces();
        draft.push("f");
        assert_eq!(draft.text(), "");
        draft.complete("efg");
        assert_eq!(draft.text(), "cdefg");
    }

    /// Texts around reasoning are one, or paragraphs, by the API of the model.
    #[test]
    fn text_after_reasoning_waits_until_the_reply_is_complete() {
        for complete in ["ab", "a\n\nb"] {
            let mut draft = Draft::default();
            let thought = || Delta::Thought("t".into());
            for delta in [thought(), Delta::Text("a".into()), thought(), Delta::Text("b".into())] {
                draft.delta(&delta);
            }
            assert_eq!(draft.text(), "a");
            draft.complete(complete);
            assert_eq!(draft.text(), complete);
        }
    }
}
