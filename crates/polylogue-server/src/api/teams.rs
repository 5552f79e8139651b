//! `/api/v1/teams`: what is served.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{ETAG, IF_MATCH};
use axum::http::{HeaderValue, Response, StatusCode};
use polylogue_config::At;
use polylogue_runtime::Prepared;
use polylogue_team::{DiagramEdge, DiagramParticipant};
use polylogue_wire::Scope;
use polylogue_wire::team::{
    Edge, Input, Listed, NewText, Participant, Refused, Source, Team, TeamLimits, Teams,
};

use super::check::shown;

use crate::call::{Call, Reply, json_reply};
use crate::edited_file::{EditError, FileText, read, replace};
use crate::problem::Problem;
use crate::route::Route;
use crate::schema::of_request;
use crate::source::SourceError;
use crate::token::Token;

/// How many colors the page has for participants (`page/names.js`), which get them in the order of their chat.
const COLORS: usize = 12;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/teams", Scope::Read, list).about("The teams"),
        Route::get("/api/v1/teams/{team}", Scope::Read, get).about("One team"),
        Route::get("/api/v1/teams/{team}/source", Scope::Edit, source).about("The text of its team file"),
        Route::put("/api/v1/teams/{team}", Scope::Edit, put)
            .about("Replace the text of its team file")
            .body(of_request::<NewText>),
    ]
}

async fn list(call: Call) -> Reply {
    let (token, app) = (call.token()?, &call.app);
    let tenant = app.tenant(token)?;
    let mut teams = Vec::new();
    for id in app.source.ids().into_iter().filter(|id| token.sees(id)) {
        let Some(team) = tenant.team(&*app.source, &id).await else { continue };
        teams.push(listed(&id, team, tenant.refused(&id), None));
    }
    json_reply(StatusCode::OK, &Teams { teams })
}

async fn get(call: Call) -> Reply {
    let (team, id) = (team(&call).await?, call.param("team"));
    let refused = call.app.tenant(call.token()?)?.refused(id);
    json_reply(StatusCode::OK, &describe(id, &team, refused))
}

/// The present text, which may be newer than the team that is served, and have errors: then an editor repairs it.
async fn source(call: Call) -> Reply {
    let (served, id) = (look_up(&call).await?, call.param("team"));
    // One that cannot be served need not be a team file: only those who can replace it read it.
    let may_read = served.is_ok() || call.token()?.tenant == Token::LOCAL;
    let file = call.app.source.file(id).filter(|_| may_read);
    if let Some(FileText { text, version }) = file.and_then(|file| read(&file).ok()) {
        let reply =
            json_reply(StatusCode::OK, &Source { id: id.into(), text, version: Some(version.clone()) })?;
        return Ok(tagged(reply, &version));
    }
    let prepared = served?;
    let text =
        prepared.team().text().ok_or_else(|| Problem::unavailable("the team was not read from a file"))?;
    json_reply(StatusCode::OK, &Source { id: id.into(), text: text.into(), version: None })
}

/// Adds the version of the text to a response.
fn tagged(mut response: Response<Body>, version: &str) -> Response<Body> {
    if let Ok(version) = HeaderValue::from_str(version) {
        response.headers_mut().insert(ETAG, version);
    }
    response
}

async fn put(call: Call) -> Reply {
    let (served, NewText { text }) = (look_up(&call).await?.ok(), call.json()?);
    let (app, id) = (&call.app, call.param("team"));
    // All tenants run the same files, and what they do is for their owner to say.
    if call.token()?.tenant != Token::LOCAL {
        return Err(Problem::forbidden("only tokens of the tenant `local` can replace team files")
            .hint("`polylogue token new --scope read,edit` without `--tenant` makes one"));
    }
    let expected = call.headers.get(IF_MATCH).and_then(|version| version.to_str().ok());
    let expected = expected.filter(|version| *version != "*").ok_or_else(|| {
        Problem::no_version("the header `If-Match` must name the version of the text that was edited")
            .hint("`GET /api/v1/teams/{team}/source` has it as `ETag`")
    })?;
    let file =
        app.source.file(id).ok_or_else(|| Problem::refused("this team has no file that can be changed"))?;
    let _only = app.edits.lock().await;
    let now = read(&file).map_err(|error| unwritable(id, &error.into()))?;
    if now.version != expected {
        return Err(unwritable(id, &EditError::Changed));
    }
    check_rights(&call, served.as_deref(), (&now.text, &text))?;
    let written = replace(&file, expected, &text).map_err(|error| unwritable(id, &error))?;
    tracing::info!(team = id, token = call.token()?.id, "a team file was replaced");
    app.tenants.reload(&*app.source, false).await;
    // What cannot be served, such as for want of a key, is written all the same, and the response says why.
    let (team, refused) = (look_up(&call).await?, app.tenant(call.token()?)?.refused(id));
    let document = listed(id, team, refused, Some(written.version.clone()));
    Ok(tagged(json_reply(StatusCode::OK, &document)?, &written.version))
}

