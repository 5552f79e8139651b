//! Options with other dashes than theirs, such as `-model` and `–offline`: web pages and text editors write them, and so do people.

use std::ffi::OsString;

use clap::CommandFactory as _;

use super::Cli;
use crate::error::CliError;

/// A single dash, and those that editors write for two.
const DASHES: [char; 3] = ['-', '\u{2013}', '\u{2014}'];

/// Returns the error for the first word of the command line that is an option of its command, but for its dashes. The parser would
/// take `-model x` for `-m odel`, and `–offline` for a task, which is sent to a model. A word after `--` is a text.
pub(crate) fn refused(words: impl Iterator<Item = OsString>) -> Option<CliError> {
    let words: Vec<String> =
        words.filter_map(|word| word.into_string().ok()).take_while(|word| word != "--").collect();
    let suspects: Vec<(&str, &str)> =
        words.iter().filter_map(|word| Some((word.as_str(), name_of(word)?))).collect();
    if suspects.is_empty() {
        return None;
    }
    let mut cli = Cli::command();
    // Options of every command are added to each.
    cli.build();
    let command = words.iter().fold(&cli, |command, word| command.find_subcommand(word).unwrap_or(command));
    let is_option = |name: &str| command.get_arguments().any(|argument| argument.get_long() == Some(name));
    let (word, name) = suspects.into_iter().find(|(_, name)| is_option(name))?;
    Some(CliError::usage(format!("there is no option `{word}`")).hint(format!("write `--{name}`")))
}

/// The name behind the dashes of `word`, without a value, if these are not the two of an option. One letter is a short option.
fn name_of(word: &str) -> Option<&str> {
    let rest = word.trim_start_matches(DASHES);
    let is_dashed = rest.len() < word.len() && !word.starts_with("--");
    let name = rest.split_once('=').map_or(rest, |(name, _)| name);
    (is_dashed && name.len() > 1).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(line: &str) -> Option<String> {
        refused(line.split(' ').map(OsString::from)).map(|error| error.to_string())
    }

    #[test]
    fn an_option_with_other_dashes_is_named() {
        for (line, word, option) in [
            ("run team.yaml -model openai:x", "-model", "--model"),
            ("run team.yaml -model=openai:x", "-model=openai:x", "--model"),
            ("run team.yaml –offline", "–offline", "--offline"),
            ("run team.yaml —max-cost 1", "—max-cost", "--max-cost"),
            ("-store talks.db runs", "-store", "--store"),
            ("runs -store talks.db", "-store", "--store"),
            ("token new laptop -team haiku", "-team", "--team"),
            ("-help", "-help", "--help"),
        ] {
            let expected = CliError::usage(format!("there is no option `{word}`"));
            let expected = expected.hint(format!("write `{option}`"));
            assert_eq!(refusal(line), Some(expected.to_string()), "{line}");
        }
    }

    #[test]
    fn short_options_and_texts_stay() {
        for line in [
            "run team.yaml -m openai:x -q",
            "run team.yaml -vv",
            "run team.yaml --model openai:x",
            "run team.yaml –",
            "run team.yaml -- –offline",
            "answer last –yes",
            "send last -5",
            "runs -offline",
        ] {
            assert_eq!(refusal(line), None, "{line}");
        }
    }
}
