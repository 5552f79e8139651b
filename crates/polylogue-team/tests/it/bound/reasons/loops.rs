//! Loops, and whether they were detected in time.

use std::collections::HashSet;

use polylogue_core::{Body, Message, Part};
use polylogue_team::Pattern;

use super::talk::{Line, Past, Via};
use super::{Case, Check, ensure};

impl Case<'_> {
    /// The events of the evidence are there, are the last ones, and are as `pattern` says.
    pub(super) fn loop_of(&self, pattern: &str, evidence: &[u64]) -> Check {
        if let Some(stopped) = self.talk.stopped().next() {
            ensure(pattern == "calls", "an agent detects only loops of calls")?;
            return self.equal_calls(stopped, evidence);
        }
        match pattern {
            "silence" => self.silence(evidence),
            "farewells" => self.farewells(evidence),
            "repetition" => self.repetition(evidence, false),
            "calls" => self.repetition(evidence, true),
            _ => Err("there is no such loop".into()),
        }
    }

    /// The equal calls of a turn before those that were one too many, with equal results.
    fn equal_calls(&self, turn: &Past<'_>, evidence: &[u64]) -> Check {
        let called = turn.calls();
        let of = |seq: &u64| called.iter().find(|(at, ..)| at == seq);
        let found: Option<Vec<_>> = evidence.iter().map(of).collect();
        let Some(found) = found else { return Err("the calls are not in the turn".into()) };
        // Without evidence, the reply itself has more equal calls than are allowed.
        let wanted = |part: &Part| if let Part::ToolCall(call) = part { Some(call.clone()) } else { None };
        let last: Vec<_> =
            turn.replies().last().map_or(Vec::new(), |reply| reply.parts.iter().filter_map(wanted).collect());
        let Some(first) = last.first() else { return Err("the last reply has no calls".into()) };
        let is_equal = |tool: &str, args: &serde_json::Value| tool == first.tool && *args == first.args;
        let result = found.first().and_then(|(.., outcome)| *outcome);
        let all =
            found.iter().all(|(_, call, outcome)| is_equal(&call.tool, &call.args) && *outcome == result);
        ensure(all, "the calls or their results differ")?;
        ensure(found.len() == evidence.len(), "a call is not in the log")?;
        let now = last.iter().take_while(|call| is_equal(&call.tool, &call.args)).count();
        let limit = self.spec.map_or(8, |chat| chat.loop_detection.calls);
        ensure(found.len() + now > limit, format!("there are {} and {now} calls", found.len()))
    }

    fn silence(&self, evidence: &[u64]) -> Check {
        let length = self.spec.map_or(2, |chat| chat.loop_detection.silence);
        let last: Vec<_> = self.talk.public().rev().take(length).collect();
        let seqs: Vec<u64> = last.iter().rev().map(|turn| turn.end.seq).collect();
        ensure(seqs == evidence && seqs.len() == length, format!("the last turns are {seqs:?}"))?;
        ensure(last.iter().all(|turn| turn.is_silent()), "a turn is not silent")
    }

    fn farewells(&self, evidence: &[u64]) -> Check {
        let length = self.spec.map_or(4, |chat| chat.loop_detection.farewells);
        let last = self.last_lines(length);
        let seqs: Vec<u64> = last.iter().rev().map(|line| line.seq).collect();
        ensure(seqs == evidence && seqs.len() == length, format!("the last messages are {seqs:?}"))?;
        ensure(last.iter().all(|line| is_polite(&line.text())), "a message is more than a farewell")
    }

    /// Every speaker repeated its message before, as often as the team file says.
    fn repetition(&self, evidence: &[u64], of_calls: bool) -> Check {
        let rules = self.spec.map(|chat| *chat.loop_detection).unwrap_or_default();
        let speakers = self.talk.participants().len().clamp(1, 8);
        let length = speakers * if of_calls { rules.calls } else { rules.repetition };
        let lines = self.last_lines(usize::MAX);
        let seqs: Vec<u64> = lines.iter().take(length).rev().map(|line| line.seq).collect();
        ensure(seqs == evidence && seqs.len() == length, format!("the last messages are {seqs:?}"))?;
        for (index, line) in lines.iter().take(length).enumerate() {
            let before = lines[index + 1..].iter().find(|other| other.message.from == line.message.from);
            let is_repeated = before.is_some_and(|before| {
                work(line.message) == work(before.message)
                    && share(&line.text(), &before.text()) >= rules.similarity
            });
            ensure(is_repeated, format!("event {} repeats nothing", line.seq))?;
        }
        let has_work = lines.first().is_some_and(|line| !work(line.message).is_empty());
        ensure(has_work == of_calls, "it is another kind of loop")
    }

    /// The last messages of turns up to another one, newest first.
    fn last_lines(&self, most: usize) -> Vec<&Line<'_>> {
        let public = self.talk.lines.iter().rev().filter(|line| !line.is_private);
        public.take_while(|line| line.via == Via::Turn).take(most).collect()
    }

    /// A loop of silence or thanks ended the chat as soon as it was there, with all parallel turns.
    pub(super) fn no_loop_before(&self) -> Check {
        let Some(chat) = self.spec.filter(|chat| detects_loops(&chat.pattern)) else { return Ok(()) };
        // A chat that has ended so waits for tasks in the background, and has turns for their results.
        if self.talk.public().last().is_some_and(Past::is_for_result) {
            return Ok(());
        }
        let last = self.talk.public().last().map_or(0, |turn| turn.begin);
        let before: Vec<_> = self.talk.public().filter(|turn| turn.begin < last).collect();
        let silent = before.iter().rev().take_while(|turn| turn.is_silent()).count();
        let length = chat.loop_detection.silence;
        ensure(length == 0 || silent < length, format!("{silent} turns were silent before the last step"))?;
        let lines = self.last_lines(usize::MAX);
        let thanks = lines.iter().filter(|line| line.step < self.talk.steps);
        let thanks = thanks.take_while(|line| line.text() == "Thank you, and thank you again.").count();
        let length = chat.loop_detection.farewells;
        ensure(length == 0 || thanks < length, format!("{thanks} messages were thanks before the last step"))
    }
}

