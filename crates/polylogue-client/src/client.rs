//! The client: one method for each thing that the native API does.

use std::time::Duration;

use bytes::Bytes;
use polylogue_core::{Event, LimitOverrides, LogId};
use polylogue_http::{Key, Method, Proxies};
use polylogue_wire::calls::{CallPage, Histories, View};
use polylogue_wire::cluster::Cluster;
use polylogue_wire::compare::Comparison;
use polylogue_wire::conversation::{
    Accepted, Answer, Continuation, Conversation, ConversationPage, EventPage, Fork, Import, NewConversation,
    NewMessage, NewTitle, NextSpeaker, Pause, Raise, Removed, Resume, Stop, Stopped, Verdict, When,
};
use polylogue_wire::files::Files;
use polylogue_wire::memory::{Facts, Forgotten};
use polylogue_wire::team::{Check, Checked, Source, Team, Teams};
use polylogue_wire::token::{MadeToken, NewToken, Revoked, Tokens};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use crate::connection::{Connection, Retries, address};
use crate::error::{ClientError, Kind, out_of_order};
use crate::filter::ListFilter;
use crate::request::Request;
use crate::tail::Tail;

const CONVERSATIONS: &str = "conversations";

/// A client of one server, with one token.
///
/// A request that fails because the server cannot be reached or is busy is repeated, for [a time](Self::with_patience), if that can have no
/// second effect: what only reads, what has a key, as messages, answers, resumptions, forks and imports have, and what did not reach the
/// server.
#[derive(Debug)]
pub struct Client(Connection);

impl Client {
    /// Creates a client of the server at `url`, which is where its page is.
    ///
    /// # Errors
    /// When the address is not one of HTTP, or has credentials: those are in the `token` alone.
    pub fn new(url: &str, token: &Key, proxies: &Proxies) -> Result<Self, ClientError> {
        Ok(Self(Connection::new(url, token, proxies)?))
    }

    /// Parses `url` as the address of a server.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn address(url: &str) -> Result<Url, ClientError> {
        address(url)
    }

    /// Sets how long requests are repeated while the server cannot be reached or is busy, and how long a [`Tail`] tries to continue.
    /// Default: 30 s. [`Duration::MAX`] means without end.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.0.patience = patience;
        self
    }

    /// Calls `handler` before a request is sent again for the first time, with why it failed and for how long it is repeated at most, so that
    /// a program can show what it waits for. After a request has succeeded, the next failure is reported again. Default: no handler.
    ///
    /// ```
    /// use polylogue_client::Client;
    /// use polylogue_http::{Key, Proxies};
    ///
    /// # fn example() -> Result<Client, Box<dyn std::error::Error>> {
    /// let token = Key::new("ply_secret").ok_or("no token")?;
    /// let client = Client::new("http://127.0.0.1:8787", &token, &Proxies::none())?;
    /// # Ok(
    /// client.with_retry_handler(|error, at_most| eprintln!("{error}; trying again for {at_most:?}"))
    /// # )
    /// # }
    /// # example().unwrap();
    /// ```
    #[must_use]
    pub fn with_retry_handler(
        mut self,
        handler: impl Fn(&ClientError, Duration) + Send + Sync + 'static,
    ) -> Self {
        self.0.retries = Retries::of(handler);
        self
    }

    /// Returns the address of the server.
    pub fn url(&self) -> &str {
        self.0.url()
    }

    fn get<T: DeserializeOwned>(&self, path: &[&str]) -> impl Future<Output = Result<T, ClientError>> {
        Request::new(&self.0, Method::GET, path).send()
    }

    fn post(&self, path: &[&str]) -> Request<'_> {
        Request::new(&self.0, Method::POST, path)
    }

    fn delete(&self, path: &[&str]) -> Request<'_> {
        Request::new(&self.0, Method::DELETE, path)
    }
}

