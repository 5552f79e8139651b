//! Two roles that do a task by talking.

use polylogue::stop::LoopDetector;
use polylogue::tasks::RolePlay;
use polylogue::tasks::role_play::Critic;
use polylogue::{Assistant, Human, Name, Policy, Result, Transcript};
use polylogue_core::ChatBuilder;

use super::AgentBuilder;
use super::order::{circles, ends};
use super::room::Around;
use crate::chat;
use crate::pattern;
use crate::reasoning::ChoiceTexts;

impl<'a> AgentBuilder<'a> {
    /// The society that a chat is, and its policy.
    pub(super) fn role_play(
        &self,
        name: &Name,
        chat: &chat::Chat,
        given: &pattern::RolePlay,
        around: &Around<'a>,
    ) -> Result<(ChatBuilder, impl Policy + use<>)> {
        bounded(self.cast(given, around)?, chat, given)?.begin(name.as_str())
    }

    /// The agents of a role-play with their system messages in `chat`, if `chat` is that role-play.
    pub(super) fn players(&self, given: &pattern::RolePlay, chat: &Transcript) -> Result<Vec<Assistant>> {
        let takes_part = |player: &pattern::Player| chat.participants().iter().any(|one| player.who == *one);
        if !(takes_part(&given.user) && takes_part(&given.assistant)) {
            return Ok(Vec::new());
        }
        Ok(self.cast(given, &Around::default())?.assistants_in(chat))
    }

    /// Who plays what.
    fn cast(&self, given: &pattern::RolePlay, around: &Around<'a>) -> Result<RolePlay> {
        let (assistant, user) = (&given.assistant, &given.user);
        let mut role_play =
            RolePlay::new(self.speaker(&assistant.who, around)?, self.speaker(&user.who, around)?);
        let role = |player: &pattern::Player| {
            player.role.clone().unwrap_or_else(|| player.who.as_str().replace('_', " "))
        };
        role_play = role_play.roles(role(assistant), role(user)).done(given.done.text.as_str());
        if let Some(rules) = assistant.rules.clone() {
            role_play = role_play.assistant_rules(move |casting| rules.fill(casting.task));
        }
        if let Some(rules) = user.rules.clone() {
            role_play = role_play.user_rules(move |casting| rules.fill(casting.task));
        }
        if let Some(specifier) = &given.specifier {
            role_play = role_play.specify(self.speaker(&specifier.who, around)?).word_limit(specifier.words);
        }
        if let Some(planner) = &given.planner {
            role_play = role_play.plan(self.speaker(planner, around)?);
        }
        if let Some(critic) = &given.critic {
            role_play = role_play.critic(self.critic(critic, around)?);
        }
        if let Some(language) = &given.language {
            role_play = role_play.language(language.as_str());
        }
        role_play = texts(role_play, given.texts.clone().unwrap_or_default());
        Ok(if given.own_temperatures { role_play.own_temperatures() } else { role_play })
    }

    fn critic(&self, given: &pattern::Critic, around: &Around<'a>) -> Result<Critic> {
        let agent = self.team.agents.iter().find(|agent| agent.name == given.who);
        let critic = match agent.filter(|agent| agent.is_human()) {
            Some(person) => {
                let person = Human::new(person.name.as_str())?.description(&*person.description);
                Critic::person(person, given.options)
            }
            None => Critic::new(self.speaker(&given.who, around)?, given.options),
        };
        let critic = match &given.criteria {
            Some(criteria) => critic.criteria(criteria.as_str()),
            None => critic,
        };
        Ok(shown_in(critic.retries(given.retries), given.texts.clone().unwrap_or_default()))
    }
}

/// The critic with the texts that are set.
fn shown_in(mut critic: Critic, given: ChoiceTexts) -> Critic {
    if let Some(text) = given.prompt {
        critic = critic.prompt(text);
    }
    if let Some(text) = given.option {
        critic = critic.option_line(text);
    }
    if let Some(text) = given.retry_prompt {
        critic = critic.retry_prompt(text);
    }
    critic
}

/// The society with the texts that are set.
fn texts(mut role_play: RolePlay, given: pattern::RolePlayTexts) -> RolePlay {
    let pattern::RolePlayTexts { opening, specifier, planner, critic } = given;
    if let Some(text) = opening {
        role_play = role_play.opening(move |casting| text.fill(casting.task));
    }
    if let Some(text) = specifier {
        role_play = role_play.specifier_prompt(move |casting| text.fill(casting.task));
    }
    if let Some(text) = planner {
        role_play = role_play.planner_prompt(move |casting| text.fill(casting.task));
    }
    if let Some(text) = critic {
        role_play = role_play.critic_rules(move |casting| text.fill(casting.task));
    }
    role_play
}

/// The society with what ends it.
fn bounded(mut role_play: RolePlay, chat: &chat::Chat, given: &pattern::RolePlay) -> Result<RolePlay> {
    if given.done.anywhere {
        role_play = role_play.lenient();
    }
    role_play = role_play.max_rounds(given.max_rounds).uninstructed(given.uninstructed);
    if let Some(messages) = given.max_messages {
        role_play = role_play.max_messages(messages);
    }
    if let Some(limit) = given.flips {
        role_play = role_play.flips(limit);
    }
    role_play = role_play.loop_detector(match &*chat.loop_detection {
        chat::LoopDetection::On(limits) => circles(limits),
        chat::LoopDetection::Off(_) => {
            LoopDetector { repetition: 0, farewells: 0, silence: 0, calls: 0, ..LoopDetector::default() }
        }
    });
    if let Some(stop) = chat.stop.as_ref().map(ends).transpose()?.flatten() {
        role_play = role_play.until(stop);
    }
    Ok(role_play)
}
