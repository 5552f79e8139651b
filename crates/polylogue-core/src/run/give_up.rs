//! Giving up turns that no one continues: calls that an earlier process lost in them are charged first.

use crate::{Chat, Error, Log, Result};

impl Chat {
    /// Charges the calls that may have been in flight when the process died that ran the conversation last, each at its reservation, and
    /// sends none: open turns act up to their next calls. Does nothing if [no call can be lost](Log::may_have_lost_calls).
    ///
    /// A run does so itself before it sends anything. It is for programs that must know what a conversation has used before they run it.
    ///
    /// # Errors
    /// When the agents do not match the log, or the log cannot be written. A turn that fails is no error: its failure is in the log.
    pub async fn charge_lost_calls(&self, log: &mut Log) -> Result<()> {
        if !log.may_have_lost_calls().await? {
            return Ok(());
        }
        let log: &Log = log;
        let _only_charges = log.only_charges();
        Box::pin(self.drive(log, None)).await.map(drop).or_else(setup_error)
    }

    /// Ends the open turns of the outermost chat, such as those that were cancelled, so that the next run begins new ones. A finished
    /// reply becomes the message of its turn, and so does what a cancelled one had [said until then](crate::Body::ReplyInterrupted),
    /// [marked](crate::FinishReason::Interrupted) as cut off. Where nothing was said in any turn of the step, the turns are rolled back, with
    /// the chats in them and the background tasks that they started: they are in no transcript and no view. Does nothing if there are none.
    ///
    /// Calls that may have been in flight when an earlier process died are [charged](Self::charge_lost_calls) first.
    ///
    /// # Errors
    /// As [`charge_lost_calls`](Self::charge_lost_calls), and when the log is not a valid conversation.
    pub async fn end_open_turns(&self, log: &mut Log) -> Result<()> {
        self.charge_lost_calls(log).await?;
        log.end_open_turns().await
    }

    /// Closes a conversation from outside, with the stop reason [`Stopped`](crate::StopReason::Stopped) by `by`. Does nothing if it is
    /// closed.
    ///
    /// Calls that may have been in flight when an earlier process died are [charged](Self::charge_lost_calls) first.
    ///
    /// # Errors
    /// When it has not begun, and as [`charge_lost_calls`](Self::charge_lost_calls).
    pub async fn close(&self, log: &mut Log, by: &str) -> Result<()> {
        self.charge_lost_calls(log).await?;
        log.close(by).await
    }
}

/// `error`, unless it only says that a turn was interrupted before a call, or failed, as the log has it.
pub(super) fn setup_error(error: Error) -> Result<()> {
    if error.ends_run() && !matches!(error, Error::Interrupt(_)) { Err(error) } else { Ok(()) }
}
