//! What people are asked, without the words of a terminal: as data for clients that show questions in their own words, and as text for those
//! that do not show the conversation, with the last message that the person received.

use polylogue::Human;
use polylogue::layers::HumanInput;
use polylogue::policies::group::HumanSelector;
use polylogue_core::{Body, Event, Message, Path, Question, StopReason};

/// What comes between the question and the last message.
const LAST: &str = "\n\nThe last message, from ";

/// The kind of a question: what it asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionKind {
    /// A question for the message of a person in their turn.
    Turn,
    /// A question who speaks next.
    Speaker,
    /// A question for a reply in the name of an agent.
    Reply,
    /// A question whether a call may run.
    Approval,
    /// A question whether a limit is raised.
    Limit,
    /// A question for any text.
    Text,
}

impl QuestionKind {
    /// Returns the name of the kind for programs.
    ///
    /// ```
    /// use polylogue_runtime::asked::QuestionKind;
    ///
    /// assert_eq!(QuestionKind::Approval.word(), "approval");
    /// ```
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Speaker => "speaker",
            Self::Reply => "reply",
            Self::Approval => "approval",
            Self::Limit => "limit",
            Self::Text => "text",
        }
    }
}

/// An answer that has an effect of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The answer.
    pub answer: String,
    /// The effect, in a word for programs, such as `approve`.
    pub effect: &'static str,
    /// The name of what the answer selects.
    pub label: Option<String>,
}

/// A question as data, without the words of a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionData {
    /// The text.
    pub text: String,
    /// The kind.
    pub kind: QuestionKind,
    /// The answers that have an effect of their own. Others are texts.
    pub choices: Vec<Choice>,
}

impl QuestionData {
    /// Returns the data of a question.
    ///
    /// ```
    /// use polylogue::{Human, Name};
    /// use polylogue_core::Question;
    /// use polylogue_runtime::asked::QuestionData;
    ///
    /// let turn = QuestionData::of(&Question::new(Name::new("Pat")?, Human::turn_question("Pat")));
    /// assert_eq!((turn.text.as_str(), turn.choices[0].effect), ("Pat, it is your turn.", "pass"));
    /// # Ok::<(), polylogue_core::NameError>(())
    /// ```
    #[must_use]
    pub fn of(question: &Question) -> Self {
        let Question { who, text, .. } = question;
        if question.is_approval() {
            let choices = [("yes", "approve"), ("no", "reject"), ("exit", "end")];
            return Self::new(text, QuestionKind::Approval, &choices);
        }
        if let Some(raise) = &question.limit {
            // At a limit of an agent or a chat, the conversation can continue without it.
            let no = if matches!(raise.reached, StopReason::Allowance { .. }) { "reject" } else { "end" };
            return Self::new(text, QuestionKind::Limit, &[("yes", "raise"), ("no", no)]);
        }
        Self::of_text(who.as_str(), text)
    }

