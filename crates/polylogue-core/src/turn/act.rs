//! What an agent does with its turn.

use std::sync::Arc;

use crate::{Call, DefaultAnswer, Part, StopReason};

/// The action of an agent in its turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// Says something to the audience of its turn request.
    Say(Vec<Part>),
    /// Asks the person it stands for. The question is in the log at once. An answer that comes while other turns of the step are in
    /// progress continues the turn; when none is any more, the run ends as [waiting](crate::Status::Waiting), and the next one continues
    /// the turn.
    Ask(Arc<str>),
    /// Asks whether to approve `call`, as [`Ask`](Self::Ask). `text` is the whole question: it shows the arguments in full.
    Approve {
        /// The question.
        text: Arc<str>,
        /// The call that is made after approval.
        call: Box<Call>,
    },
    /// Asks as [`Ask`](Self::Ask) or [`Approve`](Self::Approve), where an answer counts by default after a time.
    AskWithDefault {
        /// The act that asks. Of any other act, the default has no effect.
        ask: Box<Self>,
        /// The default answer, and its time.
        default: DefaultAnswer,
    },
    /// Waits for the answer to a question that was asked in a chat within its turn.
    Wait,
    /// Leaves the chat for the given reason.
    Leave(String),
    /// Ends the chat. After that only private turns follow, such as one that writes a summary.
    Stop(StopReason),
    /// The agent has nothing to say.
    Pass,
}

impl Act {
    /// Says a text; a blank one is a pass.
    #[must_use]
    pub fn say(text: impl Into<Arc<str>>) -> Self {
        let part = Part::text(text);
        if part.is_blank() { Self::Pass } else { Self::Say(vec![part]) }
    }
}
