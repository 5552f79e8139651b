//! `memory` of the agents of a server.

use polylogue::tools::memory::{Fact, Scope, Source};
use polylogue_client::wire::memory as wire;

use super::named_server::Remote;
use crate::args::memory::{Command, Forget, Memory};
use crate::commands::memory::{missing, show};
use crate::commands::write;
use crate::error::{CliError, Exit};
use crate::screen::Sanitized;

pub(super) async fn run(args: &Memory, remote: &Remote) -> Result<Exit, CliError> {
    let name = |scope: &Option<Scope>| scope.as_ref().map(|scope| scope.as_str().to_owned());
    let (found, json) = match &args.command {
        Command::Forget(args) => return forget(args, remote).await,
        Command::List(args) => {
            let scope = name(&args.whose.scope);
            (remote.client.facts(scope.as_deref(), Some(args.limit.into())).await?, args.json)
        }
        Command::Search(args) => {
            let (scope, limit) = (name(&args.whose.scope), Some(args.limit.into()));
            (remote.client.search_facts(&args.query, scope.as_deref(), limit).await?, args.json)
        }
    };
    let facts: Vec<Fact> = found.facts.into_iter().map(fact).collect::<Result<_, _>>()?;
    show(&facts, json)?;
    Ok(Exit::Done)
}

async fn forget(args: &Forget, remote: &Remote) -> Result<Exit, CliError> {
    for id in &args.ids {
        remote.client.forget(*id).await.map_err(|error| match error.problem() {
            Some(problem) if problem.status == 404 => missing(*id),
            _ => error.into(),
        })?;
        write(&Sanitized::row(&format!("forgot #{id}")))?;
    }
    Ok(Exit::Done)
}

fn fact(of: wire::Fact) -> Result<Fact, CliError> {
    let wire::Fact { id, scope, text, by, time_ms: time, conversation, call } = of;
    let scope = Scope::new(&scope)
        .map_err(|error| CliError::failed(format!("the server names a scope that there is not: {error}")))?;
    Ok(Fact { id, scope, text, by, time, source: Source { conversation, call } })
}
