//! From an instruction to the run that continues a conversation with it.

use std::sync::Arc;

use polylogue_core::{Due, Instruction, LimitOverrides, Listing, LogId};
use polylogue_runtime::steering::{InstructionKey, PostedInstruction, Steered};
use tracing::info;

use crate::app::App;
use crate::conversation::listing;
use crate::opened::{Opened, close, open};
use crate::problem::Problem;
use crate::runs::{self, StartOptions, stop_at_rest};
use crate::slots::Slot;
use crate::tenants::Tenant;

/// The process that has a conversation open, and carries out what is in its inbox; `None` if it is this one, or none.
pub(crate) async fn other_node(tenant: &Tenant, id: &LogId) -> Result<Option<String>, Problem> {
    if tenant.runs.is_running(id) || tenant.runtime.get(id).is_some() {
        return Ok(None);
    }
    Ok(tenant.runtime.node_of(id).await?)
}

/// Stores an instruction, and has the conversation of `about` continue with it: in the process that has it open, or here. `is_elsewhere` is
/// whether that is another process. What a person has paused, and what refuses the instruction, does not continue by that.
pub(crate) async fn steer(
    app: &Arc<App>,
    tenant: &Arc<Tenant>,
    (about, is_elsewhere): (&Listing, bool),
    (instruction, key): (Instruction, InstructionKey),
    (slot, options): (Slot, StartOptions),
) -> Result<Steered, Problem> {
    let id = &about.id;
    let posted = tenant.runtime.post_once(about, instruction, key).await?;
    // A worker of this process can have it, too. What has to wait until it may run is not open meanwhile.
    let is_open = is_elsewhere || tenant.runtime.get(id).is_some();
    let holds = !is_open && slot.is_taken() && tenant.runs.enter_new(id);
    if holds {
        // Opened once, for the instruction and for the run.
        let opening = open(app, tenant, id, LimitOverrides::default(), &slot.payer);
        match tenant.runs.hold(id, opening).await {
            Ok(opened) => return Ok(run_with(app, tenant, (posted, opened), (slot, options)).await),
            // Another process was faster, or it cannot run here: its log has the instruction all the same.
            Err(problem) => info!(conversation = %id, %problem, "a conversation cannot be opened now"),
        }
    }
    let carried_out = carry_out(tenant, id, posted, holds).await;
    match &carried_out {
        Ok((_, true)) if holds => runs::spawn(app, tenant, id, slot, (None, options)),
        Ok((_, true)) => {
            // Who waits for the response has not asked for more than that.
            let is_waited_for = options.follower.is_some();
            if !runs::start_if_idle(app, tenant, id, slot, options) && !is_waited_for {
                runs::renew(app, tenant, id);
            }
        }
        _ if holds => leave(app, tenant, id, slot).await,
        _ => {}
    }
    Ok(carried_out?.0)
}

/// Runs a conversation that was opened with what was posted to it.
async fn run_with(
    app: &Arc<App>,
    tenant: &Arc<Tenant>,
    (posted, opened): (PostedInstruction, Opened),
    (slot, options): (Slot, StartOptions),
) -> Steered {
    let id = opened.conversation.id().clone();
    let steered = opened.conversation.outcome_of(posted).await;
    let continues = !matches!(steered, Steered::Refused(_)) && !opened.conversation.is_paused().await;
    // What waits until it may run has it in its log already.
    tenant.runs.note_change(&id);
    if continues {
        runs::spawn(app, tenant, &id, slot, (Some(opened), options));
    } else {
        close(opened, Due::Now).await;
        leave(app, tenant, &id, slot).await;
    }
    steered
}

/// Has what was posted carried out by the process that has the conversation open, or without running it. `holds`: whether this process has the
/// right to run it. Returns also whether it is to continue here.
async fn carry_out(
    tenant: &Tenant,
    id: &LogId,
    posted: PostedInstruction,
    holds: bool,
) -> Result<(Steered, bool), Problem> {
    let steered = tenant.runtime.carry_out(id, posted).await?;
    // What does not run may have it in its log already.
    tenant.runs.note_change(id);
    let other = if holds { tenant.runtime.node_of(id).await? } else { other_node(tenant, id).await? };
    let continues = !matches!(steered, Steered::Refused(_))
        && other.is_none()
        && !listing(tenant, id).await?.summary.is_paused;
    Ok((steered, continues))
}

/// Gives up the right to run a conversation, unless something else was sent to it meanwhile. Its log has a cancellation that came meanwhile.
pub(crate) async fn leave(app: &Arc<App>, tenant: &Arc<Tenant>, id: &LogId, slot: Slot) {
    match tenant.runs.leave_with_halt(id) {
        (true, _) => runs::run(app, tenant, id, slot, None),
        (false, halt) => stop_at_rest(app, tenant, id, halt).await,
    }
}
