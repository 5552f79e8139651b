//! Refuses commands and options that do not work with a server.

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _};

use crate::args::Cli;
use crate::args::uses::{Use, use_of};
use crate::error::CliError;

/// Whether the command is about the conversations of a server. `is_named`: the command line names the server, and not the variable, which
/// counts less than a store that the command line names.
pub(super) fn check(matches: &ArgMatches, is_named: bool) -> Result<bool, CliError> {
    let Some((name, given)) = matches.subcommand() else { return Ok(false) };
    let has_store = matches.value_source("store") == Some(ValueSource::CommandLine);
    if has_store && !is_named {
        return Ok(false);
    }
    let known = match use_of(name) {
        Use::Server(known) => known,
        Use::Refused(hint) => {
            return Err(CliError::usage(format!("`{name}` does not work with a server")).hint(hint));
        }
        Use::Local | Use::Store if is_named => {
            let what = format!("`{name}` is about this machine, and uses no server");
            return Err(CliError::usage(what).hint("leave out `--server`"));
        }
        Use::Local | Use::Store => return Ok(false),
    };
    let is_given = |id: &str| given.value_source(id) == Some(ValueSource::CommandLine);
    let cli = Cli::command();
    let arguments = cli.find_subcommand(name).into_iter().flat_map(|command| command.get_arguments());
    let is_known = |id: &str| known.iter().any(|known| known.contains(&id));
    let wrong = arguments.filter(|argument| !is_known(argument.get_id().as_str()));
    if let Some(wrong) = wrong.into_iter().find(|argument| is_given(argument.get_id().as_str())) {
        let option = wrong.get_long().unwrap_or(wrong.get_id().as_str());
        let hint = hint_of(name, option);
        return Err(CliError::usage(format!("`--{option}` does not work with a server")).hint(hint));
    }
    if has_store {
        return Err(CliError::usage("`--store` and `--server` name two places of conversations")
            .hint("leave out one of them"));
    }
    Ok(true)
}

/// What to do instead of an option that does not work with a server.
fn hint_of(command: &str, option: &str) -> &'static str {
    match command {
        _ if option == "tenant" => "the token says whose conversations these are",
        _ if option == "by" => "the log names the token as the one who answers",
        "resume" if option == "as" => "`polylogue send ID TEXT --as NAME` sends a message as a participant",
        _ if option == "detach" => {
            "a server runs its conversations itself; to hand one of a store over to workers, leave out `--server`"
        }
        "verify" => {
            "conversations are repaired where the store of the server is; a recording is a file of this machine: leave out `--server`"
        }
        "cluster" => {
            "budgets are counted again and removed where the store of the server is: leave out `--server`"
        }
        "chat" => "a chat on a server is with one of its teams, and sends texts",
        "batch" => {
            "limits of each conversation are sent along; a budget of all is that of the token or of the server"
        }
        _ if option == "attach" => {
            "tasks and messages to a server are texts; `@FILE` sends the text of a file"
        }
        _ => "models, permissions and files of a team are those with which the server was started",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(words: &[&str]) -> Result<bool, String> {
        let words = ["polylogue"].iter().chain(words);
        let matches = Cli::command().try_get_matches_from(words).unwrap();
        check(&matches, true).map_err(|error| error.to_string())
    }

    #[test]
    fn a_store_of_the_command_line_counts_more_than_the_variable_of_a_server() {
        let is_of_server = |words: &[&str]| {
            let words = ["polylogue"].iter().chain(words);
            let matches = Cli::command().try_get_matches_from(words).unwrap();
            check(&matches, false).map_err(|error| error.to_string())
        };
        for command in [&["runs"][..], &["archive", "last"], &["run", "team.yaml", "--model", "openai:x"]] {
            let with_store = [command, &["--store", "x.db"]].concat();
            assert_eq!(is_of_server(&with_store), Ok(false), "{command:?}");
        }
        assert_eq!(is_of_server(&["runs"]), Ok(true));
        assert!(is_of_server(&["archive", "last"]).is_err());
    }

    #[test]
    fn every_known_argument_is_one_of_its_command() {
        let cli = Cli::command();
        for command in cli.get_subcommands() {
            let Use::Server(known) = use_of(command.get_name()) else { continue };
            for id in known.iter().copied().flatten() {
                let is_there = command.get_arguments().any(|argument| argument.get_id() == id);
                assert!(is_there, "`{}` has no `{id}`", command.get_name());
            }
        }
    }

    #[test]
    fn what_a_server_cannot_do_is_refused_and_named() {
        for words in [
            &["run", "pair", "--max-turns", "3", "--json"][..],
            &["pause", "last"],
            &["next", "last", "Ann"],
            &["send", "last", "Hi", "--as", "Ann"],
            &["send", "last", "Hi", "--system"],
            &["verify", "--json"],
            &["files", "last", "--to", "x"],
            &["cluster", "--json", "--limit", "5"],
            &["memory", "search", "tea", "--limit", "2"],
            &["batch", "pair", "--over", "rows.csv", "-o", "x", "--max-turns", "3"],
        ] {
            assert_eq!(checked(words), Ok(true), "{words:?}");
        }
        for (words, wrong) in [
            (&["run", "pair", "--model", "openai:x"][..], "`--model`"),
            (&["run", "pair", "--allow", "network"], "`--allow`"),
            (&["run", "pair", "--detach"], "a server runs its conversations itself"),
            (&["resume", "last", "Hi", "--as", "Ann"], "`polylogue send ID TEXT --as NAME` sends"),
            (&["verify", "last", "--repair"], "`--repair`"),
            (&["answer", "last", "yes", "--by", "Ann"], "the log names the token"),
            (&["send", "last", "Hi", "--attach", "a.png"], "are texts; `@FILE` sends"),
            (&["run", "pair", "Hi", "--attach", "a.png"], "tasks and messages to a server are texts"),
            (&["resume", "last", "Hi", "--attach", "a.png"], "tasks and messages to a server are texts"),
            (&["chat", "--attach", "a.png"], "sends texts"),
            (&["batch", "pair", "--over", "rows.csv", "-o", "x", "--budget", "1"], "`--budget`"),
            (&["chat", "--system", "x"], "`--system`"),
            (&["cluster", "--recount", "x"], "`--recount`"),
            (&["cluster", "--tenant", "x"], "the token says"),
            (&["resume", "last", "--tenant", "x"], "the token says"),
            (&["cluster", "--remove-budget", "x"], "`--remove-budget`"),
            (&["archive", "last"], "`archive` does not work with a server"),
            (&["check", "pair.yaml"], "`check` is about this machine"),
            (&["runs", "--store", "x"], "`--store` and `--server`"),
        ] {
            let error = checked(words).unwrap_err();
            assert!(error.contains(wrong) && error.contains("hint: "), "{words:?}: {error}");
        }
    }
}
