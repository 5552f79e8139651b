//! A person who looks at code before it is run.

use std::fmt;
use std::sync::Arc;

use polylogue_core::{Reason, Turn};

use super::{Block, blocks};

/// When a person is asked before code is run.
///
/// The person may let it run, reject it, or put other code in its place; the question and the answer are in the log, and
/// the run waits with [`Status::Waiting`](polylogue_core::Status) meanwhile. What is rejected is a failed execution: the
/// conversation goes on.
#[derive(Clone)]
pub struct Approval(Option<Arc<Rule>>);

type Rule = dyn Fn(&Block) -> bool + Send + Sync;

/// What a person makes of a block.
pub(super) enum Verdict {
    /// There is no answer yet to this question.
    Unasked(String),
    Run,
    Edited(String),
    /// It is not to be run, and what is told of it.
    Rejected(String),
    /// The chat is to end.
    End(Reason),
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
    pub(super) fn of(&self, turn: &mut Turn<'_>, block: &Block) -> Option<Verdict> {
        let rule = self.0.as_ref()?;
        if !rule(block) {
            return None;
        }
        let mut unclear = false;
        while let Some(answer) = turn.answer() {
            match read(&answer, turn) {
                Some(verdict) => return Some(verdict),
                None => unclear = true,
            }
        }
        Some(Verdict::Unasked(question(turn, block, unclear)))
    }
}

fn question(turn: &Turn<'_>, block: &Block, unclear: bool) -> String {
    let again = if unclear { "That was none of the answers below. " } else { "" };
    let language = block.language.as_deref().unwrap_or("this");
    let inferred = if block.inferred { ", by the look of it" } else { "" };
    let me = turn.me();
    format!(
        "{again}`{me}` is about to run {language} code{inferred}:\n{}\nEnter runs it; `no`, with a reason if you like, rejects \
         it; code in a fenced block is run in its place; `exit` ends the conversation.",
        block.fenced(&block.code)
    )
}

fn read(answer: &str, turn: &Turn<'_>) -> Option<Verdict> {
    let answer = answer.trim();
    if let Some(edited) = blocks(answer).into_iter().next() {
        return Some(Verdict::Edited(edited.code));
    }
    let (word, rest) = answer.split_at(answer.find(|c: char| !c.is_alphabetic()).unwrap_or(answer.len()));
    let rest = rest.trim_start_matches([',', ':', '.', ';', '-', ' ', '\t', '\n']).trim();
    match word.to_lowercase().as_str() {
        "" | "y" | "yes" | "run" | "ok" if rest.is_empty() => Some(Verdict::Run),
        "exit" if rest.is_empty() => {
            Some(Verdict::End(Reason::Left { who: turn.me().clone(), why: "said `exit`".into() }))
        }
        "n" | "no" | "reject" if rest.is_empty() => {
            Some(Verdict::Rejected("The code was not run: it was rejected.".into()))
        }
        "n" | "no" | "reject" => {
            Some(Verdict::Rejected(format!("The code was not run: it was rejected. {rest}")))
        }
        _ => None,
    }
}

impl fmt::Debug for Approval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Approval(by rule)" } else { "Approval(never)" })
    }
}
