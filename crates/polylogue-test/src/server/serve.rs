//! Serving a connection: request after request, each by its plan.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use super::behavior::{Behavior, Play};
use super::completion::Completion;
use super::http::{Connection, Head, ReadError};
use super::record::Record;
use super::response::{End, Plan, plan, plan_error, plan_json};
use super::rules::ensure;
use super::sse::Step;
use super::{Answer, Dialect, History, Playbook, Received, bedrock, model_lists, ollama, returned, unique};

/// What all connections share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) behavior: Behavior,
    pub(super) record: Record,
}

/// How long a client may take to close its end after the server has closed its own.
const LINGER: Duration = Duration::from_secs(5);

/// Accepts connections until it is dropped.
pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let shared = Arc::clone(&shared);
                tokio::spawn(async move { serve(stream, &shared).await });
            }
            // No file descriptor is free: one may be in a moment.
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn serve(stream: TcpStream, shared: &Shared) {
    let _guard = shared.record.connections.enter();
    // Without it, small writes would be held back and joined.
    let _ = stream.set_nodelay(true);
    let mut connection = Connection::new(stream);
    match &shared.behavior.play {
        Play::Raw(response) => serve_raw(&mut connection, shared, response).await,
        Play::Book(book) => serve_book(connection, shared, book).await,
    }
}

/// The same bytes to every request, until the client goes.
async fn serve_raw(connection: &mut Connection, shared: &Shared, response: &[u8]) {
    while let Ok(head) = connection.head().await {
        if connection.body(&head).await.is_err() {
            return;
        }
        shared.record.count.fetch_add(1, Ordering::SeqCst);
        shared.record.asked.fetch_add(1, Ordering::SeqCst);
        let _guard = shared.record.in_flight.enter();
        let stayed = wait(connection, shared.behavior.latency).await;
        if !stayed || connection.write(response).await.is_err() || head.closes() {
            return;
        }
    }
}

async fn serve_book(mut connection: Connection, shared: &Shared, book: &Playbook) {
    let mut counted: Option<Arc<Received>> = None;
    loop {
        let request = read(&mut connection, shared).await;
        if let (Err(ReadError::Broken), Some(received)) = (&request, &counted) {
            shared.record.retract(received);
        }
        let (head, received) = match request {
            Ok(request) => request,
            Err(ReadError::Bad(status, what)) => return refuse(connection, status, what).await,
            Err(ReadError::Closed | ReadError::Broken) => return,
        };
        let flight = shared.record.in_flight.enter();
        let plan = route(shared, book, &received);
        if !wait(&mut connection, shared.behavior.latency).await {
            return;
        }
        counted = (plan.whole && shared.behavior.records).then_some(received);
        // Before the client has it, so that a test that has the reply finds it counted.
        if let Some(received) = &counted {
            shared.record.answered(received);
        }
        if !run(&mut connection, &plan.steps).await {
            if let Some(received) = &counted {
                shared.record.retract(received);
            }
            return;
        }
        drop(flight);
        if plan.end != End::Keep || head.closes() {
            return end(connection, shared, plan.end, counted.as_deref()).await;
        }
    }
}

/// The next request, counted and kept.
async fn read(connection: &mut Connection, shared: &Shared) -> Result<(Head, Arc<Received>), ReadError> {
    let head = connection.head().await?;
    let bytes = connection.body(&head).await?;
    let (method, path, _) = head.request_line().ok_or(ReadError::Bad(400, "there is no request line"))?;
    let received = Arc::new(Received {
        nth: shared.record.count.fetch_add(1, Ordering::SeqCst),
        method: method.to_owned(),
        path: path.to_owned(),
        headers: head.fields().map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect(),
        body: serde_json::from_slice(&bytes).unwrap_or_default(),
        bytes,
        at: Instant::now(),
    });
    if shared.behavior.records {
        shared.record.keep(&received);
    }
    Ok((head, received))
}

async fn refuse(mut connection: Connection, status: u16, what: &str) {
    if run(&mut connection, &plan_error(status, what).steps).await {
        // The client is not waited for: what it still sends is not a request.
        let _ = timeout(LINGER, connection.close()).await;
    }
}

