//! What a person is asked in their turn, for clients that do not show the conversation with it: without the words of a terminal, and with
//! the last message that the person received.

use polylogue::Human;
use polylogue_core::{Body, Event, Message, Path, Question};

/// What comes between the question and the last message.
const LAST: &str = "\n\nThe last message, from ";

/// The last messages of participants since a person wrote something: of each chat and audience, the last one.
#[derive(Debug, Default, Clone)]
pub struct Received(Vec<(Path, Message)>);

impl Received {
    /// Adds the next event.
    pub fn add(&mut self, event: &Event) {
        match &event.body {
            Body::Message(message) => {
                self.0.retain(|(at, other)| *at != event.at || other.to != message.to);
                self.0.push((event.at.clone(), message.clone()));
            }
            // Its client knows what it has written.
            Body::Sent(_) | Body::Reopened { .. } | Body::InputProvided { .. } => self.0.clear(),
            Body::Closed { .. } => self.0.retain(|(at, _)| *at != event.at),
            _ => {}
        }
    }

    /// Returns the text of a question that is asked in the chat `at` now.
    #[must_use]
    pub fn text(&self, at: &Path, question: &Question) -> String {
        let Question { who, text, .. } = question;
        let text = in_own_words(who.as_str(), text);
        let is_received =
            |(of, message): &&(Path, Message)| of == at && message.from != *who && message.to.includes(who);
        match self.0.iter().rev().find(is_received).filter(|_| is_turn(question)) {
            Some((_, message)) => format!("{text}{LAST}{}:\n\n{}", message.from, message.as_text().trim()),
            None => text,
        }
    }
}

/// Returns whether a question is the one that people are asked in their turns.
#[must_use]
pub fn is_turn(question: &Question) -> bool {
    *question.text == *Human::turn_question(question.who.as_str())
}

/// Returns the text of a question to `who`, without the words of a terminal.
///
/// ```
/// use polylogue_runtime::asked::in_own_words;
///
/// assert_eq!(in_own_words("Pat", "Which color?"), "Which color?");
/// ```
#[must_use]
pub fn in_own_words(who: &str, text: &str) -> String {
    match text == Human::turn_question(who) {
        true => {
            format!(
                "{who}, it is your turn: the answer is your message, and the answer `exit` leaves the chat."
            )
        }
        false => text.to_owned(),
    }
}

/// Returns the text of a question without the last message, if that is `said`, which is shown before it.
#[must_use]
pub fn without_last<'t>(text: &'t str, said: &str) -> &'t str {
    match text.split_once(LAST) {
        Some((question, last)) if !said.is_empty() && last.ends_with(said) => question,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use polylogue_core::{Audience, Name, Responder, Timestamp};

    use super::*;

    fn received(bodies: impl IntoIterator<Item = Body>) -> Received {
        let mut received = Received::default();
        for (seq, body) in (0..).zip(bodies) {
            let (at, time) = (Path::root(), Timestamp(0));
            received.add(&Event { seq, at, time, ran_ms: 0, inbox: None, body });
        }
        received
    }

    #[test]
    fn a_turn_is_asked_for_with_the_last_message_and_without_the_words_of_a_terminal() {
        let [ann, bob, pat] = ["Ann", "Bob", "Pat"].map(|name| Name::new(name).unwrap());
        let own = "Pat, it is your turn: the answer is your message, and the answer `exit` leaves the chat.";
        let turn = Question::new(pat.clone(), Human::turn_question("Pat"));
        let said = |from: &Name, text: &str, to: Audience| {
            Body::Message(Message::text(from.clone(), text.to_owned()).to(to))
        };
        assert_eq!(received([]).text(&Path::root(), &turn), own);
        let to_all = said(&ann, "To all.", Audience::All);
        let others = said(&bob, "Secret.", Audience::Only(vec![ann.clone()]));
        let heard = received([to_all.clone(), others.clone()]);
        let text = heard.text(&Path::root(), &turn);
        assert_eq!(text, format!("{own}\n\nThe last message, from Ann:\n\nTo all."));
        assert_eq!((without_last(&text, "To all."), without_last(&text, "Else.")), (own, text.as_str()));
        let to_pat = said(&bob, "For you.", Audience::Only(vec![pat.clone()]));
        let text = received([to_all.clone(), to_pat, others]).text(&Path::root(), &turn);
        assert!(text.ends_with("from Bob:\n\nFor you."), "{text}");
        // Another question has its own text, and what a person has written is known to its client.
        assert_eq!(heard.text(&Path::root(), &Question::new(pat.clone(), "Well?")), "Well?");
        let answer = Body::InputProvided { to: pat, text: "Yes.".into(), by: Responder::default() };
        assert_eq!(received([to_all, answer]).text(&Path::root(), &turn), own);
    }
}
