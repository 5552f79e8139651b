//! Chats: who takes part, how they begin and end, who speaks when, what their results are.

mod carryover;
mod late_joiners;
mod loop_detection;
mod opening;
mod summary;

use polylogue::layers::nested::OuterContext;
use polylogue::policies::group::introduce;
use polylogue::stop::LoopDetector;
use polylogue::{Policy, Result};
use polylogue_config::{At, Config, NewName};
use polylogue_core::{AnyAgent, ChatBuilder, ChatLimits, Name, TaskFrom};

use self::carryover::CarryoverKey;
pub use self::carryover::CarryoverSettings;
pub use self::late_joiners::{JoinCondition, LateJoiner};
use self::loop_detection::LoopDetectionKey;
pub(crate) use self::opening::TaskFromKey;
pub use self::opening::{Opening, OpeningLine};
pub(crate) use self::summary::check_author;
pub use self::summary::{Reflect, Summary};
use crate::background::BackgroundKeys;
use crate::condition::judged;
use crate::diagnostic::Report;
use crate::limits::UsageLimits;
use crate::outline::Outline;
use crate::pattern::{Agents, Built, ChatFrame, Media, Pattern, listed};
use crate::private_agents::{ModelUser, PrivateRole};
use crate::set::Set as _;
use crate::source::Span;
use crate::stop::Stop;
use crate::text::{Listed, NeighborRef, OfChat, Template};

/// A chat: its participants, who speaks when, how it begins, when it ends and what its result is.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(scope, alone = "participants")]
pub struct Chat {
    /// Pattern by which the next speaker is selected.
    #[key(default = Pattern::RoundRobin)]
    pub pattern: Pattern,
    /// Names of the agents, chats and teams that take part, in speaking order.
    #[key(as = At<Vec<At<NewName<Listed>>>>, required, nonempty)]
    pub participants: At<Vec<At<Name>>>,
    /// Text that every participant receives before the first message: `true` for the names and descriptions of the
    /// other participants, or a custom text. It is not a message of the chat.
    #[key(default = Introductions::Others(false))]
    pub introductions: At<Introductions>,
    /// Participants that join during the chat.
    #[key(nonempty)]
    pub late_joiners: At<Vec<LateJoiner>>,
    /// Messages before the first turn. An empty list for none.
    #[key(default = Opening::default())]
    pub opening: At<Opening>,
    /// Termination conditions. The chat ends when one of them is met.
    #[key(none = "the pattern, or `max_turns`")]
    pub stop: Option<Stop>,
    /// Limits of each run of the chat, with all chats within it. The chat ends when one is reached, and an outer chat
    /// continues.
    #[key(default = UsageLimits::default())]
    pub limits: UsageLimits,
    /// Limits on repetition. The chat ends when one is reached. `off` disables loop detection.
    #[key(as = At<LoopDetectionKey>, default = LoopDetector::default())]
    pub loop_detection: At<LoopDetector>,
    /// Result of the chat.
    #[key(default = Summary::Last)]
    pub summary: Summary,
    /// Background tasks: those that its participants start, and turns that are some.
    #[key(default = BackgroundKeys::absent())]
    pub background: At<BackgroundKeys>,
    /// Maximum number of turns. The chat ends when it is reached, whatever the pattern and `stop` say.
    #[key(default = 100, range = 1..=1_000_000)]
    pub max_turns: At<u64>,
}

impl Chat {
    /// The participants, late joiners included.
    pub(crate) fn everyone(&self) -> impl Iterator<Item = &At<Name>> + Clone {
        self.participants.iter().chain(self.late_joiners.iter().map(|join| &join.who))
    }

    /// The media of its opening and its tasks, each with a participant that receives it.
    pub(crate) fn received_media(&self) -> impl Iterator<Item = (&Name, &At<Media>)> {
        let everyone: Vec<&Name> = self.everyone().map(|who| &who.value).collect();
        let opening = self.opening.0.iter().filter(|line| !line.media.is_empty()).flat_map(move |line| {
            let receivers = if line.to.is_empty() { everyone.clone() } else { line.to.iter().collect() };
            let receivers = receivers.into_iter().filter(|who| **who != line.from);
            receivers.flat_map(|who| line.media.iter().map(move |media| (who, media)))
        });
        let tasks = self.pattern.part().tasks().into_iter();
        opening.chain(tasks.flat_map(|task| task.media.iter().map(|media| (&task.who.value, media))))
    }

    /// The media of its opening and its tasks.
    pub(crate) fn media(&self) -> impl Iterator<Item = &At<Media>> {
        let tasks = self.pattern.part().tasks().into_iter();
        self.opening.0.iter().flat_map(|line| &line.media).chain(tasks.flat_map(|task| &task.media))
    }

    /// The same, to be changed.
    pub(crate) fn media_mut(&mut self) -> impl Iterator<Item = &mut At<Media>> {
        let opening = self.opening.value.0.iter_mut().flat_map(|line| &mut line.media);
        opening.chain(self.pattern.media_mut())
    }

