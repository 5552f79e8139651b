//! Raising limits of a conversation, whether it runs or not.

use axum::http::StatusCode;
use polylogue_core::{Instruction, Name};
use polylogue_wire::Scope;
use polylogue_wire::conversation::Raise;

use super::conversations::replayed;
use super::steering::{instruct, note};
use crate::call::{Call, Reply, json_reply};
use crate::conversation::{describe, find, listing};
use crate::idempotency::Key;
use crate::problem::Problem;
use crate::route::Route;
use crate::schema::of_request;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/v1/conversations/{id}/raise", Scope::Run, raise)
            .about("Raise limits of a conversation, also while it runs")
            .body(of_request::<Raise>),
    ]
}

/// It does not continue a conversation that does not run, unless that has waited for it.
async fn raise(call: Call) -> Reply {
    let (token, Raise { limits: more, agent, chat }) = (call.token()?, call.json()?);
    let tenant = call.app.tenant(token)?;
    let about = find(&tenant, token, call.param("id")).await?;
    let id = &about.id;
    if more.is_empty() {
        return Err(Problem::bad_request("there is no limit to raise").at("/limits", "empty"));
    }
    let by = Some(token.name.as_str().into());
    let instruction = match (agent, chat) {
        (None, None) => Instruction::RaiseLimits { more, by },
        (None, Some(chat)) => Instruction::RaiseChatLimits { chat: chat.into(), more, by },
        (Some(agent), None) => match Name::new(agent) {
            Ok(who) => Instruction::RaiseAgentLimits { who, more, by },
            Err(error) => return Err(Problem::bad_request(error.to_string()).at("/agent", "not a name")),
        },
        (Some(_), Some(_)) => {
            let why = "`agent` and `chat` cannot both be given";
            return Err(Problem::bad_request(why).at("/chat", "not next to `agent`"));
        }
    };
    let open = tenant.runtime.open_questions_of(&about).await?;
    if !open.iter().any(|open| open.question.is_about_limit()) {
        return note(&call, &tenant, id, instruction).await;
    }
    let key = Key::of(&call, &format!("{id}/{}", call.path)).await?;
    let (_, was_posted) = instruct(&call.app, &tenant, (token, &about), instruction, key.as_ref()).await?;
    let document = describe(&tenant, &listing(&tenant, id).await?).await?;
    Ok(replayed(json_reply(StatusCode::ACCEPTED, &document)?, was_posted))
}
