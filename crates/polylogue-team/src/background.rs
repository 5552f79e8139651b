//! Background tasks of a chat: how many, and what happens to them at its end.

use polylogue_config::Config;
use polylogue_core::{Chat, ChatBuilder, OpenBackground};

/// Background tasks that participants of a chat start with `agent_tools` of `background: true`.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "Background")]
pub struct BackgroundKeys {
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
    /// `builder` with these settings.
    pub(crate) fn build(&self, builder: ChatBuilder) -> ChatBuilder {
        builder
            .max_background(self.max_tasks)
            .open_background(self.at_end)
            .max_follow_ups(self.max_follow_ups)
    }
}