/// Whether a chat with this pattern ends at loops. A role-play has other rules for silence.
fn detects_loops(pattern: &Pattern) -> bool {
    match pattern {
        Pattern::RoundRobin
        | Pattern::Group(_)
        | Pattern::StateMachine(_)
        | Pattern::Handoffs(_)
        | Pattern::Debate(_)
        | Pattern::Orchestrator(_)
        | Pattern::Graph(_) => true,
        Pattern::Sequential
        | Pattern::Parallel
        | Pattern::Dag(_)
        | Pattern::RolePlay(_)
        | Pattern::GroupSolve(_)
        | Pattern::Tasks(_) => false,
    }
}

/// The calls and results in a message, without their ids.
fn work(message: &Message) -> Vec<String> {
    let of = |part: &Part| match part {
        Part::ToolCall(call) => Some(format!("{} {}", call.tool, call.args)),
        Part::ToolResult(outcome) => Some(format!("{:?}", outcome.result)),
        _ => None,
    };
    message.parts.iter().filter_map(of).collect()
}

/// The share of common word triples.
#[expect(clippy::cast_precision_loss, reason = "few words")]
fn share(one: &str, other: &str) -> f64 {
    let words = |text: &str| -> Vec<String> {
        let text = text.to_lowercase();
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '\''));
        words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let (one, other) = (words(one), words(other));
    if one == other {
        return 1.0;
    }
    let triples =
        |words: &[String]| -> HashSet<String> { words.windows(3).map(|three| three.join(" ")).collect() };
    let (one, other) = (triples(&one), triples(&other));
    let either = one.union(&other).count();
    if either == 0 { 0.0 } else { one.intersection(&other).count() as f64 / either as f64 }
}

/// Whether a text is short and has thanks or a farewell. Which words are meant in detail is not decided here.
fn is_polite(text: &str) -> bool {
    const BEGINNINGS: [&str; 13] = [
        "bye", "farewell", "see you", "take care", "have a", "thank", "welcome", "pleasure", "glad",
        "happy to", "all the best", "next time", "wishes",
    ];
    let text = text.to_lowercase();
    text.split_whitespace().count() <= 40 && BEGINNINGS.iter().any(|word| text.contains(word))
}

impl Case<'_> {
    /// Whether a participant left and is not back, or its person ended the chat.
    pub(super) fn left(&self, who: &polylogue_core::Name, why: &str) -> Check {
        if let Some(turn) = self.talk.stopped().find(|turn| turn.who == who) {
            let said = turn.events.iter().rev().find_map(|event| match &event.body {
                Body::InputProvided { text, .. } => Some(text.trim().to_lowercase()),
                _ => None,
            });
            return ensure(
                said.as_deref() == Some("exit") && why == "said `exit`",
                "the person did not say `exit`",
            );
        }
        let found = self.talk.left.iter().any(|(gone, because)| *gone == who && *because == why);
        ensure(found, "no such departure is in the log")
    }
}
