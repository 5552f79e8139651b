//! Commands and options that people guess, and arguments that they leave out.

use std::borrow::Cow;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::shipped::DEMO;

/// Commands that there are not, and what does the same. Some resemble a command that does something else: `list` is not `cluster`.
const GUESSED: [(&[&str], &str); 19] = [
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
    (&["start", "exec", "kickoff", "play"], "`polylogue run TEAM` runs a team"),
    (&["ask", "prompt", "talk"], "`polylogue chat` is a conversation with a model or a team"),
    (&["ui", "web", "studio", "dashboard"], "`polylogue serve TEAM` has a web page"),
    (&["watch", "tail", "follow"], "`polylogue serve` has a page that shows conversations while they run"),
    (&["convert"], "`polylogue import FILE` converts a definition of AutoGen"),
    (&["settings", "set"], SETTINGS),
    (&["version"], "the option `--version` prints the version"),
];

/// Words after `config` that are no commands of it.
const AFTER_CONFIG: [&str; 5] = ["show", "view", "edit", "model", "max_cost"];

/// How settings are listed and changed.
const SETTINGS: &str =
    "`polylogue config` lists the settings, `polylogue config set model openai:gpt-4o-mini` changes one";

/// Options that there are not, and what does the same.
const OPTIONS: [(&[&str], &str); 23] = [
    (
        &["--dry-run", "--plan"],
        "`polylogue check TEAM --price` checks a team and computes what a run takes at most; `--offline` plays its script",
    ),
    (&["--task", "--prompt", "--message"], "the task is an argument: `polylogue run TEAM \"TASK\"`"),
    (&["-p", "--param", "--set"], "`--var NAME=VALUE` sets a variable of the team file"),
    (&["--no-color"], "`--color never`, or the environment variable `NO_COLOR`"),
    (&["--debug", "--log-level"], "`-v` and `-vv` log to standard error, and `RUST_LOG` filters"),
    (
        &["--format", "--md", "--html"],
        "`--json` prints JSON, and `polylogue show ID --markdown` prints Markdown",
    ),
    (
        &["--output", "--out", "-o"],
        "the output can be redirected to a file; later, `polylogue show ID --markdown` prints it again",
    ),
    (
        &["--turn", "--step"],
        "`polylogue show ID --as AGENT --call N` shows the Nth request to the model of an agent",
    ),
    (&["--resume", "--continue"], "`polylogue resume ID` continues a run"),
    (&["--last", "--latest"], "`last` instead of an id is the newest conversation: `polylogue show last`"),
    (
        &["--temperature", "--top-p"],
        "the team file has the parameters of models: `parameters: {temperature: 0.3}` of an agent",
    ),
    (
        &["--human-input", "--human-input-mode"],
        "the team file says whether a person replies: `human_input: always` of an agent",
    ),
    (
        &["--yes", "-y"],
        "`--trust` trusts the team file, and its key `approval` says which calls a person is asked about",
    ),
    (&["--file", "--team"], "the team file is an argument: `polylogue run TEAM`"),
    (&["--template"], "the template is an argument: `polylogue new TEMPLATE FILE`"),
    (
        &["--host", "--port", "--bind", "--address"],
        "`--listen` has address and port: `polylogue serve TEAM --listen 127.0.0.1:8080`",
    ),
    (
        &["--rounds", "--turns", "--max-rounds", "--max-iterations"],
        "`--max-turns N` limits the turns of a run",
    ),
    (&["-i", "--interactive"], "`polylogue chat TEAM` is a conversation, line by line"),
    (
        &["--image", "--picture", "--document"],
        "`--attach FILE` attaches a picture, a document, a sound or a text",
    ),
    (&["--work-dir", "--workdir", "--cwd"], "`--dir FOLDER` lets agents work in that folder"),
    (
        &["--key", "--api-key"],
        "keys are read from the environment or from `.env`; `polylogue doctor` names the variables",
    ),
    (&["--stream"], "replies are streamed by default; `--no-stream` shows complete replies"),
    (&["--install-completion"], "`polylogue completions SHELL` prints completions for a shell"),
];

/// For an option before the command.
const BEFORE_COMMAND: &str =
    "options of a command follow it: `polylogue run TEAM --model openai:gpt-4o-mini`";

