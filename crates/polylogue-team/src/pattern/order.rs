//! Patterns by the order of the participants.

use polylogue::{Result, parallel, round_robin, sequential};

use super::part::{Agents, Built, ChatFrame, Part};
use crate::flow::{ChatFlow, FlowStep, Point};
use crate::outline::Outline;

/// Participants speak in order, repeatedly.
pub(super) struct RoundRobin;
/// Each participant speaks once, in order.
pub(super) struct Sequential;
/// Every participant speaks once, concurrently.
pub(super) struct Parallel;

impl Part for RoundRobin {
    fn describe(&self, _: &ChatFrame<'_>) -> String {
        "in turn".to_owned()
    }

    fn takes_follow_ups(&self) -> bool {
        true
    }

    fn has_background_turns(&self) -> bool {
        true
    }

    fn flow<'c>(&'c self, chat: &ChatFrame<'c>, _: &Outline<'c>) -> ChatFlow<'c> {
        ChatFlow::repeated(chat.everyone())
    }

    fn build(&self, _: &ChatFrame<'_>, _: &dyn Agents) -> Result<Built> {
        Built::policy(round_robin())
    }
}

impl Part for Sequential {
    fn describe(&self, _: &ChatFrame<'_>) -> String {
        "each once, in their order".to_owned()
    }

    fn takes_follow_ups(&self) -> bool {
        true
    }

    fn has_background_turns(&self) -> bool {
        true
    }

    fn flow<'c>(&'c self, chat: &ChatFrame<'c>, _: &Outline<'c>) -> ChatFlow<'c> {
        ChatFlow::once(chat.everyone())
    }

    fn has_one_turn_each(&self) -> bool {
        true
    }

    fn build(&self, _: &ChatFrame<'_>, _: &dyn Agents) -> Result<Built> {
        Built::policy(sequential())
    }
}

impl Part for Parallel {
    fn describe(&self, _: &ChatFrame<'_>) -> String {
        "each once, at the same time".to_owned()
    }

    fn takes_follow_ups(&self) -> bool {
        true
    }

    fn has_background_turns(&self) -> bool {
        true
    }

    fn flow<'c>(&'c self, chat: &ChatFrame<'c>, _: &Outline<'c>) -> ChatFlow<'c> {
        let each = chat.everyone().map(|name| Point::Speaker(name));
        ChatFlow::of(
            each.flat_map(|who| [FlowStep::new(Point::Start, who), FlowStep::new(who, Point::End)]).collect(),
        )
    }

    fn has_one_turn_each(&self) -> bool {
        true
    }

    fn build(&self, _: &ChatFrame<'_>, _: &dyn Agents) -> Result<Built> {
        Built::policy(parallel())
    }
}
