//! Which models speak, and how they are called.

use std::path::PathBuf;
use std::time::Duration;

use polylogue_core::Capabilities;
use polylogue_models::{ClusterLimits, LearnedCapabilities, Prices};

use crate::Access;

/// The options of models: which speak, and how they are called.
///
/// Default: the models that the team names, or its script if one of them cannot be reached.
#[derive(Debug, Clone, Default)]
pub struct ModelOptions {
    /// The model of every agent, as `provider:model`, or several with commas between them, each for the failure of the
    /// one before.
    pub model: Option<String>,
    /// The capabilities of the models. Default: as the team says, or as the endpoint shows.
    pub capabilities: Option<Capabilities>,
    /// Whether the team's script speaks; no model is called.
    pub offline: bool,
    /// The maximum duration of a model call. Default: as its endpoint says.
    pub timeout: Option<Duration>,
    /// A file to which every model call is recorded.
    pub record: Option<PathBuf>,
    /// A recording from which every reply is taken; no model is called.
    pub replay: Option<PathBuf>,
    /// A file in which replies are kept, so that the same request is not paid for twice.
    pub cache: Option<PathBuf>,
    /// Whether replies are requested in pieces.
    pub stream: bool,
    /// Whether models that reason and do not show it are asked for a summary, where the team says nothing of that.
    pub thoughts: bool,
    /// Whether a script speaks at the pace of a person who types, for those who watch.
    pub paced: bool,
    /// The user's own prices, instead of the list prices.
    pub prices: Prices,
    /// What models turned out to support, in a file.
    pub learned: Option<LearnedCapabilities>,
}

impl ModelOptions {
    /// Returns whether no model is called.
    pub const fn is_offline(&self) -> bool {
        self.offline || self.replay.is_some()
    }
}

/// How models are chosen.
pub(crate) struct ModelChoice<'a> {
    pub(crate) options: &'a ModelOptions,
    /// Whether there is a limit on the cost.
    pub(crate) budget: bool,
    /// Whether the conversation has begun before.
    pub(crate) resumed: bool,
    pub(crate) access: &'a Access,
    /// The limits that processes with the same store share.
    pub(crate) cluster: Option<ClusterLimits>,
}