/// Conversations.
///
/// # Errors
/// All methods: [`ClientError`], when the server cannot be reached or refuses.
#[expect(clippy::missing_errors_doc, reason = "they are the same for all")]
impl Client {
    /// Begins a conversation. If the connection breaks before the response, the conversation may have begun.
    pub async fn begin(&self, new: &NewConversation) -> Result<Conversation, ClientError> {
        self.post(&[CONVERSATIONS]).json(new)?.send().await
    }

    /// Begins a conversation once for each `key`, of 1 to 255 printable ASCII characters; another key is an error, and nothing is sent.
    /// Its id is long.
    pub async fn begin_once(&self, new: &NewConversation, key: &str) -> Result<Conversation, ClientError> {
        self.post(&[CONVERSATIONS]).json(new)?.keyed(key)?.send().await
    }

    /// Returns a page of conversations, newest first.
    pub async fn list(&self, filter: &ListFilter) -> Result<ConversationPage, ClientError> {
        Request::new(&self.0, Method::GET, &[CONVERSATIONS]).query(&filter.query()).send().await
    }

    /// Returns a conversation.
    pub async fn conversation(&self, id: &LogId) -> Result<Conversation, ClientError> {
        self.get(&[CONVERSATIONS, id.as_str()]).await
    }

    /// Finds the conversation that `text` names: an id, the beginning of just one, or `last`.
    pub async fn find(&self, text: &str) -> Result<Conversation, ClientError> {
        // Every id begins with an empty text, which is what an unset variable of a shell is.
        if text.is_empty() {
            return Err(ClientError::new(Kind::NoConversation(String::new())));
        }
        let newest = ListFilter { limit: Some(1), ..ListFilter::default() };
        let filter = match text {
            "last" => newest,
            _ => ListFilter { limit: Some(5), id: Some(text.to_owned()), ..ListFilter::default() },
        };
        let mut found = self.list(&filter).await?.conversations;
        if let Some(at) = found.iter().position(|conversation| conversation.id.as_str() == text) {
            return Ok(found.swap_remove(at));
        }
        match (found.pop(), found.is_empty()) {
            (Some(only), true) => Ok(only),
            (Some(last), false) => {
                // The one with this very id may be older than all that begin so.
                if let Some(exact) = self.exactly(text).await? {
                    return Ok(exact);
                }
                let ids: Vec<_> = found.iter().chain([&last]).map(|one| one.id.as_str()).collect();
                Err(ClientError::new(Kind::Ambiguous { text: text.to_owned(), ids: ids.join(", ") }))
            }
            (None, _) => Err(ClientError::new(Kind::NoConversation(text.to_owned()))),
        }
    }

    /// The conversation whose whole id `text` is, if there is one.
    async fn exactly(&self, text: &str) -> Result<Option<Conversation>, ClientError> {
        let Ok(id) = LogId::new(text) else { return Ok(None) };
        match self.conversation(&id).await {
            Err(error) if error.is_missing() => Ok(None),
            found => found.map(Some),
        }
    }

    /// Gives a conversation another title; an empty one takes it away.
    pub async fn rename(&self, id: &LogId, title: &str) -> Result<Conversation, ClientError> {
        let request = Request::new(&self.0, Method::PATCH, &[CONVERSATIONS, id.as_str()]);
        request.json(&NewTitle { title: title.to_owned() })?.send().await
    }

    /// Stores a conversation that was exported, to be read. It is stored once, however often the request is repeated, and its id is long; if all
    /// repetitions fail, it may be stored.
    pub async fn import(&self, import: &Import) -> Result<Conversation, ClientError> {
        self.post(&["imports"]).json(import)?.once()?.send().await
    }

    /// Removes a conversation, unless it runs.
    pub async fn remove(&self, id: &LogId) -> Result<Removed, ClientError> {
        self.delete(&[CONVERSATIONS, id.as_str()]).send_removal(Removed { removed: true }).await
    }

    /// Returns a page of events, from the event `from` on: at most `limit`. Default: 1,000, which is the most.
    pub async fn events(&self, id: &LogId, from: u64, limit: Option<u64>) -> Result<EventPage, ClientError> {
        let request = Request::new(&self.0, Method::GET, &[CONVERSATIONS, id.as_str(), "events"]);
        let limit = limit.map(|limit| ("limit", limit.to_string()));
        let query: Vec<_> = [("from", from.to_string())].into_iter().chain(limit).collect();
        request.query(&query).send().await
    }

