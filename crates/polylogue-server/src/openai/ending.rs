//! Ends responses that their clients have cut off, before the next message.

use polylogue_core::{Due, Instruction, LimitOverrides, LogId, Name};
use tokio::time::Instant;

use super::beginning::Request;
use super::history;
use crate::attendance::LEAVES;
use crate::conversation::{is_at_rest, listing};
use crate::opened::{close, open};
use crate::problem::Problem;
use crate::runs::{self, is_held, is_left, stop, until_free};
use crate::tenants::Tenant;
use crate::waiting::{is_cut_off, noted};

impl Request {
    /// Ends the response with which the history ends, if its client has cut it off: as in `polylogue chat`, what was said until then stays,
    /// and the next message is not sent into turns that began before.
    pub(super) async fn end_response(&self, id: &LogId) -> Result<(), Problem> {
        let Self { call, tenant, .. } = self;
        let (app, until) = (&call.app, Instant::now() + LEAVES);
        if !app.attendance.is_left(id, until).await {
            return Ok(());
        }
        // The note that the client has left can claim the conversation for a moment.
        noted(app, Some(id)).await;
        // Read after the last client has left: it may have received the whole response.
        let (about, has_left) = (listing(tenant, id).await?, history::has_left(tenant, id).await?);
        if is_at_rest(&about)
            || about.summary.is_paused
            || !is_cut_off(app, tenant, &about, has_left, until).await
        {
            return Ok(());
        }
        if !stop(tenant, id, true).await {
            stop_elsewhere(tenant, id).await?;
        }
        // What does not stop gets the message where it is.
        if !is_left(tenant, id).await || is_held(tenant, id).await {
            return Ok(());
        }
        self.give_up(id).await
    }

    /// Gives up the turns of a conversation that nothing runs, and closes it: what was said in them until then stays.
    pub(super) async fn give_up(&self, id: &LogId) -> Result<(), Problem> {
        let Self { call, token, tenant, .. } = self;
        let app = &call.app;
        if !tenant.runs.enter(id) {
            return Ok(());
        }
        let slot = app.wait(token);
        let ending = async {
            let opened = open(app, tenant, id, LimitOverrides::default(), &slot.payer).await?;
            let ended = opened.conversation.give_up(Name::user().as_str()).await;
            close(opened, Due::Never).await;
            Ok::<_, Problem>(ended?)
        };
        let ended = tenant.runs.hold(id, ending).await;
        if tenant.runs.leave(id) {
            // Something was sent to it meanwhile.
            runs::run(app, tenant, id, slot, None);
        }
        ended
    }
}

/// Has the process that runs a conversation, if one does, stop it at once, and waits until it has left it.
async fn stop_elsewhere(tenant: &Tenant, id: &LogId) -> Result<(), Problem> {
    if !is_held(tenant, id).await {
        return Ok(());
    }
    tenant.runtime.steer(id, Instruction::Cancel { now: true }).await?;
    until_free(tenant, id).await;
    Ok(())
}
