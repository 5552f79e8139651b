//! The participants and their prompts. Stateless: the specified task and the plan are read from the transcript.

use std::borrow::Cow;
use std::sync::Arc;

use polylogue_core::{Act, Agent, AnyAgent, Audience, Message, Name, Result, SubAgent, Transcript, Turn};

use super::critic::Critic;
use super::prompts;
use super::prompts::RoleValues;
use crate::Assistant;

/// Makes the rules of a role.
pub(super) type PromptFn = Arc<dyn Fn(&RoleValues<'_>) -> String + Send + Sync>;

/// Custom prompts of a role-play; the defaults are in [`prompts`].
#[derive(Clone, Default)]
pub(super) struct Texts {
    /// The opening message to the user role.
    pub(super) opening: Option<PromptFn>,
    /// The prompt of the specifier.
    pub(super) specifier: Option<PromptFn>,
    /// The prompt of the planner.
    pub(super) planner: Option<PromptFn>,
    /// The rules of the critic.
    pub(super) critic: Option<PromptFn>,
}

/// The texts that a [`RolePlay`](super::RolePlay) adds to the requests of its agents, for one task: they have their own system messages besides.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AddedTexts {
    /// The opening message to the user role.
    pub opening: String,
    /// The rules of the assistant role.
    pub assistant: String,
    /// The rules of the user role.
    pub user: String,
    /// The rules of the critic; empty without one.
    pub critic: String,
    /// The default role of the specifier, which has none if it has its own system message, and its prompt.
    pub specifier: [String; 2],
    /// The same of the planner.
    pub planner: [String; 2],
    /// The sentence on the language at the end of default prompts of the critic; empty without a language.
    pub language: String,
}

/// All participants and private agents.
#[derive(Clone, derive_more::Debug)]
pub(super) struct Participants {
    pub(super) assistant: Assistant,
    pub(super) user: Assistant,
    /// The names of the roles: assistant, user.
    pub(super) roles: [Arc<str>; 2],
    /// The rules: assistant, user.
    #[debug(skip)]
    pub(super) prompts: [PromptFn; 2],
    /// Custom prompts instead of the defaults.
    #[debug(skip)]
    pub(super) texts: Texts,
    pub(super) specifier: Option<Assistant>,
    pub(super) word_limit: u32,
    pub(super) planner: Option<Assistant>,
    pub(super) critic: Option<Critic>,
    pub(super) language: Option<Arc<str>>,
    pub(super) done: Arc<str>,
}

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RolePlayAgent {
    User,
    Assistant,
    Specifier,
    Planner,
}

impl Participants {
    pub(super) fn new(assistant: Assistant, user: Assistant, done: &str, word_limit: u32) -> Self {
        let role = |agent: &Assistant| agent.name().as_str().replace('_', " ").into();
        Self {
            roles: [role(&assistant), role(&user)],
            prompts: [Arc::new(prompts::assistant), Arc::new(prompts::user)],
            texts: Texts::default(),
            assistant,
            user,
            specifier: None,
            word_limit,
            planner: None,
            critic: None,
            language: None,
            done: done.into(),
        }
    }

    /// One of them, as an agent.
    pub(super) fn player(cast: &Arc<Self>, side: RolePlayAgent) -> Player {
        Player { cast: Arc::clone(cast), side }
    }

    /// The private agents that speak before the two roles, in order.
    pub(super) fn private_roles(&self) -> impl Iterator<Item = RolePlayAgent> + use<> {
        let private_roles = [
            (RolePlayAgent::Specifier, self.specifier.is_some()),
            (RolePlayAgent::Planner, self.planner.is_some()),
        ];
        private_roles.into_iter().filter(|(_, takes_part)| *takes_part).map(|(side, _)| side)
    }

    pub(super) fn agent(&self, side: RolePlayAgent) -> &Assistant {
        let agent = match side {
            RolePlayAgent::Assistant => None,
            RolePlayAgent::User => Some(&self.user),
            RolePlayAgent::Specifier => self.specifier.as_ref(),
            RolePlayAgent::Planner => self.planner.as_ref(),
        };
        agent.unwrap_or(&self.assistant)
    }