    /// Whether participants can have turns for results of background tasks at its end.
    pub(crate) fn takes_follow_ups(&self) -> bool {
        self.background.at_end == polylogue_core::OpenBackground::Wait
            && self.pattern.part().takes_follow_ups()
    }

    /// The limits at which it ends by itself and that a person can raise.
    pub(crate) fn own_limits(&self) -> ChatLimits {
        let stop = self.stop.as_ref().map(Stop::limits).unwrap_or_default();
        let turns = stop.turns.map_or(*self.max_turns, |turns| turns.min(*self.max_turns));
        ChatLimits { turns: Some(turns), ..stop }
    }

    /// The chat called `name` as its pattern sees it.
    pub(crate) fn frame<'c>(&'c self, name: &'c Name) -> ChatFrame<'c> {
        ChatFrame {
            name,
            participants: &self.participants,
            late_joiners: self.late_joiners.iter().map(|join| &join.who).collect(),
            stop: self.stop.as_ref(),
            loop_detector: *self.loop_detection,
            given: [
                ("opening", self.opening.given()),
                ("introductions", self.introductions.given()),
                ("late_joiners", self.late_joiners.given()),
                ("loop_detection", self.loop_detection.given()),
                ("max_turns", self.max_turns.given()),
            ],
        }
    }

    /// Removes the models of its private agents, which then use the team's model.
    pub(crate) fn forget_models(&mut self) {
        if let Summary::Reflect(reflect) = &mut self.summary {
            reflect.value.model = None;
        }
        if let Some(selector) = self.pattern.selector_mut() {
            selector.model = None;
        }
    }

    /// The roles of its private agents, and where the file declares them.
    pub(crate) fn private_roles(&self) -> impl Iterator<Item = (PrivateRole, &Span)> {
        let selector = self.pattern.selector().map(|selector| (PrivateRole::Selector, selector.key()));
        let summary = match &self.summary {
            Summary::Reflect(reflect) if reflect.by.is_none() => Some((PrivateRole::Summary, reflect.key())),
            _ => None,
        };
        selector.into_iter().chain(summary)
    }

    /// The private agents of this chat if it is called `name`, each with the model that the file names for it: the
    /// model-based speaker selector and the author of a reflected summary. They are not participants.
    pub(crate) fn private_agents(&self, name: &Name) -> Vec<ModelUser<'_>> {
        let user = |role: PrivateRole| {
            let (models, parameters) = match (role, &self.summary) {
                (PrivateRole::Selector, _) => {
                    let selector = self.pattern.selector()?;
                    (selector.model.as_deref().map(String::as_str), &selector.parameters)
                }
                (PrivateRole::Summary, Summary::Reflect(reflect)) => {
                    (reflect.model.as_deref().map(String::as_str), &reflect.parameters)
                }
                (PrivateRole::Summary, _) => return None,
            };
            Some(ModelUser { name: role.of(name)?, models, parameters })
        };
        self.private_roles().filter_map(|(role, _)| user(role)).collect()
    }

    /// Names of agents besides its participants: those that its pattern asks and the author of its summary.
    pub(crate) fn other_agents(&self) -> impl Iterator<Item = &Name> {
        let part = self.pattern.part();
        let author = match &self.summary {
            Summary::Reflect(reflect) => reflect.by.as_deref(),
            _ => None,
        };
        let owners = part.tasks().into_iter().map(|task| &task.who.value);
        let selector = self.pattern.human_selector().map(|person| &person.value);
        part.private_agents().into_iter().chain(owners).chain(author).chain(selector)
    }

    /// Participants and pattern in words.
    pub(crate) fn describe(&self, name: &Name) -> String {
        let who = listed(self.participants.iter().map(|name| name.as_str()));
        let joins = match listed(self.late_joiners.iter().map(|join| join.who.as_str())) {
            names if names.is_empty() => names,
            names => format!("; {names} may join later"),
        };
        format!("{who}, {}{joins}", self.pattern.part().describe(&self.frame(name)))
    }

    /// Reports mistakes in the pattern and in the summary.
    pub(crate) fn check(&self, name: &Name, outline: &Outline<'_>, report: &mut Report<'_>) {
        // A chat without participants is reported by the reader.
        if self.everyone().any(|name| name.ok) {
            self.pattern.part().check(&self.frame(name), outline, report);
            self.background.check(self.pattern.part(), report);
            self.summary.check(outline, report);
        }
    }

    /// Builds the chat called `name`, without its task.
    pub(crate) fn build(&self, name: &Name, description: &str, agents: &dyn Agents) -> Result<ChatBuilder> {
        self.build_within(self.limits, name, description, agents)
    }

    /// The same within other limits.
    pub(crate) fn build_within(
        &self,
        limits: UsageLimits,
        name: &Name,
        description: &str,
        agents: &dyn Agents,
    ) -> Result<ChatBuilder> {
        let frame = self.frame(name);
        let (builder, policy) = match self.pattern.part().build(&frame, agents)? {
            Built::Chat(builder, policy) => (*builder, policy),
            Built::Policy(policy, private) => {
                (self.begin(name, private, agents)?, self.ordered(policy, &frame)?)
            }
        };
        let builder = builder.description(description).max_equal_calls(self.loop_detection.calls);
        let builder = self.background.build(builder.set(limits.allowance(), ChatBuilder::limits));
        let known = |who: &Name| {
            let part = self.pattern.part();
            frame.has(who)
                || part.private_agents().contains(&who)
                || part.tasks().iter().any(|task| task.who == *who)
        };
        self.summary.build(builder, Box::new(judged(policy)), &frame, known, agents)
    }

    /// The chat with its participants and the agents besides, before its first turn.
    fn begin(&self, name: &Name, private: Vec<AnyAgent>, agents: &dyn Agents) -> Result<ChatBuilder> {
        let mut builder = polylogue::Chat::builder(name.as_str()).max_turns(*self.max_turns);
        for participant in &self.participants {
            builder = builder.participant(self.background.participant(agents.participant(participant)?));
        }
        for join in &self.late_joiners {
            builder = builder.late_joiner(self.background.participant(agents.participant(&join.who)?));
        }
        builder = match &*self.introductions {
            Introductions::Others(false) => builder,
            Introductions::Others(true) => builder.introduction_of(introduce),
            Introductions::Text(text) => builder.introduction(text.as_str()),
        };
        builder = private.into_iter().fold(self.opening.build(builder), ChatBuilder::private_agent);
        let mut asked: Vec<&Name> = Vec::new();
        for name in self.pattern.part().private_agents() {
            if !self.everyone().any(|participant| participant == name) && !asked.contains(&name) {
                asked.push(name);
                builder = builder.private_agent(agents.participant(name)?);
            }
        }
        Ok(builder)
    }

    /// `policy` with late joiners, termination and loop detection. Loops are not detected where every participant has one
    /// turn: two chats of a sequence without a result are none.
    fn ordered(&self, policy: Box<dyn Policy>, frame: &ChatFrame<'_>) -> Result<Box<dyn Policy>> {
        let joined = self.late_joiners.iter().try_fold(policy, |policy, join| join.build(policy))?;
        frame.ended(joined, !self.pattern.part().has_one_turn_each())
    }
}

