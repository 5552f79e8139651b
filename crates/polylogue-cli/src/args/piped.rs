//! What a standard input that is not a terminal is read for.

use clap::{Args, ValueEnum};

use crate::error::CliError;
use crate::text_arg::is_input;

/// Which questions lines of a standard input that is not a terminal answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Input {
    // Without docs of their own, so that the help keeps its short form.
    Answers,
    Approvals,
    None,
}

/// Where answers come from when there is no terminal.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct Piped {
    /// If standard input is a pipe or a file, which questions its lines answer: those to a person (`answers`), also those for approval of tools and code (`approvals`), or none (`none`). Default: `answers`; with `-` as text, or with `--answer`, `none`
    #[arg(long = "input", value_name = "WHAT")]
    given: Option<Input>,
}

impl Piped {
    /// What it answers. It cannot be the `text` of the command line, too.
    pub(crate) fn of(self, text: Option<&str>, answer: Option<&str>) -> Result<Input, CliError> {
        let is_text = text.is_some_and(is_input);
        match self.given {
            Some(Input::Answers | Input::Approvals) if is_text => {
                let what = "standard input cannot be both the text of the command line and the answers";
                Err(CliError::usage(what).hint("write the text instead of `-`, or leave out `--input`"))
            }
            Some(given) => Ok(given),
            None if is_text || answer.is_some() => Ok(Input::None),
            None => Ok(Input::Answers),
        }
    }
}