/// Arguments that are missing, and what they can be.
const MISSING: [(&str, &str); 5] = [
    ("<ID>", "`last` is the newest conversation; `polylogue runs` lists all"),
    ("<TEAM", "`polylogue new` writes a team file, and `polylogue run demo:council` runs a built-in demo"),
    ("--output", "for example `polylogue batch TEAM --over rows.jsonl -o results.jsonl`"),
    ("<VALUE>", "name and value are two words: `polylogue config set model openai:gpt-4o-mini`"),
    ("<SHELL>", "the shell is `bash`, `zsh`, `fish`, `elvish` or `powershell`"),
];

/// Arguments that are texts, as they end the usage of a command.
const TEXTS: [&str; 3] = ["[TASK]", "[MESSAGE]", "<TEXT>"];

const QUOTES: &str = "a text of several words must be in quotes";

/// `error`, with what was probably meant, if that is known.
pub(crate) fn explained(mut error: clap::Error) -> clap::Error {
    let known =
        command(&error).or_else(|| option(&error)).or_else(|| missing(&error)).or_else(|| words(&error));
    match known.map(Cow::Borrowed).or_else(|| team(&error)) {
        Some(tip) => {
            error.remove(ContextKind::SuggestedSubcommand);
            error.remove(ContextKind::SuggestedArg);
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into_owned().into()]));
        }
        None => drop_escape(&mut error),
    }
    error
}

/// What does the same as a command that there is not.
fn command(error: &clap::Error) -> Option<&'static str> {
    // Subcommands, such as those of `memory`, have other names.
    let usage = usage(error);
    match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(given)) if is_first(&usage) => tip_of(&GUESSED, given),
        Some(ContextValue::String(given)) if usage.contains("polylogue config ") => {
            AFTER_CONFIG.contains(&given.as_str()).then_some(SETTINGS)
        }
        _ => None,
    }
}

/// How to run a team file that is given where the command is missing.
fn team(error: &clap::Error) -> Option<Cow<'static, str>> {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let is_team =
        given.starts_with(DEMO) || [".yaml", ".yml", ".json"].iter().any(|end| given.ends_with(end));
    (is_team && is_first(&usage(error))).then(|| format!("`polylogue run {given}` runs a team file").into())
}

/// Whether the command of the program is missing or wrong, by the usage that is shown.
fn is_first(usage: &str) -> bool {
    usage.contains("polylogue [OPTIONS]")
}

/// What does the same as an option that there is not.
fn option(error: &clap::Error) -> Option<&'static str> {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(given)) if error.kind() == ErrorKind::UnknownArgument => {
            let has_tip = [ContextKind::Suggested, ContextKind::SuggestedArg]
                .iter()
                .any(|kind| error.get(*kind).is_some());
            let is_before = is_first(&usage(error)) && !has_tip;
            tip_of(&OPTIONS, given).or_else(|| is_before.then_some(BEFORE_COMMAND))
        }
        _ => None,
    }
}

/// Takes away the advice to give an unknown option as a value: it would become the task, or the message.
fn drop_escape(error: &mut clap::Error) {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else { return };
    let Some(ContextValue::StyledStrs(tips)) = error.get(ContextKind::Suggested) else { return };
    let is_escape = |tip: &str| tip.ends_with(&format!("as a value, use '-- {given}'"));
    if given.starts_with("--") && tips.iter().all(|tip| is_escape(&tip.to_string())) {
        error.remove(ContextKind::Suggested);
    }
}

/// What a missing argument can be.
fn missing(error: &clap::Error) -> Option<&'static str> {
    let Some(ContextValue::Strings(names)) = error.get(ContextKind::InvalidArg) else { return None };
    let is_missing = error.kind() == ErrorKind::MissingRequiredArgument;
    let of = |argument: &str| names.iter().any(|name| name.starts_with(argument));
    MISSING.iter().find(|(argument, _)| is_missing && of(argument)).map(|(_, tip)| *tip)
}

/// What is wrong with a further argument after a text.
fn words(error: &clap::Error) -> Option<&'static str> {
    let is_further = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(given)) if error.kind() == ErrorKind::UnknownArgument => {
            !given.starts_with('-')
        }
        _ => error.kind() == ErrorKind::TooManyValues,
    };
    let usage = usage(error);
    let ends_in_text = TEXTS.iter().any(|text| usage.trim_end().ends_with(text));
    (is_further && ends_in_text).then_some(QUOTES)
}

/// The usage that `error` shows; empty if it shows none.
fn usage(error: &clap::Error) -> String {
    match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => String::new(),
    }
}

