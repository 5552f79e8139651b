//! The teams that ship, on a server whose chat template knows no system role and refuses a content of `null`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use polylogue_core::{
    AnyModel, Body, Capabilities, Capability, DeltaSink, FinishReason, Model, ModelError, Name, Origin, Part,
    Reply, Request, RunOutcome, text_of,
};
use polylogue_models::{Config, Endpoint, EndpointModel, Script, Scripted};
use polylogue_team::Overrides;
use polylogue_test::server::{Answer, Behavior, Playbook, Received, Server};
use serde_json::Value;

use crate::shipped::stage::{Played, can_run, files, play, play_through, team};

/// What the server answers next.
type Slot = Arc<Mutex<Option<Answer>>>;

/// A model that a server plays, which answers what the script says.
struct Served {
    script: Scripted,
    model: EndpointModel,
    /// How many requests of each agent were refused. One request is sent at a time: the answer of one is not given to another.
    refused: tokio::sync::Mutex<BTreeMap<Name, u64>>,
    next: Slot,
}

impl Model for Served {
    fn name(&self) -> &str {
        self.model.name()
    }
    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let mut refused = self.refused.lock().await;
        // A script has no steps for requests that are refused.
        let nth = request.origin.nth - refused.get(request.origin.who).unwrap_or(&0);
        let asked = Request { origin: Origin { nth, ..request.origin }, ..*request };
        let reply = self.script.complete(&asked, &mut ()).await?;
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer_of(&reply));
        let result = self.model.complete(request, deltas).await;
        if result.is_err() {
            *refused.entry(request.origin.who.clone()).or_default() += 1;
        }
        result
    }
    fn capabilities(&self) -> Capabilities {
        self.model.capabilities()
    }
}

fn answer_of(reply: &Reply) -> Answer {
    let answer = reply.parts.iter().fold(Answer::text(text_of(&reply.parts)), |answer, part| match part {
        Part::Thought(thought) => answer.think(thought.as_ref()),
        Part::ToolCall(call) => answer.call_as(&call.id, &call.tool, call.args.clone()),
        _ => answer,
    });
    if reply.finish == FinishReason::Length { answer.finish("length") } else { answer }
}

/// A server of plain templates that answers what is next.
async fn server(next: &Slot) -> Server {
    let next = Arc::clone(next);
    let play = move |_: &Received, _: usize| {
        let next = next.lock().unwrap_or_else(PoisonError::into_inner).take();
        next.unwrap_or_else(|| Answer::unexpected("nothing is due"))
    };
    Server::start(Behavior::from(Playbook::new(play)).plain_template()).await
}

/// What was said where, and how every chat ended; chats that run at the same time stand one after the other.
fn course(played: &Played) -> Vec<(String, String)> {
    let shown = |body: &Body| match body {
        Body::Message(message) => Some(format!("{}: {}", message.from, message.text())),
        Body::Passed { who } => Some(format!("{who} passes")),
        Body::Closed { reason, summary } => Some(format!("{reason}: {summary}")),
        _ => None,
    };
    let mut course: Vec<(String, String)> = played
        .events
        .iter()
        .filter_map(|event| Some((event.chat.to_string(), shown(&event.body)?)))
        .collect();
    course.sort_by(|one, other| one.0.cmp(&other.0));
    course
}

/// The same script without delays, which take their time on real sockets.
fn at_once(script: &Script) -> Script {
    let mut steps = serde_json::to_value(script).unwrap();
    for step in
        steps.as_array_mut().unwrap().iter_mut().flat_map(|step| step.as_object_mut().unwrap().values_mut())
    {
        step.as_object_mut().and_then(|step| step.shift_remove("delay_ms"));
    }
    serde_json::from_value(steps).unwrap()
}

fn refused(played: &Played, form: Capability) -> usize {
    let is = |body: &Body| matches!(body, Body::CapabilityMissing { capability, .. } if *capability == form);
    played.events.iter().filter(|event| is(&event.body)).count()
}

/// How many requests have a system message, and how many a content of `null`.
fn sent(server: &Server) -> [usize; 2] {
    let is_system = |message: &Value| message["role"] == "system";
    let is_null = |message: &Value| message.get("content").is_some_and(Value::is_null);
    let requests = server.requests();
    let with =
        |is: &dyn Fn(&Value) -> bool| requests.iter().filter(|sent| sent.messages().iter().any(is)).count();
    [with(&is_system), with(&|message| !is_system(message) && is_null(message))]
}

#[tokio::test]
async fn every_team_ends_as_it_does_elsewhere_on_a_server_without_a_system_role_that_refuses_null() {
    let (mut folded, mut omitted) = (0, 0);
    for mut team in files().iter().map(|file| team(file, &Overrides::default())).filter(can_run) {
        team.script = at_once(&team.script);
        let usual = play(&team).await;
        let next = Slot::default();
        let server = server(&next).await;
        let model = Endpoint::new(Config::new(server.base_url())).unwrap().model("plain");
        let served =
            |script| AnyModel::new(Served { script, model, refused: tokio::sync::Mutex::default(), next });
        let played = play_through(&team, served).await;
        let name = &team.name;
        assert_eq!(played.unconsumed, [""; 0], "{name}");
        assert!(played.reason.outcome() == RunOutcome::Done, "{name}: {}", played.reason);
        assert_eq!(course(&played), course(&usual), "{name}");
        assert_eq!(server.violations(), [""; 0], "{name}");
        // Each is refused once, and is not tried again.
        let [system, null] =
            [Capability::SystemRole, Capability::NullContent].map(|form| refused(&played, form));
        assert!(system <= 1 && null <= 1, "{name}: {system} and {null} refusals");
        let [with_system, with_null] = sent(&server);
        assert_eq!((with_system, with_null <= 1), (system, true), "{name}");
        folded += system;
        omitted += null;
    }
    assert!(folded > 20 && omitted > 3, "{folded} teams have a system text, {omitted} call without a word");
}
