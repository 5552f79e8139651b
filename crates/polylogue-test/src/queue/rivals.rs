//! W3: many workers, of which one claims each log.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use polylogue_core::{Features, LeaseNumber, LogId, Queue as _, Store as _};

use super::support::{Fixture, ready};
use crate::store::support::{Report, Verdict, done, same, some};

pub(super) async fn check(make: impl Fn() -> Fixture, report: &mut Report) {
    report.check("of many rivals one claims a log", rivals(make())).await;
}

async fn rivals(Fixture { queue, .. }: Fixture) -> Verdict {
    const LOGS: usize = 96;
    for log in 0..LOGS {
        ready(&queue, &format!("log-{log}")).await?;
    }
    let rival = || async {
        let mut taken = Vec::new();
        loop {
            let claims =
                done("claim_due", queue.claim_due(5, &Features::none(), &[], LeaseNumber::ALL).await)?;
            // More than there are is an error already.
            if claims.is_empty() || taken.len() > LOGS {
                return Ok::<_, String>(taken);
            }
            taken.extend(claims);
        }
    };
    let mut taken = Vec::new();
    for claims in join_all((0..16).map(|_| rival())).await {
        taken.extend(claims?);
    }
    let ids: BTreeSet<LogId> = taken.iter().map(|claim| claim.id.clone()).collect();
    same("how many were claimed", &(taken.len(), ids.len()), &(LOGS, LOGS))?;
    for claim in &taken {
        done("append", queue.append(claim, &some(1, 2)).await)?;
    }
    Ok(())
}
