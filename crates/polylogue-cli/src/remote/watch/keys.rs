//! Steering by key: what the person types is a request to the server.

use std::pin::pin;

use futures_util::future::Either;
use polylogue_client::ClientError;
use polylogue_core::{Instruction, OpenQuestion};

use super::{Feed, Watch};
use crate::error::CliError;
use crate::prompt::question::prompt as prompt_for;
use crate::prompt::{self, Asked};
use crate::remote::steer::carry_out;
use crate::runner::answers;
use crate::signals::Signals;
use crate::stderr::print_error;
use crate::steering::{self, SteeringKey};

impl Watch<'_> {
    /// Asks the person what to do, while the server continues. Returns whether it is asked to stop.
    pub(super) async fn steer(&self, feed: &mut Feed<'_>, signals: &mut Signals) -> Result<bool, CliError> {
        let news = pin!(feed.collect());
        let (instruction, ended) = steering::ask(news, signals).await;
        ended.transpose()?;
        let Some(instruction) = instruction else { return Ok(false) };
        let stops = matches!(instruction, Instruction::Cancel { .. });
        match carry_out(&self.remote.client, &self.conversation.id, instruction).await {
            Ok(()) => Ok(stops),
            Err(error) => {
                print_error(&error);
                Ok(false)
            }
        }
    }

    /// Asks the person a question at the terminal. Before an answer is begun, the conversation can be steered. Returns the answer, none if
    /// the conversation is asked to stop; or that the question was answered elsewhere.
    pub(super) async fn asked(
        &self,
        feed: &mut Feed<'_>,
        open: &OpenQuestion,
        (signals, key): (&mut Signals, &mut SteeringKey),
    ) -> Result<Either<Option<String>, ()>, CliError> {
        loop {
            let (prompt, given) = (prompt_for(&open.question), answers(&self.events));
            let elsewhere = feed.answered_elsewhere(open.seq);
            match prompt::ask_unless(&prompt, given, signals, key.pressed(), elsewhere).await? {
                Asked::Answer(answer) => return Ok(Either::Left(answer)),
                Asked::Withdrawn(answered) => {
                    answered?;
                    return Ok(Either::Right(()));
                }
                Asked::Steer => {}
            }
            if self.steer(feed, signals).await? {
                return Ok(Either::Left(None));
            }
        }
    }
}

impl Feed<'_> {
    /// Keeps what the server sends, until the conversation has ended.
    async fn collect(&mut self) -> Result<(), ClientError> {
        while let Some(item) = self.tail.next().await? {
            self.pending.push_back(item);
        }
        Ok(())
    }
}
