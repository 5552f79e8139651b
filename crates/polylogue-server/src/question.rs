//! The texts of open questions, for clients that do not show the conversation with them.

use polylogue_core::{LogId, OpenQuestion, Store as _};
use polylogue_runtime::asked::{Received, is_turn};

use crate::problem::Problem;
use crate::tenants::Tenant;

/// The texts of the questions `open` in a conversation.
pub(crate) async fn texts(
    tenant: &Tenant,
    id: &LogId,
    open: &[OpenQuestion],
) -> Result<Vec<String>, Problem> {
    let events = match open.iter().any(|open| is_turn(&open.question)) {
        true => tenant.runtime.store().read(id, 0).await?,
        false => Vec::new(),
    };
    let text = |open: &OpenQuestion| {
        let mut received = Received::default();
        events.iter().take_while(|event| event.seq < open.seq).for_each(|event| received.add(event));
        received.text(&open.at, &open.question)
    };
    Ok(open.iter().map(text).collect())
}
