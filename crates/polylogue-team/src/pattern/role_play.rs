//! Two roles that solve a task by talking.

use std::collections::BTreeSet;

use polylogue::tasks::RolePlay as Library;
use polylogue::tasks::role_play as library;
use polylogue::{Assistant, Result, Transcript};
use polylogue_config::{At, Config};
use polylogue_core::Name;

use super::part::{Agents, Built, ChatFrame, Part};
use crate::diagnostic::Report;
use crate::flow::ChatFlow;
use crate::outline::Outline;
use crate::reasoning::ChoiceTexts;
use crate::set::Set as _;
use crate::text::{AgentRef, MemberRef, Template};

/// Role-play as in CAMEL: two roles solve a task by talking; one instructs, the other solves.
/// Example: `pattern: {role_play: {user: {who: Ann, role: Trader}, assistant: {who: Bob, role: Programmer}}}`.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "RolePlay")]
pub struct RolePlay {
    /// Role that instructs: an agent, or a mapping.
    pub user: Player,
    /// Role that solves: an agent, or a mapping.
    pub assistant: Player,
    /// Agent that turns the idea into a specific task before the chat begins.
    #[key(none = "none: the task is used unchanged")]
    pub specifier: Option<Specifier>,
    /// Agent that divides the specified task into steps.
    #[key(as = Option<AgentRef>, none = "no plan")]
    pub planner: Option<At<Name>>,
    /// Agent or person that selects one of several proposals for each message of both roles.
    #[key(none = "one proposal")]
    pub critic: Option<Critic>,
    /// Language in which all agents write, such as `French`.
    #[key(none = "the language of the models", nonempty)]
    pub language: Option<String>,
    /// Texts that replace the built-in ones.
    #[key(none = "built-in texts")]
    pub texts: Option<RolePlayTexts>,
    /// Marker with which the user role ends the chat when the task is done. It must be the whole message; a mapping can
    /// allow it anywhere in a message.
    #[key(default = Done::default())]
    pub done: Done,
    /// Maximum number of rounds. A round is an instruction and a solution.
    #[key(default = Library::DEFAULT_MAX_ROUNDS, range = 1..=1_000_000)]
    pub max_rounds: u64,
    /// Maximum number of messages of the two roles together.
    #[key(none = "none", range = 1..=1_000_000)]
    pub max_messages: Option<u64>,
    /// Number of consecutive messages of the user role without an instruction after which the chat ends. `0` for never.
    #[key(default = Library::DEFAULT_MAX_UNINSTRUCTED, range = 0..=1_000_000)]
    pub max_uninstructed: usize,
    /// Number of consecutive messages of the assistant role with an instruction after which the chat ends. `0` for
    /// never.
    #[key(none = "1", range = 0..=1_000_000)]
    pub max_flips: Option<usize>,
    /// Agents without a temperature use the default of their model. Otherwise the specifier uses 1, and all others 0.2.
    #[key(default = false)]
    pub model_temperatures: bool,
}

/// Texts of a role-play. `{{task}}` is replaced by the current form of the task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Config)]
pub struct RolePlayTexts {
    /// First message to the user role.
    #[key(none = "a built-in text")]
    pub opening: Option<Template>,
    /// Prompt of the specifier. The word limit is not appended to it.
    #[key(none = "a built-in text")]
    pub specifier: Option<Template>,
    /// Prompt of the planner.
    #[key(none = "a built-in text")]
    pub planner: Option<Template>,
    /// System message of the critic.
    #[key(none = "built-in texts")]
    pub critic: Option<Template>,
}

/// A role, and the agent that plays it.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(shorthand = "who")]
pub struct Player {
    /// Agent that plays the role. It must have a model.
    #[key(as = At<MemberRef>)]
    pub who: At<Name>,
    /// Name of the role in the system messages of both agents.
    #[key(none = "the agent's name with spaces for `_`", nonempty)]
    pub role: Option<String>,
    /// System message of the role. `{{task}}` is replaced by the specified task with its plan.
    #[key(none = "built-in texts")]
    pub rules: Option<Template>,
}

/// Agent that turns an idea into a specific task.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(shorthand = "who")]
pub struct Specifier {
    /// Name of the agent. It must have a model.
    #[key(as = AgentRef)]
    pub who: At<Name>,
    /// Word limit that the prompt states.
    #[key(default = Library::DEFAULT_WORD_LIMIT, range = 1..=100_000)]
    pub words: u32,
}

