//! Hints of errors, whose commands name the store or the server of the command line, so that they work as they are printed.

use std::borrow::Cow;
use std::path::Path;

use clap::CommandFactory as _;

use crate::args::uses::{Use, use_of};
use crate::args::{Cli, Command};
use crate::error::CliError;
use crate::place::{PlaceOption, shell_word};
use crate::shipped::DEMO;

/// `error`, whose hint is for conversations at `place`.
pub(crate) fn of(error: CliError, place: &PlaceOption) -> CliError {
    error.map_hint(|hint| at(&hint, place))
}

/// `error`, with what is probably meant where `command` names no conversation, but a team file, or a text that belongs behind it.
pub(crate) fn of_command(error: CliError, command: &Command) -> CliError {
    let (name, id, text) = match command {
        Command::Resume(args) => ("resume", &args.id, args.message.as_deref()),
        Command::Show(args) => ("show", &args.id, None),
        Command::Send(args) => ("send", &args.id, Some(args.text.as_str())),
        Command::Answer(args) => ("answer", &args.id, args.answer.last().map(String::as_str)),
        _ => return error,
    };
    if !error.says(&format!("there is no conversation `{id}`")) {
        return error;
    }
    let is_team = id.starts_with(DEMO) || [".yaml", ".yml", ".json"].iter().any(|end| id.ends_with(end));
    if is_team {
        let file = shell_word(Path::new(id));
        return error.hint(format!("it is a team file: `polylogue run {file}` runs it"));
    }
    match text {
        Some(text) if text == "last" || id.contains(char::is_whitespace) => {
            error.hint(format!("the text comes after the conversation: `polylogue {name} last TEXT`"))
        }
        _ => error,
    }
}

/// `hint`, in which the commands on conversations have the option of `place`.
pub(crate) fn at(hint: &str, place: &PlaceOption) -> String {
    let parts = hint.split('`').enumerate().map(|(nth, part)| {
        let command = part.strip_prefix("polylogue ").filter(|_| nth % 2 == 1);
        match command.filter(|command| needs(command, place)) {
            Some(command) => {
                let words = [part].into_iter().chain(place.options(has_tenant(command)));
                Cow::Owned(words.collect::<Vec<_>>().join(" "))
            }
            None => Cow::Borrowed(part),
        }
    });
    parts.collect::<Vec<_>>().join("`")
}

/// Whether the command is about the conversations at `place`, works with them, and names no place itself.
fn needs(command: &str, place: &PlaceOption) -> bool {
    let mut words = command.split_whitespace();
    let Some(name) = words.next() else { return false };
    let options: Vec<&str> = words.filter_map(|word| word.strip_prefix("--")).collect();
    if options.contains(&"store") || options.contains(&"server") {
        return false;
    }
    match (use_of(name), place) {
        (Use::Local, _) | (_, PlaceOption::Unneeded) => false,
        (_, PlaceOption::Store { .. }) => true,
        (Use::Server(known), PlaceOption::Server(_)) => {
            options.iter().all(|option| is_known(name, option, known))
        }
        (Use::Refused(_) | Use::Store, PlaceOption::Server(_)) => false,
    }
}

/// Whether the command can be about the conversations of another tenant.
fn has_tenant(command: &str) -> bool {
    let cli = Cli::command();
    let name = command.split_whitespace().next().unwrap_or_default();
    let mut arguments = cli.find_subcommand(name).into_iter().flat_map(|command| command.get_arguments());
    arguments.any(|argument| argument.get_id() == "tenant")
}

/// Whether the option of the command is one of the `known` arguments.
fn is_known(command: &str, option: &str, known: &[&[&str]]) -> bool {
    let cli = Cli::command();
    let mut arguments = cli.find_subcommand(command).into_iter().flat_map(|command| command.get_arguments());
    let found = arguments.find(|argument| argument.get_long() == Some(option));
    found.is_some_and(|argument| known.iter().any(|known| known.contains(&argument.get_id().as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::NamedStore;

    #[test]
    fn commands_on_conversations_name_their_store() {
        let store = PlaceOption::naming_store(Path::new("my talks.db"));
        for (hint, expected) in [
            ("`polylogue runs` lists them", "`polylogue runs --store 'my talks.db'` lists them"),
            (
                "set `X`; `polylogue resume 3k7v9x --answer TEXT` and `polylogue token new` help",
                "set `X`; `polylogue resume 3k7v9x --answer TEXT --store 'my talks.db'` and `polylogue token new --store 'my talks.db'` help",
            ),
            ("`polylogue check --price` has it", "`polylogue check --price` has it"),
            ("`polylogue runs --store other.db`", "`polylogue runs --store other.db`"),
            ("polylogue runs", "polylogue runs"),
        ] {
            assert_eq!(at(hint, &store), expected);
            assert_eq!(at(hint, &PlaceOption::default()), hint);
        }
    }

    #[test]
    fn commands_on_conversations_of_a_tenant_name_it() {
        let named = NamedStore { store: Some("talks.db".into()), tenant: Some("acme".into()) };
        let hint = "`polylogue runs` lists them; `polylogue run TEAM` begins one, `polylogue config set`";
        let expected = "`polylogue runs --store talks.db --tenant acme` lists them; `polylogue run TEAM --store talks.db` begins one, `polylogue config set`";
        assert_eq!(at(hint, &PlaceOption::of_store(&named)), expected);
    }

    #[test]
    fn commands_that_work_with_a_server_name_it() {
        let server = PlaceOption::naming_server("http://127.0.0.1:8787");
        let named = |command: &str| {
            let hint = format!("`polylogue {command}`");
            let with_server = format!("`polylogue {command} --server http://127.0.0.1:8787`");
            let found = at(&hint, &server);
            assert!(found == hint || found == with_server, "{found}");
            found == with_server
        };
        for command in ["runs", "show 3k7v9x --json", "memory list", "verify 3k7v9x", "run TEAM"] {
            assert!(named(command), "{command}");
        }
        for command in ["verify --repair", "resume --take-over", "move 3k7v9x", "token new", "config set"] {
            assert!(!named(command), "{command}");
        }
    }
}