    /// Returns all events from the event `from` on, each once and in order: a page that has others, or does not end, is an error.
    pub async fn all_events(&self, id: &LogId, from: u64) -> Result<Vec<Event>, ClientError> {
        let (mut all, mut next) = (Vec::new(), Some(from));
        let mut expected = from..;
        while let Some(from) = next {
            let page = self.events(id, from, None).await?;
            if page.next.is_some_and(|next| next <= from) {
                return Err(self.0.not_polylogue("a page of events does not end".into()));
            }
            let other = page.events.iter().zip(&mut expected).find(|(event, seq)| event.seq != *seq);
            if let Some((Event { seq, .. }, expected)) = other {
                return Err(self.0.not_polylogue(out_of_order(*seq, expected)));
            }
            all.extend(page.events);
            next = page.next;
        }
        Ok(all)
    }

    /// Follows a conversation: the events from the event `from` on, and then updates as they happen.
    pub fn tail(&self, id: &LogId, from: u64) -> Tail<'_> {
        Tail::new(&self.0, id.clone(), from)
    }

    /// Sends a message: agents see it from their next turn on; a closed conversation is reopened.
    pub async fn send(&self, id: &LogId, text: &str) -> Result<Accepted, ClientError> {
        self.send_as(id, None, text).await
    }

    /// Sends a message as [`send`](Self::send), with an author other than the user: a participant of the outermost chat, or
    /// `system`.
    pub async fn send_as(&self, id: &LogId, from: Option<&str>, text: &str) -> Result<Accepted, ClientError> {
        let body = NewMessage { text: text.to_owned(), from: from.map(str::to_owned) };
        self.post(&[CONVERSATIONS, id.as_str(), "messages"]).json(&body)?.once()?.send().await
    }

    /// Answers a question: the event that asks. The first answer counts.
    pub async fn answer(&self, id: &LogId, question: u64, text: &str) -> Result<Accepted, ClientError> {
        let body = Answer { question, text: text.to_owned() };
        self.post(&[CONVERSATIONS, id.as_str(), "answers"]).json(&body)?.once()?.send().await
    }

    /// Stops a conversation that runs, or continues by itself. It can be resumed.
    pub async fn stop(&self, id: &LogId, when: When) -> Result<Stopped, ClientError> {
        let request = self.post(&[CONVERSATIONS, id.as_str(), "stop"]).json(&Stop { when })?;
        request.repeatable().send().await
    }

    /// Pauses a conversation: turns that have begun end, and no others begin. [`resume`](Self::resume) continues it.
    pub async fn pause(&self, id: &LogId) -> Result<Conversation, ClientError> {
        self.post(&[CONVERSATIONS, id.as_str(), "pause"]).json(&Pause {})?.once()?.send().await
    }

    /// Chooses who speaks next in the outermost chat of a conversation.
    pub async fn choose_next(&self, id: &LogId, who: &str) -> Result<Conversation, ClientError> {
        let body = NextSpeaker { who: who.to_owned() };
        self.post(&[CONVERSATIONS, id.as_str(), "next"]).json(&body)?.once()?.send().await
    }

    /// Verifies that the stored events of a conversation are those that were written.
    pub async fn verify(&self, id: &LogId) -> Result<Verdict, ClientError> {
        self.get(&[CONVERSATIONS, id.as_str(), "verify"]).await
    }

    /// Continues a conversation; `resume` says how much it may use beyond what it has used.
    pub async fn resume(&self, id: &LogId, resume: &Resume) -> Result<Conversation, ClientError> {
        self.post(&[CONVERSATIONS, id.as_str(), "resume"]).json(resume)?.once()?.send().await
    }

    /// Allows a conversation the amounts of `limits` beyond what it has used. One that waits for that continues.
    pub async fn raise(&self, id: &LogId, limits: LimitOverrides) -> Result<Conversation, ClientError> {
        self.raise_of(id, Raise { limits, agent: None, chat: None }).await
    }

    /// Allows one agent of a conversation so much more than it has used, beyond the limits of its own: calls, tokens, money or time.
    pub async fn raise_agent(
        &self,
        id: &LogId,
        agent: &str,
        limits: LimitOverrides,
    ) -> Result<Conversation, ClientError> {
        self.raise_of(id, Raise { limits, agent: Some(agent.to_owned()), chat: None }).await
    }

    /// Allows one open chat of a conversation, by its name or its path, so much more than it has used, beyond the limits of its own: calls,
    /// tokens, money or time.
    pub async fn raise_chat(
        &self,
        id: &LogId,
        chat: &str,
        limits: LimitOverrides,
    ) -> Result<Conversation, ClientError> {
        self.raise_of(id, Raise { limits, agent: None, chat: Some(chat.to_owned()) }).await
    }

    async fn raise_of(&self, id: &LogId, raise: Raise) -> Result<Conversation, ClientError> {
        self.post(&[CONVERSATIONS, id.as_str(), "raise"]).json(&raise)?.once()?.send().await
    }

    /// Returns what continues a conversation that has ended.
    pub async fn continuation(&self, id: &LogId) -> Result<Continuation, ClientError> {
        self.get(&[CONVERSATIONS, id.as_str(), "continuation"]).await
    }

    /// Begins another conversation with the first events of one. It begins once, however often the request is repeated, and its id is long; if
    /// all repetitions fail, it may exist.
    pub async fn fork(&self, id: &LogId, fork: &Fork) -> Result<Conversation, ClientError> {
        self.post(&[CONVERSATIONS, id.as_str(), "fork"]).json(fork)?.once()?.send().await
    }

    /// Returns a page of the timeline of calls, from the row `from` on.
    pub async fn calls(&self, id: &LogId, from: u64) -> Result<CallPage, ClientError> {
        let request = Request::new(&self.0, Method::GET, &[CONVERSATIONS, id.as_str(), "calls"]);
        request.query(&[("from", from.to_string())]).send().await
    }

    /// Returns what the model of an agent was sent in a call, counted from 1. Default: the last one.
    pub async fn view(&self, id: &LogId, agent: &str, call: Option<u64>) -> Result<View, ClientError> {
        let request = Request::new(&self.0, Method::GET, &[CONVERSATIONS, id.as_str(), "views", agent]);
        let query: Vec<_> = call.iter().map(|call| ("call", call.to_string())).collect();
        request.query(&query).send().await
    }

    /// Returns what each agent of a conversation received and said.
    pub async fn histories(&self, id: &LogId) -> Result<Histories, ClientError> {
        self.get(&[CONVERSATIONS, id.as_str(), "histories"]).await
    }

    /// Returns the graph of the team of a conversation: who can follow whom.
    pub async fn graph(&self, id: &LogId) -> Result<Value, ClientError> {
        self.get(&[CONVERSATIONS, id.as_str(), "graph"]).await
    }

    /// Returns which files the agents of a conversation have written, as after its last finished call.
    pub async fn files(&self, id: &LogId) -> Result<Files, ClientError> {
        self.get(&[CONVERSATIONS, id.as_str(), "files"]).await
    }

    /// Returns the content of one of these files, by its path, such as `notes/a.txt`: 100 MiB at most.
    pub async fn file(&self, id: &LogId, path: &str) -> Result<Bytes, ClientError> {
        let request = Request::new(&self.0, Method::GET, &[CONVERSATIONS, id.as_str(), "files", "content"]);
        request.query(&[("path", path.to_owned())]).send_for_file().await
    }

    /// Compares two conversations side by side.
    pub async fn compare(&self, a: &LogId, b: &LogId) -> Result<Comparison, ClientError> {
        let query = [("a", a.to_string()), ("b", b.to_string())];
        Request::new(&self.0, Method::GET, &["compare"]).query(&query).send().await
    }
}

