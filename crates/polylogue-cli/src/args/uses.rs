//! Which commands are about conversations, and which of them and of their options work with a server.

/// What a command is about.
pub(crate) enum Use {
    /// Conversations of a store, or, with these arguments, of a server.
    Server(&'static [&'static [&'static str]]),
    /// Conversations that cannot be those of a server. The text is what to do instead.
    Refused(&'static str),
    /// A store of this machine.
    Store,
    /// Files and settings of this machine.
    Local,
}

const LIMITS: &[&str] = &["max_turns", "max_cost", "max_tokens", "max_calls", "max_time", "on_limit"];
const OUTPUT: &[&str] = &["json", "quiet", "style", "no_stream", "thoughts"];
/// `--input`.
const INPUT: &[&str] = &["given"];

/// What `command` is about.
pub(crate) fn use_of(command: &str) -> Use {
    match command {
        "run" => Use::Server(&[&["team", "task", "vars"], LIMITS, OUTPUT, INPUT]),
        "resume" => Use::Server(&[&["id", "message", "answer"], LIMITS, OUTPUT, INPUT]),
        "runs" => Use::Server(&[&["json", "limit", "after", "state", "team", "task", "since", "parent"]]),
        "waiting" => Use::Server(&[&["json"]]),
        "show" => Use::Server(&[&[
            "id", "agent", "call", "json", "markdown", "style", "code", "cost", "history", "side_by_side",
        ]]),
        "files" => Use::Server(&[&["id", "to", "json"]]),
        "send" => Use::Server(&[&["id", "text", "speaker", "system"]]),
        "answer" => Use::Server(&[&["id", "answer"]]),
        "cancel" => Use::Server(&[&["id", "now"]]),
        "raise" => Use::Server(&[&["id", "agent", "chat"], LIMITS]),
        "fork" => Use::Server(&[&["id", "at", "say"]]),
        "rm" => Use::Server(&[&["ids"]]),
        "pause" => Use::Server(&[&["id"]]),
        "next" => Use::Server(&[&["id", "name"]]),
        "verify" => Use::Server(&[&["id", "json"]]),
        "cluster" => Use::Server(&[&["json", "limit"]]),
        // Its arguments are those of its subcommands, all of which a server has.
        "memory" => Use::Server(&[]),
        "chat" => Use::Server(&[&["team", "resume", "vars"], LIMITS, OUTPUT, INPUT]),
        "batch" => {
            Use::Server(&[&["team", "over", "cross", "output", "at_once", "keep", "json", "vars"], LIMITS])
        }
        "move" | "archive" => Use::Refused("run it where the store of the server is"),
        "serve" | "token" | "worker" | "migrate" | "mcp" => Use::Store,
        _ => Use::Local,
    }
}
