//! Commands that people guess.

use clap::error::{ContextKind, ContextValue};

/// Commands that there are not, and what does the same. Some resemble a command that does something else: `list` is not `cluster`.
const GUESSED: [(&[&str], &str); 12] = [
    (&["list", "ls", "history", "ps", "status"], "`polylogue runs` lists conversations"),
    (&["continue"], "`polylogue resume ID` continues a conversation"),
    (&["export"], "`polylogue show ID --json` prints the events of a conversation, `--markdown` Markdown"),
    (&["delete", "remove"], "`polylogue rm ID` removes a conversation"),
    (&["log", "logs"], "`polylogue show ID` prints a conversation, `polylogue runs` lists them"),
    (&["init", "create"], "`polylogue new` writes a team file to begin with"),
    (&["lint", "validate"], "`polylogue check TEAM` checks a team file"),
    (&["graph", "draw"], "`polylogue check TEAM --graph` draws a team"),
    (&["demo", "demos", "templates"], "`polylogue new --list` lists demos and templates"),
    (
        &["replay"],
        "`polylogue run TEAM --replay FILE` replays a recording, `polylogue show ID` shows a conversation",
    ),
    (&["login", "setup", "keys"], "`polylogue doctor` shows which keys are set, and how to set them"),
    (&["stop", "kill"], "`polylogue cancel ID` stops a running conversation"),
];

/// `error`, with the command that was probably meant, if it is about one that there is not.
pub(crate) fn explained(mut error: clap::Error) -> clap::Error {
    // Subcommands, such as those of `memory`, have other names.
    let is_first = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string().contains("polylogue [OPTIONS]"),
        _ => false,
    };
    let tip = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(given)) if is_first => {
            GUESSED.iter().find(|(words, _)| words.contains(&given.as_str())).map(|(_, tip)| *tip)
        }
        _ => None,
    };
    if let Some(tip) = tip {
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.to_owned().into()]));
    }
    error
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Cli;

    fn refusal(words: &[&str]) -> String {
        let words = ["polylogue"].iter().chain(words);
        explained(Cli::command().try_get_matches_from(words).unwrap_err()).render().to_string()
    }

    #[test]
    fn a_guessed_command_is_answered_with_the_one_that_does_the_same() {
        let cli = Cli::command();
        for (words, tip) in GUESSED {
            for word in words {
                assert!(cli.find_subcommand(word).is_none(), "{word}");
                let refusal = refusal(&["--color", "never", *word]);
                assert!(refusal.contains(&format!("tip: {tip}\n")), "{refusal}");
                assert!(!refusal.contains("similar"), "{refusal}");
            }
            for command in tip.split("`polylogue ").skip(1) {
                let name = command.split([' ', '`']).next().unwrap();
                assert!(cli.find_subcommand(name).is_some(), "{tip}");
            }
        }
    }

    #[test]
    fn other_commands_are_answered_as_before() {
        assert!(refusal(&["rum"]).contains("'run'"), "{}", refusal(&["rum"]));
        assert!(refusal(&["memory", "ls"]).contains("'list'"), "{}", refusal(&["memory", "ls"]));
    }
}