fn tip_of(guesses: &[(&[&str], &'static str)], given: &str) -> Option<&'static str> {
    guesses.iter().find(|(words, _)| words.contains(&given)).map(|(_, tip)| *tip)
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
            assert_commands(tip);
        }
    }

    /// Each command that `tip` names is one.
    fn assert_commands(tip: &str) {
        for command in tip.split("`polylogue ").skip(1) {
            let name = command.split([' ', '`']).next().unwrap();
            assert!(Cli::command().find_subcommand(name).is_some(), "{tip}");
        }
    }

    #[test]
    fn a_guessed_option_is_answered_with_what_does_the_same() {
        for (words, tip) in OPTIONS {
            for word in words {
                let refusal = refusal(&["run", "team.yaml", *word]);
                assert!(refusal.contains(&format!("'{word}' found")), "{refusal}");
                assert!(refusal.contains(&format!("tip: {tip}\n")), "{refusal}");
                assert!(!refusal.contains("similar") && !refusal.contains("as a value"), "{refusal}");
            }
            assert_commands(tip);
        }
    }

    #[test]
    fn a_missing_argument_is_answered_with_what_it_can_be() {
        for (words, tip) in [
            (&["show"][..], MISSING[0].1),
            (&["resume"][..], MISSING[0].1),
            (&["run"][..], MISSING[1].1),
            (&["check"][..], MISSING[1].1),
            (&["batch", "team.yaml"][..], MISSING[2].1),
            (&["config", "set", "model=x"][..], MISSING[3].1),
            (&["completions"][..], MISSING[4].1),
        ] {
            let refusal = refusal(words);
            assert!(refusal.contains(&format!("tip: {tip}\n")), "{refusal}");
            assert_commands(tip);
        }
        assert!(!refusal(&["send", "last"]).contains("tip: "), "its text is missing");
    }

    #[test]
    fn a_text_without_quotes_is_answered_with_these() {
        for words in [
            &["run", "team.yaml", "Write", "a", "poem"][..],
            &["send", "last", "hello", "there"],
            &["resume", "last", "Go", "on"],
            &["answer", "last", "yes", "of", "course"],
        ] {
            let refusal = refusal(words);
            assert!(refusal.contains(&format!("tip: {QUOTES}\n")), "{refusal}");
        }
        for words in [&["runs", "all"][..], &["run", "team.yaml", "--such"]] {
            assert!(!refusal(words).contains(QUOTES), "{}", refusal(words));
        }
    }

    #[test]
    fn a_team_file_without_a_command_is_answered_with_the_command() {
        for team in ["team.yaml", "team.yml", "team.json", "demo:council"] {
            let refusal = refusal(&[team, "A task"]);
            assert!(
                refusal.contains(&format!("tip: `polylogue run {team}` runs a team file\n")),
                "{refusal}"
            );
        }
        assert!(!refusal(&["memory", "team.yaml"]).contains("runs a team file"));
    }

    #[test]
    fn settings_are_answered_with_their_commands() {
        for word in AFTER_CONFIG {
            let refusal = refusal(&["config", word]);
            assert!(refusal.contains(&format!("tip: {SETTINGS}\n")), "{refusal}");
        }
        assert_commands(SETTINGS);
    }

    #[test]
    fn an_option_before_the_command_is_answered_with_its_place() {
        let misspelled = refusal(&["--stroe", "talks.db", "runs"]);
        assert!(misspelled.contains("'--store'") && !misspelled.contains(BEFORE_COMMAND), "{misspelled}");
        let refusal = refusal(&["-m", "openai:x", "run", "team.yaml"]);
        assert!(refusal.contains(&format!("tip: {BEFORE_COMMAND}\n")), "{refusal}");
        assert_commands(BEFORE_COMMAND);
    }

    #[test]
    fn an_unknown_option_is_not_advised_as_a_text() {
        let of = |word: &str| refusal(&["run", "team.yaml", word]);
        assert!(!of("--nonsense").contains("as a value"), "{}", of("--nonsense"));
        assert!(of("-9").contains("use '-- -9'"), "{}", of("-9"));
    }

    #[test]
    fn other_commands_are_answered_as_before() {
        assert!(refusal(&["rum"]).contains("'run'"), "{}", refusal(&["rum"]));
        assert!(refusal(&["memory", "ls"]).contains("'list'"), "{}", refusal(&["memory", "ls"]));
    }
}
