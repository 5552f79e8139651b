//! Participants that wait for each other: each of them can speak only after another one of them, so none ever does.

use std::collections::BTreeSet;

use polylogue_config::At;
use polylogue_core::Name;

use crate::chat::{Chat, JoinCondition, LateJoiner};
use crate::codes;
use crate::condition::Condition;
use crate::diagnostic::Report;
use crate::stop::Stop;

/// What is waited for, in words.
pub(super) struct WaitTexts {
    /// Such as `speaks`.
    pub(super) does: &'static str,
    pub(super) hint: &'static str,
}

const JOINING: WaitTexts = WaitTexts {
    does: "joins",
    hint: "let one of them take part from the beginning, or join after what another participant says",
};

/// Warns of `who`, which waits for what `waits_for` names, which waits for what that names, and so on. Each circle is reported once:
/// its members are added to `told`.
pub(super) fn warn<'c>(
    who: &'c At<Name>,
    waits_for: impl Fn(&Name) -> Option<&'c Name>,
    texts: &WaitTexts,
    told: &mut BTreeSet<&'c Name>,
    report: &mut Report<'_>,
) {
    let mut circle = vec![&who.value];
    while let Some(next) = circle.last().and_then(|last| waits_for(last)) {
        if circle.contains(&next) {
            break;
        }
        circle.push(next);
    }
    if !told.insert(&who.value) || report.full() {
        return;
    }
    let does = texts.does;
    let is_closed = circle.last().and_then(|last| waits_for(last)) == Some(&who.value);
    let message = match circle.as_slice() {
        [_] if is_closed => format!("`{who}` {does} only after it has spoken itself: it never {does}"),
        [_, first, ..] if !is_closed => {
            format!("`{who}` {does} only after `{first}` has spoken, which never happens")
        }
        all => {
            told.extend(all.iter().copied());
            let after = |(at, name): (usize, &&Name)| {
                let next = all.get(at + 1).copied().unwrap_or(&who.value);
                if at == 0 {
                    format!("`{name}` {does} only after `{next}` has spoken")
                } else {
                    format!("`{name}` only after `{next}`")
                }
            };
            let each: Vec<String> = all.iter().enumerate().map(after).collect();
            let none = if all.len() == 2 { "neither" } else { "none of them" };
            format!("{}: {none} ever {does}", each.join(", and "))
        }
    };
    report.warning(codes::CIRCULAR_WAIT, &who.span, message, texts.hint);
}

/// Warns of late joiners of `chat` that join only after each other.
pub(super) fn check_late_joiners(chat: &Chat, report: &mut Report<'_>) {
    let late: Vec<(&LateJoiner, Joins)> =
        chat.late_joiners.iter().filter_map(|join| Some((join, Joins::of(&join.when)?))).collect();
    let turns = *chat.max_turns;
    let mut speakers: Vec<&str> = chat.participants.iter().map(|who| who.as_str()).collect();
    speakers.extend(chat.opening.0.iter().map(|line| line.from.as_str()));
    let mut waiting: Vec<&(&LateJoiner, Joins)> = late.iter().collect();
    loop {
        let (can, cannot): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|(_, joins)| joins.can_hold(turns, &speakers));
        waiting = cannot;
        if can.is_empty() {
            break;
        }
        speakers.extend(can.into_iter().map(|(join, _)| join.who.as_str()));
    }
    let everyone: Vec<&str> = chat.everyone().map(|who| who.as_str()).collect();
    // A condition that cannot hold at all is reported as such.
    waiting.retain(|(join, joins)| join.who.ok && joins.can_hold(turns, &everyone));
    let waits_for = |who: &Name| {
        let (_, joins) = waiting.iter().find(|(join, _)| join.who == *who)?;
        let helps = |(other, _): &&&(&LateJoiner, Joins)| {
            let with: Vec<&str> = speakers.iter().copied().chain([other.who.as_str()]).collect();
            joins.can_hold(turns, &with)
        };
        waiting.iter().find(helps).map(|(join, _)| &join.who.value)
    };
    let mut told = BTreeSet::new();
    for (join, _) in &waiting {
        if waits_for(&join.who).is_some() {
            warn(&join.who, waits_for, &JOINING, &mut told, report);
        }
    }
}

/// When a participant joins, as far as the file says.
enum Joins {
    /// Whatever others say.
    Always,
    /// A condition in CEL.
    When(Condition),
    /// Messages of these.
    By(Vec<Name>),
    AllOf(Vec<Self>),
    AnyOf(Vec<Self>),
}

impl Joins {
    /// `None` if the condition cannot be read, which is reported.
    fn of(when: &JoinCondition) -> Option<Self> {
        match when {
            JoinCondition::Holds(text) => Condition::new(text).ok().map(Self::When),
            JoinCondition::Stop(stop) => Self::of_stop(stop),
        }
    }

    fn of_stop(stop: &Stop) -> Option<Self> {
        let by = |by: &Vec<Name>| if by.is_empty() { Self::Always } else { Self::By(by.clone()) };
        let mut any: Vec<Self> = stop.says.iter().map(|says| by(&says.by)).collect();
        any.extend(stop.matches.iter().map(|matches| by(&matches.by)));
        if let Some(text) = &stop.when {
            any.push(Self::When(Condition::new(text).ok()?));
        }
        let is_counted = stop.max_turns.is_some() || stop.max_messages.is_some() || stop.max_tokens.is_some();
        if is_counted || stop.max_cost.is_some() || stop.max_time.is_some() {
            any.push(Self::Always);
        }
        if !stop.all.is_empty() {
            any.push(Self::AllOf(stop.all.iter().map(Self::of_stop).collect::<Option<_>>()?));
        }
        any.extend(stop.any.iter().map(Self::of_stop).collect::<Option<Vec<_>>>()?);
        Some(Self::AnyOf(any))
    }

    /// Whether it can hold after at most `turns` turns of `speakers`.
    fn can_hold(&self, turns: u64, speakers: &[&str]) -> bool {
        match self {
            Self::Always => true,
            Self::When(condition) => condition.can_hold(turns, speakers),
            Self::By(names) => names.iter().any(|name| speakers.contains(&name.as_str())),
            Self::AllOf(all) => all.iter().all(|joins| joins.can_hold(turns, speakers)),
            Self::AnyOf(any) => any.iter().any(|joins| joins.can_hold(turns, speakers)),
        }
    }
}
