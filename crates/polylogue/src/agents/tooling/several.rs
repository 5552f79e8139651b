//! Several tools, called in a dialog in plain text.

use crate::stop::ModelMistake;
use polylogue_core::{Act, HistoryEntry, Part, Result};

use super::read::{Named, named};
use super::text::{CHOICES, ToolUse};
use super::turn::{AssistantTurn, OfferedTool, parts_text, spoken};
use super::words;

impl<'w> AssistantTurn<'w, '_> {
    /// Asks whether any of the tools helps, which one, and whether another call is needed; then asks for the answer.
    pub(super) async fn several(&mut self, tools: &[OfferedTool<'w>]) -> Result<Act> {
        self.ask(words::define_all(tools.iter().map(|offer| offer.spec))).await?;
        // Mandatory tools come first.
        let mut due: Vec<OfferedTool<'w>> = tools.iter().filter(|offer| offer.must()).copied().collect();
        if due.is_empty() && !self.wants(words::any_relevant(&self.task()), words::USE_IT).await? {
            return self.answer_without().await;
        }
        self.keep([HistoryEntry::Sent(words::SHOULD_USE.into())]);
        let mut last = Last::default();
        for _ in 0..self.agent.max_rounds.max(u32::try_from(due.len()).unwrap_or(u32::MAX)) {
            let Some(offer) = self.choose(if due.is_empty() { tools } else { &due }).await? else {
                return self.give_up(ModelMistake::Choice, CHOICES - 1).await;
            };
            due.retain(|due| due.spec.name != offer.spec.name);
            match self.call_by_text(offer, true).await? {
                ToolUse::GaveUp(of, limit) => return self.give_up(of, limit).await,
                ToolUse::ForOthers(call) => return Ok(Act::Say(vec![Part::ToolCall(call)])),
                ToolUse::Rejected(text) => {
                    last.note(&[Part::text(text.as_str())], &text);
                    self.prompt(words::result(&offer.spec.name, &text)).await?;
                }
                ToolUse::Ran { parts, .. } if offer.spec.ends_turn && self.agent.output_schema.is_none() => {
                    return self.say_result(offer.spec, parts).await;
                }
                ToolUse::Ran { parts, text } => {
                    last.note(&parts, &text);
                    self.prompt(words::result(&offer.spec.name, &text)).await?;
                }
            }
            if due.is_empty() && !self.needs_another(&mut last).await? {
                break;
            }
        }
        self.conclude(last).await
    }

    /// Asks which of `tools` is next; `None` if the model does not choose.
    async fn choose(&mut self, tools: &[OfferedTool<'w>]) -> Result<Option<OfferedTool<'w>>> {
        if let [only] = tools {
            return Ok(Some(*only));
        }
        let names: Vec<&str> = tools.iter().map(|offer| &*offer.spec.name).collect();
        let mut question = words::choose(&names);
        for _ in 0..CHOICES {
            let reply = self.ask(question).await?;
            question = match named(&reply.text(), &names) {
                Named::One(name) => return Ok(tools.iter().find(|offer| offer.spec.name == name).copied()),
                several => words::choose_again(&names, several == Named::Several),
            };
        }
        Ok(None)
    }

    /// Asks whether another call is needed. The explanation stays in the full tool history.
    async fn needs_another(&mut self, last: &mut Last) -> Result<bool> {
        let reply = self.ask(words::ANOTHER).await?;
        last.explanation = spoken(&reply, &[]);
        last.keep_question = true;
        let another = self.decides(words::CALL_AGAIN).await?;
        self.keep([HistoryEntry::Received(words::ANOTHER.into())]);
        if another {
            self.keep([HistoryEntry::Sent(parts_text(&last.explanation).into())]);
        }
        Ok(another)
    }

    async fn conclude(&mut self, last: Last) -> Result<Act> {
        if self.says_outcome() && last.keep_question {
            return self.say(last.explanation).await;
        }
        if last.is_silent && self.agent.output_schema.is_none() {
            return self.say(vec![Part::text(last.text)]).await;
        }
        self.prompt(words::solve(&self.task())).await?;
        self.answer().await
    }
}

/// The results of the calls so far.
struct Last {
    /// The result of the last call.
    text: String,
    /// Whether no call returned anything.
    is_silent: bool,
    explanation: Vec<Part>,
    keep_question: bool,
}

impl Default for Last {
    fn default() -> Self {
        Self { text: String::new(), is_silent: true, explanation: Vec::new(), keep_question: false }
    }
}

impl Last {
    fn note(&mut self, parts: &[Part], text: &str) {
        text.clone_into(&mut self.text);
        self.is_silent &= parts_text(parts).trim().is_empty();
    }
}