/// What agents remember.
///
/// # Errors
/// All methods: [`ClientError`], when the server cannot be reached or refuses.
#[expect(clippy::missing_errors_doc, reason = "they are the same for all")]
impl Client {
    /// Returns facts, the newest first: of one scope, or of all. Default of `limit`: 100.
    pub async fn facts(&self, scope: Option<&str>, limit: Option<u64>) -> Result<Facts, ClientError> {
        self.memory(None, scope, limit).await
    }

    /// Returns the facts that match a text best: of one scope, or so many of each. Default of `limit`: 5.
    pub async fn search_facts(
        &self,
        text: &str,
        scope: Option<&str>,
        limit: Option<u64>,
    ) -> Result<Facts, ClientError> {
        self.memory(Some(text), scope, limit).await
    }

    async fn memory(
        &self,
        text: Option<&str>,
        scope: Option<&str>,
        limit: Option<u64>,
    ) -> Result<Facts, ClientError> {
        let limit = limit.map(|limit| limit.to_string());
        let query = [("q", text), ("scope", scope), ("limit", limit.as_deref())];
        let query: Vec<_> =
            query.into_iter().filter_map(|(name, value)| Some((name, value?.to_owned()))).collect();
        Request::new(&self.0, Method::GET, &["memory"]).query(&query).send().await
    }

