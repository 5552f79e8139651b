//! A team as agents and chats that run.

use std::collections::BTreeSet;
use std::sync::Arc;

use polylogue::circles::Circles as CircleLimits;
use polylogue::stop::{self, Stop as Ends};
use polylogue::{
    Agent as _, AnyAgent, AnyModel, AnyTool, Assistant, Audience, Chat, ChatBuilder, Error, GetHistory,
    Human, Lens, Limits, Message, Money, Name, Params, Policy, Result, ShowNames, Tool as _, Transcript,
    Window, in_turn, once_each, reflected, summed_up, until,
};

use crate::chat::{self, Brief, Circles, InnerChat, Opening, OpeningLine, Pattern, Reflect, Stop, Summary};
use crate::team::{self, Agent, SubTeam, Team};

/// Gives the model that is called so.
pub type Provide<'a> = &'a dyn Fn(&str) -> Result<AnyModel>;

impl Team {
    /// Makes the outermost chat, with models that `provide` gives by name.
    ///
    /// # Errors
    /// When an agent has no model, when `provide` fails, and when a participant is not in the team: teams that were
    /// loaded from a file are checked, those that were made otherwise may not be.
    pub fn build(&self, provide: Provide<'_>) -> Result<Chat> {
        Crew::of(self, &self.name, None, provide).outermost(Brief::default())
    }

    /// Makes the agents that speak by models, those of chats within included, without the chats: to see what they are
    /// told.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn assistants(&self, provide: Provide<'_>) -> Result<Vec<Assistant>> {
        Crew::of(self, &self.name, None, provide).assistants()
    }

    /// Limits of the whole run: those the team sets, over the defaults.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let (set, default) = (&self.limits, Limits::default());
        Limits {
            turns: None,
            calls: set.calls.unwrap_or(default.calls),
            tokens: set.tokens,
            cost: set.cost.map(Money::dollars),
            depth: set.depth.and_then(|depth| depth.try_into().ok()).unwrap_or(default.depth),
        }
    }
}

/// Who can be called into a chat.
struct Crew<'a> {
    team: &'a Team,
    /// What the team is called where it takes part.
    name: &'a Name,
    model: Option<&'a str>,
    provide: Provide<'a>,
}

impl<'a> Crew<'a> {
    /// The crew of `team`, called `name`; `around` is the model of the team around it.
    fn of(team: &'a Team, name: &'a Name, around: Option<&'a str>, provide: Provide<'a>) -> Self {
        Self { team, name, model: team.model.as_deref().or(around), provide }
    }

    fn of_sub(&self, sub: &'a SubTeam) -> Self {
        Self::of(&sub.team, &sub.name, self.model, self.provide)
    }

    fn outermost(&self, brief: Brief) -> Result<Chat> {
        self.chat(self.name, &self.team.chat, &self.team.description, brief, Vec::new())
    }

    fn assistants(&self) -> Result<Vec<Assistant>> {
        let mut all = Vec::new();
        for agent in self.team.agents.iter().filter(|agent| !agent.human) {
            all.push(self.assistant(agent)?);
        }
        let inner = self.team.chats.iter().map(|inner| (&inner.name, &inner.chat));
        for (name, chat) in std::iter::once((self.name, &self.team.chat)).chain(inner) {
            all.extend(self.summarizer(name, chat)?);
        }
        for sub in &self.team.teams {
            all.extend(self.of_sub(sub).assistants()?);
        }
        Ok(all)
    }

    fn chat(
        &self,
        name: &Name,
        chat: &chat::Chat,
        description: &str,
        brief: Brief,
        mut around: Vec<&'a Name>,
    ) -> Result<Chat> {
        let mut builder = Chat::named(name.as_str()).description(description).cap(chat.max_turns_cap);
        for participant in &chat.participants {
            builder = builder.with(self.participant(participant, &mut around)?);
        }
        builder = opened(builder, chat.opening.clone()).brief(brief.into());
        let policy = ordered(chat)?;
        match (&chat.summary, self.summarizer(name, chat)?) {
            (Summary::Reflect(Reflect { prompt, .. }), Some(author)) => {
                let prompt = prompt.clone();
                let prompt = move |chat: &Transcript| Arc::from(prompt.fill(chat.task()));
                let policy = reflected(policy, author.name().clone(), prompt);
                builder.aside(author).policy(policy).build()
            }
            (Summary::None, _) => builder.policy(summed_up(policy, |_| String::new())).build(),
            _ => builder.policy(policy).build(),
        }
    }

