//! Chats: who takes part, how they begin, who speaks when, what comes of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use polylogue::policies::carryover::Carryover;
use polylogue::policies::group::{HumanSelector, introduce};
use polylogue::policies::{reflected, summed_up, without};
use polylogue::{Agent as _, Chat, Error, Message, Name, Policy, Result, Transcript};
use polylogue_core::{AnyAgent, Audience, ChatBuilder};

use super::AgentBuilder;
use super::order;
use crate::chat::{
    self, Carried, CarryWord, CarryoverSpec, ITSELF, InnerChat, Introductions, Opening, OpeningLine, Reflect,
    Summary, TaskFrom,
};
use crate::condition::judged;
use crate::pattern::{Pattern, SelectSpeaker};
use crate::text::{Template, values};

/// Where something is made: the chats around it, the outermost first, and the agents in whose nested chats it is.
#[derive(Clone, Default)]
pub(super) struct Around<'a> {
    chats: Vec<&'a Name>,
    pub(super) owners: Vec<&'a Name>,
}

impl<'a> AgentBuilder<'a> {
    /// The chat called `name`, without its task.
    pub(super) fn chat(
        &self,
        name: &Name,
        chat: &'a chat::Chat,
        description: &str,
        around: &Around<'a>,
    ) -> Result<ChatBuilder> {
        if let Some((builder, policy)) = self.tasks(name, chat, around)? {
            let policy = order::ended(chat, Box::new(policy))?;
            return self.concluded(builder.description(description), name, chat, policy, around);
        }
        if let Pattern::RolePlay(role_play) = &chat.pattern {
            let (builder, policy) = self.role_play(name, chat, role_play, around)?;
            let policy = Box::new(judged(policy));
            return self.concluded(builder.description(description), name, chat, policy, around);
        }
        let mut asked = BTreeSet::new();
        let mut builder = Chat::named(name.as_str()).description(description).max_turns(*chat.max_turns);
        for participant in &chat.participants {
            builder = builder.participant(self.participant(participant, around)?);
        }
        for join in &chat.late_joiners {
            builder = builder.late_joiner(self.participant(&join.who, around)?);
        }
        builder = match &*chat.introductions {
            Introductions::Others(false) => builder,
            Introductions::Others(true) => builder.introduction_of(introduce),
            Introductions::Text(text) => builder.introduction(text.as_str()),
        };
        builder = opened(builder, chat.opening.value.clone());
        if let Pattern::Group(group) = &chat.pattern {
            builder = match &group.select {
                SelectSpeaker::Model(selector) => builder.private_agent(self.selector(name, selector)?),
                SelectSpeaker::Human(person) => builder.private_agent(HumanSelector::new(person.as_str())?),
                SelectSpeaker::RoundRobin | SelectSpeaker::Random(_) => builder,
            };
        }
        for beside in chat.pattern.beside() {
            let is_there = chat.everyone().any(|participant| participant == beside);
            if !is_there && asked.insert(beside) {
                builder = builder.private_agent(self.participant(beside, around)?);
            }
        }
        let policy = order::of(chat, name, self.team)?;
        self.concluded(builder, name, chat, policy, around)
    }

    /// The chat with what comes of it.
    fn concluded(
        &self,
        builder: ChatBuilder,
        name: &Name,
        chat: &chat::Chat,
        policy: Box<dyn Policy>,
        around: &Around<'a>,
    ) -> Result<ChatBuilder> {
        let builder = builder.max_equal_calls(match &*chat.loop_detection {
            chat::LoopDetection::On(limits) => usize::try_from(limits.calls).unwrap_or(usize::MAX),
            chat::LoopDetection::Off(_) => 0,
        });
        Ok(match (&chat.summary, self.summarizer(name, chat)?) {
            (Summary::Reflect(reflect), Some(author)) => {
                let policy = reflecting(policy, author.name(), reflect);
                builder.private_agent(author).policy(policy)
            }
            (Summary::Reflect(reflect), None) if let Some(author) = &reflect.by => {
                let builder = match takes_part(author, chat) {
                    true => builder,
                    false => builder.private_agent(self.participant(author, around)?),
                };
                builder.policy(reflecting(policy, author, reflect))
            }
            (Summary::None, _) => builder.policy(summed_up(policy, |_| String::new())),
            (Summary::Without(texts), _) => {
                let texts = texts.clone();
                builder.policy(summed_up(policy, move |chat| taken_out(chat, &texts)))
            }
            _ => builder.policy(policy),
        })
    }

