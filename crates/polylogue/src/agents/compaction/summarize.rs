//! The summary of a part of the history, by a model.

use polylogue_core::{
    Capabilities, Capability, Entry, FinishReason, HistorySummary, Model as _, ModelAttempt, ModelCall,
    Params, Reply, Result, Turn,
};
use serde_json::Value;

use super::ask::{full, is_too_long};
use super::merge::{Amendment, amended, noted, schema};
use super::{Compaction, part, words};
use crate::agents::lenient;
use crate::json_schema;

/// Share of a window that one piece of the history takes in a summarizing call.
const PIECE: f64 = 0.6;

/// The most pieces of the history in one compaction. Longer ones are cut.
const PIECES: usize = 8;

/// The window of a summarizing model if it is unknown, in tokens.
const UNKNOWN_WINDOW: u64 = 32_000;

/// The fewest tokens that a reply may have, apart from the summary: for reasoning, and for JSON.
const REPLY: u64 = 1_024;

/// The sizes of a summary and of the requests for it, in tokens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// The most that the summary has.
    pub(super) most: u64,
    /// The most that the model may accept, after its provider refused a longer request: what is known of its window is wrong then.
    pub(super) accepted: Option<u64>,
}

impl Sizes {
    /// The most bytes of a piece of the history in a request for a summary, to a model with a window of `window` tokens. The task, of `task`
    /// bytes, is in each request.
    fn piece(self, window: u64, task: usize) -> usize {
        // Many servers count the reply, too.
        let input = |accepted: u64| accepted.saturating_sub(self.reply()).max(accepted / 2);
        // No larger than without a refusal: what is accepted can be more than what is known of the window.
        let most = self.accepted.map_or(window, |accepted| input(accepted).min(window));
        let bytes = part(most, PIECE).saturating_mul(3);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        if self.accepted.is_some() { bytes.saturating_sub(task) } else { bytes }
    }

    /// The tokens of a reply that has room for the summary.
    const fn reply(self) -> u64 {
        self.most.saturating_mul(2).saturating_add(REPLY)
    }
}

impl Compaction {
    /// The summary of `entries`, piece by piece.
    pub(super) async fn summarize(
        &self,
        turn: &mut Turn<'_>,
        call: ModelCall<'_>,
        entries: &[Entry],
        earlier: HistorySummary,
        sizes: Sizes,
    ) -> Result<HistorySummary> {
        let author = self.by.as_ref();
        let model = author.map_or(call.model, |author| &author.model);
        // It says nothing of another model.
        let accepted = sizes.accepted.filter(|_| model.name() == call.model.name());
        let sizes = Sizes { accepted, ..sizes };
        let params = self.summary_params(call, sizes);
        let own = author.and_then(|author| author.system.as_ref());
        let own = own.map(|system| format!("{}\n\n{}", system(turn.transcript().task()), words::SYSTEM));
        let system = Some(own.as_deref().unwrap_or(words::SYSTEM));
        let call = ModelCall { model, params: &params, system, tools: &[], ..call };
        let window = model.context_window().unwrap_or(UNKNOWN_WINDOW);
        let bytes = sizes.piece(window, turn.transcript().task().len());
        let mut summary = earlier;
        for piece in &pieces(entries, bytes) {
            summary = self.amend(turn, call, piece, summary, sizes.most).await?;
        }
        Ok(summary)
    }

    /// The parameters of a call that summarizes: those of the agent that writes the summary, with room for it in a reply.
    fn summary_params(&self, call: ModelCall<'_>, sizes: Sizes) -> Params {
        let (model, params) =
            self.by.as_ref().map_or((call.model, call.params), |author| (&author.model, &author.params));
        let room = u32::try_from(sizes.reply()).unwrap_or(u32::MAX);
        let free = Params { max_tokens: None, ..params.clone() };
        let limit = model.max_output(&free).and_then(|limit| u32::try_from(limit).ok()).unwrap_or(u32::MAX);
        let max_tokens = params.max_tokens.map(|own| own.max(room.min(limit)));
        Params { schema: None, json: false, stop: Vec::new(), tool_choice: None, max_tokens, ..free }
    }

