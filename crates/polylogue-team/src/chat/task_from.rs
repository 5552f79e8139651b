//! Tasks of chats within chats.

use polylogue_config::Config;
use polylogue_core::TaskFrom;

/// Part of the surrounding conversation that becomes the task of an inner chat or team.
#[derive(Config)]
#[config(name = "TaskFrom", for = TaskFrom)]
pub(crate) enum TaskFromKey {
    /// The last message that it sees.
    Last,
    /// All messages that it sees, with the names of the speakers.
    All,
    /// The task of the surrounding chat.
    Task,
}