/// Agent or person that selects one of several proposals.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
pub struct Critic {
    /// Agent with a model, or a person.
    #[key(as = AgentRef)]
    pub who: At<Name>,
    /// Number of proposals per message. With 1, the critic is not asked.
    #[key(default = 3, range = 1..=100)]
    pub options: usize,
    /// Criteria for the selection.
    #[key(none = "built-in criteria", nonempty)]
    pub criteria: Option<String>,
    /// Maximum number of retries after an answer that selects no proposal. Then the first proposal is taken.
    #[key(default = polylogue::agents::reason::BestOfN::DEFAULT_RETRIES, range = 0..=100)]
    pub retries: u32,
    /// Texts that present the proposals to the critic.
    #[key(none = "built-in texts")]
    pub texts: Option<ChoiceTexts>,
}

/// Marker of a completed task.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(shorthand = "text")]
pub struct Done {
    /// Text of the marker.
    #[key(default = Library::DEFAULT_DONE.to_owned(), nonempty)]
    pub text: At<String>,
    /// Accepts the marker anywhere in a message.
    #[key(default = false)]
    pub anywhere: bool,
}

impl Default for Done {
    fn default() -> Self {
        Self::absent()
    }
}

impl Part for RolePlay {
    fn check(&self, chat: &ChatFrame<'_>, outline: &Outline<'_>, report: &mut Report<'_>) {
        let without = [
            ("opening", "the user role receives the opening of `texts`"),
            ("introductions", "the rules of the roles say who the other one is"),
            ("late_joiners", "two talk, from the beginning to the end"),
            ("max_turns", "it ends by `max_rounds`"),
        ];
        chat.check_without("a role-play", &without, report);
        self.check_roles(chat, outline, report);
        self.check_next_to(chat, outline, report);
        let text = &self.done.text;
        if text.ok && !text.is_empty() && text.trim().is_empty() {
            report.error(&text.span, "a marker must not be blank");
        }
    }

    fn describe(&self, _: &ChatFrame<'_>) -> String {
        let besides = [
            self.specifier.as_ref().map(|specifier| format!("{} makes the task definite", specifier.who)),
            self.planner.as_ref().map(|planner| format!("{planner} divides it")),
            self.critic.as_ref().map(|critic| format!("{} chooses among proposals", critic.who)),
        ];
        let besides: String = besides.into_iter().flatten().map(|besides| format!("; {besides}")).collect();
        format!("{} instructs{besides}", self.user.who)
    }

    fn has_own_limit(&self) -> bool {
        true
    }

    fn has_own_result(&self) -> bool {
        true
    }

    fn flow<'c>(&'c self, _: &ChatFrame<'c>, _: &Outline<'c>) -> ChatFlow<'c> {
        ChatFlow::repeated([&self.user.who, &self.assistant.who]).ended_by("the marker of a completed task")
    }

    fn private_agents(&self) -> Vec<&Name> {
        self.others().map(|(who, _)| &who.value).collect()
    }

    fn build(&self, chat: &ChatFrame<'_>, agents: &dyn Agents) -> Result<Built> {
        let mut role_play = self.cast(agents)?;
        role_play = role_play.set_if(self.done.anywhere, Library::lenient);
        role_play = role_play.max_rounds(self.max_rounds).max_uninstructed(self.max_uninstructed);
        role_play = role_play.set(self.max_messages, Library::max_messages);
        role_play = role_play.set(self.max_flips, Library::max_flips);
        role_play = role_play.loop_detector(chat.loop_detector);
        role_play = role_play.set(chat.condition()?, Library::stop);
        let (builder, policy) = role_play.into_parts(chat.name.as_str())?;
        Ok(Built::Chat(Box::new(builder), Box::new(policy)))
    }

    fn assistants_in(&self, chat: &Transcript, agents: &dyn Agents) -> Result<Vec<Assistant>> {
        let takes_part = |player: &Player| chat.participants().iter().any(|one| player.who == *one);
        match takes_part(&self.user) && takes_part(&self.assistant) {
            true => Ok(self.cast(agents)?.assistants_in(chat)),
            false => Ok(Vec::new()),
        }
    }
}

impl RolePlay {
    /// Agents besides the two roles, and whether each can be a person.
    fn others(&self) -> impl Iterator<Item = (&At<Name>, bool)> {
        let specifier = self.specifier.iter().map(|specifier| (&specifier.who, false));
        let planner = self.planner.iter().map(|planner| (planner, false));
        specifier.chain(planner).chain(self.critic.iter().map(|critic| (&critic.who, true)))
    }

