//! The texts of questions to people: with the possible answers, for clients whose users type them, and with the last message,
//! for clients that do not show the conversation.

use polylogue_core::{AnswerChoice, AnswerEffect, Body, Event, Message, Path, Question, QuestionKind};

/// What comes between the question and the last message.
const LAST: &str = "\n\nThe last message, from ";

/// The last message of each chat and audience since a person wrote something. Add every event in order, then read the text of
/// a question.
#[derive(Debug, Default, Clone)]
pub struct LastMessages(Vec<(Path, Message)>);

impl LastMessages {
    /// Adds the next event.
    pub fn add(&mut self, event: &Event) {
        match &event.body {
            Body::Message(message) => {
                self.0.retain(|(at, other)| *at != event.chat || other.to != message.to);
                self.0.push((event.chat.clone(), message.clone()));
            }
            // Its client knows what it has written.
            Body::Sent(_) | Body::Reopened { .. } | Body::InputProvided { .. } => self.0.clear(),
            Body::Closed { .. } => self.0.retain(|(at, _)| *at != event.chat),
            _ => {}
        }
    }

    /// Returns the text of a question that is asked in the chat `at` now, with what can be answered.
    pub fn text(&self, at: &Path, question: &Question) -> String {
        let Question { who, kind, .. } = question;
        let text = in_words(question);
        let is_received =
            |(of, message): &&(Path, Message)| of == at && message.from != *who && message.to.includes(who);
        match self.0.iter().rev().find(is_received).filter(|_| has_last_message(*kind)) {
            Some((_, message)) => format!("{text}{LAST}{}:\n\n{}", message.from, message.to_text().trim()),
            None => text,
        }
    }
}

/// Returns whether a question of this kind asks for a message of a chat, and so comes with the last message of that chat.
pub const fn has_last_message(kind: QuestionKind) -> bool {
    matches!(kind, QuestionKind::Turn | QuestionKind::Reply)
}

/// Returns what follows the name of whom a question is about, with a space before it.
///
/// ```
/// use polylogue_core::{Name, Question};
/// use polylogue_runtime::question_text::asks;
///
/// assert_eq!(asks(&Question::new(Name::new("Pat")?, "Which color?")), " is asked:");
/// # Ok::<(), polylogue_core::NameError>(())
/// ```
pub const fn asks(question: &Question) -> &'static str {
    if question.is_approval() {
        " asks for approval:"
    } else if question.is_about_limit() {
        " asks for a higher limit:"
    } else {
        " is asked:"
    }
}

/// Returns the text of a question with what can be answered, for clients whose users write their answers.
///
/// ```
/// use polylogue_core::{Name, Question};
/// use polylogue_runtime::question_text::in_words;
///
/// assert_eq!(in_words(&Question::new(Name::new("Pat")?, "Which color?")), "Which color?");
/// # Ok::<(), polylogue_core::NameError>(())
/// ```
pub fn in_words(question: &Question) -> String {
    with_answers(question, &answers(question))
}

/// Returns what can be answered to a question, in a sentence; empty for any text.
pub fn answers(question: &Question) -> String {
    let approval = |edit: &str| {
        format!(
            "`yes` runs it; `no`, with a reason if you like, rejects it; {edit}; `exit` ends the conversation."
        )
    };
    match question.kind {
        QuestionKind::Text => String::new(),
        QuestionKind::Turn => "The answer is your message, and the answer `exit` leaves the chat.".into(),
        QuestionKind::Speaker => "The answer is a number or a name; `exit` ends the conversation.".into(),
        QuestionKind::Reply => "The answer is the reply; `exit` ends the conversation.".into(),
        QuestionKind::Approval => approval("a JSON object replaces its arguments"),
        QuestionKind::CodeApproval => approval("code in a fenced block replaces it"),
        QuestionKind::Limit => {
            let example = question.limit.as_ref().map_or("5", |raise| raise.example());
            let ends = labels(question, AnswerEffect::End).next().unwrap_or("the run");
            format!("Answer `yes`, or how much more, such as `{example}`; any other answer ends {ends}.")
        }
    }
}

