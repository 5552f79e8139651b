//! Participants of the outermost chat, as requests name them.

use polylogue_core::{LogId, Name};
use polylogue_wire::Scope;

use crate::problem::Problem;
use crate::tenants::Tenant;
use crate::token::Token;

/// The participant that `text` names, which is at `pointer` in the body.
pub(super) async fn participant(
    tenant: &Tenant,
    id: &LogId,
    (pointer, text): (&str, &str),
) -> Result<Name, Problem> {
    let opening = tenant.runtime.opening(id).await?;
    let Some(opening) = opening else { return Err(tenant.runtime.not_begun(id).await?.into()) };
    let mut names = opening.participants.iter().chain(&opening.late_joiners);
    names.clone().find(|name| name.as_str() == Name::composed(text)).cloned().ok_or_else(|| {
        let all: Vec<String> = names.by_ref().map(|name| format!("`{name}`")).collect();
        Problem::bad_request(format!("there is no participant `{}`", text.escape_debug()))
            .at(pointer, "unknown participant")
            .hint(format!("there are {}", all.join(", ")))
    })
}

/// The author of a message: the user, or who `from` names. What a person says as a participant is as good as an answer.
pub(super) async fn author(
    tenant: &Tenant,
    token: &Token,
    id: &LogId,
    from: Option<&str>,
) -> Result<Name, Problem> {
    match from {
        None => Ok(Name::user()),
        Some(from) if from == Name::system().as_str() => Ok(Name::system()),
        Some(_) if !token.has(Scope::Answer) => Err(Problem::may_not_answer()),
        Some(from) => participant(tenant, id, ("/from", from)).await,
    }
}