/// Refuses a text that has errors, or that could do more than the file can: what a team may use is for those to say who start the server.
fn check_rights(call: &Call, served: Option<&Prepared>, (now, text): (&str, &str)) -> Result<(), Problem> {
    let (app, id, token) = (&call.app, call.param("team"), call.token()?);
    let new = app.source.check(Some(id), text, &app.hidden_files(token)).map_err(|problems| {
        let problems = shown(app, (token, Some(id)), &problems);
        Problem::bad_team("the text has errors, and the file was not changed").with_problems(problems)
    })?;
    // Conversations of the command line are known by the names of their teams. A team that cannot be served has none.
    let name = served.map(|served| served.team().name.as_str());
    if token.teams.is_some() && name != Some(new.team.name.as_str()) {
        return Err(Problem::more_rights(
            "a token that sees only some teams cannot give a team another name",
        )
        .hint("keep `name`, or use a token that sees all teams"));
    }
    // A file with errors, which someone else has written, is not what is served.
    let more = match (app.source.check(Some(id), now, &[]), served) {
        (Ok(old), _) => old.team.powers_beyond(&new.team),
        (Err(_), Some(served)) => served.team().powers_beyond(&new.team),
        // What such a file allows is not known.
        (Err(_), None) => new.team.powers(),
    };
    if more.is_empty() {
        return Ok(());
    }
    Err(Problem::more_rights(format!("the team could do more than its file allows: {}", more.join(", ")))
        .hint("programs, hosts, files, keys and approvals are changed in the file, on the machine of the server"))
}

fn unwritable(team: &str, error: &EditError) -> Problem {
    match error {
        EditError::Changed => Problem::changed("the team file has changed since it was read")
            .hint("read it again with `GET /api/v1/teams/{team}/source`, and edit that"),
        EditError::NoFile => {
            Problem::refused(error.to_string()).hint("change the file that the link leads to")
        }
        EditError::ReadOnly => {
            Problem::refused(error.to_string()).hint("its owner makes it writable with `chmod u+w`")
        }
        EditError::Io(error) => {
            // The path is for the log of the server, not for clients.
            tracing::error!(team, %error, "a team file");
            Problem::unavailable("the team file cannot be read or written")
                .hint("the log of the server says why")
        }
    }
}

/// The team of the path, if the token may see it.
pub(crate) async fn team(call: &Call) -> Result<Arc<Prepared>, Problem> {
    Ok(look_up(call).await??)
}

/// Looks up the team of the path, or why it cannot be served.
async fn look_up(call: &Call) -> Result<Result<Arc<Prepared>, SourceError>, Problem> {
    let (token, app, id) = (call.token()?, &call.app, call.param("team"));
    let tenant = app.tenant(token)?;
    let found = if token.sees(id) { tenant.team(&*app.source, id).await } else { None };
    found.ok_or_else(|| Problem::unknown_team(id))
}

/// What clients see of a team that is served, or cannot be, and the version of its file.
fn listed(
    id: &str,
    team: Result<Arc<Prepared>, SourceError>,
    refused: Option<SourceError>,
    version: Option<String>,
) -> Listed {
    match team {
        Ok(team) => Listed::Served(Box::new(Team { version, ..describe(id, &team, refused) })),
        Err(SourceError { what: error, hint, .. }) => Listed::Broken { id: id.into(), error, hint, version },
    }
}

/// What clients see of a team, and why its file is not used if it is that of an earlier content.
fn describe(id: &str, prepared: &Prepared, refused: Option<SourceError>) -> Team {
    let (team, limits, diagram) = (prepared.team(), prepared.limits(), prepared.team().diagram());
    let input =
        |(name, value): (&String, &At<String>)| Input { name: name.clone(), default: value.value.clone() };
    Team {
        id: id.to_owned(),
        name: team.name.to_string(),
        description: team.description.clone(),
        task: team.task.clone(),
        participants: diagram.participants().enumerate().map(participant).collect(),
        edges: diagram.edges().into_iter().map(edge).collect(),
        selected_by: diagram.selected_by().map(str::to_owned),
        inputs: team.vars.iter().map(input).collect(),
        models: team.models().iter().map(ToString::to_string).collect(),
        scripted: prepared.is_scripted(),
        limits: TeamLimits {
            turns: limits.turns,
            calls: limits.calls,
            tokens: limits.tokens,
            cost: limits.cost,
        },
        version: None,
        changed: refused.map(|SourceError { what: error, hint, .. }| Refused { error, hint }),
    }
}

fn participant((nth, of): (usize, DiagramParticipant<'_>)) -> Participant {
    let DiagramParticipant { name, kind, model } = of;
    let (name, model) = (name.to_owned(), model.map(str::to_owned));
    Participant { name, kind: kind.to_owned(), model, color: nth % COLORS }
}

fn edge(DiagramEdge { from, to, when }: DiagramEdge<'_>) -> Edge {
    let [from, to, when] = [from, to, when].map(|text| text.map(str::to_owned));
    Edge { from, to, when }
}
