//! Patterns by the order of the participants.

use polylogue::{Result, parallel, round_robin, sequential};

use super::part::{Agents, Built, ChatFrame, Part};
use crate::flow::{ChatFlow, FlowStep, Point};
use crate::outline::Outline;

/// When participants speak who are selected by nothing else.
pub(super) enum Order {
    /// In order, repeatedly.
    RoundRobin,
    /// Each once, in order.
    Sequential,
    /// Each once, concurrently.
    Parallel,
}

impl Part for Order {
    fn describe(&self, frame: &ChatFrame<'_>) -> String {
        match self {
            Self::RoundRobin => "in turn",
            Self::Sequential | Self::Parallel if frame.everyone().nth(1).is_none() => "once",
            Self::Sequential => "each once, in their order",
            Self::Parallel => "each once, at the same time",
        }
        .to_owned()
    }

    fn has_one_turn_each(&self) -> bool {
        !matches!(self, Self::RoundRobin)
    }

    fn takes_follow_ups(&self) -> bool {
        true
    }

    fn has_background_turns(&self) -> bool {
        true
    }

    fn flow<'c>(&'c self, chat: &ChatFrame<'c>, _: &Outline<'c>) -> ChatFlow<'c> {
        let steps = |who| [FlowStep::new(Point::Start, who), FlowStep::new(who, Point::End)];
        match self {
            Self::RoundRobin => ChatFlow::repeated(chat.everyone()),
            Self::Sequential => ChatFlow::once(chat.everyone()),
            Self::Parallel => {
                ChatFlow::of(chat.everyone().flat_map(|name| steps(Point::Speaker(name))).collect())
            }
        }
    }

    fn build(&self, _: &ChatFrame<'_>, _: &dyn Agents) -> Result<Built> {
        match self {
            Self::RoundRobin => Built::policy(round_robin()),
            Self::Sequential => Built::policy(sequential()),
            Self::Parallel => Built::policy(parallel()),
        }
    }
}