    pub(super) fn participant(&self, name: &Name, around: &Around<'a>) -> Result<AnyAgent> {
        if let Some(agent) = self.team.agents.iter().find(|agent| agent.name == *name) {
            return self.agent(agent, around);
        }
        if let Some(inner) = self.team.chats.iter().find(|inner| inner.name == *name) {
            return Ok(AnyAgent::new(told(self.inner(inner, around)?, inner).build()?));
        }
        match self.team.teams.iter().find(|sub| sub.name == *name) {
            Some(sub) => Ok(AnyAgent::new(self.of_sub(sub).outermost(sub.task_from)?)),
            None => Err(Error::config(format!("`{}` has no agent, chat or team `{name}`", self.team.name))),
        }
    }

    pub(super) fn inner(&self, inner: &'a InnerChat, around: &Around<'a>) -> Result<ChatBuilder> {
        if around.chats.contains(&&*inner.name) {
            return Err(Error::config(format!("the chat `{}` takes part in itself", inner.name)));
        }
        let mut around = around.clone();
        around.chats.push(&inner.name);
        self.chat(&inner.name, &inner.chat, &inner.description, &around)
    }
}

/// Whether a person is asked for input in a chat in any case.
fn takes_part(who: &Name, chat: &chat::Chat) -> bool {
    let beside = chat.pattern.beside();
    chat.everyone().any(|participant| participant == who)
        || chat.pattern.tasks().iter().any(|task| task.who == *who)
        || beside.contains(&who)
}

/// The order, and then a summary by `author`.
fn reflecting(order: Box<dyn Policy>, author: &Name, reflect: &Reflect) -> impl Policy + use<> {
    let prompt = reflect.prompt.clone();
    reflected(order, author.clone(), move |chat: &Transcript| Arc::from(prompt.fill(chat.task())))
}

/// The last message, with some texts taken out of it.
fn taken_out(chat: &Transcript, texts: &[String]) -> String {
    let (Some(first), rest) = (texts.first(), texts.get(1..).unwrap_or_default()) else {
        return chat.summary().to_string();
    };
    rest.iter().fold(without(first)(chat), |summary, text| summary.replace(text, "").trim().to_owned())
}

/// The chat as it takes part in another, which tells it its task.
fn told(builder: ChatBuilder, inner: &InnerChat) -> ChatBuilder {
    let builder = match inner.continues.as_ref() {
        None => builder,
        Some(name) if name.as_str() == ITSELF => builder.continues(inner.name.value.clone()),
        Some(name) => builder.continues(name.value.clone()),
    };
    let carried = match (inner.carryover.as_deref(), &inner.task) {
        (Some(CarryoverSpec::Of(carried)), _) => carried.clone(),
        (Some(CarryoverSpec::Word(CarryWord::All)), _) | (None, Some(_)) => Carried::default(),
        (Some(CarryoverSpec::Word(CarryWord::None)), Some(_)) => {
            Carried { include: Some(Default::default()), ..Carried::default() }
        }
        (Some(CarryoverSpec::Word(CarryWord::None)) | None, None) => {
            return builder.task_from((*inner.task_from).into());
        }
    };
    match (&inner.task, *inner.task_from) {
        (Some(message), _) => builder.task_from(with_message(message.value.clone(), carried)),
        (None, TaskFrom::Task) => builder.task_from(carrying(Carryover::task(), &carried, "").task_from()),
        // `brief: all` tells everything anyway; the checks of a file refuse the two together.
        (None, TaskFrom::Last | TaskFrom::All) => {
            builder.task_from(carrying(Carryover::last(), &carried, "").task_from())
        }
    }
}

/// A message that may quote the task of the chat around, and what is carried over.
fn with_message(message: Template, carried: Carried) -> polylogue_core::TaskFrom {
    polylogue_core::TaskFrom::custom(move |around, me| {
        let message = message.fill(around.task());
        carrying(Carryover::message(message), &carried, around.task()).text(around, me)
    })
}

fn carrying(carry: Carryover, carried: &Carried, task: &str) -> Carryover {
    let carry = carried.context.iter().fold(carry, |carry, text| carry.context(text.fill(task)));
    let carry = carry.exclude(values(&carried.exclude));
    match &carried.include {
        Some(only) => carry.include(values(only)),
        None => carry,
    }
}

fn opened(builder: ChatBuilder, opening: Opening) -> ChatBuilder {
    builder.opening(move |task| opening.0.iter().filter_map(|line| said(line, task)).collect())
}

/// A line of an opening. A blank one of the user is not said; one of a participant is, so that the next one replies to it.
fn said(line: &OpeningLine, task: &str) -> Option<Message> {
    let text = line.text.fill(task);
    let to = if line.to.is_empty() { Audience::All } else { Audience::Only(line.to.clone()) };
    let is_nothing = line.from == Name::user() && text.trim().is_empty();
    (!is_nothing).then(|| Message::text(line.from.clone(), text).to(to))
}