/// The response to a request, by its path.
fn route(shared: &Shared, book: &Playbook, received: &Received) -> Plan {
    let path = received.path.split('?').next().unwrap_or_default();
    if received.method == "POST" && Dialect::of(path).is_some() {
        return complete(shared, book, received);
    }
    match (received.method.as_str(), path) {
        ("GET", "/v1/models") => model_lists::plan(&shared.behavior, received),
        ("GET", "/v1beta/models") => model_lists::plan_google(&shared.behavior, received),
        ("GET", "/api/tags") => plan_json(200, &ollama::tags(&shared.behavior.models)),
        ("GET", "/foundation-models") => plan_json(200, &bedrock::foundation_models(&shared.behavior.models)),
        ("GET", "/inference-profiles") => {
            plan_json(200, &bedrock::inference_profiles(&received.path, shared.behavior.endless_models))
        }
        ("GET", "/api/version") => plan_json(200, &ollama::version()),
        (_, "/v1/chat/completions" | "/v1/models") => plan_error(405, "Method not allowed"),
        (method, _) => plan_error(404, &format!("Invalid URL ({method} {path})")),
    }
}

fn complete(shared: &Shared, book: &Playbook, received: &Received) -> Plan {
    let behavior = &shared.behavior;
    let nth = shared.record.asked.fetch_add(1, Ordering::SeqCst);
    let refusal = behavior.check_key(received).or_else(|| behavior.check_template(received));
    let refusal = refusal.or_else(|| behavior.check_results(received));
    let refusal = refusal.or_else(|| behavior.check_abilities(received));
    let refusal = refusal.or_else(|| behavior.check_parameters(received));
    let flaw = || check(shared, received).err().map(Answer::unexpected);
    let mut answer = refusal.or_else(flaw).unwrap_or_else(|| book.answer(received, nth));
    if let Some(what) = &answer.violation {
        shared.record.violation(received, what);
    } else {
        answer.quirks.extend(behavior.quirks.iter().cloned());
        remember(shared, &answer, received);
    }
    plan(&answer, received)
}

/// Remembers reasoning that may come back as a plain text.
fn remember(shared: &Shared, answer: &Answer, received: &Received) {
    let is_plain = matches!(received.dialect(), Some(Dialect::ChatCompletions | Dialect::Ollama));
    if is_plain && answer.refusal.is_none() && shared.behavior.records {
        shared.record.reasoned(received, returned::reasoning(&Completion::new(answer, received)));
    }
}

fn check(shared: &Shared, received: &Received) -> Result<(), String> {
    let behavior = &shared.behavior;
    unique::check(&received.bytes).map_err(|flaw| format!("the body is not proper JSON: {flaw}"))?;
    let kind = received.header("content-type").unwrap_or_default();
    ensure!(kind.starts_with("application/json"), "`content-type` is `{kind}`, not `application/json`");
    match behavior.history {
        History::Any => Ok(()),
        _ => {
            received.dialect().map_or(Ok(()), |dialect| dialect.validate(behavior, received))?;
            let is_required = behavior.vendor.is_some_and(|vendor| vendor.wants_reasoning(received.model()));
            shared.record.check_reasoning(received, is_required)
        }
    }
}

/// Sends the steps. Whether all of them were sent.
async fn run(connection: &mut Connection, steps: &[Step]) -> bool {
    for step in steps {
        let sent = match step {
            Step::Write(bytes) => {
                let sent = connection.write(bytes).await.is_ok();
                // Lets the client see it before there is more.
                tokio::task::yield_now().await;
                sent
            }
            Step::Wait(pause) => wait(connection, *pause).await,
            Step::Gate(gate, nth) => tokio::select! {
                () = gate.pass(*nth) => true,
                () = connection.gone() => false,
            },
            Step::Forever(bytes, pause) => return forever(connection, bytes, *pause).await,
        };
        if !sent {
            return false;
        }
    }
    true
}

/// Sends the same bytes until the client goes. Never succeeds.
async fn forever(connection: &mut Connection, bytes: &[u8], pause: Duration) -> bool {
    while connection.write(bytes).await.is_ok() {
        tokio::task::yield_now().await;
        if !wait(connection, pause).await {
            break;
        }
    }
    false
}

async fn end(mut connection: Connection, shared: &Shared, end: End, counted: Option<&Received>) {
    match end {
        End::Reset => connection.reset(),
        End::Hang => connection.gone().await,
        End::Keep | End::Close => {
            let closed = timeout(LINGER, connection.close()).await;
            if let (Ok(Err(_)), Some(received)) = (closed, counted) {
                shared.record.retract(received);
            }
        }
    }
}

/// Waits. Whether the client is still there afterward.
async fn wait(connection: &mut Connection, pause: Duration) -> bool {
    // No time at all is not worth a timer.
    pause.is_zero() || timeout(pause, connection.gone()).await.is_err()
}
