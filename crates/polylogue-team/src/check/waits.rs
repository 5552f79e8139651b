//! Participants that wait for each other: each of them can speak or join only after another one of them, so none ever does.

use std::collections::BTreeSet;

use polylogue_config::At;
use polylogue_core::Name;

use super::conditions::{SYSTEM, USER};
use crate::chat::{Chat, JoinCondition, LateJoiner};
use crate::codes;
use crate::condition::{Cast, Condition};
use crate::diagnostic::Report;
use crate::stop::Stop;

/// What a participant waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wait<'c> {
    /// What it does then, such as `speaks`.
    pub(super) does: &'static str,
    /// The participant that it waits for.
    pub(super) after: &'c Name,
    /// What that one must have done, such as `has spoken`.
    pub(super) has: &'static str,
}

impl<'c> Wait<'c> {
    /// Of one that speaks only after another one.
    pub(super) const fn to_speak(after: &'c Name) -> Self {
        Self { does: "speaks", after, has: "has spoken" }
    }
}

/// Warns of `who`, which waits as `waits` says for another one, which waits, too, and so on. Each circle is reported once: its members are
/// added to `told`.
pub(super) fn warn<'c>(
    who: &'c At<Name>,
    waits: impl Fn(&Name) -> Option<Wait<'c>>,
    hint: &str,
    told: &mut BTreeSet<&'c Name>,
    report: &mut Report<'_>,
) {
    let mut chain: Vec<(&'c Name, Wait<'c>)> = Vec::new();
    let mut next = &who.value;
    while !chain.iter().any(|(name, _)| *name == next)
        && let Some(wait) = waits(next)
    {
        chain.push((next, wait));
        next = wait.after;
    }
    let Some((_, Wait { does, after, has })) = chain.first().copied() else { return };
    if !told.insert(&who.value) || report.full_of_warnings() {
        return;
    }
    let message = if *next != who.value {
        format!("`{who}` {does} only after `{after}` {has}, which never happens")
    } else if *after == who.value {
        format!("`{who}` {does} only after it {has} itself: it never {does}")
    } else {
        told.extend(chain.iter().map(|(name, _)| *name));
        circle(&chain)
    };
    report.warning(codes::CIRCULAR_WAIT, &who.span, message, hint);
}

/// Several that wait for each other, in words.
fn circle(chain: &[(&Name, Wait<'_>)]) -> String {
    let first = chain.first().map(|(_, wait)| (wait.does, wait.has));
    let is_alike = chain.iter().all(|(_, wait)| Some((wait.does, wait.has)) == first);
    let each = chain.iter().enumerate().map(|(at, (name, wait))| match (at, is_alike) {
        (1.., true) => format!("`{name}` only after `{}`", wait.after),
        _ => format!("`{name}` {} only after `{}` {}", wait.does, wait.after, wait.has),
    });
    let each: Vec<String> = each.collect();
    let none = if chain.len() == 2 { "neither" } else { "none of them" };
    let does = first.filter(|_| is_alike).map_or("does", |(does, _)| does);
    format!("{}: {none} ever {does}", each.join(", "))
}

/// Warns of late joiners of `chat` that join only after each other, or after participants that speak only after them. `steps_to` are those
/// after whom a participant can speak, and `speak_without` returns who can speak while others are absent.
pub(super) fn check_late_joiners<'c>(
    chat: &'c Chat,
    speak_without: impl Fn(&[&Name]) -> Vec<&'c Name>,
    steps_to: impl Fn(&Name) -> Vec<&'c Name>,
    report: &mut Report<'_>,
) {
    let late: Vec<(&'c LateJoiner, Joins)> =
        chat.late_joiners.iter().filter_map(|join| Some((join, Joins::of(&join.when)?))).collect();
    let turns = *chat.max_turns;
    let mut absent: Vec<&(&'c LateJoiner, Joins)> = late.iter().collect();
    let names = |absent: &[&(&'c LateJoiner, Joins)]| -> Vec<&'c Name> {
        absent.iter().map(|(join, _)| &join.who.value).collect()
    };
    let (speakers, present) = loop {
        let away = names(&absent);
        let present = chat.everyone().filter(|who| !away.contains(&&who.value)).map(|who| who.as_str());
        let (speakers, present) = (with_others(chat, speak_without(&away)), present.collect::<Vec<_>>());
        let before = absent.len();
        absent.retain(|(_, joins)| !joins.can_hold(turns, Cast { speakers: &speakers, present: &present }));
        if absent.len() == before {
            break (speakers, present);
        }
    };
    let everyone = with_others(chat, chat.everyone().map(|who| &who.value));
    // A condition that cannot hold at all is reported as such.
    let all = Cast { speakers: &everyone, present: &everyone };
    absent.retain(|(join, joins)| join.who.ok && joins.can_hold(turns, all));
    let away = names(&absent);
    let is_silent = |name: &&Name| !away.contains(name) && !speakers.contains(&name.as_str());
    let silent: Vec<&'c Name> = chat.everyone().map(|who| &who.value).filter(is_silent).collect();
    let waits = |who: &Name| {
        let Some((_, joins)) = absent.iter().find(|(join, _)| join.who == *who) else {
            let mut before = steps_to(who).into_iter();
            return before.find(|name| away.contains(name) || silent.contains(name)).map(Wait::to_speak);
        };
        let with = |names: &[&'c str], name: &'c Name| -> Vec<&'c str> {
            names.iter().copied().chain([name.as_str()]).collect()
        };
        let speaks = |&name: &&'c Name| {
            joins.can_hold(turns, Cast { speakers: &with(&speakers, name), present: &present })
        };
        let joined = |&name: &&'c Name| {
            joins.can_hold(turns, Cast { speakers: &speakers, present: &with(&present, name) })
        };
        let joins_after = |after, has| Wait { does: "joins", after, has };
        let spoken =
            away.iter().chain(&silent).copied().find(speaks).map(|name| joins_after(name, "has spoken"));
        spoken.or_else(|| away.iter().copied().find(joined).map(|name| joins_after(name, "has joined")))
    };
    let hint = "let one of them take part from the beginning, or join after what another participant says";
    let mut told = BTreeSet::new();
    for (join, _) in &absent {
        if waits(&join.who).is_some() {
            warn(&join.who, waits, hint, &mut told, report);
        }
    }
}

/// `speakers`, and all others from whom messages of `chat` can be. The empty text stands for no one.
fn with_others<'c>(chat: &'c Chat, speakers: impl IntoIterator<Item = &'c Name>) -> Vec<&'c str> {
    let opening = chat.opening.0.iter().map(|line| &line.from);
    speakers.into_iter().chain(opening).map(Name::as_str).chain([USER, SYSTEM, ""]).collect()
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

    /// Whether it can hold after at most `turns` turns of `cast`.
    fn can_hold(&self, turns: u64, cast: Cast<'_>) -> bool {
        match self {
            Self::Always => true,
            Self::When(condition) => condition.can_hold(turns, cast),
            Self::By(names) => names.iter().any(|name| cast.speakers.contains(&name.as_str())),
            Self::AllOf(all) => all.iter().all(|joins| joins.can_hold(turns, cast)),
            Self::AnyOf(any) => any.iter().any(|joins| joins.can_hold(turns, cast)),
        }
    }
}