    fn new(text: &str, kind: QuestionKind, choices: &[(&str, &'static str)]) -> Self {
        let choice = |&(answer, effect): &(&str, &'static str)| choice(answer, effect, None);
        Self { text: text.to_owned(), kind, choices: choices.iter().map(choice).collect() }
    }

    /// The data of a question that asks neither for approval nor about a limit.
    fn of_text(who: &str, text: &str) -> Self {
        if text == Human::turn_question(who) {
            let own = format!("{who}, it is your turn.");
            return Self::new(&own, QuestionKind::Turn, &[("", "pass"), ("exit", "leave")]);
        }
        if let Some((question, next)) = of_selector(text) {
            let numbered = question.lines().filter_map(|line| {
                let (number, role) = line.trim_start().split_once("  ")?;
                number.parse::<usize>().ok()?;
                Some(choice(number, "select", Some(role)))
            });
            let others = [choice("", "next", Some(next)), choice("exit", "end", None)];
            let choices = numbered.chain(others).collect();
            return Self { text: question.to_owned(), kind: QuestionKind::Speaker, choices };
        }
        match of_human_input(text) {
            Some((before, effect, after)) => {
                let text = format!("{before}{after}");
                Self::new(&text, QuestionKind::Reply, &[("", effect), ("exit", "end")])
            }
            None => Self::new(text, QuestionKind::Text, &[]),
        }
    }
}

fn choice(answer: &str, effect: &'static str, label: Option<&str>) -> Choice {
    Choice { answer: answer.to_owned(), effect, label: label.map(str::to_owned) }
}

/// The question of a person who selects speakers, without its keys, and the next in order.
fn of_selector(text: &str) -> Option<(&str, &str)> {
    let keys = HumanSelector::keys("\0");
    let (before, after) = keys.split_once('\0')?;
    let (question, rest) = text.rsplit_once(before)?;
    Some((question.trim_end(), rest.strip_suffix(after)?))
}

/// A question for human input: what comes before its keys, what an empty answer does, and what comes after them.
fn of_human_input(text: &str) -> Option<(&str, &'static str, &str)> {
    let mut keys = HumanInput::KEYS.into_iter().zip(["end", "no_message", "automatic_reply"]);
    keys.find_map(|(keys, effect)| {
        let (before, after) = text.split_once(keys)?;
        Some((before.trim_end(), effect, after))
    })
}

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
        let text = match question.is_approval() || question.is_about_limit() {
            true => text.to_string(),
            false => in_own_words(who.as_str(), text),
        };
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

/// Returns the text of a question to `who` that asks neither for approval nor about a limit, without the words of a terminal.
///
/// ```
/// use polylogue_runtime::asked::in_own_words;
///
/// assert_eq!(in_own_words("Pat", "Which color?"), "Which color?");
/// ```
#[must_use]
pub fn in_own_words(who: &str, text: &str) -> String {
    if text == Human::turn_question(who) {
        return format!(
            "{who}, it is your turn: the answer is your message, and the answer `exit` leaves the chat."
        );
    }
    if let Some((question, _)) = of_selector(text) {
        return format!("{question}\nThe answer is a number or a name; `exit` ends the conversation.");
    }
    match of_human_input(text) {
        Some((before, _, after)) => {
            format!("{before} The answer is the reply; `exit` ends the conversation.{after}")
        }
        None => text.to_owned(),
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
    use polylogue_core::{Audience, Call, Name, Responder, Timestamp};

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
    fn a_question_is_data_without_the_words_of_a_terminal() {
        let ask = |text: String| {
            let QuestionData { text, kind, choices } =
                QuestionData::of(&Question::new(Name::new("Pat").unwrap(), text));
            let choices = choices.into_iter().map(|choice| (choice.answer, choice.effect, choice.label));
            (text, kind.word(), choices.collect::<Vec<_>>())
        };
        let choice =
            |answer: &str, effect, label: Option<&str>| (answer.to_owned(), effect, label.map(str::to_owned));
        let exit = choice("exit", "end", None);
        let list = "Who speaks next?\n  1  Ann: writes\n  2  Bob";
        let (text, kind, choices) =
            ask(format!("`x` is none of them. {list}\n{}", HumanSelector::keys("Bob")));
        assert_eq!((text, kind), (format!("`x` is none of them. {list}"), "speaker"));
        let wanted = [choice("1", "select", Some("Ann: writes")), choice("2", "select", Some("Bob"))];
        assert_eq!(choices, [&wanted[..], &[choice("", "next", Some("Bob")), exit.clone()]].concat());
        for (keys, effect) in HumanInput::KEYS.into_iter().zip(["end", "no_message", "automatic_reply"]) {
            let asked = format!("You speak as `Bob` to `Ann`. {keys} `clear history` clears.\n\n    │ x");
            let (text, kind, choices) = ask(asked.clone());
            assert_eq!(text, "You speak as `Bob` to `Ann`. `clear history` clears.\n\n    │ x");
            assert_eq!((kind, choices), ("reply", vec![choice("", effect, None), exit.clone()]));
            assert!(!in_own_words("Pat", &asked).contains("Enter"), "{keys}");
        }
        assert_eq!(ask("Well?".into()), ("Well?".into(), "text", Vec::new()));
        // What a call does is shown exactly, whatever it looks like.
        let call = Call { id: "1".into(), tool: "sh".into(), args: serde_json::json!({}) };
        let approval = Question::new(Name::new("Pat").unwrap(), HumanInput::KEYS[0]);
        let approval = Question { call: Some(call), ..approval };
        let data = QuestionData::of(&approval);
        assert_eq!((data.text.as_str(), data.kind), (HumanInput::KEYS[0], QuestionKind::Approval));
        assert_eq!(received([]).text(&Path::root(), &approval), HumanInput::KEYS[0]);
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
