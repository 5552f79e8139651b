//! What an answer is on the wire: status, header and body, and how the connection ends.

use std::time::Duration;

use serde_json::json;

use super::answer::Refusal;
use super::completion::Completion;
use super::dialect::{self, Dialect};
use super::refusal::{error_body, reason};
use super::sse::{Step, body, error_object};
use super::{Answer, Quirk, Received, bedrock};

/// A response, as the steps of sending it.
#[derive(Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) end: End,
    /// Whether a client that reads all of it has a complete reply.
    pub(super) whole: bool,
}

/// What becomes of the connection afterward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It takes the next request.
    Keep,
    /// It is closed.
    Close,
    /// It is reset.
    Reset,
    /// It stays open, and silent.
    Hang,
}

/// How a client learns where the body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length,
    Chunked,
    UntilClose,
}

struct Response {
    status: u16,
    content_type: &'static str,
    headers: Vec<(String, String)>,
    framing: Framing,
    body: Vec<Step>,
}

const JSON: &str = "application/json";

/// Works out the response to a request for a completion.
pub(super) fn plan(answer: &Answer, received: &Received) -> Plan {
    let whole = answer.is_whole();
    if answer.has(&Quirk::HangUp) {
        return Plan { steps: Vec::new(), end: End::Close, whole };
    }
    if answer.has(&Quirk::Silent) {
        return Plan { steps: Vec::new(), end: End::Hang, whole };
    }
    let mut response = response(answer, received);
    response.headers.extend(answer.headers.iter().cloned());
    split(&mut response.body, answer);
    let (steps, end) = send(response, answer);
    Plan { steps, end, whole }
}

/// Works out a response of one JSON value to a request for something else.
pub(super) fn plan_json(status: u16, body: &serde_json::Value) -> Plan {
    let (steps, end) = send(json(status, body.to_string()), &Answer::default());
    Plan { steps, end, whole: false }
}

/// Works out a refusal with an OpenAI error body.
pub(super) fn plan_error(status: u16, message: &str) -> Plan {
    let refusal = Refusal { status, message: Some(message.to_owned()), ..Refusal::default() };
    plan_json(status, &error_body(&refusal))
}

fn json(status: u16, body: impl Into<Vec<u8>>) -> Response {
    let body = vec![Step::Write(body.into())];
    Response { status, content_type: JSON, headers: Vec::new(), framing: Framing::Length, body }
}

fn response(answer: &Answer, received: &Received) -> Response {
    if let Some(refusal) = &answer.refusal {
        return refused(refusal, received);
    }
    answer.quirks.iter().find_map(|quirk| instead(quirk, received)).unwrap_or_else(|| {
        let streamed = received.streams() && !answer.has(&Quirk::Unstreamed);
        let completion = Completion::new(answer, received);
        if streamed || answer.has(&Quirk::StreamedUnasked) { stream(&completion) } else { whole(&completion) }
    })
}

/// What a quirk sends instead of a reply.
fn instead(quirk: &Quirk, received: &Received) -> Option<Response> {
    Some(match quirk {
        Quirk::Status(status) => refused(&Refusal { status: *status, ..Refusal::default() }, received),
        Quirk::EchoKey => {
            let key = received.header("authorization").unwrap_or("no key");
            let message =
                format!("Incorrect API key provided: {key}. You can find your key in your settings.");
            let code = Some("invalid_api_key".into());
            let refusal = Refusal { status: 401, message: Some(message), code, ..Refusal::default() };
            refused(&refusal, received)
        }
        Quirk::Redirect(to) => {
            let headers = vec![("location".to_owned(), to.to_string())];
            Response { headers, ..json(307, "") }
        }
        Quirk::Html => {
            let page =
                "<!DOCTYPE html>\n<html><head><title>Welcome</title></head><body>It works!</body></html>\n";
            Response { content_type: "text/html; charset=utf-8", ..json(200, page) }
        }
        Quirk::EmptyBody => json(200, ""),
        _ => return None,
    })
}

/// A refusal, with the body of the API that was asked.
fn refused(refusal: &Refusal, received: &Received) -> Response {
    let dialect = received.dialect().unwrap_or(Dialect::ChatCompletions);
    let mut response = json(refusal.status, dialect.error_body(refusal, received).to_string());
    if dialect == Dialect::Converse {
        response.headers.push(("x-amzn-errortype".into(), bedrock::error_type(refusal)));
    }
    response
}

