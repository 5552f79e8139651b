//! Agents and a policy: what every pattern is made of.

use std::fmt;
use std::sync::Arc;

use crate::run::Scope;
use crate::{
    Act, Agent, AnyAgent, Error, Line, Log, Message, Name, Opening, Path, Policy, Question, Result, Step,
    StopReason, Transcript, Turn, TurnRequest,
};

/// Agents and a policy, which together are an agent again.
///
/// ```
/// # use polylogue_core::{Act, Agent, Chat, Cue, Name, Reason, Result, Step, Transcript, Turn};
/// struct Echo(Name);
/// impl Agent for Echo {
///     fn name(&self) -> &Name {
///         &self.0
///     }
///     async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
///         let heard = turn.transcript().last().map(|line| line.message.plain().into_owned());
///         Ok(Act::say(heard.unwrap_or_default()))
///     }
/// }
///
/// let policy = |chat: &Transcript| match chat.last_speaker() {
///     None => Step::Cue(Cue::to_all(chat.members()[0].clone())),
///     Some(_) => Step::close(Reason::Finished, chat),
/// };
/// let chat = Chat::named("cave").with(Echo(Name::new("Echo")?)).policy(policy).build()?;
/// # Ok::<(), polylogue_core::Error>(())
/// ```
pub struct Chat {
    name: Name,
    policy: Box<dyn Policy>,
    setup: Setup,
}

/// What a chat is besides its name and its policy.
struct Setup {
    description: String,
    members: Vec<AnyAgent>,
    later: Vec<AnyAgent>,
    staff: Vec<AnyAgent>,
    introduction: Option<Arc<str>>,
    opening: OpeningFn,
    brief: TaskFrom,
    goes_on_from: Option<Name>,
    /// Whether it is the room in which an agent is called: see [`Chat::room`].
    is_room: bool,
    cap: u64,
    max_equal_calls: usize,
}

impl Setup {
    fn everybody(&self) -> impl Iterator<Item = &AnyAgent> {
        self.members.iter().chain(&self.later).chain(&self.staff)
    }
}

type OpeningFn = Box<dyn Fn(&Start<'_>) -> Vec<Message> + Send + Sync>;

/// What a chat begins with: what its opening is made of.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    /// What the chat is about.
    pub task: &'a str,
    /// The chat around it, if it takes part in one, as it is when this one begins.
    pub around: Option<&'a Transcript>,
    /// Whose turn in the chat around it is; the chat's own name when there is none around.
    pub who: &'a Name,
}

/// How the task of a chat within a chat is made of the conversation around it.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum TaskFrom {
    /// The last message that the chat, as a participant, sees.
    #[default]
    Last,
    /// Every message that it sees, with the names of the speakers.
    All,
    /// The task of the chat around it.
    Task,
    /// What a pure function makes of the transcript of the chat around it, for the participant named.
    Own(BriefFn),
}

type BriefFn = Arc<dyn Fn(&Transcript, &Name) -> String + Send + Sync>;

impl TaskFrom {
    /// A brief of one's own: a pure function of the transcript of the chat around, and of this participant's name there.
    pub fn custom(brief: impl Fn(&Transcript, &Name) -> String + Send + Sync + 'static) -> Self {
        Self::Own(Arc::new(brief))
    }
}

impl fmt::Debug for TaskFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Last => "Last",
            Self::All => "All",
            Self::Task => "Task",
            Self::Own(_) => "Own",
        })
    }
}

/// How a run left a chat.
#[derive(Debug, Clone, PartialEq)]
pub enum Status {
    /// It is over.
    Closed {
        /// Why.
        reason: StopReason,
        /// What came of it.
        summary: Arc<str>,
    },
    /// It goes on when people have answered.
    Waiting(Vec<(Path, Question)>),
    /// It was stopped from outside, and goes on when it is run again.
    Halted,
}

