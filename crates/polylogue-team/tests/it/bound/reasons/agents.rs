//! Reasons for which an agent ends the chat in its turn.

use polylogue::stop::{LibraryStopReason, ModelMistake};
use polylogue_core::{Body, Name, Part};
use polylogue_team::Reasoning;

use super::conditions::Wanted;
use super::talk::{Past, is_done};
use super::{Case, Check, ensure};

impl Case<'_> {
    /// `reason`, for which the agent of `turn` ended the chat.
    pub(super) fn is_true_of_agent(&self, reason: &LibraryStopReason, turn: &Past<'_>) -> Check {
        match reason {
            LibraryStopReason::ToolRounds { who, limit } => {
                self.in_turn(turn, who, || self.tool_rounds(turn, *limit))
            }
            LibraryStopReason::ContextFull { who, model } => self.in_turn(turn, who, || {
                let refused = |body: &Body| matches!(body, Body::TooLong { model: of, .. } if of == model);
                let is_refused = turn.events.iter().any(|event| refused(&event.body));
                ensure(is_refused, "its model refused no request as too long")
            }),
            LibraryStopReason::AutoReplies { who, limit } => {
                self.in_turn(turn, who, || self.auto_replies(turn, *limit))
            }
            LibraryStopReason::Errors { who, of, limit } => {
                self.in_turn(turn, who, || self.errors(turn, of, *limit))
            }
            LibraryStopReason::Rounds { limit } => self.rounds_of_agent(turn, *limit),
            LibraryStopReason::NoReply { who } => self.in_turn(turn, who, || {
                ensure(turn.replies().all(|reply| has_no_text(&reply.parts)), "its model wrote something")
            }),
            LibraryStopReason::Mentioned { text, by } => {
                let is_it = |wanted: &Wanted<'_>, names: &[Name]| {
                    matches!(wanted, Wanted::Text(own, _) if *own == &**text)
                        && (names.is_empty() || names.contains(by))
                };
                self.terminated(turn, &is_it)
            }
            LibraryStopReason::Condition { name } => {
                let is_it = |wanted: &Wanted<'_>, _: &[Name]| matches!(wanted, Wanted::Pattern(regex) if regex.as_str() == name);
                self.terminated(turn, &is_it)
            }
            _ => Err("no agent ends a chat for it".into()),
        }
    }

    fn in_turn(&self, turn: &Past<'_>, who: &Name, is_true: impl FnOnce() -> Check) -> Check {
        if turn.who == who {
            return is_true();
        }
        // One that is asked in the turn has a chat of its own.
        let is_reply = |body: &Body| matches!(body, Body::ModelReplied(reply) if reply.who == *who);
        let mut since =
            self.events.iter().filter(|event| event.seq > turn.begin && event.chat != self.talk.at);
        ensure(since.any(|event| is_reply(&event.body)), format!("it was the turn of `{}`", turn.who))
    }

    /// The model called tools in each round, and said nothing after the last.
    fn tool_rounds(&self, turn: &Past<'_>, limit: u64) -> Check {
        let agent = self.team.agents.iter().find(|agent| agent.name.value == *turn.who);
        let set = agent.and_then(|agent| agent.model()).map(|keys| u64::from(*keys.max_tool_rounds));
        ensure(set.is_none_or(|set| set == limit), format!("its limit is {set:?}"))?;
        let replies: Vec<_> = turn.replies().collect();
        let with_calls = replies.iter().filter(|reply| has_calls(&reply.parts)).count() as u64;
        ensure(with_calls == limit + 1, format!("{with_calls} of {} replies have calls", replies.len()))?;
        let last = replies.last().is_some_and(|reply| has_calls(&reply.parts));
        ensure(last, "the last reply calls no tool")
    }

    /// Turns of the agent in a row before this one, without a word of its person.
    fn auto_replies(&self, turn: &Past<'_>, limit: u64) -> Check {
        let agent = self.team.agents.iter().find(|agent| agent.name.value == *turn.who);
        let set = agent.map(|agent| u64::from(agent.max_auto_replies.unwrap_or(100)));
        ensure(set == Some(limit), format!("its limit is {set:?}"))?;
        let own = self.talk.public().rev().filter(|past| past.who == turn.who && past.begin < turn.begin);
        let is_of_person = |past: &&Past<'_>| {
            past.events.iter().any(|event| match &event.body {
                Body::InputProvided { text, .. } => !text.trim().is_empty(),
                _ => false,
            })
        };
        let count = own.take_while(|past| !is_of_person(past)).count() as u64;
        ensure(count >= limit, format!("it replied {count} times"))
    }

    /// More errors than the limit: each has a reply of the model, and those of tools a call that failed.
    fn errors(&self, turn: &Past<'_>, of: &ModelMistake, limit: u64) -> Check {
        let within = format!("{}/{}.{}", self.talk.at, turn.who, turn.nth);
        let is_within = |path: &str| path == within || path.starts_with(&format!("{within}."));
        let inner = self.events.iter().filter(|event| {
            is_within(&event.chat.to_string()) && matches!(event.body, Body::ModelReplied(_))
        });
        let replies = (turn.replies().count() + inner.count()) as u64;
        ensure(replies > limit, format!("there are only {replies} replies"))?;
        match of {
            ModelMistake::Answer => self.answers_are_wrong(turn, &within, limit),
            ModelMistake::Tool(tool) => {
                let failed = turn
                    .calls()
                    .into_iter()
                    .filter(|(_, call, outcome)| call.tool == *tool && !is_done(*outcome));
                // A reply with which it cannot be called at all is no call.
                let unread = turn.replies().filter(|reply| has_no_object(&reply.parts));
                let count = (failed.count() + unread.count()) as u64;
                ensure(count > limit, format!("only {count} attempts to call it failed"))
            }
            // What a reply without legal arguments, or without a choice, looks like depends on how tools are called.
            ModelMistake::Arguments(_) | ModelMistake::Choice => Ok(()),
            ModelMistake::Reply | ModelMistake::Role => Err("only a role-play counts these".into()),
            _ => Err("no check is known for it".into()),
        }
    }

    /// None of the replies of the turn, and of the attempts to repair them, is as the schema of the agent says.
    fn answers_are_wrong(&self, turn: &Past<'_>, within: &str, limit: u64) -> Check {
        let agent = self.team.agents.iter().find(|agent| agent.name.value == *turn.who);
        let keys = agent.and_then(|agent| agent.model());
        let set = keys.map(|keys| keys.output_retries.as_deref().copied().unwrap_or(3));
        ensure(set.is_none_or(|set| u64::from(set) == limit), format!("its limit is {set:?}"))?;
        let Some(schema) = keys.and_then(|keys| keys.output_schema.as_ref()) else { return Ok(()) };
        let schema =
            jsonschema::validator_for(&schema.value.0.clone().into()).map_err(|error| error.to_string())?;
        let repairs = self.events.iter().filter(|event| event.chat.to_string().starts_with(within));
        let repaired = repairs.filter_map(|event| match &event.body {
            Body::Message(message) => Some(message.text().into_owned()),
            _ => None,
        });
        let own = turn.replies().map(|reply| polylogue_core::text_of(&reply.parts).into_owned());
        let is_right = |text: String| {
            serde_json::from_str(&text).is_ok_and(|value: serde_json::Value| schema.is_valid(&value))
        };
        ensure(!own.chain(repaired).any(is_right), "a reply is as its schema says")
    }

    /// Rounds of thoughts and actions.
    fn rounds_of_agent(&self, turn: &Past<'_>, limit: u64) -> Check {
        let agent = self.team.agents.iter().find(|agent| agent.name.value == *turn.who);
        let keys = agent.and_then(|agent| agent.model()).and_then(|keys| keys.reasoning.as_deref());
        let is_set = matches!(keys, Some(Reasoning::React(_)));
        ensure(is_set, "the agent has no such limit")?;
        let replies = turn.replies().count() as u64;
        ensure(replies > limit, format!("there are only {replies} replies"))
    }
}

fn has_calls(parts: &[Part]) -> bool {
    parts.iter().any(|part| matches!(part, Part::ToolCall(_)))
}

/// Whether the text is no JSON object.
fn has_no_object(parts: &[Part]) -> bool {
    let value = serde_json::from_str::<serde_json::Value>(&polylogue_core::text_of(parts));
    !value.is_ok_and(|value| value.is_object())
}

fn has_no_text(parts: &[Part]) -> bool {
    polylogue_core::text_of(parts).trim().is_empty()
}
