//! The best of several drafts.

use std::sync::Arc;

use polylogue_core::{Act, Agent, AnyAgent, Chat, Message, Name, OpeningContext, Result, SubAgent, Turn};

use crate::placeholders::filled;

use super::{alone, result_of};

/// The prompts in which options are shown to a critic.
///
/// `{count}` stands for the number of options; other braces are plain text. Values are inserted verbatim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChoiceTexts {
    /// The question. `{options}` stands for the options, one after the other.
    pub prompt: Arc<str>,
    /// The line before each option. `{number}` stands for its number.
    pub option: Arc<str>,
    /// Sent to a critic whose answer has no number of an option. `{options}` works here, too.
    pub retry_prompt: Arc<str>,
}

impl Default for ChoiceTexts {
    fn default() -> Self {
        const FORM: &str = "Answer with the number of the option, from 1 to {count}, and why.";
        Self {
            prompt: format!("Choose the best of these {{count}} options.\n\n{{options}}\n\n{FORM}").into(),
            option: "Option {number}:".into(),
            retry_prompt: format!("That is none of the options. {FORM}").into(),
        }
    }
}

impl ChoiceTexts {
    /// `text` with its placeholders replaced.
    fn fill(&self, text: &str, options: &[Arc<str>]) -> String {
        let count = options.len().to_string();
        let listed = (1_usize..).zip(options).map(|(number, option)| {
            let line = filled(&self.option, &[("count", &count), ("number", &number.to_string())]);
            format!("{line}\n{option}")
        });
        let listed = listed.collect::<Vec<_>>().join("\n\n");
        filled(text, &[("count", &count), ("options", &listed)])
    }
}

/// Asks an agent several times for the same reply, and a critic for the best one, which becomes the message. The other
/// drafts are in the log.
///
/// It has the name of the proposing agent, which sees the same conversation each time, without the other drafts. A
/// critic whose answer has no number of an option is asked again; after the last retry the first option wins.
#[derive(Debug, Clone)]
pub struct BestOfN {
    proposer: AnyAgent,
    critic: AnyAgent,
    options: usize,
    retries: u32,
    texts: ChoiceTexts,
}

impl BestOfN {
    /// Default limit on retries of the critic.
    pub const DEFAULT_RETRIES: u32 = 2;

    /// Creates an agent that replies with the best of `options` replies of `proposer`, at least 1; with one, the critic is not
    /// asked.
    pub fn new(options: usize, proposer: impl Agent, critic: impl Agent) -> Self {
        let (proposer, critic) = (AnyAgent::new(proposer), AnyAgent::new(critic));
        Self {
            proposer,
            critic,
            options: options.max(1),
            retries: Self::DEFAULT_RETRIES,
            texts: ChoiceTexts::default(),
        }
    }

    /// Sets how often a critic is asked again after an answer without a choice.
    #[must_use]
    pub fn retries(self, retries: u32) -> Self {
        Self { retries, ..self }
    }

    /// Sets the prompts in which the options are shown to the critic.
    #[must_use]
    pub fn texts(self, texts: ChoiceTexts) -> Self {
        Self { texts, ..self }
    }

    /// An inner chat with the conversation so far, for one draft.
    fn chat(&self, turn: &Turn<'_>) -> Result<Chat> {
        let prompt = turn.request().prompt.clone();
        let opening = move |start: &OpeningContext<'_>| {
            let around = start.outer.into_iter().flat_map(|chat| chat.messages());
            let seen = around.filter(|line| line.is_seen_by(start.who)).map(|line| line.message.clone());
            let prompts = prompt.iter().map(|prompt| Message::new(Name::user(), Arc::clone(prompt)));
            seen.chain(prompts).collect()
        };
        alone(&self.proposer).opening_from(opening).build()
    }

    /// The index of the option that the critic chooses.
    async fn choose(&self, turn: &mut Turn<'_>, options: &[Arc<str>]) -> Result<usize> {
        let mut asked = self.texts.fill(&self.texts.prompt, options);
        for _ in 0..=self.retries {
            let answer = turn.ask(&self.critic, asked).await?;
            if let Some(number) = number(&answer.text()).filter(|number| (1..=options.len()).contains(number))
            {
                return Ok(number - 1);
            }
            asked = self.texts.fill(&self.texts.retry_prompt, options);
        }
        Ok(0)
    }
}

impl Agent for BestOfN {
    fn name(&self) -> &Name {
        self.proposer.name()
    }

    fn description(&self) -> &str {
        self.proposer.description()
    }

    fn sub_agents(&self) -> Vec<SubAgent> {
        vec![SubAgent::of(&self.critic)]
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let chat = self.chat(turn)?;
        let task = turn.transcript().task().to_owned();
        let (mut options, mut acts) = (Vec::new(), Vec::new());
        for _ in 0..self.options {
            let option = result_of(turn, &chat, &task).await?;
            if !option.trim().is_empty() {
                acts.push(turn.say_result(Arc::clone(&option)));
                options.push(option);
            }
        }
        let chosen = if options.len() > 1 { self.choose(turn, &options).await? } else { 0 };
        Ok(acts.into_iter().nth(chosen).unwrap_or(Act::Pass))
    }
}

/// The first whole number in a text.
fn number(text: &str) -> Option<usize> {
    text.split(|c: char| !c.is_ascii_digit()).find(|digits| !digits.is_empty())?.parse().ok()
}