/// Builds a [`Chat`].
pub struct ChatBuilder {
    name: String,
    policy: Option<Box<dyn Policy>>,
    setup: Setup,
    introduce: Option<IntroduceFn>,
}

type IntroduceFn = Box<dyn Fn(&[AnyAgent]) -> String + Send + Sync>;

impl Chat {
    /// How many turns a chat has at most, unless it is told otherwise: conversations of agents that found no end by
    /// then seldom find one.
    pub const DEFAULT_MAX_TURNS: u64 = 100;

    /// How many equal tool calls with equal results an agent makes in a row in one turn, by default. Polling a few times is left
    /// alone.
    pub const DEFAULT_MAX_EQUAL_CALLS: usize = 8;

    /// Begins to build a chat.
    #[must_use]
    pub fn named(name: &str) -> ChatBuilder {
        let setup = Setup {
            description: String::new(),
            members: Vec::new(),
            later: Vec::new(),
            staff: Vec::new(),
            introduction: None,
            opening: Box::new(|start| task_from_user(start.task)),
            brief: TaskFrom::default(),
            goes_on_from: None,
            is_room: false,
            cap: Self::DEFAULT_MAX_TURNS,
            max_equal_calls: Self::DEFAULT_MAX_EQUAL_CALLS,
        };
        ChatBuilder { name: name.to_owned(), policy: None, setup, introduce: None }
    }

    /// Opens the chat in a log without a conversation and runs it until it is over, a person has to answer, or it is stopped.
    ///
    /// # Errors
    /// When its conversation has begun, and as [`resume`](Self::resume).
    pub async fn run(&self, log: &mut Log, task: &str) -> Result<Status> {
        if log.has_begun().await? {
            return Err(Error::Config(format!("the conversation `{}` has begun already", log.id())));
        }
        self.drive(log, Some(task)).await
    }

    /// Goes on where the log ends.
    ///
    /// # Errors
    /// When a turn fails, the log cannot be written, or agents and log do not fit each other. Everything up to there is
    /// in the log, and resuming it tries again.
    pub async fn resume(&self, log: &mut Log) -> Result<Status> {
        self.drive(log, None).await
    }

    /// Goes on with a conversation that is over about something more: `message` is said, turns and messages are counted
    /// anew, and everybody still knows what was said before. To begin without that, begin another log.
    ///
    /// # Errors
    /// When the conversation is not over, and as [`resume`](Self::resume).
    pub async fn continue_with(&self, log: &mut Log, message: Message) -> Result<Status> {
        log.go_on(message).await?;
        self.drive(log, None).await
    }

    async fn drive(&self, log: &Log, task: Option<&str>) -> Result<Status> {
        log.begin().await?;
        let transcript = log.transcript().await?;
        if !transcript.is_open() && task.is_none() {
            return Err(Error::Config(format!("the conversation `{}` has not begun", log.id())));
        }
        let mut scope = Scope::new(log, transcript);
        let start = Start { task: task.unwrap_or_default(), around: None, who: &self.name };
        let opening = self.opening(&start, Vec::new());
        match scope.run(self, opening).await {
            Err(Error::Cancelled) => Ok(Status::Halted),
            Err(Error::Limit(reason)) => scope.close_at_limit(reason).await,
            result => result,
        }
    }

    /// Its members, in order.
    #[must_use]
    pub fn participants(&self) -> &[AnyAgent] {
        &self.setup.members
    }

    /// How many turns it has at most.
    #[must_use]
    pub const fn max_turns(&self) -> u64 {
        self.setup.cap
    }

    pub(crate) const fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    pub(crate) fn agent(&self, name: &Name) -> Option<&AnyAgent> {
        self.setup.everybody().find(|agent| agent.name() == name)
    }

