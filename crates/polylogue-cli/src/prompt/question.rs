//! How a question of a conversation stands at the prompt, and what short answers to it mean.

use std::sync::Arc;

use polylogue_core::{Body, Event, Path, Question};

/// The prompt for `question`: whose words the person writes, or what the person allows to whom.
pub(crate) fn prompt(question: &Question) -> String {
    match &question.call {
        None if question.is_about_limit() => "Raise the limit? [y/N or how much more] ".into(),
        None => format!("{}> ", question.who),
        Some(call) => format!("Allow {} to {}? [y/N] ", question.who, action(&call.tool)),
    }
}

fn action(tool: &str) -> String {
    match tool {
        "shell" | "sh" | "bash" => "run this shell command".into(),
        "python" => "run this Python code".into(),
        tool => format!("call `{tool}`"),
    }
}

/// What `answer`, which a person has typed, means: as [`meant`], and at a question that allows something Enter alone is no.
pub(crate) fn typed(question: &Question, answer: String) -> String {
    if (question.is_approval() || question.is_about_limit()) && answer.trim().is_empty() {
        "no".into()
    } else {
        meant(question, answer)
    }
}

/// What `answer` means: at a question for approval, `y` is yes and `n` is no. An empty one means nothing.
pub(crate) fn meant(question: &Question, answer: String) -> String {
    let word = answer.trim().to_lowercase();
    match (question.is_approval(), word.as_str()) {
        (true, "y") => "yes".into(),
        (true, "n") => "no".into(),
        (true, word) if word.starts_with("n ") || word.starts_with("n,") => {
            format!("no{}", answer.trim().get(1..).unwrap_or_default())
        }
        _ => answer,
    }
}

/// Whether something was said, called or asked after `question` of the chat `at` was shown, because other turns were in progress. It was
/// shown by this process, if the conversation had `inherited` events before.
pub(crate) fn is_far_above(events: &[Arc<Event>], inherited: u64, at: &Path, question: &Question) -> bool {
    let asks = |event: &Arc<Event>| {
        event.chat == *at && matches!(&event.body, Body::InputRequired(asked) if asked == question)
    };
    let is_shown = |event: &Arc<Event>| {
        matches!(
            event.body,
            Body::Message(_)
                | Body::ModelReplied(_)
                | Body::ToolCalled { .. }
                | Body::ToolReturned { .. }
                | Body::InputRequired(_)
        )
    };
    let asked = events.iter().rposition(asks);
    let after = asked.and_then(|asked| events.get(asked..)?.split_first());
    after.is_some_and(|(asked, after)| asked.seq >= inherited && after.iter().any(is_shown))
}

#[cfg(test)]
mod tests {
    use polylogue::Message;
    use polylogue::Name;
    use polylogue_core::{Timestamp, ToolCall};
    use serde_json::json;

    use super::*;

    fn question(tool: Option<&str>) -> Question {
        let call = tool.map(|tool| ToolCall { id: "1".into(), tool: tool.into(), args: json!({}) });
        Question { call, ..Question::new(Name::new("Ops").unwrap(), "May I?") }
    }

    #[test]
    fn an_approval_prompt_names_the_agent_and_the_action() {
        assert_eq!(prompt(&question(None)), "Ops> ");
        assert_eq!(prompt(&question(Some("shell"))), "Allow Ops to run this shell command? [y/N] ");
        assert_eq!(prompt(&question(Some("python"))), "Allow Ops to run this Python code? [y/N] ");
        assert_eq!(prompt(&question(Some("rm"))), "Allow Ops to call `rm`? [y/N] ");
    }

    #[test]
    fn a_question_is_far_above_when_others_have_spoken_since_this_process_showed_it() {
        let (root, ops) = (Path::root(), question(Some("rm")));
        let passed = |who: &str| Body::Passed { who: Name::new(who).unwrap() };
        let said = || Body::Message(Message::new(Name::new("Ann").unwrap(), "Done."));
        let is_far = |inherited, bodies: &[Body]| {
            let event = |(seq, body): (u64, &Body)| {
                let (at, time, body) = (root.clone(), Timestamp(0), body.clone());
                Arc::new(Event { seq, chat: at, time, ran_ms: 0, inbox: None, body })
            };
            let events: Vec<Arc<Event>> = (0..).zip(bodies).map(event).collect();
            is_far_above(&events, inherited, &root, &ops)
        };
        let asked = || Body::InputRequired(ops.clone());
        assert!(!is_far(0, &[said(), asked()]) && !is_far(0, &[said(), asked(), passed("Ann")]));
        assert!(is_far(0, &[asked(), said()]) && is_far(0, &[passed("Ann"), asked(), said()]));
        assert!(is_far(0, &[asked(), Body::InputRequired(question(None))]));
        assert!(!is_far(1, &[asked(), said()]), "it was shown again when this process began");
        assert!(!is_far(0, &[said()]));
    }

    #[test]
    fn short_answers_are_for_approvals_alone_and_enter_approves_nothing() {
        let approval = question(Some("shell"));
        for (answer, means) in [
            ("y", "yes"),
            (" Y ", "yes"),
            ("", "no"),
            ("N", "no"),
            ("yes", "yes"),
            ("maybe", "maybe"),
            ("n, too risky", "no, too risky"),
            ("N not now", "no not now"),
        ] {
            assert_eq!(typed(&approval, answer.into()), means);
        }
        assert_eq!(meant(&approval, "y\n".into()), "yes");
        assert_eq!(meant(&approval, String::new()), "", "an empty line of a pipe is no answer");
        assert_eq!(typed(&question(None), "y".into()), "y");
        assert_eq!(typed(&question(None), String::new()), "");
    }
}
