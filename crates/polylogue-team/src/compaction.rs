//! Compaction of an agent's history.

use polylogue::agents::compaction::{Compaction, CompactionLimit};
use polylogue::{AnyModel, Assistant};
use polylogue_config::{At, Config};
use polylogue_core::Name;

use crate::model_list::ModelList;
use crate::set::Set as _;
use crate::text::AgentRef;

/// When and how the older part of an agent's history is replaced by a summary. The system message, the opening of the chat
/// and the task of the turn always stay.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(name = "Compaction")]
pub struct CompactionKeys {
    /// Size of a request from which on the history is compacted.
    #[key(as = Option<CompactionLimitKey>, none = "`share: 0.8`, if the context window of the model is known")]
    pub at: Option<CompactionLimit>,
    /// Share of that size that is left after a compaction.
    #[key(default = Compaction::DEFAULT_TARGET, range = 0.1..=0.9)]
    pub target: f64,
    /// Number of latest messages that always stay. A call and its results count as one.
    #[key(default = Compaction::DEFAULT_KEEP_MESSAGES, range = 1..=10_000)]
    pub keep_messages: usize,
    /// Messages that contain one of these texts stay word for word, whatever their age.
    #[key(nonempty, unique)]
    pub pin: Vec<String>,
    /// Agent that summarizes, with its own model, parameters and system message.
    #[key(as = Option<AgentRef>, none = "the agent itself")]
    pub by: Option<At<Name>>,
    /// Model that summarizes, as `provider:model`, or a list: the first, and those asked when it fails.
    #[key(as = Option<At<ModelList>>, none = "the model of the agent", nonempty, unique, excludes = "by")]
    pub model: Option<At<String>>,
    /// Instructions for the summary, such as what matters in this conversation.
    #[key(none = "none", nonempty)]
    pub instructions: Option<String>,
}

/// Size of a request.
#[derive(Config)]
#[config(name = "CompactionLimit", for = CompactionLimit)]
enum CompactionLimitKey {
    /// Share of the context window of the model.
    #[key(range = 0.1..=1)]
    Share(f64),
    /// Number of tokens.
    #[key(range = 100..=100_000_000)]
    Tokens(u64),
    /// Number of messages. Each call and each result counts as one.
    #[key(range = 4..=1_000_000)]
    Messages(usize),
}

/// Building.
impl CompactionKeys {
    /// The library's compaction, with the agent or the model that summarizes, if the file names one.
    pub(crate) fn build(&self, by: Option<&Assistant>, model: Option<AnyModel>) -> Compaction {
        let base = self.at.map_or_else(Compaction::default, Compaction::at);
        let base = base.down_to(self.target).keep_messages(self.keep_messages);
        let base = self.pin.iter().fold(base, |all, text| all.pin(text.as_str()));
        let base = base.set(self.instructions.as_deref(), Compaction::instructions);
        base.set(by, Compaction::by_agent).set(model, Compaction::by)
    }
}