    /// How the chat begins from `start`, going on from what was said `earlier`.
    pub(crate) fn opening(&self, start: &Start<'_>, earlier: Vec<Message>) -> Opening {
        let names = |agents: &[AnyAgent]| agents.iter().map(|agent| agent.name().clone()).collect();
        let inherited = earlier.len() as u64;
        let mut messages = earlier;
        messages.extend((self.setup.opening)(start));
        Opening {
            participants: names(&self.setup.members),
            late_joiners: names(&self.setup.later),
            task: start.task.into(),
            introduction: self.setup.introduction.clone(),
            messages,
            inherited,
        }
    }

    pub(crate) const fn goes_on_from(&self) -> Option<&Name> {
        self.setup.goes_on_from.as_ref()
    }

    /// How many equal tool calls an agent makes in a row in one turn at most; 0 for any number.
    pub(crate) const fn max_equal_calls(&self) -> usize {
        self.setup.max_equal_calls
    }

    /// Whether it is a [room](Self::room).
    pub(crate) const fn is_room(&self) -> bool {
        self.setup.is_room
    }

    /// The room of one agent, in which it replies whenever it is called.
    pub(crate) fn room(agent: AnyAgent, max_equal_calls: usize) -> Result<Self> {
        let who = agent.name().clone();
        let policy = move |chat: &Transcript| match chat.turns() {
            0 => Step::Turn(TurnRequest::to_all(who.clone())),
            _ => {
                let said = chat.latest().rfind(|line| line.message.from == who);
                let summary = said.map(|line| line.message.in_words().into()).unwrap_or_default();
                Step::Close { reason: StopReason::Finished, summary }
            }
        };
        let mut room = Self::named(agent.name().as_str()).participant(agent).policy(policy).build()?;
        room.setup.is_room = true;
        room.setup.max_equal_calls = max_equal_calls;
        Ok(room)
    }

    fn task_from(&self, turn: &Turn<'_>) -> String {
        let transcript = turn.transcript();
        let seen = |line: &&Line| line.is_seen_by(&self.name);
        if let Some(prompt) = &turn.request().prompt {
            return prompt.as_ref().to_owned();
        }
        match &self.setup.brief {
            TaskFrom::Own(brief) => brief(transcript, &self.name),
            TaskFrom::Task => transcript.task().to_owned(),
            TaskFrom::Last => transcript
                .lines()
                .iter()
                .rev()
                .find(seen)
                .map_or_else(String::new, |l| l.message.plain().into()),
            TaskFrom::All => {
                let say = |line: &Line| format!("{}: {}", line.message.from, line.message.plain());
                transcript.lines().iter().filter(seen).map(say).collect::<Vec<_>>().join("\n\n")
            }
        }
    }
}

/// The default opening: the user says what the task is.
fn task_from_user(task: &str) -> Vec<Message> {
    if task.trim().is_empty() { Vec::new() } else { vec![Message::text(Name::user(), task)] }
}

impl Agent for Chat {
    fn name(&self) -> &Name {
        &self.name
    }

    fn description(&self) -> &str {
        &self.setup.description
    }

    /// Runs the chat, and says what came of it.
    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let task = self.task_from(turn);
        match turn.run(self, &task).await? {
            Status::Closed { summary, .. } => Ok(turn.says(summary)),
            Status::Waiting(_) => Ok(Act::Wait),
            Status::Halted => Err(Error::Cancelled),
        }
    }
}

impl fmt::Debug for Chat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chat")
            .field("name", &self.name)
            .field("members", &self.setup.members)
            .finish_non_exhaustive()
    }
}

impl ChatBuilder {
    /// Adds a member of the room.
    #[must_use]
    pub fn participant(mut self, agent: impl Agent) -> Self {
        self.setup.members.push(AnyAgent::new(agent));
        self
    }

    /// Adds somebody who may join later; see [`Step::Admit`](crate::Step::Admit).
    #[must_use]
    pub fn late_joiner(mut self, agent: impl Agent) -> Self {
        self.setup.later.push(AnyAgent::new(agent));
        self
    }

