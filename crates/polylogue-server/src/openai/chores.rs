//! Requests that user interfaces send on their own, such as for a title: they are answered here, and never begin a run.

use serde_json::json;

use super::request::ChatRequest;

/// The words of a title.
const WORDS: usize = 6;

/// A request of a user interface, and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chore {
    /// What is asked for.
    pub(super) kind: &'static str,
    pub(super) answer: String,
}

/// What such requests show: the key of the answer that they ask for.
const KINDS: [&str; 5] = ["tags", "follow_ups", "queries", "title", "text"];

/// How the request to complete what a person types begins: its key is a common word.
const COMPLETION: &str = "### Task:\nYou are an autocompletion system";

/// The answer to a request that is surely one of a user interface: it begins with a heading and names the key of its answer, or asks for the
/// title of a history that it quotes. All others are for the team.
pub(super) fn answer(request: &ChatRequest) -> Option<Chore> {
    let text = request.last();
    if text.starts_with("### Task:") {
        let is_completion = text.starts_with(COMPLETION);
        let is_named =
            |kind: &&str| text.contains(&format!("\"{kind}\"")) && is_completion == (*kind == "text");
        let kind = KINDS.into_iter().find(is_named)?;
        let value = match kind {
            "tags" => json!(["General"]),
            "text" => json!(""),
            "title" => title(text).unwrap_or_else(|| "Conversation".to_owned()).into(),
            _ => json!([]),
        };
        return Some(Chore { kind, answer: json!({kind: value}).to_string() });
    }
    let lower = text.chars().take(400).collect::<String>().to_lowercase();
    let is_title = lower.contains("title for") && lower.contains("conversation") && lower.contains("word");
    let answer = title(text).filter(|_| is_title)?;
    Some(Chore { kind: "title", answer })
}

/// The first words that the user says in the history that the request quotes, if it quotes one.
fn title(text: &str) -> Option<String> {
    let line = text.lines().find_map(|line| {
        let line = line.trim_start();
        ["USER:", "User:", "user:"].iter().find_map(|who| line.strip_prefix(who))
    })?;
    let words: Vec<&str> = line.split_whitespace().take(WORDS).collect();
    Some(words.join(" ")).filter(|title| !title.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::request::{ChatMessage, Role};
    use super::*;
    use crate::chat_options::ChatShow;

    fn answered(text: &str) -> Option<(&'static str, String)> {
        let messages = vec![ChatMessage { role: Role::User, text: text.into(), pictures: Vec::new() }];
        let chore = answer(&ChatRequest {
            model: String::new(),
            messages,
            pictures: Vec::new(),
            form: None,
            streams: false,
            usage: false,
            conversation: None,
            show: ChatShow::Result,
            is_kept_alive_by_chunks: false,
            max_tokens: None,
            ignored: Vec::new(),
        })?;
        Some((chore.kind, chore.answer))
    }

    #[test]
    fn s59_requests_of_user_interfaces_are_answered_from_their_own_text() {
        let open_webui = "### Task:\nGenerate a title.\n### Output:\nJSON format: { \"title\": \"...\" }\n\
                          <chat_history>\nUSER: How many moons has Jupiter got in all?\nASSISTANT: 95";
        let title = |title: &str| Some(("title", title.to_owned()));
        assert_eq!(answered(open_webui), title(r#"{"title":"How many moons has Jupiter got"}"#));
        let libre_chat =
            "Provide a concise, 5-word-or-less title for the conversation.\nUser: Hello there\nAI: Hi";
        assert_eq!(answered(libre_chat), title("Hello there"));
        let follow_ups = answered("### Task:\nSuggest { \"follow_ups\": [] }");
        assert_eq!(follow_ups, Some(("follow_ups", r#"{"follow_ups":[]}"#.to_owned())));
        let tags = answered("### Task:\nGenerate tags { \"tags\": [] }");
        assert_eq!(tags, Some(("tags", r#"{"tags":["General"]}"#.to_owned())));
        let typed = answered(
            "### Task:\nYou are an autocompletion system. Continue the text in `<text>`.\n### **Output Rules**:\n\
             - Respond only in JSON format: { \"text\": \"<your_completion>\" }.\n\
             <chat_history>\nUSER: Which \"title\" has it?\n</chat_history>\n<text>The sun was</text>",
        );
        assert_eq!(typed, Some(("text", r#"{"text":""}"#.to_owned())));
    }

    #[test]
    fn s59_what_only_resembles_one_is_for_the_team() {
        for text in [
            "Write a title for my book.",
            "### Task:\nSummarize this incident report in one sentence: the pump failed.",
            "### Task:\nTranslate this into JSON of the form { \"text\": \"...\" }: good morning.",
            "Please write a title for my podcast about conversation design, and choose each word with care.",
            "Find a title for a conversation of ten words. The new user: shy.",
        ] {
            assert_eq!(answered(text), None, "{text}");
        }
    }
}
