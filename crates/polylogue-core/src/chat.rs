//! Chats: agents and a policy. Every pattern is made of them.

use std::fmt;
use std::sync::Arc;

use crate::policy::{with_follow_ups, with_termination};
use crate::turn::ChatInfo;
use crate::{
    Agent, Allowance, AnyAgent, Condition, ConfigError, Message, Name, Opening, Path, Policy, Question,
    Result, Step, StopReason, Transcript, TurnRequest,
};

/// Agents and a policy. A chat is itself an agent, so that it can take part in other chats.
///
/// ```
/// # use polylogue_core::{Act, Agent, Chat, Name, Result, Step, StopReason, Transcript, Turn, TurnRequest};
/// struct Echo(Name);
/// impl Agent for Echo {
///     fn name(&self) -> &Name {
///         &self.0
///     }
///     async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
///         let text = turn.transcript().last().map(|line| line.message.text().into_owned());
///         Ok(Act::say(text.unwrap_or_default()))
///     }
/// }
///
/// let policy = |chat: &Transcript| match chat.last_speaker() {
///     None => Step::Turn(TurnRequest::to_all(chat.participants()[0].clone())),
///     Some(_) => Step::close(StopReason::Finished, chat),
/// };
/// let chat = Chat::builder("cave").participant(Echo(Name::new("Echo")?)).policy(policy).build()?;
/// # Ok::<(), polylogue_core::Error>(())
/// ```
#[derive(derive_more::Debug)]
#[debug("Chat {{ name: {name:?}, participants: {:?}, .. }}", self.setup.participants)]
pub struct Chat {
    pub(crate) name: Name,
    policy: Box<dyn Policy>,
    pub(crate) setup: Setup,
}

/// The configuration of a chat, besides its name and its policy.
pub(crate) struct Setup {
    pub(crate) description: String,
    participants: Vec<AnyAgent>,
    later: Vec<AnyAgent>,
    private_agents: Vec<AnyAgent>,
    introduction: Option<Arc<str>>,
    opening: OpeningFn,
    pub(crate) task_from: TaskFrom,
    continues: Option<Name>,
    /// Whether an agent is called in it: see [`Chat::for_calls`].
    is_for_calls: bool,
    max_turns: u64,
    max_equal_calls: usize,
    pub(crate) allowance: Option<Allowance>,
    max_background: usize,
    pub(crate) max_follow_ups: u64,
    pub(crate) open_background: OpenBackground,
}

impl Setup {
    fn all_agents(&self) -> impl Iterator<Item = &AnyAgent> {
        self.participants.iter().chain(&self.later).chain(&self.private_agents)
    }
}

type OpeningFn = Box<dyn Fn(&OpeningContext<'_>) -> Vec<Message> + Send + Sync>;

/// What a chat's [opening](ChatBuilder::opening_from) is made from.
#[derive(Debug, Clone, Copy)]
pub struct OpeningContext<'a> {
    /// The task of the chat.
    pub task: &'a str,
    /// The transcript of the outer chat at this moment, if this chat is a participant of one.
    pub outer: Option<&'a Transcript>,
    /// The name of this chat's participant in the outer chat; the chat's own name if there is none.
    pub who: &'a Name,
}

/// How the task of a nested chat is taken from the outer chat.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum TaskFrom {
    /// The last message that the chat, as a participant, sees.
    #[default]
    Last,
    /// Every message that it sees, with the names of the speakers.
    All,
    /// The task of the outer chat.
    Task,
    /// A custom function of the transcript of the outer chat and the name of this participant there.
    Custom(TaskFn),
}

/// The handling of background tasks that are open when their chat would end as completed, or because all are silent. When it ends
/// for another reason - a limit, a participant that ends it, a person - they are cancelled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum OpenBackground {
    /// The chat waits for them. Their results are posted, and each agent that started some has one more turn, where the policy
    /// [takes it](Policy::takes_follow_up).
    #[default]
    Wait,
    /// The open tasks are cancelled, and the chat ends.
    Cancel,
}

type TaskFn = Arc<dyn Fn(&Transcript, &Name) -> String + Send + Sync>;

