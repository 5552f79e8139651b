//! Handoffs: the speaker hands over to another participant with a tool call.

use polylogue::Result;
use polylogue::policies::handoff::{AfterHandoff, handoffs};
use polylogue_config::{At, Config, Ref};
use polylogue_core::Name;

use super::part::{Agents, Built, ChatFrame, Part};
use crate::agent::Agent;
use crate::diagnostic::Report;
use crate::flow::{ChatFlow, FlowStep, Point};
use crate::outline::Outline;
use crate::text::{END, MemberOrStay, MemberRef, STAY};

/// Settings of the handoffs pattern.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
pub struct Handoffs {
    /// First speaker.
    #[key(as = Option<MemberRef>, none = "the first participant")]
    pub start: Option<Name>,
    /// Next speaker after a turn without a handoff: `stay` (the same speaker), `end` (the chat ends), or a name.
    #[key(as = Ref<MemberOrStay>)]
    pub then: Name,
}

impl Part for At<Handoffs> {
    fn check(&self, chat: &ChatFrame<'_>, outline: &Outline<'_>, report: &mut Report<'_>) {
        let mut any = false;
        for agent in chat.everyone().filter_map(|who| outline.participant(who)?.agent()) {
            for target in agent.model().into_iter().flat_map(|keys| keys.handoffs.iter()) {
                any = true;
                if *target == agent.name {
                    report.error(&target.span, format!("`{}` cannot hand over to itself", agent.name));
                } else {
                    chat.check_has(target, outline, report);
                }
            }
        }
        if !any {
            let hint = "give an agent `handoffs`, such as `handoffs: [NAME]`";
            report.error_with_hint(self.key(), "no participant of this chat has `handoffs`", hint);
        }
    }

    fn describe(&self, chat: &ChatFrame<'_>) -> String {
        let then = match self.then.as_str() {
            STAY => "the speaker stays".to_owned(),
            END => "it ends".to_owned(),
            name => format!("{name} is next"),
        };
        let start = chat.start(self.start.as_ref()).map(|name| name.to_string()).unwrap_or_default();
        format!("handoffs, starting with {start}; without a handoff {then}")
    }

    fn takes_follow_ups(&self) -> bool {
        true
    }

    fn flow<'c>(&'c self, chat: &ChatFrame<'c>, outline: &Outline<'c>) -> ChatFlow<'c> {
        let start = self.start.as_ref().or(chat.participants.first().map(|name| &name.value));
        let mut steps: Vec<FlowStep<'c>> =
            start.map(|who| FlowStep::new(Point::Start, Point::Speaker(who))).into_iter().collect();
        for who in chat.everyone() {
            let from = Point::Speaker(&who.value);
            let keys = outline.participant(who).and_then(|one| one.agent()).and_then(Agent::model);
            let handed = keys.into_iter().flat_map(|keys| keys.handoffs.iter());
            steps.extend(
                handed
                    .map(|to| FlowStep::new(from, Point::Speaker(to)).when(Some("hands over")).at(&to.span)),
            );
            let then = match self.then.as_str() {
                STAY => from,
                END => Point::End,
                _ => Point::Speaker(&self.then),
            };
            steps.push(FlowStep::new(from, then).when(Some("no handoff")));
        }
        ChatFlow::of(steps)
    }

    fn build(&self, chat: &ChatFrame<'_>, _: &dyn Agents) -> Result<Built> {
        let after = match self.then.as_str() {
            STAY => AfterHandoff::Stay,
            END => AfterHandoff::End,
            _ => AfterHandoff::To(self.then.clone()),
        };
        Built::policy(handoffs(chat.start(self.start.as_ref())?, after))
    }
}