    /// `earlier`, amended by what is in `piece`.
    async fn amend(
        &self,
        turn: &mut Turn<'_>,
        call: ModelCall<'_>,
        piece: &str,
        earlier: HistorySummary,
        most: u64,
    ) -> Result<HistorySummary> {
        let schema = schema();
        let task = turn.transcript().task();
        let prompt = words::prompt(task, &earlier, piece, self.prompt.as_deref(), &schema);
        let mut entries = vec![Entry::user(prompt)];
        let mut text = None;
        for _ in 0..2 {
            let reply = ask_in_form(turn, call, &entries, &schema).await?;
            let said = reply.text().into_owned();
            let is_blank = said.trim().is_empty();
            let flaw = match (&reply.finish, read(&said, &schema)) {
                (FinishReason::Refused { .. } | FinishReason::Filter, _) => "it was refused".to_owned(),
                (FinishReason::Length | FinishReason::ContextFull, _) => {
                    "it was cut off: write a shorter one".to_owned()
                }
                (_, Ok(amendment)) => return Ok(amended(earlier, amendment, most)),
                (_, Err(flaw)) => flaw,
            };
            let sent = if is_blank { "(nothing)" } else { said.as_str() };
            entries.extend([Entry::assistant(sent), Entry::user(words::again(&flaw, &schema))]);
            if !is_blank && !matches!(reply.finish, FinishReason::Refused { .. } | FinishReason::Filter) {
                text = Some(said);
            }
        }
        // The history is not lost because a model declines to summarize it.
        let text = text.unwrap_or_else(|| words::excerpt(piece, most));
        Ok(noted(earlier, &text, most))
    }
}

/// Asks for JSON in the best way that the model supports: by the schema, in JSON mode, or as text.
async fn ask_in_form(
    turn: &mut Turn<'_>,
    call: ModelCall<'_>,
    entries: &[Entry],
    schema: &Value,
) -> Result<Reply> {
    let lacks: Vec<Capability> =
        turn.transcript().missing_capabilities(turn.me(), call.model.name()).collect();
    let mut capabilities = lacks.into_iter().fold(call.model.capabilities(), Capabilities::without);
    loop {
        let by_schema = capabilities.schema != Some(false);
        let params = Params {
            schema: by_schema.then(|| schema.clone()),
            json: !by_schema && capabilities.json != Some(false),
            ..call.params.clone()
        };
        let own = ModelCall { params: &params, compaction: Some(entries), ..call };
        match turn.try_model(own).await {
            Ok(ModelAttempt::Reply(reply)) => return Ok(reply),
            Ok(ModelAttempt::Unsupported(capability)) => capabilities = capabilities.without(capability),
            Err(polylogue_core::Error::Model(error)) if is_too_long(&error) => return Err(full(turn, call)),
            Err(error) => return Err(error),
        }
    }
}

fn read(text: &str, schema: &Value) -> Result<Amendment, String> {
    let value = lenient::value(text).ok_or_else(|| "there is no JSON in it that can be read".to_owned())?;
    json_schema::check(&value, schema)?;
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// `entries` as text in pieces of about `most` bytes, at most [`PIECES`]: where they are longer, the middle of long messages
/// is cut.
fn pieces(entries: &[Entry], most: usize) -> Vec<String> {
    let most = most.max(1_000);
    let lines: Vec<String> = entries.iter().map(words::line).collect();
    let total: usize = lines.iter().map(String::len).sum();
    let space = most.saturating_mul(PIECES - 1);
    let longest = if total > space { (space / lines.len().max(1)).max(64) } else { most };
    let mut pieces = vec![String::new()];
    for line in lines {
        let line = words::shortened(line, longest.min(most));
        let is_full = pieces.last().is_some_and(|last| !last.is_empty() && last.len() + line.len() > most);
        if is_full && pieces.len() < PIECES {
            pieces.push(String::new());
        }
        if let Some(last) = pieces.last_mut() {
            last.push_str(&line);
        }
    }
    pieces.into_iter().map(|piece| words::shortened(piece, most)).collect()
}
