//! The final answer, and structured output.

use std::sync::Arc;

use crate::stop::{LibraryStopReason, ModelMistake};
use polylogue_core::{
    Act, AnyModel, Chat, FinishReason, Interrupt, Name, Params, Part, Reply, Result, Status, Step,
    Transcript, TurnRequest,
};
use serde_json::Value;

use super::support::OutputMode;
use super::turn::{AssistantTurn, spoken};
use super::{lenient, words};
use crate::agents::assistant::Assistant;
use crate::json_schema;

impl AssistantTurn<'_, '_> {
    /// Asks for the answer and makes it the message.
    pub(super) async fn answer(&mut self) -> Result<Act> {
        if let Some(schema) = self.agent.output_schema.clone() {
            return Box::pin(self.shape(&schema, None)).await;
        }
        let reply = self.own().await?;
        self.say(spoken(&reply, &[])).await
    }

    /// Makes an answer that satisfies the schema the message: `draft`, if it does already.
    pub(super) async fn shape(&mut self, schema: &Value, draft: Option<&Reply>) -> Result<Act> {
        if let Some(value) = draft.and_then(|draft| reads(draft, schema).ok()) {
            return self.say_value(value).await;
        }
        let reply = self.in_form(schema, draft.is_some()).await?;
        let value = match reads(&reply, schema) {
            Ok(value) => Some(value),
            Err(flaw) => self.repaired(schema, reply.text().into_owned(), flaw).await?,
        };
        self.say_or_give_up(value).await
    }

    /// Makes `value`, or its repaired version, the message.
    pub(super) async fn say_checked(&mut self, schema: &Value, value: Value) -> Result<Act> {
        let value = match json_schema::check(&value, schema) {
            Ok(()) => Some(value),
            Err(flaw) => self.repaired(schema, value.to_string(), flaw).await?,
        };
        self.say_or_give_up(value).await
    }

    async fn say_or_give_up(&mut self, value: Option<Value>) -> Result<Act> {
        match value {
            Some(value) => self.say_value(value).await,
            None => self.give_up(ModelMistake::Answer, self.agent.output_retries).await,
        }
    }

    /// Others read the JSON text; the value is for programs.
    async fn say_value(&mut self, value: Value) -> Result<Act> {
        self.say(vec![Part::text(value.to_string()), Part::Data(value)]).await
    }

    /// Asks for structured output in the best way that the model supports, with a prompt if there was a draft.
    async fn in_form(&mut self, schema: &Value, has_draft: bool) -> Result<Reply> {
        if has_draft {
            self.prompt(words::form(schema)).await?;
        }
        if self.asks_next().unwrap_or(self.support.output_mode() == OutputMode::Schema)
            && let Some(reply) = self.with_schema(schema.clone()).await?
        {
            return Ok(reply);
        }
        if !has_draft {
            self.forgets = true;
            self.prompt(words::form(schema)).await?;
        }
        match json_schema::is_of_objects(schema) {
            true => self.json().await,
            false => self.free().await,
        }
    }

    /// The repaired value of `last`, if the model finds one. It is asked in a separate chat, with the schema, its last
    /// reply and the error.
    async fn repaired(&mut self, schema: &Value, last: String, flaw: String) -> Result<Option<Value>> {
        let (mut last, mut flaw) = (last, flaw);
        for _ in 0..self.agent.output_retries {
            let chat = self.repair_chat(schema)?;
            let status = self.turn.run(&chat, &words::repair(schema, &last, &flaw)).await?;
            let Status::Closed { summary, .. } = status else { return Err(Interrupt::Cancelled.into()) };
            let reply = Reply::new(Arc::clone(&summary));
            match reads(&reply, schema) {
                Ok(value) => return Ok(Some(value)),
                Err(again) => (last, flaw) = (summary.as_ref().to_owned(), again),
            }
        }
        Ok(None)
    }

    /// The chat of one turn in which the agent's model repairs an answer.
    fn repair_chat(&self, schema: &Value) -> Result<Chat> {
        let hold = self.support.output_mode();
        let params = Params {
            schema: (hold == OutputMode::Schema).then(|| schema.clone()),
            json: hold == OutputMode::Json && json_schema::is_of_objects(schema),
            ..self.agent.params.clone()
        };
        let repairer = repairer(self.turn.me(), self.agent.model.clone())?.params(params);
        Chat::builder("repair").participant(repairer).policy(one_turn).build()
    }
}

/// The policy of a chat in which one agent has one turn.
pub(crate) fn one_turn(chat: &Transcript) -> Step {
    match (chat.turns(), chat.present().next()) {
        (0, Some(agent)) => Step::Turn(TurnRequest::to_all(agent.clone())),
        (_, Some(agent)) => LibraryStopReason::Replied { who: agent.clone() }.close(chat),
        (_, None) => LibraryStopReason::AllSpoken.close(chat),
    }
}

/// The answer in `reply`, or its error.
fn reads(reply: &Reply, schema: &Value) -> Result<Value, String> {
    let value = lenient::value(&reply.text()).ok_or_else(|| no_json(reply))?;
    json_schema::check(&value, schema).map(|()| value)
}

fn repairer(name: &Name, model: AnyModel) -> Result<Assistant> {
    Ok(Assistant::new(name.as_str(), model)?)
}

/// The error for a reply without JSON.
pub(super) fn no_json(reply: &Reply) -> String {
    match reply.finish {
        FinishReason::Length => "it was cut off, because it met the limit on tokens: write less".to_owned(),
        _ => "there is no JSON in it that can be read".to_owned(),
    }
}
