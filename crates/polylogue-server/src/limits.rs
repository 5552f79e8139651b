//! What clients can take of a server.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What clients can take of a server. Every number can be changed; none can be removed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerLimits {
    /// The largest body of a request, in bytes.
    pub body_bytes: usize,
    /// The largest body of a request that can have files, in bytes: an imported conversation, or a chat completion with pictures.
    pub file_bytes: usize,
    /// The deepest nesting of JSON.
    pub json_depth: usize,
    /// The largest head of a request, in bytes: 8,192 at least.
    pub head_bytes: usize,
    /// The most header fields of a request.
    pub header_fields: usize,
    /// How long the head of a request may take to arrive. Also how long a connection may be idle.
    #[serde(with = "seconds")]
    pub head_time: Duration,
    /// How long the body of a request may take to arrive.
    #[serde(with = "seconds")]
    pub body_time: Duration,
    /// How long a client may read nothing of a response before its connection is closed.
    #[serde(with = "seconds")]
    pub write_time: Duration,
    /// Connections at the same time.
    pub connections: usize,
    /// Connections from one address at the same time. Behind a trusted proxy: requests from one address at the same time.
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
    #[serde(with = "seconds")]
    pub comment_every: Duration,
    /// Conversations of one token that run at the same time.
    pub running_per_token: usize,
    /// Conversations that run at the same time.
    pub running: usize,
    /// Conversations that wait until others have ended. Further ones are refused.
    pub queued: usize,
    /// How long a conversation continues to run after its client has disconnected without the response. A client that tries again joins it.
    #[serde(with = "seconds")]
    pub abandoned_time: Duration,
    /// Sessions of MCP of one token at the same time, in versions of the protocol up to 2025-11-25.
    pub mcp_sessions_per_token: usize,
    /// How long an unused session of MCP lasts. Its conversations continue without it.
    #[serde(with = "seconds")]
    pub mcp_session_time: Duration,
    /// How long conversations may take to end their steps when the server stops. Then they are aborted.
    #[serde(with = "seconds")]
    pub stop_time: Duration,
    /// The shortest time between two checks by `/readyz` whether the store can be written.
    #[serde(with = "seconds")]
    pub store_check: Duration,
    /// The time between two checks whether team files have changed.
    #[serde(with = "seconds")]
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
            store_check: Duration::from_secs(5),
            team_check: Duration::from_secs(2),
        }
    }
}

impl ServerLimits {
    /// The largest number that a limit can be set to.
    const LARGEST: u64 = 1_000_000_000;

    /// Returns the names of all limits.
    pub fn names() -> Vec<String> {
        Self::default().fields().into_iter().map(|(name, _)| name).collect()
    }

    /// Sets the limit with this name, which is that of its field. Times are in seconds.
    ///
    /// ```
    /// use polylogue_server::ServerLimits;
    /// let mut limits = ServerLimits::default();
    /// limits.set("running", 128)?;
    /// assert_eq!(limits.running, 128);
    /// assert!(limits.set("runing", 128).unwrap_err().starts_with("there is no limit `runing`"));
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    /// Why not: there is no such limit, or it cannot be this number.
    pub fn set(&mut self, name: &str, number: u64) -> Result<(), String> {
        let mut fields = self.fields();
        let Some(field) = fields.get_mut(name) else {
            return Err(format!("there is no limit `{name}`; there are `{}`", Self::names().join("`, `")));
        };
        // Less is too little for any HTTP request.
        let least = if name == "head_bytes" { 8_192 } else { 1 };
        if !(least..=Self::LARGEST).contains(&number) {
            return Err(format!("the limit `{name}` is a whole number from {least} to {}", Self::LARGEST));
        }
        *field = number.into();
        *self = serde_json::from_value(Value::Object(fields)).map_err(|error| error.to_string())?;
        Ok(())
    }

    fn fields(&self) -> Map<String, Value> {
        // A struct of numbers is always an object.
        match serde_json::to_value(self) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        }
    }
}

/// Times as seconds.
mod seconds {
    use std::time::Duration;

    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(time.as_secs_f64())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(from)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_can_be_set_and_is_documented() {
        let docs = include_str!("../../../docs/server.md");
        for name in ServerLimits::names() {
            let mut limits = ServerLimits::default();
            limits.set(&name, 9_001).unwrap();
            let expected: Value = if limits.fields()[&name].is_f64() { 9_001.0.into() } else { 9_001.into() };
            assert_eq!(limits.fields()[&name], expected, "{name}");
            limits.set(&name, ServerLimits::LARGEST).unwrap();
            assert!(docs.contains(&format!("`{name}`")), "{name} is not in docs/server.md");
            for wrong in [0, ServerLimits::LARGEST + 1, u64::MAX] {
                assert!(limits.set(&name, wrong).is_err(), "{name} {wrong}");
            }
        }
        assert!(ServerLimits::default().set("head_bytes", 8_191).is_err());
    }
}
