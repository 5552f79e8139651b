//! Groups: one participant speaks at a time, selected by order, at random, by a model or by a person.

use std::collections::{BTreeMap, BTreeSet};

use polylogue::policies::Selector as ModelSelector;
use polylogue::policies::group::{self as library, HumanSelector, Repeat, Transitions as Graph};
use polylogue::{Agent as _, Result};
use polylogue_config::{As, At, ByName, Config, OneOrMany};
use polylogue_core::{AnyAgent, Name, Params, PromptRole};

use super::part::{Agents, Built, ChatFrame, Part};
use crate::codes;
use crate::diagnostic::Report;
use crate::flow::{ChatFlow, FlowStep, Point};
use crate::model_list::ModelList;
use crate::outline::Outline;
use crate::parameters::Parameters;
use crate::private_agents::PrivateRole;
use crate::set::Set as _;
use crate::text::{Member, MemberRef, ParticipantRef, values};

/// Speaker selection in a group.
#[derive(Debug, Clone, Default, PartialEq, Config)]
pub struct Group {
    /// Method by which the next speaker is selected.
    #[key(default = SelectSpeaker::RoundRobin)]
    pub select: SelectSpeaker,
    /// Allowed or disallowed speaker transitions, for every selection method. The chat ends if no participant is
    /// allowed to speak.
    #[key(none = "every participant after every participant")]
    pub transitions: Option<At<Transitions>>,
    /// Whether the last speaker can be selected again: `true`, `false`, or the names of the participants that can.
    /// Ignored if `transitions` is given.
    #[key(as = Option<At<AllowRepeat>>, none = "`true`")]
    pub allow_repeat_speaker: Option<At<Repeat>>,
}

/// Method by which the next speaker is selected.
#[derive(Debug, Clone, Default, PartialEq, Config)]
pub enum SelectSpeaker {
    /// In the order of the participants.
    #[default]
    RoundRobin,
    /// At random.
    Random(RandomSelection),
    /// By a model. The selector is called `NAME_selector` after the chat.
    Model(At<Box<Selector>>),
    /// By a person who does not take part in the chat.
    #[key(as = ParticipantRef)]
    Human(At<Name>),
}

/// Settings of random selection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Config)]
pub struct RandomSelection {
    /// Seed of the random selection, which makes it repeatable. The seed is always logged.
    #[key(none = "derived from the start time")]
    pub seed: Option<u64>,
}

/// Speaker selection by a model. `{roles}` in a text is replaced by the candidates with their descriptions,
/// `{agentlist}` by their names.
#[derive(Debug, Clone, PartialEq, Config)]
pub struct Selector {
    /// Model that selects, as `provider:model`, or a list: the first, and those asked when it fails.
    #[key(as = Option<At<ModelList>>, none = "the model of the team", nonempty, unique)]
    pub model: Option<At<String>>,
    /// Sampling parameters of the model.
    pub parameters: At<Parameters>,
    /// System message of the selector.
    #[key(none = "a built-in text")]
    pub system: Option<String>,
    /// Prompt for the selection, after the messages of the chat.
    #[key(none = "a built-in text")]
    pub prompt: Option<String>,
    /// Prompt for a retry after a reply that names no candidate.
    #[key(none = "a built-in text")]
    pub none: Option<String>,
    /// Prompt for a retry after a reply that names several candidates.
    #[key(none = "a built-in text")]
    pub several: Option<String>,
    /// Role of the prompts: `user`, which every model supports, or `system`, which some models follow more strictly and
    /// others reject within a conversation.
    #[key(as = Role, default = PromptRole::User)]
    pub role: PromptRole,
    /// Maximum number of model calls per selection. Then the next participant in order speaks.
    #[key(default = ModelSelector::DEFAULT_ATTEMPTS, range = 1..=20)]
    pub attempts: u32,
    /// Constrains the reply by a JSON Schema. The model must support schemas.
    #[key(default = false)]
    pub constrained: bool,
}

impl Default for Selector {
    fn default() -> Self {
        Self::absent()
    }
}

/// Role of a prompt.
#[derive(Config)]
#[config(for = PromptRole)]
enum Role {
    /// `system`.
    System,
    /// `user`.
    User,
}

