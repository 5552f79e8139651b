//! Agents and a policy: what every pattern is made of.

use std::fmt;
use std::sync::Arc;

use crate::run::Scope;
use crate::{
    Act, Agent, AnyAgent, Error, Line, Log, Message, Name, Opening, Path, Policy, Question, Reason, Result,
    Turn,
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
    staff: Vec<AnyAgent>,
    opening: OpeningFn,
    brief: Brief,
    cap: u64,
}

type OpeningFn = Box<dyn Fn(&str) -> Vec<Message> + Send + Sync>;

/// How the task of a chat within a chat is made of the conversation around it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Brief {
    /// The last message that the chat, as a participant, sees.
    #[default]
    Last,
    /// Every message that it sees, with the names of the speakers.
    All,
    /// The task of the chat around it.
    Task,
}

/// How a run left a chat.
#[derive(Debug, Clone, PartialEq)]
pub enum Status {
    /// It is over.
    Closed {
        /// Why.
        reason: Reason,
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
}

impl Chat {
    /// How many turns a chat has at most, unless it is told otherwise: conversations of agents that found no end by
    /// then seldom find one.
    pub const DEFAULT_CAP: u64 = 100;

    /// Begins to build a chat.
    #[must_use]
    pub fn named(name: &str) -> ChatBuilder {
        let setup = Setup {
            description: String::new(),
            members: Vec::new(),
            staff: Vec::new(),
            opening: Box::new(task_from_user),
            brief: Brief::default(),
            cap: Self::DEFAULT_CAP,
        };
        ChatBuilder { name: name.to_owned(), policy: None, setup }
    }

    /// Opens the chat in an empty log and runs it until it is over, a person has to answer, or it is stopped.
    ///
    /// # Errors
    /// When the log is not empty, and as [`resume`](Self::resume).
    pub async fn run(&self, log: &mut Log, task: &str) -> Result<Status> {
        if !log.events().await.is_empty() {
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

    async fn drive(&self, log: &Log, task: Option<&str>) -> Result<Status> {
        log.begin().await?;
        let transcript = log.transcript().await?;
        if !transcript.is_open() && task.is_none() {
            return Err(Error::Config(format!("the conversation `{}` has not begun", log.id())));
        }
        let mut scope = Scope::new(log, transcript);
        match scope.run(self, task.unwrap_or_default()).await {
            Err(Error::Halted) => Ok(Status::Halted),
            Err(Error::Limit(reason)) => scope.close_at_limit(reason).await,
            result => result,
        }
    }

    /// Its members, in order.
    #[must_use]
    pub fn members(&self) -> &[AnyAgent] {
        &self.setup.members
    }

    /// How many turns it has at most.
    #[must_use]
    pub const fn cap(&self) -> u64 {
        self.setup.cap
    }

    pub(crate) const fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    pub(crate) fn agent(&self, name: &Name) -> Option<&AnyAgent> {
        self.setup.members.iter().chain(&self.setup.staff).find(|agent| agent.name() == name)
    }

    pub(crate) fn opening(&self, task: &str) -> Opening {
        let with = self.setup.members.iter().map(|agent| agent.name().clone()).collect();
        Opening { with, task: task.into(), messages: (self.setup.opening)(task) }
    }

    fn task_from(&self, turn: &Turn<'_>) -> String {
        let transcript = turn.transcript();
        let seen = |line: &&Line| line.is_seen_by(&self.name);
        if let Some(prompt) = &turn.cue().prompt {
            return prompt.as_ref().to_owned();
        }
        match self.setup.brief {
            Brief::Task => transcript.task().to_owned(),
            Brief::Last => transcript
                .lines()
                .iter()
                .rev()
                .find(seen)
                .map_or_else(String::new, |l| l.message.plain().into()),
            Brief::All => {
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
            Status::Closed { summary, .. } => Ok(Act::say(summary)),
            Status::Waiting(_) => Ok(Act::Wait),
            Status::Halted => Err(Error::Halted),
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
    pub fn with(mut self, agent: impl Agent) -> Self {
        self.setup.members.push(AnyAgent::new(agent));
        self
    }

    /// Adds somebody who is no member of the room, but can be cued aside: a selector, somebody who sums up.
    #[must_use]
    pub fn aside(mut self, agent: impl Agent) -> Self {
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
    pub fn opening(mut self, opening: impl Fn(&str) -> Vec<Message> + Send + Sync + 'static) -> Self {
        self.setup.opening = Box::new(opening);
        self
    }

    /// Sets how its task is made when it takes part in another chat.
    #[must_use]
    pub fn brief(mut self, brief: Brief) -> Self {
        self.setup.brief = brief;
        self
    }

    /// Sets how many turns it has at most, whatever the policy says.
    #[must_use]
    pub fn cap(mut self, turns: u64) -> Self {
        self.setup.cap = turns;
        self
    }

    /// The chat.
    ///
    /// # Errors
    /// When a name is illegal or used twice, or when there is no member or no policy.
    pub fn build(self) -> Result<Chat> {
        let name = Name::new(&self.name)?;
        let mut names: Vec<&Name> = Vec::new();
        for agent in self.setup.members.iter().chain(&self.setup.staff) {
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
        Ok(Chat { name, policy, setup: self.setup })
    }
}
