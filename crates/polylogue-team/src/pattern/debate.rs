//! Debates: rounds of arguments, then a vote.

use std::collections::BTreeSet;

use polylogue::Result;
use polylogue::policies::debate::{self as library, Tie};
use polylogue_config::{At, Config, OneOrMany, Ref};
use polylogue_core::Name;

use super::part::{Agents, Built, ChatFrame, Part, listed};
use crate::diagnostic::Report;
use crate::flow::ChatFlow;
use crate::outline::Outline;
use crate::set::Set as _;
use crate::text::Participant;

/// Debate: rounds of arguments, then a vote. The result is the winning option.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
pub struct Debate {
    /// Options to vote on, at least two.
    #[key(required, nonempty)]
    pub options: Vec<At<String>>,
    /// Number of rounds of arguments before the vote.
    #[key(default = 1, range = 0..=1000)]
    pub rounds: u32,
    /// Participants argue one after the other instead of concurrently.
    #[key(default = false)]
    pub one_by_one: bool,
    /// Agents and people who vote. Voters that do not take part in the chat form a jury.
    #[key(as = OneOrMany<Ref<Participant>>, none = "the participants")]
    pub voters: Vec<Name>,
    /// Rule for a tied vote.
    #[key(as = TieKey, default = Tie::First)]
    pub tie: Tie,
}

/// Rule for a tied vote.
#[derive(Config)]
#[config(name = "Tie", for = Tie)]
enum TieKey {
    /// The first of the tied options wins.
    First,
    /// The vote remains undecided.
    Undecided,
    /// This agent or person decides.
    #[key(as = Ref<Participant>)]
    Chair(Name),
    /// Up to this many further rounds, each with a vote.
    #[key(range = 1..=1000)]
    Again(u32),
}

impl Part for Debate {
    fn check(&self, _: &ChatFrame<'_>, _: &Outline<'_>, report: &mut Report<'_>) {
        let mut seen = BTreeSet::new();
        for option in self.options.iter().filter(|option| option.ok) {
            if !seen.insert(option.trim().to_lowercase()) {
                report.error(&option.span, format!("the option `{option}` is listed twice"));
            }
        }
        if let [only] = self.options.as_slice() {
            report.error(&only.span, "a vote needs at least two options");
        }
    }

    fn describe(&self, _: &ChatFrame<'_>) -> String {
        let rounds = format!("{} {}", self.rounds, if self.rounds == 1 { "round" } else { "rounds" });
        let options = listed(self.options.iter().map(|option| option.as_str()));
        format!("{rounds} of arguments, then a vote on {options}")
    }

    fn has_own_limit(&self) -> bool {
        true
    }

    fn has_own_result(&self) -> bool {
        true
    }

    fn flow<'c>(&'c self, chat: &ChatFrame<'c>, _: &Outline<'c>) -> ChatFlow<'c> {
        match self.one_by_one {
            true => ChatFlow::repeated(chat.everyone()),
            false => ChatFlow::selected("all at the same time, in rounds"),
        }
        .ended_by("the vote")
    }

    fn private_agents(&self) -> Vec<&Name> {
        let chair = if let Tie::Chair(chair) = &self.tie { Some(chair) } else { None };
        self.voters.iter().chain(chair).collect()
    }

    fn build(&self, _: &ChatFrame<'_>, _: &dyn Agents) -> Result<Built> {
        let options = self.options.iter().map(|option| option.value.clone());
        let debate = library::Debate::between(options)?.rounds(self.rounds);
        let debate = debate.set_if(self.one_by_one, library::Debate::one_by_one);
        let debate = match self.voters.as_slice() {
            [] => debate,
            voters => debate.voters(voters.iter().cloned()),
        };
        Built::policy(debate.tie(self.tie.clone()))
    }
}
