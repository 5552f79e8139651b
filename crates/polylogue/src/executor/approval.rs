//! A person who looks at calls before they are made.

use std::fmt;
use std::sync::Arc;

use polylogue_core::{Act, Call, Name, Outcome, Part, Turn};
use serde_json::Value;

use crate::verdict::{self, Verdict};

/// When a person is asked before a call is made: by a rule, or never.
#[derive(Clone, Default)]
pub(super) struct Approval(Option<Arc<Rule>>);

type Rule = dyn Fn(&Name, &Call) -> bool + Send + Sync;

/// What a person made of the calls.
pub(super) struct Approved {
    /// With the arguments that the person gave.
    pub(super) calls: Vec<Call>,
    /// For each call, why it is not made.
    rejected: Vec<Option<String>>,
    /// For each call, whether its arguments were changed.
    edited: Vec<bool>,
}

impl Approval {
    pub(super) fn when(rule: impl Fn(&Name, &Call) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(rule)))
    }

    /// What the person says to the calls that the rule names, of those that `can_be_made`; how the turn ends when there is no answer yet.
    pub(super) fn of(
        &self,
        turn: &mut Turn<'_>,
        due: &[(Name, Call)],
        calls: Vec<Call>,
        can_be_made: impl Fn(&Call) -> bool,
    ) -> Result<Approved, Act> {
        let (rejected, edited) = (vec![None; calls.len()], vec![false; calls.len()]);
        let mut approved = Approved { calls, rejected, edited };
        let Some(rule) = &self.0 else { return Ok(approved) };
        let is_asked = |who: &Name, call: &Call| can_be_made(call) && rule(who, call);
        for (nth, (who, call)) in due.iter().enumerate().filter(|(_, (who, call))| is_asked(who, call)) {
            let mut unclear = false;
            loop {
                let Some(answer) = turn.answer() else {
                    return Err(Act::Ask(question(who, call, unclear).into()));
                };
                match verdict::read(&answer, turn.me()) {
                    Some(Verdict::Run) => {}
                    Some(Verdict::End(reason)) => return Err(Act::Stop(reason)),
                    Some(Verdict::Rejected(why)) => approved.reject(nth, &why),
                    Some(Verdict::Edited(text)) if approved.edit(nth, &text) => {}
                    Some(Verdict::Edited(_)) | None => {
                        unclear = true;
                        continue;
                    }
                }
                break;
            }
        }
        Ok(approved)
    }
}

impl Approved {
    fn reject(&mut self, nth: usize, why: &str) {
        if let Some(slot) = self.rejected.get_mut(nth) {
            *slot = Some(verdict::rejected("This call was not made", why));
        }
    }

    /// Puts other arguments in place, if they are some.
    fn edit(&mut self, nth: usize, text: &str) -> bool {
        let args = serde_json::from_str::<Value>(text).ok().filter(Value::is_object);
        match (args, self.calls.get_mut(nth), self.edited.get_mut(nth)) {
            (Some(args), Some(call), Some(edited)) => {
                call.args = args;
                *edited = true;
                true
            }
            _ => false,
        }
    }

    /// The calls that are made.
    pub(super) fn made(&self) -> Vec<Call> {
        let calls = self.calls.iter().zip(&self.rejected);
        calls.filter(|(_, why)| why.is_none()).map(|(call, _)| call.clone()).collect()
    }

    /// The outcomes of all calls, given those of the ones that were made.
    pub(super) fn outcomes(self, made: Vec<Outcome>) -> Vec<Outcome> {
        let mut made = made.into_iter();
        let all = self.calls.into_iter().zip(self.rejected).zip(self.edited);
        all.filter_map(|((call, rejected), edited)| {
            if let Some(why) = rejected {
                return Some(Outcome::failed(why));
            }
            let mut outcome = made.next()?;
            if edited {
                let note = format!("(Before it was made, its arguments were changed to: {})", call.args);
                outcome.parts.push(Part::text(note));
            }
            Some(outcome)
        })
        .collect()
    }
}

fn question(who: &Name, call: &Call, unclear: bool) -> String {
    let again = if unclear { verdict::UNCLEAR } else { "" };
    let (tool, args, choices) =
        (&call.tool, &call.args, verdict::choices("a JSON object of other arguments"));
    format!("{again}`{who}` calls `{tool}` with {args}.\n{choices}")
}

impl fmt::Debug for Approval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Approval(by rule)" } else { "Approval(never)" })
    }
}
