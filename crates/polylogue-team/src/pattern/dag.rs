//! Dependency graphs: for each participant, the participants that must finish before it.

use std::collections::{BTreeMap, BTreeSet};

use polylogue::Result;
use polylogue_config::At;
use polylogue_core::Name;

use super::group::repeated;
use super::part::{Agents, Built, ChatFrame, Part};
use crate::diagnostic::Report;
use crate::flow::{ChatFlow, FlowStep, Point};
use crate::outline::Outline;

/// The dependencies of each participant.
pub(super) type Dag = BTreeMap<At<Name>, Vec<At<Name>>>;

impl Part for Dag {
    fn check(&self, chat: &ChatFrame<'_>, _: &Outline<'_>, report: &mut Report<'_>) {
        let all = self.iter().flat_map(|(name, before)| std::iter::once(name).chain(before));
        for late in all.filter(|name| chat.late_joiners.contains(name)) {
            let message =
                format!("`{late}` joins late: it has no dependencies, and no participant can wait for it");
            let hint = "let it take part from the beginning, or remove it from `dag`";
            report.error_with_hint(&late.span, message, hint);
        }
        for twice in self.values().flat_map(|names| repeated(names)) {
            report.error(&twice.span, format!("`{twice}` is listed twice"));
        }
        let mut in_order: Vec<&At<Name>> = self.keys().collect();
        in_order.sort_by_key(|name| name.span.start);
        for name in in_order {
            if let Some(cycle) = cycle_from(name, self) {
                let message = format!("`{name}` depends on itself: {}", cycle.join(" after "));
                report.error_with_hint(&name.span, message, "remove one of these dependencies");
                return;
            }
        }
    }

    fn describe(&self, _: &ChatFrame<'_>) -> String {
        "each when its dependencies are finished".to_owned()
    }

    fn flow<'c>(&'c self, chat: &ChatFrame<'c>, _: &Outline<'c>) -> ChatFlow<'c> {
        let followed: BTreeSet<&Name> = self.values().flatten().map(|name| &name.value).collect();
        let mut steps = Vec::new();
        for name in chat.everyone() {
            let speaker = Point::Speaker(name);
            let before = self.get(name).map(Vec::as_slice).unwrap_or_default();
            steps.extend(
                before.iter().map(|first| FlowStep::new(Point::Speaker(first), speaker).at(&first.span)),
            );
            steps.extend(before.is_empty().then(|| FlowStep::new(Point::Start, speaker)));
            steps.extend((!followed.contains(&name.value)).then(|| FlowStep::new(speaker, Point::End)));
        }
        ChatFlow::of(steps)
    }

    fn has_one_turn_each(&self) -> bool {
        true
    }

    fn has_background_turns(&self) -> bool {
        true
    }

    fn build(&self, chat: &ChatFrame<'_>, _: &dyn Agents) -> Result<Built> {
        let before = |name: &Name| self.get(name).into_iter().flatten().map(ToString::to_string).collect();
        let all = chat.participants.iter().map(|name| (name.to_string(), before(name)));
        Built::policy(polylogue::policies::Dag::new(all)?)
    }
}

/// The path from `start` back to itself, if there is one.
fn cycle_from<'t>(start: &'t Name, before: &'t Dag) -> Option<Vec<&'t str>> {
    let mut came_from: BTreeMap<&Name, &Name> = BTreeMap::new();
    let mut open = vec![start];
    while let Some(at) = open.pop() {
        for next in before.get(at).into_iter().flatten().map(|next| &next.value) {
            if next == start {
                let back = std::iter::successors(Some(at), |at| came_from.get(at).copied());
                let mut way: Vec<&str> = std::iter::once(start).chain(back).map(Name::as_str).collect();
                way.reverse();
                return Some(way);
            }
            if !came_from.contains_key(next) {
                came_from.insert(next, at);
                open.push(next);
            }
        }
    }
    None
}
