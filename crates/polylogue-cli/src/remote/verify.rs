//! `verify` of the conversations of a server.

use polylogue_client::wire::conversation::{Integrity, Verdict as Found};
use polylogue_core::LogId;

use super::list::listed;
use super::named_server::Remote;
use crate::args;
use crate::commands::verify::{DAMAGED, Damage, Verdict, shown};
use crate::error::{CliError, Exit};

pub(super) async fn run(args: &args::verify::Verify, remote: &Remote) -> Result<Exit, CliError> {
    let ids: Vec<LogId> = match &args.id {
        Some(text) => vec![remote.client.find(text).await?.id],
        None => {
            let all = listed(remote, polylogue_client::ListFilter::default(), None).await?;
            all.conversations.into_iter().map(|conversation| conversation.id).collect()
        }
    };
    let mut verdicts = Vec::new();
    for id in ids {
        verdicts.push(verdict(remote.client.verify(&id).await?));
    }
    shown(&verdicts, args.json, &remote.place)
}

fn verdict(found: Found) -> Verdict {
    let Found { id, state, events, intact, why } = found;
    let state = match state {
        Integrity::Intact => None,
        Integrity::Damaged => Some(DAMAGED),
        Integrity::OldFormat => Some("old_format"),
        Integrity::NewerFormat => Some("newer_format"),
    };
    let damage = state.map(|state| {
        let why = why.unwrap_or_default();
        let hint = (state == DAMAGED).then(|| {
            format!("`polylogue verify {id} --repair`, where the store of the server is, keeps the intact beginning")
        });
        Damage { state, text: why.clone(), why, hint }
    });
    Verdict { id: Some(id), events, intact, damage, is_header: false }
}