/// Returns the text of a question with the list of what can be selected, and `sentence`, which says what can be answered.
///
/// ```
/// use polylogue_core::{AnswerChoice, AnswerEffect, Name, Question, QuestionKind};
/// use polylogue_runtime::question_text::with_answers;
///
/// let ann = AnswerChoice::new("1", AnswerEffect::Select).label("Ann: writes");
/// let asked = Question::new(Name::new("Pat")?, "Who speaks next?");
/// let asked = Question { kind: QuestionKind::Speaker, choices: vec![ann], ..asked };
/// assert_eq!(with_answers(&asked, "Type a number."), "Who speaks next?\n  1  Ann: writes\nType a number.");
/// # Ok::<(), polylogue_core::NameError>(())
/// ```
pub fn with_answers(question: &Question, sentence: &str) -> String {
    let mut text = question.text.to_string();
    let selected = |choice: &&AnswerChoice| choice.effect == AnswerEffect::Select;
    let mut is_list = false;
    for choice in question.choices.iter().filter(selected) {
        text += &format!("\n  {}  {}", choice.answer, choice.label.as_deref().unwrap_or_default());
        is_list = true;
    }
    if !sentence.is_empty() {
        // Apart from what is to run, and from other texts of several lines.
        text += if is_list {
            "\n"
        } else if text.contains('\n') {
            "\n\n"
        } else {
            " "
        };
        text += sentence;
    }
    text
}

/// The labels of the choices with this effect.
fn labels(question: &Question, effect: AnswerEffect) -> impl Iterator<Item = &str> {
    let choices = question.choices.iter().filter(move |choice| choice.effect == effect);
    choices.filter_map(|choice| choice.label.as_deref())
}

