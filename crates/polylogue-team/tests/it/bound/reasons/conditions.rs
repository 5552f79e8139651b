//! Termination conditions on messages, and conditions in CEL as far as the teams of the sweep have them.

use polylogue_core::{Body, Name, Part, StopReason};
use polylogue_team::{Matches, Says, Stop, TerminateOn, TerminatingMessage};
use regex::Regex;
use serde_json::{Map, Value};

use super::talk::{Line, Past, Via};
use super::{Case, Check, ensure};

/// What a message has to be.
pub(super) enum Wanted<'t> {
    Text(&'t str, bool),
    Pattern(Regex),
}

impl<'t> Wanted<'t> {
    fn of_says(says: &'t Says) -> Self {
        Self::Text(&says.text, says.whole)
    }

    fn of_pattern(pattern: &str) -> Self {
        Self::Pattern(Regex::new(pattern).unwrap())
    }

    pub(super) fn is_in(&self, text: &str) -> bool {
        match self {
            Self::Text(wanted, true) => text.trim() == wanted.trim(),
            Self::Text(wanted, false) => text.contains(wanted),
            Self::Pattern(regex) => regex.is_match(text),
        }
    }
}

/// Whether messages of `author` count, where only those of `by` do.
fn counts(by: &[Name], author: &Name) -> bool {
    by.is_empty() || by.contains(author)
}