/// Allowed or disallowed speaker transitions.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
pub enum Transitions {
    /// For each participant, the only participants that can speak after it. After a participant that is not listed,
    /// none can speak.
    #[key(as = At<ByName<Member, OneOrMany<At<MemberRef>>>>)]
    Allowed(At<BTreeMap<At<Name>, Vec<At<Name>>>>),
    /// For each participant, the participants that cannot speak after it. All others can.
    #[key(as = At<ByName<Member, OneOrMany<At<MemberRef>>>>)]
    Disallowed(At<BTreeMap<At<Name>, Vec<At<Name>>>>),
}

/// Whether the last speaker can be selected again.
#[derive(Config)]
#[config(by_shape)]
enum AllowRepeat {
    /// All participants can, or none.
    All(bool),
    /// These participants can.
    #[key(as = OneOrMany<MemberRef>)]
    Only(Vec<Name>),
}

impl As<Repeat> for AllowRepeat {
    fn into_value(self) -> Repeat {
        match self {
            Self::All(true) => Repeat::Yes,
            Self::All(false) => Repeat::No,
            Self::Only(names) => Repeat::Only(names),
        }
    }

    fn from_value(repeat: &Repeat) -> Self {
        match repeat {
            Repeat::Yes => Self::All(true),
            Repeat::No => Self::All(false),
            Repeat::Only(names) => Self::Only(names.clone()),
        }
    }
}

impl Part for Group {
    fn check(&self, chat: &ChatFrame<'_>, outline: &Outline<'_>, report: &mut Report<'_>) {
        if let SelectSpeaker::Human(person) = &self.select {
            check_selector(person, chat, outline, report);
        }
        if let (Some(_), Some(repeat)) = (&self.transitions, &self.allow_repeat_speaker) {
            let hint = "to let a participant repeat, add it to its own list in `transitions`";
            report.error_with_hint(
                repeat.key(),
                "`transitions` already define who can speak twice in a row",
                hint,
            );
        }
        let Some(transitions) = &self.transitions else { return };
        let (Transitions::Allowed(lists) | Transitions::Disallowed(lists)) = &transitions.value;
        for twice in lists.values().flat_map(|names| repeated(names)) {
            report.warning(
                codes::NO_EFFECT,
                &twice.span,
                format!("`{twice}` is listed twice"),
                "list it once",
            );
        }
    }

    fn describe(&self, _: &ChatFrame<'_>) -> String {
        let by = match &self.select {
            SelectSpeaker::RoundRobin => "in turn".to_owned(),
            SelectSpeaker::Random(_) => "selected at random".to_owned(),
            SelectSpeaker::Model(_) => "selected by a model".to_owned(),
            SelectSpeaker::Human(person) => format!("selected by {person}"),
        };
        let transitions = if self.transitions.is_some() { ", within what the transitions allow" } else { "" };
        format!("{by}{transitions}")
    }

    fn takes_follow_ups(&self) -> bool {
        true
    }

    fn has_background_turns(&self) -> bool {
        true
    }

    fn flow<'c>(&'c self, chat: &ChatFrame<'c>, _: &Outline<'c>) -> ChatFlow<'c> {
        /// How many participants with a few exceptions among their transitions are looked at one by one.
        const MOST: usize = 200;
        let transitions = self.transitions.as_deref().filter(|transitions| {
            matches!(transitions, Transitions::Allowed(_)) || chat.everyone().count() <= MOST
        });
        match (transitions, &self.select) {
            (Some(transitions), _) => self.limited(transitions, chat),
            (None, SelectSpeaker::RoundRobin) => ChatFlow::repeated(chat.everyone()),
            (None, SelectSpeaker::Random(_)) => ChatFlow::selected("selected at random"),
            (None, SelectSpeaker::Model(_)) => ChatFlow::selected("selected by a model"),
            (None, SelectSpeaker::Human(person)) => ChatFlow::selected(format!("selected by {person}")),
        }
    }

    fn build(&self, chat: &ChatFrame<'_>, agents: &dyn Agents) -> Result<Built> {
        let (group, private) = match &self.select {
            SelectSpeaker::RoundRobin => (library::Group::round_robin(), None),
            SelectSpeaker::Random(chance) => (library::Group::random(chance.seed), None),
            SelectSpeaker::Model(selector) => {
                let selector = selector.build(chat.name, agents)?;
                (library::Group::select_by_name(selector.name().clone()), Some(AnyAgent::new(selector)))
            }
            SelectSpeaker::Human(person) => {
                let selector = AnyAgent::new(HumanSelector::new(person.as_str())?);
                let selector = agents.with_default_answer(person, selector);
                (library::Group::select_by_name(person.value.clone()), Some(selector))
            }
        };
        let group = match self.transitions.as_deref() {
            None => group,
            Some(Transitions::Allowed(lists)) => group.transitions(Graph::allowed(names(lists))),
            Some(Transitions::Disallowed(lists)) => group.transitions(Graph::disallowed(names(lists))),
        };
        let group =
            group.set(self.allow_repeat_speaker.as_ref(), |group, repeat| group.repeat(repeat.value.clone()));
        Ok(Built::Policy(Box::new(executing(group, chat, agents)), private.into_iter().collect()))
    }
}

