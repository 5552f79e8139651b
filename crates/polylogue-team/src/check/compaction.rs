//! Compactions: settings without effect, and agents that cannot summarize.

use polylogue_config::{At, Switch};

use crate::agent::ModelKeys;
use crate::chat::check_author;
use crate::compaction::CompactionKeys;
use crate::diagnostic::Report;
use crate::outline::Outline;
use crate::team::Team;

pub(super) fn check(team: &Team, outline: &Outline<'_>, report: &mut Report<'_>) {
    for keys in outline.agents().filter_map(|agent| agent.model()) {
        check_agent(keys, outline, report);
    }
    team.compaction.iter().for_each(|compaction| check_author_of(compaction, outline, report));
}

/// Reports a compaction that never happens, and an author that cannot write.
fn check_agent(keys: &ModelKeys, outline: &Outline<'_>, report: &mut Report<'_>) {
    let Some(compaction) = &keys.compaction else { return };
    check_author_of(compaction, outline, report);
    if compaction.on().is_some() && keys.view.window.is_some() {
        let hint = "the window keeps the view short: remove `compaction`, or `window` of `view`";
        report.error_with_hint(compaction.key(), "`view` has a `window`, so nothing is compacted", hint);
    }
}

/// Reports an author that is no plain agent with a model.
fn check_author_of(compaction: &At<Switch<CompactionKeys>>, outline: &Outline<'_>, report: &mut Report<'_>) {
    if let Some(by) = compaction.on().and_then(|keys| keys.by.as_ref()) {
        check_author(by, outline, report);
    }
}
