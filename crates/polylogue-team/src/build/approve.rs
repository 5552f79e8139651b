//! A person who is asked before something is done.

use polylogue::approval::Wanted;
use polylogue::code::Block;
use polylogue::{Approval, Error, Result};

use super::Crew;
use super::agent::expression;
use super::tools::runs_programs;
use crate::approve::{Approve, ApproveCalls};
use crate::condition::{CallCondition, CodeCondition, NoCondition};
use crate::working::Place;

impl Crew<'_> {
    /// When a person is asked before code is run: what nothing encloses is never run unasked, unless the file says so.
    pub(super) fn approval_of_code(&self, given: Option<&Approve>) -> Result<Approval<Block>> {
        Ok(match given {
            None if self.is_open() => Approval::always(),
            None | Some(Approve::Never) => Approval::never(),
            Some(Approve::Always) => Approval::always(),
            Some(Approve::When(text)) => {
                let condition = CodeCondition::new(text).map_err(|error| refused(text, &error))?;
                Approval::when(move |block| condition.holds(block))
            }
            Some(Approve::Matches(pattern)) => {
                let regex = expression(pattern)?;
                Approval::when(move |block: &Block| regex.is_match(&block.code))
            }
        })
    }

    /// The same of calls of tools.
    pub(super) fn approval_of_calls(&self, given: Option<&ApproveCalls>) -> Result<Approval<Wanted>> {
        Ok(match given {
            None if self.is_open() => {
                let commands: Vec<String> = self.team.commands.iter().map(|of| of.name.clone()).collect();
                Approval::when(move |Wanted { call, .. }| {
                    runs_programs(&call.tool) || commands.contains(&call.tool)
                })
            }
            None | Some(ApproveCalls::Never) => Approval::never(),
            Some(ApproveCalls::Always) => Approval::always(),
            Some(ApproveCalls::Tools(names)) => Approval::of_tools(names.iter().cloned()),
            Some(ApproveCalls::When(text)) => {
                let condition = CallCondition::new(text).map_err(|error| refused(text, &error))?;
                Approval::when(move |wanted| condition.holds(wanted))
            }
            Some(ApproveCalls::Matches(pattern)) => {
                let regex = expression(pattern)?;
                Approval::when(move |wanted: &Wanted| regex.is_match(&wanted.call.args.to_string()))
            }
        })
    }

    /// Whether nothing encloses what is run.
    fn is_open(&self) -> bool {
        self.team.sandbox.place == Place::UnsafeHost
    }
}

fn refused(text: &str, error: &NoCondition) -> Error {
    Error::Config(format!("`{text}` is no condition: {}", error.why))
}