    /// Reports participants without a role, and roles of the same agent.
    fn check_roles(&self, chat: &ChatFrame<'_>, outline: &Outline<'_>, report: &mut Report<'_>) {
        let (user, assistant) = (&self.user.who, &self.assistant.who);
        for who in [user, assistant] {
            check_speaker(who, false, outline, report);
        }
        if !user.ok || !assistant.ok {
            return;
        }
        if user == assistant {
            report.error(&assistant.span, format!("`{user}` cannot have both roles"));
        }
        for who in chat.participants.iter().filter(|who| who.ok && *who != user && *who != assistant) {
            let hint = "a role-play has two participants: the user role and the assistant role";
            report.error_with_hint(&who.span, format!("`{who}` takes part, and has no role"), hint);
        }
    }

    /// Reports agents besides the roles that take part, or have several parts.
    fn check_next_to(&self, chat: &ChatFrame<'_>, outline: &Outline<'_>, report: &mut Report<'_>) {
        let mut seen = BTreeSet::new();
        for (who, can_be_person) in self.others().filter(|(who, _)| who.ok) {
            check_speaker(who, can_be_person, outline, report);
            if chat.has(who) {
                let hint = "remove it from `participants`: it does not take part in the chat";
                let message = format!("`{who}` takes part, and has no other role besides");
                report.error_with_hint(&who.span, message, hint);
            } else if !seen.insert(who) {
                report.error(&who.span, format!("`{who}` already has a role"));
            }
        }
    }

    /// The roles with their agents.
    pub(crate) fn cast(&self, agents: &dyn Agents) -> Result<Library> {
        let (assistant, user) = (&self.assistant, &self.user);
        let mut role_play = Library::new(agents.speaker(&assistant.who)?, agents.speaker(&user.who)?);
        role_play = role_play.roles(assistant.role(), user.role()).done(self.done.text.as_str());
        role_play = role_play
            .set(assistant.rules.clone(), |of, rules| {
                of.assistant_rules(move |casting| rules.fill(casting.task))
            })
            .set(user.rules.clone(), |of, rules| of.user_rules(move |casting| rules.fill(casting.task)));
        if let Some(specifier) = &self.specifier {
            role_play = role_play.specify(agents.speaker(&specifier.who)?).word_limit(specifier.words);
        }
        if let Some(planner) = &self.planner {
            role_play = role_play.plan(agents.speaker(planner)?);
        }
        if let Some(critic) = &self.critic {
            role_play = role_play.critic(critic.build(agents)?);
        }
        role_play = role_play.set(self.language.as_deref(), Library::language);
        let RolePlayTexts { opening, specifier, planner, critic } = self.texts.clone().unwrap_or_default();
        role_play = role_play
            .set(opening, |of, text| of.opening(move |casting| text.fill(casting.task)))
            .set(specifier, |of, text| of.specifier_prompt(move |casting| text.fill(casting.task)))
            .set(planner, |of, text| of.planner_prompt(move |casting| text.fill(casting.task)))
            .set(critic, |of, text| of.critic_rules(move |casting| text.fill(casting.task)));
        Ok(role_play.set_if(self.model_temperatures, Library::model_temperatures))
    }
}

/// Reports roles whose agent does not reply only by a model; a critic can also be a person.
fn check_speaker(who: &At<Name>, can_be_person: bool, outline: &Outline<'_>, report: &mut Report<'_>) {
    let Some(found) = outline.participant(who).filter(|_| who.ok) else { return };
    if can_be_person && found.is_human() {
        return;
    }
    if let Some(why) = found.why_not_plain() {
        let hint = "name an agent that replies only by a model";
        report.error_with_hint(&who.span, format!("`{who}` cannot take a role in a role-play: {why}"), hint);
    }
}

impl Player {
    fn role(&self) -> String {
        self.role.clone().unwrap_or_else(|| self.who.as_str().replace('_', " "))
    }
}

impl Critic {
    fn build(&self, agents: &dyn Agents) -> Result<library::Critic> {
        let mut critic = match agents.person(&self.who)? {
            Some(person) => library::Critic::person(person, self.options),
            None => library::Critic::new(agents.speaker(&self.who)?, self.options),
        };
        critic = critic.set(self.criteria.as_deref(), library::Critic::criteria);
        critic = critic.retries(self.retries);
        let ChoiceTexts { prompt, option, retry_prompt } = self.texts.clone().unwrap_or_default();
        critic = critic.set(prompt, library::Critic::prompt);
        critic = critic.set(option, library::Critic::option_line);
        critic = critic.set(retry_prompt, library::Critic::retry_prompt);
        Ok(critic)
    }
}
