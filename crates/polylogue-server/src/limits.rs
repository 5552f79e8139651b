//! What clients can take of a server.

use std::time::Duration;

/// What clients can take of a server. Every number can be changed; none can be removed.
#[derive(Debug, Clone)]
pub struct ServerLimits {
    /// The largest body of a request, in bytes.
    pub body_bytes: usize,
    /// The same of a request that has a file: an imported conversation.
    pub file_bytes: usize,
    /// The deepest nesting of JSON.
    pub json_depth: usize,
    /// The largest head of a request, in bytes: 8,192 at least.
    pub head_bytes: usize,
    /// The most header fields of a request.
    pub header_fields: usize,
    /// How long the head of a request may take to arrive. Also how long a connection may be idle.
    pub head_time: Duration,
    /// How long the body of a request may take to arrive.
    pub body_time: Duration,
    /// How long a client may take nothing of a response before its connection is closed.
    pub write_time: Duration,
    /// Connections at the same time.
    pub connections: usize,
    /// The same, from one address.
    pub connections_per_address: usize,
    /// Requests of one token in a second.
    pub requests_per_second: u32,
    /// Requests of one token that may come at once.
    pub request_burst: u32,
    /// Requests with a wrong token from one address in a minute.
    pub failed_logins_per_minute: u32,
    /// Event streams of one token at the same time.
    pub streams_per_token: usize,
    /// The time between two comments in an event stream in which nothing happens.
    pub comment_every: Duration,
    /// Conversations of one token that run at the same time.
    pub running_per_token: usize,
    /// Conversations that run at the same time.
    pub running: usize,
    /// Conversations that wait until they may run. Further ones are refused.
    pub queued: usize,
    /// How long a conversation continues to run for a client that went away while it waited for the response. A client that tries again joins it.
    pub abandoned_time: Duration,
    /// Sessions of MCP of one token at the same time, of the protocol up to 2025-11-25.
    pub mcp_sessions_per_token: usize,
    /// How long such a session lasts in which nothing happens. Its conversations continue without it.
    pub mcp_session_time: Duration,
    /// How long conversations may take to end their steps when the server stops. Then they are stopped at once.
    pub stop_time: Duration,
    /// How often it is looked whether team files have changed.
    pub team_check: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            body_bytes: 1024 * 1024,
            file_bytes: 25 * 1024 * 1024,
            json_depth: 64,
            head_bytes: 16 * 1024,
            header_fields: 64,
            head_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
            write_time: Duration::from_secs(60),
            connections: 512,
            connections_per_address: 64,
            requests_per_second: 20,
            request_burst: 40,
            failed_logins_per_minute: 10,
            streams_per_token: 100,
            comment_every: Duration::from_secs(15),
            running_per_token: 16,
            running: 64,
            queued: 256,
            abandoned_time: Duration::from_secs(30),
            mcp_sessions_per_token: 64,
            mcp_session_time: Duration::from_hours(1),
            stop_time: Duration::from_secs(25),
            team_check: Duration::from_secs(2),
        }
    }
}
