//! Sends requests, and returns the results as text.

use std::time::Duration;

use polylogue_core::{Money, ToolError, ToolResult};
use polylogue_http::header::{HeaderName, HeaderValue};
use polylogue_http::{Client, Env, Redactor};

use super::request::{Request, header_name};
use crate::command::GivenArguments;
use crate::exchange::{Ask, End, Reply, ask, status_in_words};

/// Timeout of a call; how much of a response is read, and how much is returned, in bytes: less than the maximum of a result.
const TIME: Duration = Duration::from_secs(30);
const MAX_BYTES: usize = 1 << 20;
const TOLD: usize = 48_000;
const TOLD_OF_FAILURES: usize = 4_000;

/// Sends requests with secrets.
#[derive(derive_more::Debug)]
// Without secrets.
#[debug("Sender {{ client: {client:?}, .. }}")]
pub(crate) struct Sender {
    client: Client,
    pub(crate) time: Duration,
    headers: Vec<(HeaderName, HeaderValue)>,
    query: Vec<(String, String)>,
    secrets: Vec<String>,
    /// The header of responses that says what a call cost, in dollars.
    pub(crate) cost: Option<HeaderName>,
}

impl Sender {
    pub(crate) const fn new(client: Client) -> Self {
        Self { client, time: TIME, headers: Vec::new(), query: Vec::new(), secrets: Vec::new(), cost: None }
    }

    /// Adds the header `name` with the value of the variable `variable`, after the prefix `before`.
    pub(crate) fn add_header(
        &mut self,
        name: &str,
        variable: &str,
        before: &str,
        env: &Env,
    ) -> Result<(), String> {
        let value = held(variable, env)?;
        self.add_secret_header(name, &format!("{before}{value}"))?;
        self.secrets.push(value);
        Ok(())
    }

    /// Adds the secret header `name`.
    pub(crate) fn add_secret_header(&mut self, name: &str, value: &str) -> Result<(), String> {
        let sent = HeaderValue::from_str(value);
        let mut sent = sent.map_err(|_| format!("what is to be the header `{name}` cannot be sent"))?;
        sent.set_sensitive(true);
        self.headers.push((header_name(name)?, sent));
        self.secrets.push(value.to_owned());
        Ok(())
    }

    /// Removes `secret` from responses.
    pub(crate) fn hide(&mut self, secret: &str) {
        self.secrets.push(secret.to_owned());
    }

    /// Adds a secret query parameter.
    pub(crate) fn add_query(&mut self, name: &str, value: String) {
        self.query.push((name.to_owned(), value.clone()));
        self.secrets.push(value);
    }

    /// Sends `request` with the given arguments.
    pub(crate) async fn send(
        &self,
        request: &Request,
        given: &GivenArguments<'_>,
    ) -> Result<ToolResult, ToolError> {
        let (mut url, mut headers, body) = request.fill(given)?;
        let source = format!("{}{}", url.origin().ascii_serialization(), url.path());
        for (name, value) in &self.query {
            url.query_pairs_mut().append_pair(name, value);
        }
        if url.query() == Some("") {
            url.set_query(None);
        }
        self.headers.iter().for_each(|(name, value)| drop(headers.insert(name, value.clone())));
        headers
            .entry("accept")
            .or_insert(HeaderValue::from_static("application/json, text/*;q=0.9, */*;q=0.1"));
        let asked = Ask { method: request.method.method(), headers, body };
        let cannot = |why: &str| ToolError(format!("`{source}` cannot be called: {why}"));
        let asking = tokio::time::timeout(self.time, ask(&self.client, &url, asked, MAX_BYTES)).await;
        let reply = asking.map_err(|_| {
            let known = if request.method.only_reads() { "" } else { "; whether it was done is not known" };
            cannot(&format!("there was no answer within {} s{known}", self.time.as_secs()))
        })?;
        let reply = reply.map_err(|why| cannot(&why))?;
        let outcome = self.outcome(&reply).from_outside(source);
        Ok(match self.cost(&reply) {
            Some(cost) => outcome.with_cost(cost),
            None => outcome,
        })
    }

    /// What the response says that it cost. What is no amount counts as not said: others wrote it.
    fn cost(&self, reply: &Reply) -> Option<Money> {
        let text = reply.headers.get(self.cost.as_ref()?)?.to_str().ok()?;
        let dollars: f64 = text.trim().trim_start_matches('$').parse().ok()?;
        (dollars.is_finite() && dollars >= 0.0).then(|| Money::dollars(dollars))
    }

    fn outcome(&self, reply: &Reply) -> ToolResult {
        let redactor = Redactor::new(self.secrets.iter().map(String::as_str));
        let is_done = (200..=299).contains(&reply.status);
        let most = if is_done { TOLD } else { TOLD_OF_FAILURES };
        let is_text = !reply.body.iter().take(1024).any(|byte| *byte == 0);
        let text = String::from_utf8_lossy(&reply.body);
        let mut text = match (is_text, text.trim()) {
            (_, "") => String::new(),
            (false, _) => {
                format!("({} bytes of {})", reply.body.len(), reply.content_type.as_deref().unwrap_or("data"))
            }
            (true, text) => redactor.excerpt(text, reply.end != End::Whole, most),
        };
        if is_text && (reply.end == End::Cut || reply.body.len() > most) {
            text.push_str("\n(The answer is longer.)");
        } else if reply.end == End::Broken {
            text.push_str("\n(The connection broke before the end of the answer.)");
        }
        let status = status_in_words(reply.status);
        match (is_done, reply.status, &reply.location) {
            (true, _, _) if text.is_empty() => ToolResult::done(format!("({status})")),
            (true, _, _) => ToolResult::done(text),
            (false, 300..=399, Some(location)) => {
                let location = redactor.excerpt(location, false, 300);
                ToolResult::failed(format!("{status}: it leads to `{location}`, which is not followed"))
            }
            _ => ToolResult::failed(format!("{status}\n{text}").trim_end().to_owned()),
        }
    }
}

/// The value of the variable `name`.
pub(crate) fn held(name: &str, env: &Env) -> Result<String, String> {
    let value = env.get(name).map(|value| value.trim().to_owned());
    value.ok_or_else(|| format!("`{name}` is not set, in the environment or in `.env`"))
}