impl TaskFrom {
    /// Takes the task from a custom function of the transcript of the outer chat and of this participant's name there. Must be
    /// deterministic.
    pub fn custom(task: impl Fn(&Transcript, &Name) -> String + Send + Sync + 'static) -> Self {
        Self::Custom(Arc::new(task))
    }
}

/// Custom functions are equal if they are the same one.
impl PartialEq for TaskFrom {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Custom(one), Self::Custom(other)) => Arc::ptr_eq(one, other),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl fmt::Debug for TaskFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Last => "Last",
            Self::All => "All",
            Self::Task => "Task",
            Self::Custom(_) => "Custom",
        })
    }
}

/// The state of a chat after a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Status {
    /// The chat is closed.
    Closed {
        /// The stop reason.
        reason: StopReason,
        /// The result.
        summary: Arc<str>,
    },
    /// Waits until people have answered these questions.
    Waiting(Vec<(Path, Question)>),
    /// Cancelled; running it again continues it.
    Cancelled,
}

/// Builds a [`Chat`].
#[must_use]
pub struct ChatBuilder {
    name: String,
    policy: Option<Box<dyn Policy>>,
    setup: Setup,
    introduce: Option<IntroduceFn>,
    stops: Vec<Box<dyn Condition>>,
}

type IntroduceFn = Box<dyn Fn(&[AnyAgent]) -> String + Send + Sync>;

impl Chat {
    /// The default of [`max_turns`](ChatBuilder::max_turns). Agents that have found no end by then seldom find one.
    pub const DEFAULT_MAX_TURNS: u64 = 100;

    /// The default of [`max_equal_calls`](ChatBuilder::max_equal_calls). Allows polling a few times.
    pub const DEFAULT_MAX_EQUAL_CALLS: usize = 8;

    /// The default of [`max_background`](ChatBuilder::max_background).
    pub const DEFAULT_MAX_BACKGROUND: usize = 8;

    /// The default of [`max_follow_ups`](ChatBuilder::max_follow_ups).
    pub const DEFAULT_MAX_FOLLOW_UPS: u64 = 8;

    /// Returns a builder of a chat with this name, which is checked by [`build`](ChatBuilder::build).
    pub fn builder(name: impl AsRef<str>) -> ChatBuilder {
        let setup = Setup {
            description: String::new(),
            participants: Vec::new(),
            later: Vec::new(),
            private_agents: Vec::new(),
            introduction: None,
            opening: Box::new(|start| task_from_user(start.task)),
            task_from: TaskFrom::default(),
            continues: None,
            is_for_calls: false,
            max_turns: Self::DEFAULT_MAX_TURNS,
            max_equal_calls: Self::DEFAULT_MAX_EQUAL_CALLS,
            allowance: None,
            max_background: Self::DEFAULT_MAX_BACKGROUND,
            max_follow_ups: Self::DEFAULT_MAX_FOLLOW_UPS,
            open_background: OpenBackground::default(),
        };
        ChatBuilder {
            name: name.as_ref().to_owned(),
            policy: None,
            setup,
            introduce: None,
            stops: Vec::new(),
        }
    }

    /// Returns the participants of the chat, in order.
    pub fn participants(&self) -> &[AnyAgent] {
        &self.setup.participants
    }

    /// Returns whether the chat has an agent of this name: a participant, one that can join later, or one that can have private turns.
    pub fn has_agent(&self, name: &Name) -> bool {
        self.agent(name).is_some()
    }

    /// Returns the maximum number of turns.
    pub const fn max_turns(&self) -> u64 {
        self.setup.max_turns
    }

    pub(crate) const fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    pub(crate) fn agent(&self, name: &Name) -> Option<&AnyAgent> {
        self.setup.all_agents().find(|agent| agent.name() == name)
    }

    pub(crate) const fn max_equal_calls_of_agents(&self) -> usize {
        self.setup.max_equal_calls
    }

