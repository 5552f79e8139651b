//! A person who looks at code before it is run.

use std::fmt;
use std::sync::Arc;

use polylogue_core::Turn;

use super::Block;
use crate::verdict::{self, Verdict};

/// When a person is asked before code is run.
///
/// The person may let it run, reject it, or put other code in its place; the question and the answer are in the log, and
/// the run waits with [`Status::Waiting`](polylogue_core::Status) meanwhile. What is rejected is a failed execution: the
/// conversation goes on.
#[derive(Clone)]
pub struct Approval(Option<Arc<Rule>>);

type Rule = dyn Fn(&Block) -> bool + Send + Sync;

/// How it stands with the approval of a block.
pub(super) enum Asked {
    /// There is no answer yet to this question.
    Open(String),
    Answered(Verdict),
}

impl Approval {
    /// Nobody is asked.
    #[must_use]
    pub const fn never() -> Self {
        Self(None)
    }

    /// A person is asked before every block.
    #[must_use]
    pub fn always() -> Self {
        Self::when(|_| true)
    }

    /// A person is asked before the blocks for which `rule` holds: a pure function of them.
    #[must_use]
    pub fn when(rule: impl Fn(&Block) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(rule)))
    }

    /// What the person says to `block`; none when nobody is to be asked.
    pub(super) fn of(&self, turn: &mut Turn<'_>, block: &Block) -> Option<Asked> {
        let rule = self.0.as_ref()?;
        if !rule(block) {
            return None;
        }
        let mut unclear = false;
        while let Some(answer) = turn.answer() {
            match verdict::read(&answer, turn.me()) {
                Some(verdict) => return Some(Asked::Answered(verdict)),
                None => unclear = true,
            }
        }
        Some(Asked::Open(question(turn, block, unclear)))
    }
}

fn question(turn: &Turn<'_>, block: &Block, unclear: bool) -> String {
    let again = if unclear { verdict::UNCLEAR } else { "" };
    let language = block.language.as_deref().unwrap_or("this");
    let inferred = if block.inferred { ", by the look of it" } else { "" };
    let me = turn.me();
    let choices = verdict::choices("code");
    format!(
        "{again}`{me}` is about to run {language} code{inferred}:\n{}\n{choices}",
        block.fenced(&block.code)
    )
}

impl fmt::Debug for Approval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Approval(by rule)" } else { "Approval(never)" })
    }
}
