//! Turns that are background tasks.

use std::fmt::Write as _;

use polylogue_core::{Act, Agent, AnyAgent, BackgroundStart, BackgroundStatus, Message, Result, Turn};

/// A participant whose turns are [background tasks](crate::tools::background): its turn ends at once, without a message, and the
/// conversation continues. When the result is there, the participant has a turn in which it says it.
///
/// It receives the messages that it can see as one text, and works in a conversation of its own. Its tasks are paid for by its chat and
/// the run, limited as other background tasks are, cancelled with the chat, and continued when a run is resumed. In a turn that comes while
/// it works, it says nothing. In a private turn, and where no further background task is allowed, it has its turn as without this layer.
///
/// A task that fails leads to a turn without a message. In a [graph](crate::policies::graph), the edges of a node fire when its result
/// is said.
///
/// ```
/// # fn example(model: polylogue::AnyModel) -> polylogue::Result<polylogue::Chat> {
/// use polylogue::layers::BackgroundTurns;
/// use polylogue::{Assistant, Chat, sequential};
///
/// let archive = BackgroundTurns::new(Assistant::new("Archive", model.clone())?);
/// Chat::builder("desk").participant(archive).participant(Assistant::new("Host", model)?).policy(sequential()).build()
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct BackgroundTurns {
    agent: AnyAgent,
}

impl BackgroundTurns {
    /// Wraps `agent`, so that its turns are background tasks.
    pub fn new(agent: impl Agent) -> Self {
        Self { agent: AnyAgent::new(agent) }
    }
}

impl Agent for BackgroundTurns {
    forward_agent!(agent: name, description, sub_agents);

    fn background_agent(&self, target: &str) -> Option<AnyAgent> {
        if target == self.name().as_str() {
            Some(self.agent.clone())
        } else {
            self.agent.background_agent(target)
        }
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        if turn.request().to.is_private() {
            return self.agent.act(turn).await;
        }
        let result = turn.transcript().result_of_turn(turn.me());
        match result.filter(|result| result.status != BackgroundStatus::Cancelled) {
            Some(result) if result.status == BackgroundStatus::Completed => {
                return Ok(Act::Say(result.parts.clone()));
            }
            Some(_) => return Ok(Act::Pass),
            None => {}
        }
        if turn.background_tasks().iter().any(|own| own.task.turn && own.status.is_none()) {
            return Ok(Act::Pass);
        }
        match turn.move_to_background(seen_by(turn)).await? {
            BackgroundStart::Started(_) => Ok(Act::Pass),
            BackgroundStart::Refused(_) => self.agent.act(turn).await,
        }
    }
}

/// The messages of the chat that the agent sees, as one text: each after the name of its author, unless it is the only one.
fn seen_by(turn: &Turn<'_>) -> String {
    let is_seen = |message: &&Message| message.from == *turn.me() || message.to.includes(turn.me());
    let all = turn.transcript().messages().map(|line| &line.message).filter(is_seen);
    let all: Vec<&Message> = all.filter(|message| !message.to_text().trim().is_empty()).collect();
    match all.as_slice() {
        [] => turn.transcript().task().to_owned(),
        [only] => only.to_text().into_owned(),
        all => all.iter().fold(String::new(), |mut text, message| {
            let gap = if text.is_empty() { "" } else { "\n\n" };
            // Writing to a text cannot fail.
            let _ = write!(text, "{gap}{}: {}", message.from, message.to_text());
            text
        }),
    }
}
