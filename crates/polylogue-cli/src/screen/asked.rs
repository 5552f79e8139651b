//! What a person is asked at a terminal: questions are data, and these are its words for what can be typed.

use polylogue_core::{AnswerChoice, AnswerEffect, Question, QuestionKind};
use polylogue_runtime::question_text::{answers, with_answers};

/// The text of `question`, with what its keys do.
pub(crate) fn at_terminal(question: &Question) -> String {
    with_answers(question, &keys(question))
}

/// What can be typed as an answer.
fn keys(question: &Question) -> String {
    let is_empty = |choice: &&AnswerChoice| choice.answer.is_empty();
    let empty = question.choices.iter().find(is_empty);
    match (question.kind, empty.map(|choice| choice.effect)) {
        (QuestionKind::Turn, _) => "Enter passes, `exit` leaves.".into(),
        (QuestionKind::Speaker, _) => {
            let next = empty.and_then(|choice| choice.label.as_deref()).unwrap_or_default();
            format!(
                "Type a number or a name. Enter takes the next in order ({next}), `exit` ends the conversation."
            )
        }
        (QuestionKind::Reply, Some(AnswerEffect::End)) => {
            "Type a reply to continue; Enter or `exit` ends the conversation.".into()
        }
        (QuestionKind::Reply, Some(AnswerEffect::NoMessage)) => {
            "Type a reply. Enter says nothing, `exit` ends the conversation.".into()
        }
        (QuestionKind::Reply, _) => {
            "Type a reply. Enter gives an automatic reply, `exit` ends the conversation.".into()
        }
        _ => answers(question),
    }
}

#[cfg(test)]
mod tests {
    use polylogue_core::Name;

    use super::*;

    /// What a terminal shows of a question of this kind whose empty answer has this effect.
    fn shown(kind: QuestionKind, effect: AnswerEffect) -> String {
        let empty = AnswerChoice::new("", effect).label("Bob");
        let choices = vec![AnswerChoice::new("1", AnswerEffect::Select).label("Ann: writes"), empty];
        let choices = if kind == QuestionKind::Speaker { choices } else { choices[1..].to_vec() };
        at_terminal(&Question { kind, choices, ..Question::new(Name::new("Pat").unwrap(), "So?") })
    }

    #[test]
    fn a_terminal_says_what_enter_does() {
        for (kind, effect, expected) in [
            (QuestionKind::Turn, AnswerEffect::Pass, "So? Enter passes, `exit` leaves."),
            (
                QuestionKind::Speaker,
                AnswerEffect::Next,
                "So?\n  1  Ann: writes\nType a number or a name. Enter takes the next in order (Bob), `exit` ends the conversation.",
            ),
            (
                QuestionKind::Reply,
                AnswerEffect::End,
                "So? Type a reply to continue; Enter or `exit` ends the conversation.",
            ),
            (
                QuestionKind::Reply,
                AnswerEffect::NoMessage,
                "So? Type a reply. Enter says nothing, `exit` ends the conversation.",
            ),
            (
                QuestionKind::Reply,
                AnswerEffect::AutomaticReply,
                "So? Type a reply. Enter gives an automatic reply, `exit` ends the conversation.",
            ),
            (QuestionKind::Text, AnswerEffect::Pass, "So?"),
        ] {
            assert_eq!(shown(kind, effect), expected);
        }
    }
}