fn stream(completion: &Completion<'_>) -> Response {
    let dialect = completion.received.dialect().unwrap_or(Dialect::ChatCompletions);
    let framing = if completion.has(&Quirk::Ndjson) { dialect::Framing::Lines } else { dialect.framing() };
    let content_type = match framing {
        dialect::Framing::Lines => "application/x-ndjson",
        dialect::Framing::Frames => "application/vnd.amazon.eventstream",
        dialect::Framing::Events { .. } => "text/event-stream; charset=utf-8",
    };
    let headers = vec![("cache-control".into(), "no-cache".into())];
    Response { status: 200, content_type, headers, framing: Framing::Chunked, body: body(completion) }
}

/// A reply that is not streamed.
fn whole(completion: &Completion<'_>) -> Response {
    let reply = completion.received.dialect().unwrap_or(Dialect::ChatCompletions).body(completion);
    let mut response = json(200, reply.to_string());
    for quirk in &completion.answer.quirks {
        match quirk {
            Quirk::ErrorInStream(_) => response = json(200, error_object(completion)),
            Quirk::InvalidJson => cut(&mut response.body),
            Quirk::PauseBeforeFirst(pause) => response.body.insert(0, Step::Wait(*pause)),
            Quirk::Stall(pause) | Quirk::Pace(pause) => halve(&mut response.body, *pause),
            Quirk::EndlessStream | Quirk::EndlessLine | Quirk::EndlessComments(_) => {
                response.framing = Framing::Chunked;
                response.body = endless(quirk);
            }
            _ => {}
        }
    }
    response
}

