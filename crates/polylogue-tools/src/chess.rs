//! The tool `chess`.

mod game;

use std::sync::Arc;

use polylogue_core::{
    Body, Event, Name, Part, Path, StateScope, Tool, ToolCall, ToolCx, ToolError, ToolResult, ToolSpec,
    ToolStatus,
};
use serde_json::{Value, json};

use game::Game;

/// The name of the tool.
const NAME: &str = "chess";
/// The key of the shared state with the result of a finished game: `1-0`, `0-1` or `1/2-1/2`.
const RESULT: &str = "chess_result";
/// The key of the shared state with the side to move: `white` or `black`.
const TO_MOVE: &str = "chess_to_move";

/// The tool `chess`: a game of chess that accepts only legal moves.
///
/// Without a move it shows the board and the legal moves; with one it makes it. Moves are in coordinate or algebraic notation, `e2e4`
/// or `Nf3`. The board follows from the earlier moves of the conversation, including those in outer and inner chats, unless its
/// [scope](Self::scope) is one chat; failed moves do not count. After a game, the shared state has its result under `chess_result`;
/// after every move, `chess_to_move` is the side to move.
#[derive(Debug, Clone)]
pub struct Chess {
    spec: ToolSpec,
    scope: StateScope,
}

impl Chess {
    /// The keys of the shared state that it sets.
    pub const STATE_KEYS: [&'static str; 2] = [TO_MOVE, RESULT];

    /// Sets the scope of a game: one for the team (default), or one for every run of a chat.
    #[must_use]
    pub fn scope(self, scope: StateScope) -> Self {
        Self { scope, ..self }
    }
}

impl Default for Chess {
    fn default() -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "move": {
                    "type": "string",
                    "description": "The move, such as `e2e4`, `e7e8q`, `Nf3` or `O-O`. Left out: the board is shown",
                },
                "side": {
                    "type": "string", "enum": ["white", "black"],
                    "description": "Whose move it is meant to be",
                },
            },
            "additionalProperties": false,
        });
        let description = "Makes a move in this conversation's game of chess, or shows the board and the legal moves. \
            White begins. A move that is not legal is refused.";
        // A move that was in flight can be made again: it counts only when its result is in the log.
        let spec = ToolSpec::new(NAME, description, parameters).repeatable().max_bytes(2_000);
        Self { spec, scope: StateScope::Team }
    }
}

impl Tool for Chess {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: Value, cx: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let mut game = Game::of(moves(cx, self.scope));
        let Some(text) = wanted(&args)? else { return Ok(ToolResult::done(game.shown())) };
        if let Some(first) = first_move(cx).filter(|first| first.id != cx.id) {
            let first = wanted(&first.args).ok().flatten().unwrap_or_default();
            return Err(format!("one move at a time: `{first}` was asked for with it, and came first").into());
        }
        if let Some(result) = game.result() {
            return Err(format!("the game is over: {result}").into());
        }
        if let Some(side) = args.get("side").and_then(Value::as_str).filter(|side| *side != game.side()) {
            return Err(format!("it is not the turn of {side}; {} moves", game.side()).into());
        }
        let result = game.play(text)?;
        let mut state = json!({TO_MOVE: game.side()});
        if let Some(result) = game.result() {
            state = json!({TO_MOVE: game.side(), RESULT: result.score()});
        }
        let data = match self.scope {
            StateScope::Team => json!({"state": state}),
            StateScope::Chat => json!({"state": state, "scope": "chat"}),
        };
        let parts = vec![Part::text(result), Part::Data(data)];
        Ok(ToolResult::new(ToolStatus::Done, parts))
    }
}

/// The move in the arguments of a call, if there is one.
fn wanted(args: &Value) -> Result<Option<&str>, ToolError> {
    match args.get("move") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.trim()).filter(|text| !text.is_empty())),
        Some(other) => Err(format!("`move` must be a text such as `e2e4`; got {other}").into()),
    }
}

/// The moves before this call, in order: those with a result in the log.
fn moves<'a>(cx: &ToolCx<'a>, scope: StateScope) -> impl Iterator<Item = &'a str> {
    // Ids are unique for an agent of a chat.
    let mut asked: Vec<(&'a Path, &'a Name, &'a ToolCall)> = Vec::new();
    cx.known(scope).into_iter().filter_map(move |event| match &event.body {
        Body::ToolCalled { who, call } if call.tool == NAME => {
            asked.push((&event.chat, who, call));
            None
        }
        Body::ToolReturned { who, id, result: outcome } => {
            let is_it = |(at, by, call): &(&Path, &Name, &ToolCall)| {
                **at == event.chat && *by == who && call.id == *id
            };
            let at = asked.iter().rposition(is_it)?;
            let (.., call) = asked.remove(at);
            wanted(&call.args).ok().flatten().filter(|_| outcome.status == ToolStatus::Done)
        }
        _ => None,
    })
}

/// The first move among the parallel calls of this one: those of the same reply, or of the same messages.
fn first_move<'a>(cx: &ToolCx<'a>) -> Option<&'a ToolCall> {
    let is_move = |call: &&ToolCall| call.tool == NAME && matches!(wanted(&call.args), Ok(Some(_)));
    let of = |event: &'a Arc<Event>| match &event.body {
        Body::ModelReplied(sample) => Some(&sample.parts),
        _ => None,
    };
    match cx.turn.iter().rev().find_map(of) {
        Some(parts) => {
            let call = |part: &'a Part| if let Part::ToolCall(call) = part { Some(call) } else { None };
            parts.iter().filter_map(call).find(is_move)
        }
        None => cx.transcript.pending_calls().iter().map(|(_, call)| call).find(is_move),
    }
}
