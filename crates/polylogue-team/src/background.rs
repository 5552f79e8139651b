//! Background tasks of a chat: which turns are some, how many there can be, and what happens to them at its end.

use polylogue::layers::BackgroundTurns;
use polylogue_config::{At, Config};
use polylogue_core::{AnyAgent, Chat, ChatBuilder, Name, OpenBackground};

use crate::diagnostic::Report;
use crate::pattern::Part;
use crate::text::MemberRef;

/// Background tasks of a chat: those that participants start with `agent_tools` of `background: true`, and turns of `participants`.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "Background")]
pub struct BackgroundKeys {
    /// Participants whose turns are background tasks: such a turn ends at once, the conversation continues, and the participant says
    /// the result in another turn, when it is there. With the patterns `round_robin`, `sequential`, `parallel`, `group`, `graph`
    /// and `dag`; in the last two, participants that depend on it wait for the result.
    #[key(as = Vec<At<MemberRef>>, unique)]
    pub participants: Vec<At<Name>>,
    /// Maximum number of tasks that are open at the same time. A further one is refused.
    #[key(default = Chat::DEFAULT_MAX_BACKGROUND, range = 1..=64)]
    pub max_tasks: usize,
    /// What happens to tasks that are open when the chat would end as completed. When it ends for another reason, such as a limit,
    /// they are cancelled.
    #[key(as = OpenTasksKey, default = OpenBackground::Wait)]
    pub at_end: OpenBackground,
    /// Maximum number of turns that each participant has for results that come when the chat would end.
    #[key(default = Chat::DEFAULT_MAX_FOLLOW_UPS, range = 0..=1_000)]
    pub max_follow_ups: u64,
}

/// What happens to background tasks when their chat would end.
#[derive(Config)]
#[config(name = "OpenTasks", for = OpenBackground)]
enum OpenTasksKey {
    /// The chat waits for them, and an agent that started some has one more turn for the results, if the pattern is `round_robin`,
    /// `sequential`, `parallel`, `group` or `handoffs`.
    Wait,
    /// They are cancelled, and the chat ends.
    Cancel,
}

impl BackgroundKeys {
    /// Whether turns of `who` are background tasks.
    pub(crate) fn has(&self, who: &Name) -> bool {
        self.participants.iter().any(|participant| participant == who)
    }

    /// The participant `agent`, whose turns may be background tasks.
    pub(crate) fn participant(&self, agent: AnyAgent) -> AnyAgent {
        use polylogue_core::Agent as _;
        if self.has(agent.name()) { AnyAgent::new(BackgroundTurns::new(agent)) } else { agent }
    }

    /// Reports participants of a chat with the pattern `part` whose turns cannot be background tasks.
    pub(crate) fn check(&self, part: &dyn Part, report: &mut Report<'_>) {
        let Some(first) = self.participants.first() else { return };
        if !part.has_background_turns() {
            let hint = "use `round_robin`, `sequential`, `parallel`, `group`, `graph` or `dag`, or start the task with `agent_tools`";
            report.error_with_hint(&first.span, "this pattern has no turns in the background", hint);
        }
        let count = self.participants.len();
        if count > self.max_tasks {
            let message = format!(
                "{count} participants have turns in the background, and `max_tasks` is {}",
                self.max_tasks
            );
            report.error_with_hint(&first.span, message, format!("set `max_tasks` to {count} or more"));
        }
    }

    /// `builder` with these settings.
    pub(crate) fn build(&self, builder: ChatBuilder) -> ChatBuilder {
        builder
            .max_background(self.max_tasks)
            .open_background(self.at_end)
            .max_follow_ups(self.max_follow_ups)
    }
}
