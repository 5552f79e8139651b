//! Requests that user interfaces send on their own, such as for a title: they are answered here, and never begin a run.

use super::request::ChatRequest;

/// The words of a title.
const WORDS: usize = 6;

/// The answer to a request of a user interface; `None` if it is one of a person.
pub(super) fn answer(request: &ChatRequest) -> Option<String> {
    let text = request.last();
    let lower = text.chars().take(400).collect::<String>().to_lowercase();
    let is_task = text.starts_with("### Task:");
    let is_title = lower.contains("title for") && lower.contains("conversation") && lower.contains("word");
    if !is_task && !is_title {
        return None;
    }
    let wants = |key: &str| is_task && text.contains(&format!("\"{key}\""));
    Some(match () {
        () if wants("tags") => r#"{"tags": ["General"]}"#.to_owned(),
        () if wants("follow_ups") => r#"{"follow_ups": []}"#.to_owned(),
        () if wants("queries") => r#"{"queries": []}"#.to_owned(),
        () if wants("title") => serde_json::json!({"title": title(text)}).to_string(),
        () if is_title => title(text),
        () => "-".to_owned(),
    })
}

/// The first words that the user says in the history that the request quotes.
fn title(text: &str) -> String {
    let said = ["USER:", "User:", "user:"].iter().find_map(|who| text.split_once(who)).map(|(_, said)| said);
    let line = said.unwrap_or_default().trim_start().lines().next().unwrap_or_default();
    let words: Vec<&str> = line.split_whitespace().take(WORDS).collect();
    if words.is_empty() { "Conversation".to_owned() } else { words.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::super::request::{ChatMessage, Role};
    use super::super::voice::Show;
    use super::*;

    fn answered(text: &str) -> Option<String> {
        let messages = vec![ChatMessage { role: Role::User, text: text.into(), pictures: Vec::new() }];
        answer(&ChatRequest {
            model: String::new(),
            messages,
            pictures: Vec::new(),
            form: None,
            streams: false,
            usage: false,
            conversation: None,
            show: Show::Result,
            is_kept_alive_by_chunks: false,
            max_tokens: None,
            ignored: Vec::new(),
        })
    }

    #[test]
    fn s59_requests_of_user_interfaces_are_answered_from_their_own_text() {
        let open_webui = "### Task:\nGenerate a title.\n### Output:\nJSON format: { \"title\": \"...\" }\n\
                          <chat_history>\nUSER: How many moons has Jupiter got in all?\nASSISTANT: 95";
        assert_eq!(answered(open_webui).unwrap(), r#"{"title":"How many moons has Jupiter got"}"#);
        let libre_chat =
            "Provide a concise, 5-word-or-less title for the conversation.\nUser: Hello there\nAI: Hi";
        assert_eq!(answered(libre_chat).unwrap(), "Hello there");
        assert_eq!(answered("### Task:\nSuggest { \"follow_ups\": [] }").unwrap(), r#"{"follow_ups": []}"#);
        assert_eq!(answered("### Task:\nSomething else.").unwrap(), "-");
        assert_eq!(answered("Write a title for my book."), None);
    }
}