    /// The opening from `start`, after the messages of an `earlier` conversation.
    pub(crate) fn opening(&self, start: &OpeningContext<'_>, earlier: Vec<Message>) -> Opening {
        let names = |agents: &[AnyAgent]| agents.iter().map(|agent| agent.name().clone()).collect();
        let inherited = earlier.len() as u64;
        let mut messages = earlier;
        messages.extend((self.setup.opening)(start));
        Opening {
            participants: names(&self.setup.participants),
            late_joiners: names(&self.setup.later),
            task: start.task.into(),
            introduction: self.setup.introduction.clone(),
            messages,
            inherited,
        }
    }

    pub(crate) const fn continues(&self) -> Option<&Name> {
        self.setup.continues.as_ref()
    }

    /// The chat of one agent in which it replies whenever it is called.
    pub(crate) fn for_calls(agent: AnyAgent, max_equal_calls: usize) -> Result<Self> {
        let who = agent.name().clone();
        let policy = move |chat: &Transcript| match chat.turns() {
            0 => Step::Turn(TurnRequest::to_all(who.clone())),
            _ => {
                let said = chat.latest().rfind(|line| line.message.from == who);
                let summary = said.map(|line| line.message.to_text().into()).unwrap_or_default();
                Step::Close { reason: StopReason::Finished, summary }
            }
        };
        let policy = with_follow_ups(policy);
        let mut chat = Self::builder(agent.name().as_str()).participant(agent).policy(policy).build()?;
        chat.setup.is_for_calls = true;
        chat.setup.max_equal_calls = max_equal_calls;
        Ok(chat)
    }
}

/// The default opening: the user says the task.
fn task_from_user(task: &str) -> Vec<Message> {
    if task.trim().is_empty() { Vec::new() } else { vec![Message::new(Name::user(), task)] }
}

impl ChatInfo for Chat {
    fn description_of(&self, who: &Name) -> &str {
        self.agent(who).map_or("", Agent::description)
    }

    fn max_equal_calls(&self) -> usize {
        self.setup.max_equal_calls
    }

    fn is_for_calls(&self) -> bool {
        self.setup.is_for_calls
    }

    fn has_background(&self, who: &Name, target: &str) -> bool {
        self.agent(who).is_some_and(|agent| agent.background_agent(target).is_some())
    }

    fn max_background(&self) -> usize {
        self.setup.max_background
    }
}

impl ChatBuilder {
    /// Adds a participant.
    pub fn participant(mut self, agent: impl Agent) -> Self {
        self.setup.participants.push(AnyAgent::new(agent));
        self
    }

    /// Adds a participant that can join later, by [`Step::Admit`].
    pub fn late_joiner(mut self, agent: impl Agent) -> Self {
        self.setup.later.push(AnyAgent::new(agent));
        self
    }

    /// Adds an agent that is not a participant, but can have private turns: a selector, a summarizer.
    pub fn private_agent(mut self, agent: impl Agent) -> Self {
        self.setup.private_agents.push(AnyAgent::new(agent));
        self
    }

    /// Sets the policy, which selects the next speaker, such as `round_robin()` or a group, and closes the chat if
    /// no condition of [`stop`](Self::stop) does.
    pub fn policy(self, policy: impl Policy) -> Self {
        Self { policy: Some(Box::new(policy)), ..self }
    }

    /// Adds a termination condition, checked after every step, before the policy. Default: none, so that the chat ends
    /// when its policy ends it, or after [`max_turns`](Self::max_turns).
    pub fn stop(mut self, condition: impl Condition) -> Self {
        self.stops.push(Box::new(condition));
        self
    }

