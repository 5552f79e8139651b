//! `/api/v1/teams/check` and `/api/v1/schema`: what an editor of team files needs. Nothing that a text says is executed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use axum::http::StatusCode;
use polylogue_team::{Diagnostics, Team};
use polylogue_wire::Scope;
use polylogue_wire::team::{Check, Checked, InputName, Outline};
use serde_json::{Value, json};

use crate::app::App;
use crate::call::{Call, Reply, json_reply};
use crate::problem::Problem;
use crate::route::Route;
use crate::schema::of_request;
use crate::token::Token;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/schema", Scope::Edit, |_| async {
            json_reply(StatusCode::OK, polylogue_team::schema())
        })
        .about("The JSON Schema of team files"),
        Route::post("/api/v1/teams/check", Scope::Edit, check)
            .about("Check the text of a team file")
            .body(of_request::<Check>),
    ]
}

async fn check(call: Call) -> Reply {
    let (token, Check { text, team }) = (call.token()?, call.json()?);
    if let Some(id) = team.as_deref().filter(|id| !token.sees(id) || !is_served(&call, id)) {
        return Err(Problem::unknown_team(id).at("/team", "unknown team"));
    }
    let shown = |problems: &Diagnostics| shown(&call.app, (token, team.as_deref()), problems);
    let body = match call.app.source.check(team.as_deref(), &text, &call.app.hidden_files(token)) {
        Ok(loaded) => {
            Checked { ok: true, problems: shown(&loaded.warnings), team: Some(outline(&loaded.team)) }
        }
        Err(problems) => Checked { ok: false, problems: shown(&problems), team: None },
    };
    json_reply(StatusCode::OK, &body)
}

fn is_served(call: &Call, id: &str) -> bool {
    call.app.source.ids().iter().any(|served| served == id)
}

/// The findings in a text of `team`, which can name any file next to it as that of a team. Of a file, its name is shown, not where it is on
/// this machine; and of one that is of no team that the token sees, no more than that it has errors: its findings would quote it.
pub(crate) fn shown(app: &App, (token, team): (&Token, Option<&str>), problems: &Diagnostics) -> Value {
    let ids = app.source.ids();
    let seen = ids.iter().filter(|id| token.sees(id)).filter_map(|id| app.source.file(id));
    let seen: Vec<PathBuf> = seen.collect();
    let mut others = BTreeSet::new();
    let mut shown = Vec::new();
    for problem in problems.iter() {
        let path = Path::new(&problem.file);
        let mut problem = problem.clone();
        problem.file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if team.is_some() && seen.iter().all(|own| own != path) {
            if !others.insert(path) {
                continue;
            }
            problem.message = "the file has errors".to_owned();
            (problem.place, problem.hint) =
                (None, Some("`polylogue check` shows them on its machine".into()));
        }
        shown.push(problem);
    }
    json!(shown)
}

/// What a preview of the team shows.
fn outline(team: &Team) -> Outline {
    Outline {
        name: team.name.to_string(),
        description: team.description.clone(),
        task: team.task.clone(),
        inputs: team.vars.keys().map(|name| InputName { name: name.clone() }).collect(),
        agents: team.agents.len(),
        chats: team.chats.len() + 1,
        graph: team.diagram().to_json(),
    }
}