/// A body that never ends: a text without end, or white space without end before the JSON (as servers send to keep
/// a connection open).
fn endless(quirk: &Quirk) -> Vec<Step> {
    if let Quirk::EndlessComments(pause) = quirk {
        return vec![Step::Forever(b"\n".to_vec(), *pause)];
    }
    let begin =
        json!({"id": "chatcmpl-0", "choices": [{"index": 0, "message": {"content": ""}}]}).to_string();
    let (begin, _) = begin.split_once(r#"content":"#).unwrap_or_default();
    let begin = format!(r#"{begin}content":""#);
    vec![Step::Write(begin.into()), Step::Forever(b"again and ".repeat(400), Duration::ZERO)]
}

/// Puts a pause into the middle of the body.
fn halve(body: &mut Vec<Step>, pause: Duration) {
    if let Some(Step::Write(bytes)) = body.last_mut() {
        let rest = bytes.split_off(bytes.len() / 2);
        body.extend([Step::Wait(pause), Step::Write(rest)]);
    }
}

/// Drops the second half of the body's bytes, and whatever comes after them.
fn cut(body: &mut Vec<Step>) {
    let mut left = length(body) / 2;
    body.retain_mut(|step| match step {
        Step::Write(bytes) => {
            bytes.truncate(left);
            left -= bytes.len();
            !bytes.is_empty()
        }
        Step::Wait(_) | Step::Gate(..) => left > 0,
        Step::Forever(..) => false,
    });
}

fn length(body: &[Step]) -> usize {
    let lengths = body.iter().map(|step| if let Step::Write(bytes) = step { bytes.len() } else { 0 });
    lengths.sum()
}

/// Cuts the body into the writes that the quirks ask for.
fn split(body: &mut Vec<Step>, answer: &Answer) {
    if answer.has(&Quirk::Merged) {
        *body = merged(std::mem::take(body));
    }
    let every = answer.quirks.iter().find_map(|quirk| match quirk {
        Quirk::SplitEvery(every) => Some((*every).max(1)),
        _ => None,
    });
    let Some(every) = every else { return };
    *body = std::mem::take(body)
        .into_iter()
        .flat_map(|step| match step {
            Step::Write(bytes) => bytes.chunks(every).map(|piece| Step::Write(piece.to_vec())).collect(),
            other => vec![other],
        })
        .collect();
}

/// The same steps with neighboring writes joined.
fn merged(steps: Vec<Step>) -> Vec<Step> {
    let mut merged: Vec<Step> = Vec::new();
    for step in steps {
        match (merged.last_mut(), step) {
            (Some(Step::Write(before)), Step::Write(bytes)) => before.extend(bytes),
            (_, step) => merged.push(step),
        }
    }
    merged
}

/// The steps of sending a response, and what becomes of the connection.
fn send(mut response: Response, answer: &Answer) -> (Vec<Step>, End) {
    let declared = declared(&mut response, answer);
    let torn = answer.has(&Quirk::Truncated) || answer.has(&Quirk::Reset);
    let end = match () {
        () if answer.has(&Quirk::Reset) => End::Reset,
        () if torn || response.framing == Framing::UntilClose => End::Close,
        () if declared != length(&response.body) && response.framing == Framing::Length => End::Close,
        () => End::Keep,
    };
    let mut steps = head(&response, declared, end, answer);
    if torn {
        cut(&mut response.body);
    }
    if response.framing == Framing::Chunked {
        response.body = chunked(response.body, !torn, answer.has(&Quirk::BadChunk));
    }
    steps.append(&mut response.body);
    // What is apart on purpose stays apart; everything else is as cheap as one write.
    let apart = answer.quirks.iter().any(|quirk| matches!(quirk, Quirk::SplitEvery(_)));
    let mut steps = if apart { steps } else { merged(steps) };
    if end == End::Reset {
        // A reset overtakes what the client has not read yet: give it time to read.
        steps.push(Step::Wait(Duration::from_millis(50)));
    }
    (steps, end)
}

/// The length that is declared, if one is; changes the framing where a quirk wants another one.
fn declared(response: &mut Response, answer: &Answer) -> usize {
    let length = length(&response.body);
    for quirk in &answer.quirks {
        match quirk {
            Quirk::NoLength => response.framing = Framing::UntilClose,
            Quirk::BadChunk => response.framing = Framing::Chunked,
            Quirk::LengthTooLong => {
                response.framing = Framing::Length;
                return length + 100;
            }
            Quirk::LengthTooShort => {
                response.framing = Framing::Length;
                return length / 2;
            }
            _ => {}
        }
    }
    length
}

fn head(response: &Response, declared: usize, end: End, answer: &Answer) -> Vec<Step> {
    let status = response.status;
    let mut head =
        format!("HTTP/1.1 {status} {}\r\ncontent-type: {}\r\n", reason(status), response.content_type);
    match response.framing {
        Framing::Length => head.push_str(&format!("content-length: {declared}\r\n")),
        Framing::Chunked => head.push_str("transfer-encoding: chunked\r\n"),
        Framing::UntilClose => {}
    }
    for (name, value) in &response.headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    // A torn response does not announce that it will be.
    if end == End::Close && response.framing == Framing::UntilClose {
        head.push_str("connection: close\r\n");
    }
    head.push_str("\r\n");
    let slow = answer.quirks.iter().find_map(|quirk| match quirk {
        Quirk::SlowHeaders(pause) => Some(*pause),
        _ => None,
    });
    let mut steps = vec![Step::Write(head.into_bytes())];
    if let Some(pause) = slow {
        halve(&mut steps, pause);
    }
    steps
}

/// The body in HTTP chunks, one for each write.
fn chunked(body: Vec<Step>, terminated: bool, bad: bool) -> Vec<Step> {
    let mut steps: Vec<_> = body
        .into_iter()
        .filter(|step| !matches!(step, Step::Write(bytes) if bytes.is_empty()))
        .map(|step| match step {
            Step::Write(bytes) => Step::Write(chunk(&bytes)),
            Step::Forever(bytes, pause) => Step::Forever(chunk(&bytes), pause),
            wait @ (Step::Wait(_) | Step::Gate(..)) => wait,
        })
        .collect();
    if bad {
        steps.push(Step::Write(b"size?\r\n".to_vec()));
    }
    if terminated {
        steps.push(Step::Write(b"0\r\n\r\n".to_vec()));
    }
    steps
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

/// The bytes of a response, pauses left out.
pub(super) fn bytes(answer: &Answer, received: &Received) -> Vec<u8> {
    let steps = plan(answer, received).steps.into_iter();
    steps
        .filter_map(|step| if let Step::Write(bytes) = step { Some(bytes) } else { None })
        .flatten()
        .collect()
}
