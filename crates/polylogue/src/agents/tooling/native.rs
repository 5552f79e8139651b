//! Tools called by the provider's function calls.

use crate::stop::{LibraryStopReason, ModelMistake};
use polylogue_core::{Act, Error, Reply, Result, StopReason, ToolCall, ToolResult, ToolStatus};

use super::turn::{AssistantTurn, spoken};
use super::words;
use crate::tools::runner::Finished;

impl AssistantTurn<'_, '_> {
    /// Runs tools and calls the model again while it calls tools. `None` if the model has no function calls.
    pub(super) async fn native(&mut self) -> Result<Option<Act>> {
        let max_rounds = self.agent.max_rounds;
        let mut missing = Missing::of(self);
        for round in 0..=max_rounds {
            let Some(reply) = self.ask_with_tools().await? else { return Ok(None) };
            let calls = reply.calls();
            if round == max_rounds {
                return self.last_round(&reply).await.map(Some);
            }
            if calls.is_empty() {
                match missing.remind() {
                    Reminder::None => return self.close(&reply).await.map(Some),
                    Reminder::GiveUp(limit) => {
                        return self.give_up(ModelMistake::Choice, limit).await.map(Some);
                    }
                    Reminder::Tell(text) => self.prompt(text).await?,
                }
                continue;
            }
            missing.called(&calls);
            if let Some(act) = self.make_calls(&reply).await? {
                return Ok(Some(act));
            }
            if round + 1 == max_rounds {
                self.prompt(words::NO_MORE_TOOLS).await?;
            }
        }
        Err(Error::Bug("the last round always returns".into()))
    }

    /// Handles the reply after the last round. One that only calls tools again has reached the limit.
    async fn last_round(&mut self, reply: &Reply) -> Result<Act> {
        if !reply.calls().is_empty() && spoken(reply, &[]).is_empty() {
            let (who, limit) = (self.turn.me().clone(), u64::from(self.agent.max_rounds));
            return Ok(Act::Stop(StopReason::from(LibraryStopReason::ToolRounds { who, limit })));
        }
        self.close(reply).await
    }

    async fn ask_with_tools(&mut self) -> Result<Option<Reply>> {
        let agent = self.agent;
        let offered = if self.is_private() { agent.offered_own } else { agent.specs.len() };
        self.attempt(agent.specs.get(..offered).unwrap_or_default(), &agent.params).await
    }

    /// Makes the reply the message, as structured output if a schema is set.
    async fn close(&mut self, reply: &Reply) -> Result<Act> {
        if let Some(schema) = self.agent.output_schema.clone() {
            return self.shape(&schema, Some(reply)).await;
        }
        self.say(spoken(reply, &[])).await
    }

    /// Runs the agent's own calls of `reply`; returns the act that ends the turn, if there is one.
    async fn make_calls(&mut self, reply: &Reply) -> Result<Option<Act>> {
        let private = self.is_private();
        let (others, own): (Vec<ToolCall>, Vec<ToolCall>) =
            reply.calls().into_iter().partition(|call| !private && self.agent.is_for_others(call));
        let finished = self.call(&own).await?;
        debug_assert_eq!(finished.len(), own.len(), "every call is answered");
        if !others.is_empty() {
            return Ok(Some(Act::Say(spoken(reply, &others))));
        }
        let Some(last) = self.last_word(finished) else { return Ok(None) };
        let said = spoken(reply, &[]);
        Ok(Some(Act::Say(if said.is_empty() { last.for_model() } else { said })))
    }

    /// The result that ends the turn, if a tool with `ends_turn` was called.
    fn last_word(&self, finished: Vec<Finished>) -> Option<ToolResult> {
        let ends =
            |call: &ToolCall| self.agent.specs.iter().any(|spec| spec.name == call.tool && spec.ends_turn);
        let is_last = |done: &Finished| ends(&done.call) && done.outcome.status == ToolStatus::Done;
        finished.into_iter().find(is_last).map(|done| done.outcome)
    }
}

/// Mandatory tools that were not called yet in this turn.
struct Missing {
    /// Each with the number of reminders left.
    tools: Vec<(String, u32)>,
    reminders: u32,
}

enum Reminder {
    None,
    Tell(String),
    GiveUp(u32),
}

impl Missing {
    fn of(work: &AssistantTurn<'_, '_>) -> Self {
        let must = work.agent.prompted.iter().filter(|prompted| prompted.must && !work.is_private_question());
        let tools = must.map(|prompted| (prompted.name().to_owned(), prompted.max_call_errors)).collect();
        Self { tools, reminders: 0 }
    }

    fn called(&mut self, calls: &[ToolCall]) {
        self.tools.retain(|(tool, _)| !calls.iter().any(|call| call.tool == *tool));
        self.reminders = 0;
    }

    fn remind(&mut self) -> Reminder {
        match self.tools.first() {
            None => Reminder::None,
            Some((_, limit)) if self.reminders >= *limit => Reminder::GiveUp(*limit),
            Some((tool, _)) => {
                self.reminders += 1;
                Reminder::Tell(words::must_call(tool))
            }
        }
    }
}