    /// The opening message to the user role. The assistant role does not see it: it sees only instructions.
    pub(super) fn opening(&self, task: &str) -> Message {
        let text = self.opening_text(&self.role_values(task));
        Message::new(Name::user(), text).to(Audience::Only(vec![self.user.name().clone()]))
    }

    fn opening_text(&self, values: &RoleValues<'_>) -> String {
        match &self.texts.opening {
            Some(opening) => opening(values),
            None => self.in_language(prompts::OPENING.to_owned()),
        }
    }

    /// All that is added to the requests of the agents where their task is `task`.
    pub(super) fn added(&self, task: &str) -> AddedTexts {
        let values = &self.role_values(task);
        // An own system message stands between the rules and the language, in paragraphs of its own.
        let rules = |rules: String| self.in_language(format!("{rules}\n\n"));
        let private = |role: &str, side| [rules(role.to_owned()), self.prompt(side, values)];
        let [assistant, user] = &self.prompts;
        let critic = self.critic.as_ref().map(|critic| rules(self.rules_of(critic, values)));
        AddedTexts {
            opening: self.opening_text(values),
            assistant: rules(assistant(values)),
            user: rules(user(values)),
            critic: critic.unwrap_or_default(),
            specifier: private(prompts::SPECIFIER, RolePlayAgent::Specifier),
            planner: private(prompts::PLANNER, RolePlayAgent::Planner),
            language: self.in_language(String::new()),
        }
    }

    /// A default prompt, with the sentence on the language.
    fn in_language(&self, text: String) -> String {
        match self.language.as_deref().map(prompts::language) {
            Some(language) => format!("{text}\n\n{language}"),
            None => text,
        }
    }

    /// The prompt of a private agent before the two roles start.
    pub(super) fn question(&self, side: RolePlayAgent, chat: &Transcript) -> String {
        match side {
            RolePlayAgent::Planner => self.prompt(side, &self.role_values(&self.specified(chat))),
            _ => self.prompt(side, &self.role_values(chat.task())),
        }
    }

    /// The prompt of the planner or the specifier.
    fn prompt(&self, side: RolePlayAgent, values: &RoleValues<'_>) -> String {
        match (side, &self.texts) {
            (RolePlayAgent::Planner, Texts { planner: Some(plan), .. }) => plan(values),
            (RolePlayAgent::Planner, _) => self.in_language(prompts::plan(values.task)),
            (_, Texts { specifier: Some(specify), .. }) => specify(values),
            _ => self.in_language(prompts::specify(values, self.word_limit)),
        }
    }

