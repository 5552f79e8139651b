//! `polylogue memory`: what agents remember.

use polylogue::tools::memory::{Fact, Memory as _, MemoryError, Query};
use polylogue_core::Timestamp;
use polylogue_runtime::memory::open_memory;
use polylogue_store::Facts;

use super::runs::age;
use super::{write, write_rows};
use crate::args::memory::{Command, Forget, List, Memory, Search};
use crate::error::{CliError, Exit};
use crate::screen::Sanitized;
use crate::stderr::print_note;
use crate::{args, place};

pub(crate) async fn run(cli: &args::Cli, args: &Memory) -> Result<Exit, CliError> {
    // A place without a store holds no facts, and no store is created.
    if place::is_empty(&cli.named_store())? {
        match &args.command {
            Command::List(List { json, .. }) | Command::Search(Search { json, .. }) => {
                show(&[], *json)?;
                return Ok(Exit::Done);
            }
            Command::Forget(_) => {}
        }
    }
    let facts = open_memory(&place::of(&cli.named_store())?)?;
    match &args.command {
        Command::List(args) => list(&facts, args).await,
        Command::Search(args) => search(&facts, args).await,
        Command::Forget(args) => forget(&facts, args).await,
    }
}

async fn list(facts: &Facts, args: &List) -> Result<Exit, CliError> {
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    show(&facts.list(args.whose.scope.as_ref(), limit).await?, args.json)?;
    Ok(Exit::Done)
}

async fn search(facts: &Facts, args: &Search) -> Result<Exit, CliError> {
    let scopes = match &args.whose.scope {
        Some(scope) => vec![scope.clone()],
        None => facts.scopes().await?,
    };
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let mut found = Vec::new();
    for scope in scopes {
        let query = Query { scope, text: args.query.clone(), limit };
        found.extend(facts.recall(&query).await?.facts);
    }
    show(&found, args.json)?;
    Ok(Exit::Done)
}

/// Forgets all that are named, or none if one of them is not there.
async fn forget(facts: &Facts, args: &Forget) -> Result<Exit, CliError> {
    let mut named = Vec::new();
    for id in &args.ids {
        named.push(facts.fact(*id).await?.ok_or_else(|| missing(*id))?);
    }
    for Fact { id, scope, .. } in named {
        facts.forget(&scope, id).await?;
        write(&Sanitized::row(&format!("forgot #{id}")))?;
    }
    Ok(Exit::Done)
}

/// The error for a fact that there is not.
pub(crate) fn missing(id: u64) -> CliError {
    CliError::usage(format!("there is no fact #{id}")).hint("`polylogue memory list` lists them")
}

pub(crate) fn show(facts: &[Fact], as_json: bool) -> Result<(), CliError> {
    let now = Timestamp::now().0;
    if facts.is_empty() && !as_json {
        print_note("no facts found");
        return Ok(());
    }
    let unwritable = |error| CliError::failed(format!("the facts cannot be written: {error}"));
    let text: Sanitized = match as_json {
        true => facts.iter().map(Sanitized::json).collect::<Result<_, _>>().map_err(unwritable)?,
        false => facts.iter().map(|fact| line(fact, now)).collect(),
    };
    write_rows(&text, as_json)
}

fn line(fact: &Fact, now_ms: u64) -> Sanitized {
    let Fact { id, scope, text, by, time, source } = fact;
    let age = age(now_ms.saturating_sub(time.0) / 1000);
    let text = text.lines().collect::<Vec<_>>().join(" ");
    let number = format!("#{id}");
    let (scope, by, conversation) = (scope.as_str(), by.as_str(), source.conversation.as_str());
    let line = format!("{number:<5} {age:>5} ago  {scope:<16} {by:<12} {conversation:<8} {text}");
    Sanitized::row(&line)
}

impl From<MemoryError> for CliError {
    fn from(error: MemoryError) -> Self {
        match error {
            MemoryError::Store(error) => error.into(),
            error => Self::failed(error.to_string()),
        }
    }
}
