//! Results of chats.

use std::sync::Arc;

use polylogue::policies::order::SUMMARY_PROMPT;
use polylogue::policies::{last_message_without, with_summary, with_summary_by};
use polylogue::{Agent as _, Assistant, Policy, Result, Transcript};
use polylogue_config::{At, Config, OneOrMany};
use polylogue_core::{ChatBuilder, Name, Params};

use crate::diagnostic::Report;
use crate::model_list::ModelList;
use crate::outline::Outline;
use crate::parameters::Parameters;
use crate::pattern::{Agents, ChatFrame};
use crate::private_agents::PrivateRole;
use crate::set::Set as _;
use crate::text::{AgentRef, Template};

/// Result of a chat.
#[derive(Debug, Clone, Default, PartialEq, Config)]
pub enum Summary {
    /// Last message of the chat.
    #[default]
    Last,
    /// No result.
    None,
    /// Last message of the chat, without these texts.
    #[key(as = OneOrMany<String>, nonempty)]
    Without(Vec<String>),
    /// Summary that a model writes when the chat ends. The author is called `NAME_summary` after the chat, unless `by`
    /// names an agent.
    Reflect(At<Box<Reflect>>),
}

/// Settings of a summary that a model writes.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(name = "ReflectedSummary")]
pub struct Reflect {
    /// Prompt for the summary. The model receives it after the messages of the chat.
    #[key(default = Template::new(SUMMARY_PROMPT))]
    pub prompt: Template,
    /// Agent that writes the summary, with its own system message and model.
    #[key(as = Option<AgentRef>, none = "a private author")]
    pub by: Option<At<Name>>,
    /// Model of the author, as `provider:model`, or a list: the first, and those asked when it fails.
    #[key(as = Option<At<ModelList>>, none = "the model of the team", nonempty, unique)]
    pub model: Option<At<String>>,
    /// Sampling parameters of the author's model.
    pub parameters: At<Parameters>,
}

impl Default for Reflect {
    fn default() -> Self {
        Self::absent()
    }
}

/// Reports a summary author that is not a plain agent with a model.
pub(crate) fn check_author(by: &At<Name>, outline: &Outline<'_>, report: &mut Report<'_>) {
    let author = outline.participant(by).filter(|_| by.ok);
    if let Some(why) = author.and_then(|author| author.why_not_plain()) {
        let hint = "name an agent that replies only by a model";
        report.error_with_hint(&by.span, format!("`{by}` cannot write the summary: {why}"), hint);
    }
}

impl Summary {
    pub(super) fn check(&self, outline: &Outline<'_>, report: &mut Report<'_>) {
        let Self::Reflect(reflect) = self else { return };
        let Some(by) = &reflect.by else { return };
        let model = ("model", reflect.model.as_ref().map(At::key));
        for (key, at) in [model, ("parameters", reflect.parameters.given())] {
            if let Some(at) = at {
                let hint = "remove it, or remove `by` for a private author";
                report.error_with_hint(at, format!("`{by}` uses its own `{key}`"), hint);
            }
        }
        check_author(by, outline, report);
    }

    /// The author that belongs to the chat `chat`, if it has one.
    pub(crate) fn author(&self, chat: &Name, agents: &dyn Agents) -> Result<Option<Assistant>> {
        match (self, PrivateRole::Summary.of(chat)) {
            (Self::Reflect(reflect), Some(author)) if reflect.by.is_none() => {
                reflect.author(&author, agents).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The chat with its result. `known` says whether an agent takes part or is asked in any case.
    pub(super) fn build(
        &self,
        builder: ChatBuilder,
        policy: Box<dyn Policy>,
        chat: &ChatFrame<'_>,
        known: impl Fn(&Name) -> bool,
        agents: &dyn Agents,
    ) -> Result<ChatBuilder> {
        Ok(match self {
            Self::Last => builder.policy(policy),
            Self::None => builder.policy(with_summary(policy, |_| String::new())),
            Self::Without(texts) => {
                let texts = texts.clone();
                builder.policy(with_summary(policy, move |chat| taken_out(chat, &texts)))
            }
            Self::Reflect(reflect) => match (&reflect.by, self.author(chat.name, agents)?) {
                (Some(by), _) if known(by) => builder.policy(reflect.policy(policy, by)),
                (Some(by), _) => {
                    builder.private_agent(agents.participant(by)?).policy(reflect.policy(policy, by))
                }
                (None, Some(author)) => {
                    let policy = reflect.policy(policy, author.name());
                    builder.private_agent(author).policy(policy)
                }
                (None, None) => builder.policy(policy),
            },
        })
    }
}

impl Reflect {
    fn author(&self, name: &Name, agents: &dyn Agents) -> Result<Assistant> {
        let model = agents.model(name, self.model.as_ref().map(|model| model.as_str()))?;
        let assistant =
            Assistant::new(name.as_str(), model)?.params(Params::from(self.parameters.value.clone()));
        Ok(assistant.set(self.parameters.max_continuations, Assistant::max_continuations))
    }

    /// `policy`, and then a summary by `author`.
    fn policy(&self, policy: Box<dyn Policy>, author: &Name) -> impl Policy + use<> {
        let prompt = self.prompt.clone();
        with_summary_by(policy, author.clone(), move |chat: &Transcript| Arc::from(prompt.fill(chat.task())))
    }
}

/// The last message without some texts.
fn taken_out(chat: &Transcript, texts: &[String]) -> String {
    let (Some(first), rest) = (texts.first(), texts.get(1..).unwrap_or_default()) else {
        return chat.summary().to_string();
    };
    rest.iter()
        .fold(last_message_without(first)(chat), |summary, text| summary.replace(text, "").trim().to_owned())
}
