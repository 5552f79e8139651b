//! The parts of an AutoGen 0.2 program that others refer to.

use serde_json::Value;

use crate::cursor::{At, Fields};
use crate::draft::Draft;
use crate::report::Result;
use crate::yaml::Entries;

/// The description of an assistant with neither a description nor a system message.
const ASSISTANT: &str = "A general assistant that writes text and code";

/// What several parts of a definition need.
pub(super) struct Program<'a> {
    /// The agents, in their order.
    pub(super) agents: Vec<Member<'a>>,
    /// The `llm_config` of agents that have none.
    pub(super) llm: Option<At<'a>>,
    /// The manager of the group chat.
    pub(super) manager: Option<At<'a>>,
    /// The group chat.
    pub(super) group: Option<At<'a>>,
    /// The agents that run code in AutoGen, by their names in the definition.
    pub(super) runners: Vec<&'a str>,
    /// Whether the definition as a whole runs code.
    pub(super) is_coding: bool,
}

/// An agent of the definition.
#[derive(Debug, Clone)]
pub(super) struct Member<'a> {
    /// Its name in the definition.
    pub(super) wanted: &'a str,
    /// Its name in the team file.
    pub(super) name: String,
    /// Whether a person can reply for it.
    pub(super) has_person: bool,
    /// The entries of its model, if it has one.
    pub(super) model: Option<Entries>,
    /// Chats that reply for it.
    pub(super) nested: Vec<At<'a>>,
}

/// The name of a class, without its module and in one spelling.
fn plain(class: &str) -> String {
    class.rsplit('.').next().unwrap_or_default().to_ascii_lowercase().replace('_', "")
}

/// The class of an agent, which decides its defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Assistant,
    Proxy,
    Conversable,
}

impl Kind {
    /// The kind of a class, also of one that is made of AutoGen's; without a class, of a name.
    pub(super) fn of(class: &str, name: &str) -> Self {
        match plain(class).as_str() {
            "" if name.to_ascii_lowercase().replace(['_', '-', ' '], "").contains("userproxy") => Self::Proxy,
            class if class.contains("userproxy") => Self::Proxy,
            class if class.contains("conversable") => Self::Conversable,
            _ => Self::Assistant,
        }
    }

    /// AutoGen's class of this kind.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Assistant => "AssistantAgent",
            Self::Proxy => "UserProxyAgent",
            Self::Conversable => "ConversableAgent",
        }
    }

    /// Whether `class` is that class, and not one that does more.
    pub(super) fn is_all_of(self, class: &str) -> bool {
        plain(class).trim_end_matches("agent") == plain(self.class()).trim_end_matches("agent")
    }

    /// The default of `human_input_mode`.
    pub(super) const fn default_input(self) -> &'static str {
        match self {
            Self::Assistant => "never",
            Self::Proxy => "always",
            Self::Conversable => "terminate",
        }
    }
}

impl Program<'_> {
    /// Whether an agent other than `wanted` runs code.
    pub(super) fn has_other_runner(&self, wanted: &str) -> bool {
        self.is_coding || self.runners.iter().any(|runner| *runner != wanted)
    }

    /// AutoGen's description of an agent without one, for the model that selects the speakers. None without such a model.
    pub(super) fn described<'d>(
        &self,
        kind: Kind,
        fields: &Fields<'_>,
        system: Option<&'d str>,
    ) -> Option<&'d str> {
        let mode = fields.peek("human_input_mode").and_then(Value::as_str).unwrap_or(kind.default_input());
        let described = system.or((kind == Kind::Assistant).then_some(ASSISTANT));
        match (self.has_selector(), kind, mode.to_ascii_lowercase().as_str()) {
            (false, ..) => None,
            (true, Kind::Proxy, "always") => Some("A person who answers questions and can run code"),
            (true, Kind::Proxy, "terminate") => Some("A user who can run code and report its output"),
            (true, Kind::Proxy, _) => {
                Some("A computer terminal that runs code it is given, and does nothing else")
            }
            _ => described,
        }
    }

    /// Whether a model selects the speakers of the group chat, as by default.
    fn has_selector(&self) -> bool {
        let Some(group) = &self.group else { return false };
        let method = group.value.get("speaker_selection_method").and_then(Value::as_str).unwrap_or("auto");
        !["round_robin", "random", "manual"].contains(&method.to_ascii_lowercase().as_str())
    }

    /// The names of all agents in the team file.
    pub(super) fn names(&self) -> Vec<String> {
        self.agents.iter().map(|member| member.name.clone()).collect()
    }
}

/// The name of an agent, or that of an object which stands for it.
pub(super) fn named<'a>(at: &At<'a>, draft: &mut Draft) -> Result<&'a str> {
    if let Some(name) = at.value.as_str() {
        return Ok(name);
    }
    let mut fields = at.fields()?;
    let name = fields.need("name")?.text()?;
    if !fields.left().is_empty() {
        draft.note(&at.path, "only its name is read: agents are described in `agents`");
    }
    Ok(name)
}

/// The text that a termination predicate looks for; `None` when the predicate is code.
pub(super) fn predicate<'a>(at: &At<'a>) -> Option<&'a str> {
    at.value.as_str().filter(|text| !text.contains("lambda") && !text.contains('('))
}
