//! `polylogue verify`: whether what is kept of conversations is what was written.

use std::path::Path;

use polylogue_core::{AnyStore, ListQuery, LogId, RecoveredEvents, Store, StoreError};
use polylogue_models::{CassetteError, Recording};
use serde_json::{Value, json};

use super::{unwritable, write, write_rows};
use crate::error::{CliError, Exit};
use crate::limit::counted;
use crate::place::{self, PlaceOption};
use crate::screen::Sanitized;
use crate::stderr::print_note;
use crate::{args, hints};

pub(crate) async fn run(cli: &args::Cli, args: &args::verify::Verify) -> Result<Exit, CliError> {
    if let Some(file) = &args.recording {
        return of_recording(file, args.json);
    }
    let runtime = place::existing(&cli.named_store())?;
    let store = runtime.store();
    let mut verdicts = Vec::new();
    if let Some(text) = &args.id {
        verdicts.push(of_log(store, runtime.find(text).await?, args.repair).await?);
    } else {
        for listing in store.list(&ListQuery::default()).await?.logs {
            verdicts.push(of_log(store, listing.id, false).await?);
        }
        verdicts.extend(store.damage().await?.map(|damage| Verdict::new(None, 0, Some(damage))));
    }
    shown(&verdicts, args.json, &PlaceOption::of_store(&cli.named_store()))
}

/// Prints the verdicts, and what to do about the first that is not good.
pub(crate) fn shown(verdicts: &[Verdict], json: bool, place: &PlaceOption) -> Result<Exit, CliError> {
    let text: Sanitized = match json {
        true => verdicts
            .iter()
            .map(|verdict| Sanitized::json(&verdict.as_json()))
            .collect::<Result<_, _>>()
            .map_err(unwritable)?,
        false => verdicts.iter().map(|verdict| Sanitized::row(&verdict.line())).collect(),
    };
    write_rows(&text, json)?;
    match verdicts.iter().find_map(|verdict| verdict.damage.as_ref()) {
        None => Ok(Exit::Done),
        Some(damage) => {
            let hint = damage.hint.as_ref().filter(|_| !json).map(|hint| hints::at(hint, place));
            hint.iter().for_each(|hint| print_note(&format!("hint: {hint}")));
            Ok(Exit::Failed)
        }
    }
}

/// Verifies a recording of model calls.
fn of_recording(file: &Path, json: bool) -> Result<Exit, CliError> {
    let name = file.display().to_string();
    let (calls, cut_off, damage) = match Recording::open(file) {
        Ok(recording) => (recording.calls(), recording.is_cut_off(), None),
        // The first line says what the file is.
        Err(damage @ CassetteError::Damaged { line, .. }) => (line.saturating_sub(2), false, Some(damage)),
        Err(error) => return Err(error.into()),
    };
    let state = if damage.is_some() { "damaged" } else { "intact" };
    write(&match (json, &damage) {
        (true, damage) => Sanitized::json(&json!({
            "recording": name, "state": state, "calls": calls, "cut_off": cut_off,
            "why": damage.as_ref().map(ToString::to_string),
        }))
        .map_err(|error| CliError::failed(format!("the verdict cannot be written: {error}")))?,
        (false, None) => {
            let end = if cut_off { "; the last line was cut off, and is left out" } else { "" };
            Sanitized::row(&format!("{name} intact {}{end}", counted(calls as u64, "call")))
        }
        (false, Some(damage)) => {
            Sanitized::row(&format!("{name} damaged {calls} calls are intact; {damage}"))
        }
    })?;
    match damage {
        None => Ok(Exit::Done),
        Some(damage) => {
            damage.hint().filter(|_| !json).iter().for_each(|hint| print_note(&format!("hint: {hint}")));
            Ok(Exit::Failed)
        }
    }
}

async fn of_log(store: &AnyStore, id: LogId, repair: bool) -> Result<Verdict, CliError> {
    if repair {
        store.repair(&id).await?;
    }
    let (events, damage) = match store.read_intact(&id).await {
        Ok(RecoveredEvents { events, damage }) => (events.len() as u64, damage),
        Err(damage @ (StoreError::Damaged { .. } | StoreError::Older { .. } | StoreError::Newer { .. })) => {
            (0, Some(damage))
        }
        Err(error) => return Err(error.into()),
    };
    let is_header = matches!(damage, Some(StoreError::Damaged { .. })) && store.meta(&id).await.is_err();
    Ok(Verdict { is_header, ..Verdict::new(Some(id), events, damage) })
}

/// What an error says of a conversation: `damaged`, or that another version wrote it.
pub(super) const fn state(error: &StoreError) -> &'static str {
    match error {
        StoreError::Older { .. } => "old_format",
        StoreError::Newer { .. } | StoreError::UnknownEvent { .. } => "newer_format",
        _ => DAMAGED,
    }
}

/// What is found of a conversation, or of the file that all share.
pub(crate) struct Verdict {
    pub(crate) id: Option<LogId>,
    /// How many events can be read, those behind the damage included.
    pub(crate) events: u64,
    /// How many of them are the intact beginning, and what is wrong with the next one.
    pub(crate) intact: u64,
    pub(crate) damage: Option<Damage>,
    /// Whether the header is damaged.
    pub(crate) is_header: bool,
}

/// Why something is not intact.
pub(crate) struct Damage {
    /// The word for it.
    pub(crate) state: &'static str,
    /// What is wrong.
    pub(crate) why: String,
    /// The same, as an error says it.
    pub(crate) text: String,
    pub(crate) hint: Option<String>,
}

/// The word for damage, as opposed to another version.
pub(crate) const DAMAGED: &str = "damaged";

impl From<StoreError> for Damage {
    fn from(error: StoreError) -> Self {
        let text = error.to_string();
        let why = match &error {
            StoreError::Damaged { why, .. } => why.clone(),
            _ => text.clone(),
        };
        Self { state: state(&error), why, text, hint: error.hint() }
    }
}

impl Verdict {
    fn new(id: Option<LogId>, events: u64, damage: Option<StoreError>) -> Self {
        let intact = damage.as_ref().map_or(events, StoreError::intact);
        Self { id, events, intact, damage: damage.map(Into::into), is_header: false }
    }

    fn line(&self) -> String {
        let name = self.id.as_ref().map_or("the file", LogId::as_str);
        match &self.damage {
            None => format!("{name:<8} intact   {:>6} events", self.events),
            Some(Damage { state: DAMAGED, why, .. }) if self.is_header && self.intact == self.events => {
                format!(
                    "{name:<8} damaged  all {} events are intact, but the header is not: {why}",
                    self.events
                )
            }
            Some(Damage { state: DAMAGED, why, .. }) if self.id.is_some() => format!(
                "{name:<8} damaged  {:>6} events are intact; the first bad one is event {}: {why}",
                self.intact, self.intact
            ),
            Some(Damage { state, text, .. }) => format!("{name:<8} {}  {text}", state.replace('_', " ")),
        }
    }

    fn as_json(&self) -> Value {
        let Some(damage) = &self.damage else {
            return json!({ "id": self.id, "state": "intact", "events": self.events, "intact": self.intact });
        };
        json!({
            "id": self.id, "state": damage.state, "events": self.events, "intact": self.intact,
            "first_bad": self.id.as_ref().filter(|_| !self.is_header || self.intact < self.events).map(|_| self.intact), "why": damage.text,
        })
    }
}
