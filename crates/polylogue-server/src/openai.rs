//! OpenAI's chat completions: a team is a model. The log is the only state; a response is a projection of it.

mod beginning;
mod chores;
mod chunks;
mod completions;
mod dialogue;
mod document;
mod ending;
mod form;
mod history;
mod line;
mod outcome;
mod pictures;
mod repeated;
mod request;
mod speech;
mod voice;
#[cfg(test)]
mod voice_tests;
mod whole;

use std::sync::LazyLock;

use axum::http::{Method, StatusCode};
use polylogue_wire::Scope;
use serde_json::{Value, json};

use crate::call::{Call, Reply, json_reply};
use crate::problem::{ErrorForm, Problem};
use crate::route::{Access, Route};

use document::now;

pub(crate) fn routes() -> Vec<Route> {
    let (read, run) = (Access::Scope(Scope::Read), Access::Scope(Scope::Run));
    let about = "The teams, as OpenAI lists models";
    let routes = [
        Route::new(Method::GET, "/v1/models", read, about, |call| Box::pin(list(call))),
        Route::new(Method::GET, "/v1/models/{model}", read, "One team", |call| Box::pin(get(call))),
        Route::new(Method::POST, "/v1/chat/completions", run, "OpenAI's chat completions", |call| {
            Box::pin(completions::complete(call))
        })
        .body(completions::schema)
        .with_unknown_fields()
        // Pictures are in the messages.
        .large()
        // It runs what it begins in a task of its own.
        .not_completed(),
    ];
    routes.map(|route| route.form(ErrorForm::OpenAi)).into()
}

/// When the first model was listed, in seconds since 1970.
static CREATED: LazyLock<u64> = LazyLock::new(now);

fn model(id: &str) -> Value {
    json!({"id": id, "object": "model", "created": *CREATED, "owned_by": "polylogue"})
}

async fn list(call: Call) -> Reply {
    let token = call.token()?;
    let ids = call.app.source.ids().into_iter().filter(|id| token.sees(id));
    let models: Vec<Value> = ids.map(|id| model(&id)).collect();
    json_reply(StatusCode::OK, &json!({"object": "list", "data": models}))
}

async fn get(call: Call) -> Reply {
    let (token, id) = (call.token()?, call.param("model"));
    match call.app.source.ids().iter().any(|served| served == id) && token.sees(id) {
        true => json_reply(StatusCode::OK, &model(id)),
        false => Err(Problem::unknown_model(id)),
    }
}