    /// Forgets a fact, by its number.
    pub async fn forget(&self, fact: u64) -> Result<Forgotten, ClientError> {
        self.delete(&["memory", &fact.to_string()]).send_removal(Forgotten { forgotten: true }).await
    }
}

/// Workers.
///
/// # Errors
/// All methods: [`ClientError`], when the server cannot be reached or refuses.
#[expect(clippy::missing_errors_doc, reason = "they are the same for all")]
impl Client {
    /// Returns what workers run and what waits for them, where the store of the server is one for workers. Default of `limit`:
    /// 100 conversations.
    pub async fn cluster(&self, limit: Option<u64>) -> Result<Cluster, ClientError> {
        let query: Vec<_> = limit.map(|limit| ("limit", limit.to_string())).into_iter().collect();
        Request::new(&self.0, Method::GET, &["cluster"]).query(&query).send().await
    }
}

/// Teams and tokens.
///
/// # Errors
/// All methods: [`ClientError`], when the server cannot be reached or refuses.
#[expect(clippy::missing_errors_doc, reason = "they are the same for all")]
impl Client {
    /// Returns the teams.
    pub async fn teams(&self) -> Result<Teams, ClientError> {
        self.get(&["teams"]).await
    }

    /// Returns a team.
    pub async fn team(&self, id: &str) -> Result<Team, ClientError> {
        self.get(&["teams", id]).await
    }

    /// Returns the graph of a team: who can follow whom.
    pub async fn team_graph(&self, id: &str) -> Result<Value, ClientError> {
        self.get(&["teams", id, "graph"]).await
    }

    /// Returns the text of a team file, as the server has read it last.
    pub async fn team_source(&self, id: &str) -> Result<Source, ClientError> {
        self.get(&["teams", id, "source"]).await
    }

    /// Checks the text of a team file. Nothing in it is executed.
    pub async fn check(&self, check: &Check) -> Result<Checked, ClientError> {
        self.post(&["teams", "check"]).json(check)?.repeatable().send().await
    }

    /// Returns the JSON Schema of team files.
    pub async fn schema(&self) -> Result<Value, ClientError> {
        self.get(&["schema"]).await
    }

    /// Returns the tokens of the tenant that can do no more than that of this client.
    pub async fn tokens(&self) -> Result<Tokens, ClientError> {
        self.get(&["tokens"]).await
    }

    /// Creates a token, which may do no more than that of this client. If the connection breaks before the response, it may
    /// exist.
    pub async fn new_token(&self, new: &NewToken) -> Result<MadeToken, ClientError> {
        self.post(&["tokens"]).json(new)?.send().await
    }

    /// Revokes a token.
    pub async fn revoke_token(&self, id: &str) -> Result<Revoked, ClientError> {
        self.delete(&["tokens", id]).send_removal(Revoked { revoked: true }).await
    }
}
