//! Replies that were cut off because no more was left of a limit: that limit counts as reached, although some of it may be left.

use super::event::{Body, Event};
use crate::{AllowanceOwner, Charge, ChargeReason, FinishReason, Name, OutputLimit, Path};

/// The replies that lowered output limits cut off. Rebuilt from the events of the log alone.
#[derive(Default)]
pub(crate) struct CutReplies {
    /// The lowered limits of calls that have no reply yet.
    sent: Vec<(Path, OutputLimit)>,
    /// The limits that cut a reply off, and were not raised since.
    pub(super) cut: Vec<(Path, OutputLimit)>,
}

impl CutReplies {
    pub(super) fn add(&mut self, event: &Event) {
        match &event.body {
            Body::OutputLimited(limit) => {
                self.take(&event.chat, &limit.who);
                self.sent.push((event.chat.clone(), limit.clone()));
            }
            Body::ModelReplied(reply) => {
                let sent = self.take(&event.chat, &reply.who);
                self.cut.extend(sent.filter(|_| reply.finish == FinishReason::Length));
            }
            // The call failed, was aborted, or was lost with its process. The next one may have another limit, or none.
            Body::Failed { who, .. }
            | Body::CapabilityMissing { who, .. }
            | Body::SealsRefused { who, .. }
            | Body::TooLong { who, .. }
            | Body::ContinuationFailed { who, .. }
            | Body::ReplyInterrupted { who, .. }
            | Body::Charged(Charge {
                who,
                why: ChargeReason::Cancelled | ChargeReason::Crashed | ChargeReason::Repeated,
                ..
            }) => drop(self.take(&event.chat, who)),
            // Those who continue it have seen why it ended. An agent that is called in a turn has not.
            Body::LimitsChanged { .. } => self.cut.clear(),
            Body::Reopened { .. } if event.chat.is_outermost() => self.cut.clear(),
            Body::Reopened { .. } => self.cut.retain(|(_, limit)| !is_of_chat(limit, &event.chat)),
            _ => {}
        }
    }

    fn take(&mut self, at: &Path, who: &Name) -> Option<(Path, OutputLimit)> {
        let place = self.sent.iter().position(|(path, limit)| path == at && limit.who == *who)?;
        Some(self.sent.swap_remove(place))
    }
}

fn is_of_chat(limit: &OutputLimit, path: &Path) -> bool {
    matches!(limit.of.owned().0, Some(AllowanceOwner::Chat { path: at, .. }) if at == path)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Capability, Digest, ModelReply, StopReason, Timestamp};

    fn replied(finish: FinishReason) -> Body {
        let reply = ModelReply::new(Name::user(), "m", Digest([0; 16]), Vec::new());
        Body::ModelReplied(ModelReply { finish, ..reply })
    }

    /// The limit of a call that got no reply says nothing of the next one, which an agent's own `max_tokens` can cut off.
    #[test]
    fn only_the_reply_of_a_lowered_call_reaches_a_limit() {
        let (who, model): (_, Arc<str>) = (Name::user(), "m".into());
        let of = StopReason::Tokens { limit: 9, used: 1, next: None, cut: None };
        let named = || (who.clone(), Arc::clone(&model));
        let lowered = || {
            let ((who, model), of) = (named(), of.clone());
            Body::OutputLimited(OutputLimit { who, model, tokens: 8, of })
        };
        let charged = |reason| {
            let (who, model) = named();
            Body::Charged(Charge::of(who, model, reason))
        };
        let why: Arc<str> = "no".into();
        let ((who, model), text) = (named(), Arc::clone(&why));
        let aborted = Body::ReplyInterrupted { who, model, text };
        let ((who, model), capability) = (named(), Capability::Tools);
        let missing = Body::CapabilityMissing { who, model, capability, why: Arc::clone(&why) };
        let ((who, model), tokens, limit) = (named(), None, None);
        let too_long = Body::TooLong { who, model, tokens, limit, why };
        for (between, is_cut) in [
            (None, true),
            // Another attempt of the same call follows.
            (Some(charged(ChargeReason::Failed)), true),
            (Some(charged(ChargeReason::Discarded)), true),
            (Some(charged(ChargeReason::Unreported)), true),
            (Some(charged(ChargeReason::Cancelled)), false),
            (Some(charged(ChargeReason::Crashed)), false),
            (Some(too_long), false),
            (Some(missing), false),
            (Some(aborted), false),
            (Some(replied(FinishReason::Stop)), false),
        ] {
            let mut replies = CutReplies::default();
            let bodies = [Some(lowered()), between.clone(), Some(replied(FinishReason::Length))];
            for (seq, body) in (0..).zip(bodies.into_iter().flatten()) {
                let (chat, time) = (Path::root(), Timestamp(0));
                replies.add(&Event { seq, chat, time, ran_ms: 0, inbox: None, body });
            }
            assert_eq!(!replies.cut.is_empty(), is_cut, "{between:?}");
        }
    }
}
