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
            Body::Failed { who, .. } => drop(self.take(&event.chat, who)),
            // The call was lost with its process.
            Body::Charged(Charge { who, why: ChargeReason::Crashed | ChargeReason::Repeated, .. }) => {
                drop(self.take(&event.chat, who));
            }
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