impl Case<'_> {
    /// The last step has a message with the text, of an author whose messages count.
    pub(super) fn mentioned(&self, text: &str, by: &Name) -> Check {
        if self.is_marker(text) {
            return self.said_marker(text, by);
        }
        let says = |stop: &Stop| {
            let says = stop.says.as_ref().filter(|says| says.text.as_str() == text && counts(&says.by, by));
            says.is_some_and(|says| self.last_step_has(&Wanted::of_says(says), by))
        };
        ensure(self.has_stop(&says), "no message of the last step has it")
    }

    pub(super) fn matched(&self, pattern: &str, by: &Name) -> Check {
        let matches = |stop: &Stop| {
            let found = stop
                .matches
                .as_ref()
                .filter(|found| found.pattern.as_str() == pattern && counts(&found.by, by));
            found.is_some_and(|_| self.last_step_has(&Wanted::of_pattern(pattern), by))
        };
        ensure(self.has_stop(&matches), "no message of the last step matches")
    }

    fn last_step_has(&self, wanted: &Wanted<'_>, by: &Name) -> bool {
        self.talk.latest().any(|line| line.message.from == *by && wanted.is_in(&line.text()))
    }

    pub(super) fn condition(&self, name: &str) -> Check {
        let is_set = self.has_stop(&|stop| stop.when.as_ref().is_some_and(|when| when.as_str() == name));
        ensure(is_set, "the team file has no such condition")?;
        ensure(self.holds(name)?, "it does not hold")
    }

    /// Reasons of several conditions, of which one holds now, and the others held before.
    pub(super) fn all(&self, reasons: &[StopReason]) -> Check {
        ensure(reasons.len() > 1, "it is only one")?;
        if !self.has_stop(&|stop| !stop.all.is_empty()) {
            // Of a group of tasks: some are complete, and the limit came before the turns that were left.
            return reasons.iter().try_for_each(|reason| self.is_true(reason));
        }
        // Whether those that do not hold now held before cannot be said without each prefix of the log.
        ensure(reasons.iter().any(|reason| self.is_true(reason).is_ok()), "none of them holds now")
    }

    /// Whether a condition in CEL holds, by the few forms that these teams have.
    pub(super) fn holds(&self, condition: &str) -> Result<bool, String> {
        let mut is_any = false;
        for one in condition.split(" || ") {
            let mut is_all = true;
            for clause in one.split(" && ") {
                is_all &= self.clause(clause.trim())?;
            }
            is_any |= is_all;
        }
        Ok(is_any)
    }

    fn clause(&self, clause: &str) -> Result<bool, String> {
        let last = self.talk.lines.iter().rev().find(|line| !line.is_private);
        let text = last.map(Line::text).unwrap_or_default();
        let quoted = |rest: &str, end: &str| -> Option<String> {
            rest.strip_suffix(end)?.strip_prefix('\'')?.strip_suffix('\'').map(str::to_owned)
        };
        let turns = self.talk.public().count();
        let number =
            |rest: &str| rest.trim().parse::<usize>().map_err(|_| format!("`{clause}` is not known"));
        if let Some(rest) = clause.strip_prefix("turns <") {
            return Ok(turns < number(rest)?);
        }
        if let Some(rest) = clause.strip_prefix("turns >") {
            return Ok(turns > number(rest)?);
        }
        if let Some(text_of) = clause.strip_prefix("last.text == ").and_then(|rest| quoted(rest, "")) {
            return Ok(text == text_of);
        }
        if let Some(name) = clause.strip_prefix("last.from == ").and_then(|rest| quoted(rest, "")) {
            return Ok(last.is_some_and(|line| line.message.from.as_str() == name));
        }
        if let Some(begin) = clause.strip_prefix("last.text.startsWith(").and_then(|rest| quoted(rest, ")")) {
            return Ok(text.starts_with(&begin));
        }
        if let Some(part) = clause.strip_prefix("!last.text.contains(").and_then(|rest| quoted(rest, ")")) {
            return Ok(!text.contains(&part));
        }
        let state = self.state();
        if let Some(key) = clause.strip_prefix("has(state.").and_then(|rest| rest.strip_suffix(')')) {
            return Ok(state.get(key).is_some_and(|value| !value.is_null()));
        }
        let pair = clause.strip_prefix("state.").and_then(|rest| rest.split_once(" == "));
        match pair.and_then(|(key, value)| Some((key, quoted(value, "")?))) {
            Some((key, value)) => Ok(state.get(key).and_then(Value::as_str) == Some(&value)),
            None => Err(format!("`{clause}` is not known")),
        }
    }

    /// The state that tools of the whole team left, except those of turns that have not ended.
    fn state(&self) -> Map<String, Value> {
        let mut state = Map::new();
        for event in self.events {
            let parts: Vec<&Part> = match &event.body {
                Body::ToolReturned { result: outcome, .. } => outcome.parts.iter().collect(),
                Body::Message(message) => message.parts.iter().flat_map(outcome_parts).collect(),
                _ => continue,
            };
            for part in parts {
                if let Part::Data(data) | Part::Note(data) = part
                    && let Some(Value::Object(values)) = data.get("state")
                {
                    state.extend(values.clone());
                }
            }
        }
        state
    }

    /// No earlier step met a condition that ends the chat alone.
    pub(super) fn ends_in_time(&self) -> Check {
        self.no_loop_before()?;
        let Some(chat) = self.spec else { return Ok(()) };
        let mut stops: Vec<&Stop> = chat.stop.iter().collect();
        while let Some(stop) = stops.pop() {
            stops.extend(&stop.any);
            if let Some(Says { by, .. }) = &stop.says {
                self.not_before(&Wanted::of_says(stop.says.as_ref().unwrap()), by)?;
            }
            if let Some(Matches { pattern, by }) = &stop.matches {
                self.not_before(&Wanted::of_pattern(pattern), by)?;
            }
        }
        let turns = self.talk.public().count() as u64;
        ensure(turns <= *chat.max_turns, format!("there are {turns} turns"))
    }

    fn not_before(&self, wanted: &Wanted<'_>, by: &[Name]) -> Check {
        let mut before = self.talk.said().filter(|line| line.step < self.talk.steps);
        let found = before.find(|line| counts(by, &line.message.from) && wanted.is_in(&line.text()));
        match found {
            Some(line) => Err(format!("event {} should have ended it", line.seq)),
            None => Ok(()),
        }
    }

    /// The message that an agent with a `terminate_on` received last ends the chat.
    pub(super) fn terminated(&self, turn: &Past<'_>, wanted: &dyn Fn(&Wanted<'_>, &[Name]) -> bool) -> Check {
        let own = self.team.agents.iter().find(|agent| agent.name.value == *turn.who);
        let own = own.and_then(|agent| agent.terminate_on.as_ref());
        let (condition, by): (Wanted<'_>, &[Name]) = match own {
            None => (Wanted::Text("TERMINATE", true), &[]),
            Some(TerminateOn::Text(text)) => (Wanted::Text(text, true), &[]),
            Some(TerminateOn::Condition(TerminatingMessage::Says(says))) => (Wanted::of_says(says), &says.by),
            Some(TerminateOn::Condition(TerminatingMessage::Matches(Matches { pattern, by }))) => {
                (Wanted::of_pattern(pattern), by)
            }
        };
        ensure(wanted(&condition, by), "the agent has no such condition")?;
        let mut before = self.talk.lines.iter().rev().filter(|line| line.seq < turn.begin);
        let last = before.find(|line| line.message.from != *turn.who && line.message.to.includes(turn.who));
        let is_met = last.is_some_and(|line| {
            line.via != Via::Opening && counts(by, &line.message.from) && condition.is_in(&line.text())
        });
        ensure(is_met, "the last message to it is none that ends the chat")
    }
}

fn outcome_parts(part: &Part) -> &[Part] {
    match part {
        Part::ToolResult(outcome) => &outcome.result.parts,
        _ => &[],
    }
}