/// Returns the text of a question without the last message, if that is `said`, which is shown before it.
pub fn without_last_message<'t>(text: &'t str, said: &str) -> &'t str {
    match text.split_once(LAST) {
        Some((question, last)) if !said.is_empty() && last.ends_with(said) => question,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use polylogue_core::{
        Audience, LimitOverrides, LimitRaise, Name, Responder, StopReason, Timestamp, ToolCall,
    };

    use super::*;

    fn received(bodies: impl IntoIterator<Item = Body>) -> LastMessages {
        let mut received = LastMessages::default();
        for (seq, body) in (0..).zip(bodies) {
            let (at, time) = (Path::root(), Timestamp(0));
            received.add(&Event { seq, chat: at, time, ran_ms: 0, inbox: None, body });
        }
        received
    }

    fn question(text: &str, kind: QuestionKind, choices: Vec<AnswerChoice>) -> Question {
        Question { kind, choices, ..Question::new(Name::new("Pat").unwrap(), text) }
    }

    #[test]
    fn what_can_be_answered_is_in_the_words_of_each_kind() {
        let ask = |text, kind, choices| in_words(&question(text, kind, choices));
        assert_eq!(ask("Well?", QuestionKind::Text, Vec::new()), "Well?");
        let turn = "Pat, it is your turn. The answer is your message, and the answer `exit` leaves the chat.";
        assert_eq!(ask("Pat, it is your turn.", QuestionKind::Turn, Vec::new()), turn);
        let several = "Which?\n\n- red\n- blue";
        let apart =
            format!("{several}\n\nThe answer is your message, and the answer `exit` leaves the chat.");
        assert_eq!(ask(several, QuestionKind::Turn, Vec::new()), apart);
        let select = |number: &str, role: &str| AnswerChoice::new(number, AnswerEffect::Select).label(role);
        let next = AnswerChoice::new("", AnswerEffect::Next).label("Bob");
        assert_eq!(
            ask("Who?", QuestionKind::Speaker, vec![select("1", "Ann: writes"), select("2", "Bob"), next]),
            "Who?\n  1  Ann: writes\n  2  Bob\nThe answer is a number or a name; `exit` ends the conversation."
        );
        // What a call does is shown exactly, whatever it looks like.
        let exact = "`Ops` calls `sh` with:\n\n```\nls\n```";
        let call = ToolCall { id: "1".into(), tool: "sh".into(), args: serde_json::json!({}) };
        for (kind, edit) in [
            (QuestionKind::Approval, "a JSON object replaces its arguments"),
            (QuestionKind::CodeApproval, "code in a fenced block replaces it"),
        ] {
            let approval = Question { call: Some(call.clone()), ..question(exact, kind, Vec::new()) };
            let text = received([]).text(&Path::root(), &approval);
            assert!(text.starts_with(&format!("{exact}\n\n`yes` runs it; ")), "{text}");
            assert!(text.ends_with(&format!("; {edit}; `exit` ends the conversation.")), "{text}");
        }
    }

    #[test]
    fn a_question_about_a_limit_says_what_ends_without_more_of_it() {
        let more = LimitOverrides { tokens: Some(900), ..LimitOverrides::default() };
        let reached = StopReason::Tokens { limit: 900, used: 900, next: None, cut: None };
        let no = AnswerChoice::new("no", AnswerEffect::End).label("this chat");
        let limit = Some(Box::new(LimitRaise { reached, more }));
        let asked = Question { limit, ..question("More?", QuestionKind::Limit, vec![no]) };
        assert_eq!(
            in_words(&asked),
            "More? Answer `yes`, or how much more, such as `5000`; any other answer ends this chat."
        );
    }

    #[test]
    fn a_turn_and_a_reply_are_asked_for_with_the_last_message() {
        let [ann, bob, pat] = ["Ann", "Bob", "Pat"].map(|name| Name::new(name).unwrap());
        let own = "Pat, it is your turn. The answer is your message, and the answer `exit` leaves the chat.";
        let turn = question("Pat, it is your turn.", QuestionKind::Turn, Vec::new());
        let said = |from: &Name, text: &str, to: Audience| {
            Body::Message(Message::new(from.clone(), text.to_owned()).to(to))
        };
        assert_eq!(received([]).text(&Path::root(), &turn), own);
        let to_all = said(&ann, "To all.", Audience::All);
        let others = said(&bob, "Secret.", Audience::Only(vec![ann.clone()]));
        let heard = received([to_all.clone(), others.clone()]);
        let text = heard.text(&Path::root(), &turn);
        assert_eq!(text, format!("{own}\n\nThe last message, from Ann:\n\nTo all."));
        assert_eq!(
            (without_last_message(&text, "To all."), without_last_message(&text, "Else.")),
            (own, text.as_str())
        );
        let to_pat = said(&bob, "For you.", Audience::Only(vec![pat.clone()]));
        let text = received([to_all.clone(), to_pat, others]).text(&Path::root(), &turn);
        assert!(text.ends_with("from Bob:\n\nFor you."), "{text}");
        // So is a reply in the name of an agent, which speaks to others.
        let reply = question("You speak as `Pat` to `Ann`.", QuestionKind::Reply, Vec::new());
        assert_eq!(
            heard.text(&Path::root(), &reply),
            "You speak as `Pat` to `Ann`. The answer is the reply; `exit` ends the conversation.\n\n\
             The last message, from Ann:\n\nTo all."
        );
        // Another question has its own text, and what a person has written is known to its client.
        assert_eq!(heard.text(&Path::root(), &Question::new(pat.clone(), "Well?")), "Well?");
        let answer = Body::InputProvided { to: pat, text: "Yes.".into(), by: Responder::default() };
        assert_eq!(received([to_all, answer]).text(&Path::root(), &turn), own);
    }
}