    fn participant(&self, name: &Name, around: &mut Vec<&'a Name>) -> Result<AnyAgent> {
        if let Some(agent) = self.team.agents.iter().find(|agent| agent.name == *name) {
            return self.agent(agent);
        }
        if let Some(inner) = self.team.chats.iter().find(|inner| inner.name == *name) {
            return self.inner(inner, around);
        }
        match self.team.teams.iter().find(|sub| sub.name == *name) {
            Some(sub) => Ok(AnyAgent::new(self.of_sub(sub).outermost(sub.brief)?)),
            None => Err(Error::Config(format!("`{}` has no agent, chat or team `{name}`", self.team.name))),
        }
    }

    fn inner(&self, inner: &'a InnerChat, around: &mut Vec<&'a Name>) -> Result<AnyAgent> {
        if around.contains(&&inner.name) {
            return Err(Error::Config(format!("the chat `{}` takes part in itself", inner.name)));
        }
        around.push(&inner.name);
        let chat = self.chat(&inner.name, &inner.chat, &inner.description, inner.brief, around.clone());
        around.pop();
        Ok(AnyAgent::new(chat?))
    }

    fn agent(&self, agent: &Agent) -> Result<AnyAgent> {
        if agent.human {
            let human = Human::new(agent.name.as_str())?.description(&*agent.description);
            return Ok(AnyAgent::new(human));
        }
        self.assistant(agent).map(AnyAgent::new)
    }

    fn assistant(&self, agent: &Agent) -> Result<Assistant> {
        let model = self.model_of(&agent.name, agent.model.as_deref())?;
        let mut assistant = Assistant::new(agent.name.as_str(), model)?
            .description(&*agent.description)
            .params(Params::from(agent.parameters.clone()))
            .lens(lens(&agent.sees));
        if !agent.system.is_empty() {
            let system = agent.system.clone();
            assistant = assistant.system_from(move |task| system.fill(task));
        }
        for tool in &agent.tools {
            let known = built_in(tool);
            let tool = known.ok_or_else(|| Error::Config(format!("there is no built-in tool `{tool}`")))?;
            assistant = assistant.tool(tool);
        }
        Ok(assistant)
    }

    fn summarizer(&self, name: &Name, chat: &chat::Chat) -> Result<Option<Assistant>> {
        let (Summary::Reflect(reflect), Some(author)) = (&chat.summary, chat.summarizer(name)) else {
            return Ok(None);
        };
        let model = self.model_of(&author, reflect.model.as_deref())?;
        let params = Params::from(reflect.parameters.clone());
        Ok(Some(Assistant::new(author.as_str(), model)?.params(params)))
    }

    fn model_of(&self, who: &Name, own: Option<&str>) -> Result<AnyModel> {
        match own.or(self.model) {
            Some(model) => (self.provide)(model),
            None => Err(Error::Config(format!("`{who}` has no model"))),
        }
    }
}

/// The tools that every team has at hand, by name.
#[must_use]
pub fn built_in_tools() -> Vec<AnyTool> {
    vec![AnyTool::new(GetHistory::default())]
}

fn built_in(name: &str) -> Option<AnyTool> {
    built_in_tools().into_iter().find(|tool| tool.spec().name == name)
}

fn lens(sees: &team::Sees) -> Lens {
    let names = match sees.names {
        team::ShowNames::Auto => ShowNames::Auto,
        team::ShowNames::Always => ShowNames::Always,
        team::ShowNames::Never => ShowNames::Never,
    };
    let size = |limit: u32| usize::try_from(limit).unwrap_or(usize::MAX);
    let window = match sees.window {
        None => Window::All,
        Some(team::Window::Messages(limit)) => Window::Messages(size(limit)),
        Some(team::Window::Tokens(limit)) => Window::Tokens(size(limit)),
    };
    Lens { names, window, prefix: sees.prefix.clone(), ..Lens::default() }
}