impl Group {
    /// The flow within `transitions`. The first speaker is selected among all, or is the first in order.
    fn limited<'c>(&self, transitions: &'c Transitions, chat: &ChatFrame<'c>) -> ChatFlow<'c> {
        let is_ordered = matches!(self.select, SelectSpeaker::RoundRobin);
        let first = chat.everyone().take(if is_ordered { 1 } else { usize::MAX });
        let mut steps: Vec<FlowStep<'c>> =
            first.map(|who| FlowStep::new(Point::Start, Point::Speaker(&who.value))).collect();
        match transitions {
            Transitions::Allowed(lists) => {
                for (from, next) in lists.iter() {
                    let from = Point::Speaker(&from.value);
                    steps.extend(next.is_empty().then(|| FlowStep::new(from, Point::End)));
                    steps.extend(next.iter().map(|to| FlowStep::new(from, Point::Speaker(&to.value))));
                }
            }
            Transitions::Disallowed(lists) => {
                for from in chat.everyone() {
                    let never = lists.get(from).map(Vec::as_slice).unwrap_or_default();
                    let next = chat.everyone().filter(|to| !never.contains(to));
                    let from = Point::Speaker(&from.value);
                    steps.extend(next.map(|to| FlowStep::new(from, Point::Speaker(&to.value))));
                }
            }
        }
        ChatFlow::of(steps)
    }
}

impl Selector {
    /// The selector of the chat `chat`.
    pub(crate) fn build(&self, chat: &Name, agents: &dyn Agents) -> Result<ModelSelector> {
        let name = Name::new(PrivateRole::Selector.name(chat.as_str()))?;
        let model = agents.model(&name, self.model.as_ref().map(|model| model.as_str()))?;
        let mut selector = ModelSelector::new(name.as_str(), model)?
            .params(Params::from(self.parameters.value.clone()))
            .attempts(self.attempts)
            .role(self.role);
        selector = selector.set_if(self.constrained, ModelSelector::constrained);
        selector = selector.set(self.system.as_deref(), ModelSelector::system);
        selector = selector.set(self.prompt.as_deref(), ModelSelector::prompt);
        selector = selector.set(self.none.as_deref(), ModelSelector::when_none);
        selector = selector.set(self.several.as_deref(), ModelSelector::when_several);
        Ok(selector)
    }
}

/// The group, which knows which participants execute which tools for the others.
pub(super) fn executing(group: library::Group, chat: &ChatFrame<'_>, agents: &dyn Agents) -> library::Group {
    let executors = agents.executors().into_iter().filter(|(name, _)| chat.has(name));
    executors.fold(group, |group, (name, tools)| group.tool_owner(name, tools))
}

fn names(lists: &BTreeMap<At<Name>, Vec<At<Name>>>) -> Vec<(Name, Vec<Name>)> {
    lists.iter().map(|(name, names)| (name.value.clone(), values(names).collect())).collect()
}

/// The names that are in a list for another time.
pub(super) fn repeated(names: &[At<Name>]) -> impl Iterator<Item = &At<Name>> {
    let mut seen = BTreeSet::new();
    names.iter().filter(move |name| name.ok && !seen.insert(&name.value))
}

/// Reports a human selector that is not a person, or a participant.
fn check_selector(person: &At<Name>, chat: &ChatFrame<'_>, outline: &Outline<'_>, report: &mut Report<'_>) {
    let Some(found) = outline.participant(person).filter(|_| person.ok) else { return };
    if !found.is_human() {
        let hint = "use `select: model` for a model; a person has `human: true`";
        let message = format!("the {} `{person}` is not a person", found.noun());
        report.error_with_hint(&person.span, message, hint);
    } else if chat.has(person) {
        let hint = "add a second agent with `human: true`: one participates, and one selects";
        let message = format!("`{person}` is a participant and cannot be the selector");
        report.error_with_hint(&person.span, message, hint);
    }
}