/// A chat that takes part in other chats like an agent. Its reply is its summary.
#[derive(Debug, Clone, PartialEq, Config)]
pub struct InnerChat {
    /// Name of the chat as a participant.
    #[key(as = At<NewName<OfChat>>)]
    pub name: At<Name>,
    /// One-line description of what the chat is for. Other participants see it.
    #[key(default = String::new())]
    pub description: String,
    /// Part of the surrounding conversation that becomes the chat's task.
    #[key(as = At<TaskFromKey>, default = TaskFrom::Last)]
    pub task_from: At<TaskFrom>,
    /// Task of the chat as a text. The results that `carryover` selects are appended to it.
    #[key(none = "as `task_from` says")]
    pub task: Option<At<Template>>,
    /// Results of earlier chats that are added to the task.
    #[key(as = Option<At<CarryoverKey>>, none = "`all` with `task`, otherwise `none`")]
    pub carryover: Option<At<CarryoverSettings>>,
    /// Conversation that the chat continues in its next turn: `self` for its own, or another participant chat of the
    /// same surrounding chat.
    #[key(as = Option<NeighborRef>, none = "every turn begins a new conversation")]
    pub continues: Option<At<Name>>,
    /// The chat itself.
    #[key(flatten)]
    pub chat: Chat,
}

/// The name that stands for a chat itself.
pub(crate) const ITSELF: &str = "self";

impl InnerChat {
    /// The chat as it takes part in another, from which it takes its task.
    pub(crate) fn with_task(&self, builder: ChatBuilder) -> ChatBuilder {
        let builder = match &self.continues {
            None => builder,
            Some(name) if name.as_str() == ITSELF => builder.continues(self.name.value.clone()),
            Some(name) => builder.continues(name.value.clone()),
        };
        builder.task_from(match (self.carryover.as_deref(), &self.task) {
            (None, Some(task)) => CarryoverSettings::default().task_from(Some(task), &self.task_from),
            (Some(carried), task) if task.is_some() || !carried.is_nothing() => {
                carried.task_from(task.as_deref(), &self.task_from)
            }
            (_, _) => self.task_from.value.clone(),
        })
    }

    /// The first message of the chat when it is nested in an agent.
    pub(crate) fn first_message(&self) -> OuterContext {
        match (&self.task, &*self.task_from) {
            (Some(task), _) => {
                let task = task.value.clone();
                OuterContext::custom(move |turn| task.fill(turn.transcript().task()))
            }
            (None, TaskFrom::All) => OuterContext::All,
            (None, TaskFrom::Task) => OuterContext::custom(|turn| turn.transcript().task().to_owned()),
            (None, _) => OuterContext::Last,
        }
    }
}

/// Text that every participant receives before the first message.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(by_shape)]
pub enum Introductions {
    /// Whether every participant receives the names and descriptions of the others.
    Others(bool),
    /// A custom text.
    Text(String),
}