    /// Adds somebody who is no member of the room, but can be cued aside: a selector, somebody who sums up.
    #[must_use]
    pub fn private_agent(mut self, agent: impl Agent) -> Self {
        self.setup.staff.push(AnyAgent::new(agent));
        self
    }

    /// Sets who speaks next and when it is over.
    #[must_use]
    pub fn policy(self, policy: impl Policy) -> Self {
        Self { policy: Some(Box::new(policy)), ..self }
    }

    /// Sets what it is good at, for whoever chooses among chats.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.setup.description = description.into();
        self
    }

    /// Sets what is said before the first turn, made of the task. The default: the `user` says the task.
    #[must_use]
    pub fn opening(self, opening: impl Fn(&str) -> Vec<Message> + Send + Sync + 'static) -> Self {
        self.opening_from(move |start| opening(start.task))
    }

    /// Sets what is said before the first turn, made of the task and of the chat around this one. It has to be the same
    /// for the same.
    #[must_use]
    pub fn opening_from(
        mut self,
        opening: impl Fn(&Start<'_>) -> Vec<Message> + Send + Sync + 'static,
    ) -> Self {
        self.setup.opening = Box::new(opening);
        self
    }

    /// Sets what every member is told before all else, such as who the others are. It is no message of the room.
    #[must_use]
    pub fn introduction(mut self, text: impl Into<Arc<str>>) -> Self {
        self.setup.introduction = Some(text.into());
        self
    }

    /// As [`introduction`](Self::introduction), made of the members and those who may join later, in this order.
    #[must_use]
    pub fn introduction_of(mut self, text: impl Fn(&[AnyAgent]) -> String + Send + Sync + 'static) -> Self {
        self.introduce = Some(Box::new(text));
        self
    }

    /// As a participant of another chat, goes on from what was said the last time that `name` had a turn there: its own
    /// name, or that of another participant that is a chat. Without this, every turn is a conversation of its own.
    #[must_use]
    pub fn continues(mut self, name: Name) -> Self {
        self.setup.goes_on_from = Some(name);
        self
    }

    /// Sets how its task is made when it takes part in another chat.
    #[must_use]
    pub fn task_from(mut self, brief: TaskFrom) -> Self {
        self.setup.brief = brief;
        self
    }

    /// Sets how many turns it has at most, whatever the policy says.
    #[must_use]
    pub fn max_turns(mut self, turns: u64) -> Self {
        self.setup.cap = turns;
        self
    }

    /// Sets how many equal tool calls with equal results an agent makes in a row in one turn: at the next one the chat ends, as
    /// [`StopReason::LoopDetected`]. 0 is any number. The default: [`Chat::DEFAULT_MAX_EQUAL_CALLS`].
    #[must_use]
    pub fn max_equal_calls(mut self, calls: usize) -> Self {
        self.setup.max_equal_calls = calls;
        self
    }

    /// The chat.
    ///
    /// # Errors
    /// When a name is illegal or used twice, or when there is no member or no policy.
    pub fn build(self) -> Result<Chat> {
        let name = Name::new(&self.name)?;
        let mut names: Vec<&Name> = Vec::new();
        for agent in self.setup.everybody() {
            if *agent.name() == Name::user() {
                return Err(Error::Config(
                    "`user` is whoever gives the task; no agent can have this name".into(),
                ));
            }
            if names.contains(&agent.name()) {
                return Err(Error::Config(format!("two agents of `{name}` are named `{}`", agent.name())));
            }
            names.push(agent.name());
        }
        if self.setup.members.is_empty() {
            return Err(Error::Config(format!("`{name}` has no members")));
        }
        let policy = self.policy.ok_or_else(|| Error::Config(format!("`{name}` has no policy")))?;
        let mut setup = self.setup;
        if let Some(introduce) = self.introduce {
            let everybody: Vec<AnyAgent> = setup.members.iter().chain(&setup.later).cloned().collect();
            setup.introduction = Some(introduce(&everybody).into());
        }
        Ok(Chat { name, policy, setup })
    }
}