impl From<Brief> for polylogue::Brief {
    fn from(brief: Brief) -> Self {
        match brief {
            Brief::Last => Self::Last,
            Brief::All => Self::All,
            Brief::Task => Self::Task,
        }
    }
}

fn opened(builder: ChatBuilder, opening: Opening) -> ChatBuilder {
    builder.opening(move |task| opening.0.iter().filter_map(|line| said(line, task)).collect())
}

/// A line of an opening; one that comes to nothing is not said.
fn said(line: &OpeningLine, task: &str) -> Option<Message> {
    let text = line.text.fill(task);
    let to = if line.to.0.is_empty() { Audience::All } else { Audience::Only(line.to.0.clone()) };
    (!text.trim().is_empty()).then(|| Message::text(line.from.clone(), text).to(to))
}

/// The order of the chat, with what ends it.
fn ordered(chat: &chat::Chat) -> Result<Box<dyn Policy>> {
    let order: Box<dyn Policy> = match chat.pattern {
        Pattern::InTurn => Box::new(in_turn()),
        Pattern::OnceEach => Box::new(once_each()),
    };
    let circles = match chat.circles {
        Circles::Off(_) => None,
        Circles::On(limits) => Some(Ends::from(circles(&limits))),
    };
    let given = chat.stop.as_ref().map(ends).transpose()?.flatten();
    Ok(match given.into_iter().chain(circles).reduce(|one, other| one | other) {
        Some(stop) => Box::new(until(stop, order)),
        None => order,
    })
}

fn circles(limits: &chat::CircleLimits) -> CircleLimits {
    let count = |limit: u32| usize::try_from(limit).unwrap_or(usize::MAX);
    CircleLimits {
        repetition: count(limits.repetition),
        similarity: limits.similarity,
        farewells: count(limits.farewells),
        silence: count(limits.silence),
        calls: count(limits.calls),
    }
}

/// Any of the conditions that are given; `None` when there are none.
fn ends(given: &Stop) -> Result<Option<Ends>> {
    let mut any: Vec<Ends> = Vec::new();
    if let Some(says) = &given.says {
        let text = if says.whole { stop::says(&says.text).whole() } else { stop::says(&says.text) };
        any.push(says.by.0.iter().cloned().fold(text, stop::Says::by).into());
    }
    if let Some(matches) = &given.matches {
        let regex = stop::matches(&matches.pattern, matches.by.0.clone());
        any.push(regex.map_err(|error| Error::Config(error.to_string()))?);
    }
    any.extend(given.max_turns.map(stop::max_turns));
    any.extend(given.max_messages.map(stop::max_messages));
    any.extend(given.max_tokens.map(stop::max_tokens));
    any.extend(given.max_cost.map(|dollars| stop::max_cost(Money::dollars(dollars))));
    any.extend(given.max_time_s.map(|seconds| stop::max_time_ms(milliseconds(seconds))));
    any.extend(joined(&given.all, |one, other| one & other)?);
    any.extend(joined(&given.any, |one, other| one | other)?);
    Ok(any.into_iter().reduce(|one, other| one | other))
}

fn joined(stops: &[Stop], join: impl Fn(Ends, Ends) -> Ends) -> Result<Option<Ends>> {
    let stops: Vec<Ends> = stops.iter().filter_map(|stop| ends(stop).transpose()).collect::<Result<_>>()?;
    Ok(stops.into_iter().reduce(join))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float casts saturate")]
fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1000.0).round() as u64
}

impl Team {
    /// The models that are asked for, by name, each once.
    #[must_use]
    pub fn models(&self) -> BTreeSet<&str> {
        let inner = self.chats.iter().map(|inner| &inner.chat.summary);
        let summaries =
            std::iter::once(&self.chat.summary).chain(inner).filter_map(|summary| match summary {
                Summary::Reflect(reflect) => reflect.model.as_deref(),
                _ => None,
            });
        let agents = self.agents.iter().filter_map(|agent| agent.model.as_deref());
        let within = self.teams.iter().flat_map(|sub| sub.team.models());
        self.model.as_deref().into_iter().chain(agents).chain(summaries).chain(within).collect()
    }
}
