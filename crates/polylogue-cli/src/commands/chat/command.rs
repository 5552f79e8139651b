//! What a person can type in a chat besides messages.

use std::path::PathBuf;

/// A line that the person typed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// A message.
    Message(String),
    Help,
    Exit,
    /// Takes back the last message and its replies.
    Undo,
    /// Tries again after an error.
    Retry,
    /// Writes the conversation to a file, as Markdown.
    Save(PathBuf),
    /// Attaches a file to the next message.
    Attach(PathBuf),
    /// Why the line is not a command.
    Unknown(String),
}

pub(crate) const HELP: &str = "\
/undo         take back your last message and the replies to it
/retry        try again after an error
/attach FILE  attach a picture, a PDF document, a sound or a text to your next message
/save FILE    write the conversation to a file, as Markdown
/exit         leave; Ctrl-D does, too
/help         show this list
//TEXT        send a text that begins with /
Enter sends, Alt+Enter begins a new line, and a line of ``` opens a block of lines. Ctrl-C stops a reply.";

impl Input {
    /// What `line` means; `None` if it is blank.
    pub(crate) fn of(line: &str) -> Option<Self> {
        let text = line.trim();
        if text.is_empty() {
            return None;
        }
        let Some(command) = text.strip_prefix('/') else { return Some(Self::Message(line.to_owned())) };
        if command.starts_with('/') {
            return Some(Self::Message(command.to_owned()));
        }
        let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        Some(match (name, rest.trim()) {
            ("help" | "?", "") => Self::Help,
            ("exit" | "quit", "") => Self::Exit,
            ("undo", "") => Self::Undo,
            ("retry", "") => Self::Retry,
            ("save" | "attach", "") => Self::Unknown(format!("name a file: `/{name} FILE`")),
            ("save", file) => Self::Save(file.into()),
            ("attach", file) => Self::Attach(file.into()),
            ("help" | "?" | "exit" | "quit" | "undo" | "retry", _) => {
                Self::Unknown(format!("`/{name}` takes no words; `//{name} ...` sends them as a message"))
            }
            _ => Self::Unknown(format!(
                "there is no command `/{name}`; `/help` lists them, and `//{name}` sends it as a message"
            )),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_messages_or_commands() {
        let message = |text: &str| Some(Input::Message(text.to_owned()));
        for (line, input) in [
            ("  ", None),
            ("hello /exit", message("hello /exit")),
            ("//exit now", message("/exit now")),
            (" /exit ", Some(Input::Exit)),
            ("/undo", Some(Input::Undo)),
            ("/save my notes.md", Some(Input::Save("my notes.md".into()))),
            ("/attach my dot.png", Some(Input::Attach("my dot.png".into()))),
        ] {
            assert_eq!(Input::of(line), input, "{line}");
        }
        for line in ["/save", "/attach", "/undo it", "/clear"] {
            assert!(matches!(Input::of(line), Some(Input::Unknown(_))), "{line}");
        }
    }
}