    /// The specified task, or the idea.
    fn specified<'t>(&self, chat: &'t Transcript) -> Cow<'t, str> {
        let specifier = self.specifier.as_ref().map(Agent::name);
        specifier.and_then(|who| said_in_private(chat, who)).unwrap_or(Cow::Borrowed(chat.task()))
    }

    /// The specified task with its plan.
    fn task(&self, chat: &Transcript) -> String {
        let planner = self.planner.as_ref().map(Agent::name);
        let specified = self.specified(chat);
        match planner.and_then(|who| said_in_private(chat, who)) {
            Some(plan) => format!("{specified}\n{plan}"),
            None => specified.into_owned(),
        }
    }

    /// The values for the rules, where the task is `task`.
    fn role_values<'a>(&'a self, task: &'a str) -> RoleValues<'a> {
        let [assistant, user] = &self.roles;
        RoleValues { assistant, user, task, done: &self.done }
    }

    /// The system message of `agent`: the rules, its own system message, and the language.
    fn system(&self, rules: String, agent: &Assistant, task: &str) -> String {
        let own = agent.system_for(task).filter(|text| !text.trim().is_empty());
        let language = self.language.as_deref().map(prompts::language);
        [Some(rules).filter(|rules| !rules.is_empty()), own.map(|text| text.as_ref().to_owned()), language]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join("\n\n")
    }

    /// All assistants, with their system messages in `chat`.
    pub(super) fn prompted(&self, chat: &Transcript) -> Vec<Assistant> {
        let task = self.task(chat);
        let values = self.role_values(&task);
        let prompted = |rules: String, agent: &Assistant| {
            let system = self.system(rules, agent, &task);
            agent.clone().system(system)
        };
        let sides = [RolePlayAgent::User, RolePlayAgent::Assistant].into_iter().chain(self.private_roles());
        let critic = self.critic.as_ref().filter(|critic| critic.chooses());
        let critic =
            critic.and_then(|critic| Some(prompted(self.rules_of(critic, &values), critic.assistant()?)));
        sides.map(|side| prompted(self.rules(side, &values), self.agent(side))).chain(critic).collect()
    }

    fn rules(&self, side: RolePlayAgent, values: &RoleValues<'_>) -> String {
        let [assistant, user] = &self.prompts;
        match side {
            RolePlayAgent::Assistant => assistant(values),
            RolePlayAgent::User => user(values),
            RolePlayAgent::Specifier => usual(prompts::SPECIFIER, self.specifier.as_ref(), values.task),
            RolePlayAgent::Planner => usual(prompts::PLANNER, self.planner.as_ref(), values.task),
        }
    }

    /// The rules of `critic`.
    fn rules_of(&self, critic: &Critic, values: &RoleValues<'_>) -> String {
        self.texts.critic.as_ref().map_or_else(|| critic.rules(values), |rules| rules(values))
    }
}

/// The default role of an agent, unless its own system message says so.
fn usual(text: &str, agent: Option<&Assistant>, task: &str) -> String {
    let own = agent.and_then(|agent| agent.system_for(task));
    if own.is_some_and(|own| !own.trim().is_empty()) { String::new() } else { text.to_owned() }
}

/// The first private message of `who`, trimmed.
pub(super) fn said_in_private<'t>(chat: &'t Transcript, who: &Name) -> Option<Cow<'t, str>> {
    let lines = chat.all_messages().iter().filter(|line| line.is_private() && line.message.from == *who);
    let mut texts = lines.map(|line| match line.message.text() {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
        Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
    });
    texts.find(|text| !text.is_empty())
}

/// One of them as an agent: an assistant whose system message is made from the transcript.
pub(super) struct Player {
    cast: Arc<Participants>,
    side: RolePlayAgent,
}

impl Player {
    /// The critic, if there is something to choose.
    fn critic(&self) -> Option<&Critic> {
        let critic = self.cast.critic.as_ref().filter(|critic| critic.chooses());
        critic.filter(|_| matches!(self.side, RolePlayAgent::User | RolePlayAgent::Assistant))
    }
}

impl Agent for Player {
    fn name(&self) -> &Name {
        self.cast.agent(self.side).name()
    }

    fn description(&self) -> &str {
        self.cast.agent(self.side).description()
    }

    fn sub_agents(&self) -> Vec<SubAgent> {
        self.critic().map(|critic| SubAgent::of(&critic.agent())).into_iter().collect()
    }

    fn background_agent(&self, target: &str) -> Option<AnyAgent> {
        // With a critic, its turns are in chats of their own.
        self.cast.agent(self.side).background_agent(target).filter(|_| self.critic().is_none())
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let task = self.cast.task(turn.transcript());
        let values = self.cast.role_values(&task);
        let agent = self.cast.agent(self.side);
        let system = self.cast.system(self.cast.rules(self.side, &values), agent, &task);
        let agent = agent.clone().system(system);
        // Private turns are not messages of the conversation.
        match self.critic().filter(|_| !turn.request().to.is_private()) {
            None => agent.act(turn).await,
            Some(critic) => {
                let rules = self.cast.rules_of(critic, &values);
                let instruct = |agent: Assistant| {
                    let system = self.cast.system(rules, &agent, &task);
                    agent.system(system)
                };
                let usual = |text: &str| self.cast.in_language(text.to_owned());
                critic.clone().with(instruct).best(agent, usual).act(turn).await
            }
        }
    }
}