    /// Sets what the chat is good at, for selectors of the next speaker.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.setup.description = description.into();
        self
    }

    /// Sets the messages before the first turn, made from the task. Default: the `user` says the task.
    pub fn opening(self, opening: impl Fn(&str) -> Vec<Message> + Send + Sync + 'static) -> Self {
        self.opening_from(move |start| opening(start.task))
    }

    /// Sets the messages before the first turn, made from the task and the outer chat. Must be deterministic.
    pub fn opening_from(
        mut self,
        opening: impl Fn(&OpeningContext<'_>) -> Vec<Message> + Send + Sync + 'static,
    ) -> Self {
        self.setup.opening = Box::new(opening);
        self
    }

    /// Sets a text that every participant receives before all messages, such as who the others are. It is not a
    /// message of the chat.
    pub fn introduction(mut self, text: impl Into<Arc<str>>) -> Self {
        self.setup.introduction = Some(text.into());
        self
    }

    /// Sets an [`introduction`](Self::introduction) that is made from the participants followed by the late joiners.
    pub fn introduction_of(mut self, text: impl Fn(&[AnyAgent]) -> String + Send + Sync + 'static) -> Self {
        self.introduce = Some(Box::new(text));
        self
    }

    /// Continues, as a participant of another chat, the conversation of the last turn that `name` had there: itself,
    /// or another participant that is a chat. Default: every turn is a new conversation.
    pub fn continues(mut self, name: Name) -> Self {
        self.setup.continues = Some(name);
        self
    }

    /// Sets how its task is taken from the outer chat. Default: [`TaskFrom::Last`].
    pub fn task_from(mut self, from: TaskFrom) -> Self {
        self.setup.task_from = from;
        self
    }

    /// Sets the maximum number of turns, whatever the policy does. Default: [`Chat::DEFAULT_MAX_TURNS`].
    pub fn max_turns(mut self, turns: u64) -> Self {
        self.setup.max_turns = turns;
        self
    }

    /// Sets limits of each run of this chat, with everything within it. When one is reached, the chat ends; an outer chat
    /// continues with what it has so far. Default: none.
    pub fn limits(mut self, limits: Allowance) -> Self {
        self.setup.allowance = Some(limits);
        self
    }

    /// Sets how many equal tool calls with equal results an agent can make in a row in one turn. At the next one the
    /// chat ends with [`StopReason::LoopDetected`]. 0 means no limit. Default: [`Chat::DEFAULT_MAX_EQUAL_CALLS`].
    pub fn max_equal_calls(mut self, calls: usize) -> Self {
        self.setup.max_equal_calls = calls;
        self
    }

    /// Sets how many background tasks that its participants start can be open at the same time. A further one is refused. Default:
    /// [`Chat::DEFAULT_MAX_BACKGROUND`].
    pub fn max_background(mut self, tasks: usize) -> Self {
        self.setup.max_background = tasks;
        self
    }

    /// Sets how many turns each participant can have for results of its background tasks that come when the chat would end. In each it
    /// can start more tasks. Default: [`Chat::DEFAULT_MAX_FOLLOW_UPS`].
    pub fn max_follow_ups(mut self, turns: u64) -> Self {
        self.setup.max_follow_ups = turns;
        self
    }

    /// Sets what happens to background tasks that are open when the chat would end as completed. Default: [`OpenBackground::Wait`].
    pub fn open_background(mut self, then: OpenBackground) -> Self {
        self.setup.open_background = then;
        self
    }

    /// Builds the chat.
    ///
    /// # Errors
    /// When a name is used twice or is `user`, or when there is no participant or no policy.
    pub fn build(mut self) -> Result<Chat> {
        let name = Name::new(&self.name)?;
        if let Some(policy) = &self.policy {
            self.setup.private_agents.extend(policy.private_agents());
        }
        let mut names: Vec<&Name> = Vec::new();
        for agent in self.setup.all_agents() {
            if *agent.name() == Name::user() {
                return Err(ConfigError::ReservedName.into());
            }
            if names.contains(&agent.name()) {
                return Err(ConfigError::NameUsedTwice { chat: name, name: agent.name().clone() }.into());
            }
            names.push(agent.name());
        }
        if self.setup.participants.is_empty() {
            return Err(ConfigError::NoParticipants { chat: name }.into());
        }
        let Some(policy) = self.policy else { return Err(ConfigError::NoPolicy { chat: name }.into()) };
        let mut setup = self.setup;
        if let Some(introduce) = self.introduce {
            let joiners: Vec<AnyAgent> = setup.participants.iter().chain(&setup.later).cloned().collect();
            setup.introduction = Some(introduce(&joiners).into());
        }
        let policy = self
            .stops
            .into_iter()
            .rev()
            .fold(policy, |policy, stop| Box::new(with_termination(policy, stop)));
        Ok(Chat { name, policy, setup })
    }
}
