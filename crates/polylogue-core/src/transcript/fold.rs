//! Folds events into a transcript.

use std::sync::Arc;

use super::{
    EndedTurn, LimitQuestion, MessageSource, OpenTurn, RaisedLimits, Transcript, TranscriptMessage, in_order,
    is_shared,
};
use crate::log::LastEvent;
use crate::{
    AllowanceOwner, BackgroundResult, BackgroundTask, Body, Charge, Chooser, Compacted, Event,
    LimitOverrides, Message, ModelReply, Name, Opening, OutputLimit, Part, Question, TurnRequest,
};

/// Whether `request` is a turn for the result of a background task of another participant than `who`, after which `who` can speak.
fn is_before(request: &TurnRequest, who: &Name) -> bool {
    let by = request.choice.as_ref().map(|choice| &choice.by);
    by == Some(&Chooser::Background) && request.who != *who
}

impl LimitQuestion {
    /// Whether it is about a limit of `owner`, or, without one, of the run, and has an answer that is not carried out.
    fn is_answered_of(&self, owner: Option<&AllowanceOwner>) -> bool {
        self.answer.is_some()
            && self.question.limit.as_ref().is_some_and(|raise| raise.reached.owned().0 == owner)
    }

    /// Whether the answer leaves a limit of an agent or a chat as it was: nothing of it is to be carried out, because the chat ends at that
    /// limit when it reaches it again.
    fn is_declined(&self) -> bool {
        let (Some(raise), Some(answer)) = (&self.question.limit, &self.answer) else { return false };
        raise.reached.owned().0.is_some() && raise.allowed_by(answer).is_none()
    }
}

impl Transcript {
    /// Adds the next event.
    ///
    /// # Errors
    /// Says why the event cannot follow those before it. The transcript must not be used afterward.
    pub fn apply(&mut self, event: Arc<Event>) -> Result<(), String> {
        if event.chat != self.at {
            self.elsewhere(&event);
            return Ok(());
        }
        // It is independent of the chat: nothing that is said or done depends on it.
        if let Body::Charged(charge) = &event.body {
            self.charged(charge, event.seq);
            return Ok(());
        }
        if event.body.is_of_run() || self.is_of_limit_question(&event) {
            self.fold_of_run(&event);
            return Ok(());
        }
        let result = match &event.body {
            Body::Opened(opening) => self.opened(opening, &event),
            Body::TurnStarted { turns: requests } => self.begun_turns(requests, &event),
            Body::Posted(message) => self.posted(message, &event),
            Body::BackgroundEnded(result) if !result.awaited => self.background_ended(result).map(|()| {
                let turn = self.open.iter_mut().find(|turn| turn.request.who == result.who);
                turn.into_iter().for_each(|turn| turn.ends.push(Arc::clone(&event)));
                self.arrives(&event);
            }),
            Body::Sent(_) => {
                self.arrives(&event);
                Ok(())
            }
            Body::Message(message) => {
                self.ended(&message.from, &event, |me| me.add_message(message, event.seq))
            }
            Body::Passed { who } => self.ended(who, &event, |_| {}),
            Body::Left { who, why } => self.ended(who, &event, |me| me.left.push((who.clone(), why.clone()))),
            Body::Stopped { who, reason } => {
                self.ended(who, &event, |me| me.over.push((who.clone(), reason.clone())))
            }
            Body::NextSpeaker { who } => {
                self.next_speaker = Some(who.clone());
                self.events.push(Arc::clone(&event));
                Ok(())
            }
            Body::Joined { who, .. } => {
                self.joined(who, &event);
                Ok(())
            }
            Body::Closed { reason, summary } => {
                self.closed = Some((reason.clone(), Arc::clone(summary)));
                self.limit_question.take_if(|asked| asked.answer.is_some());
                self.events.push(Arc::clone(&event));
                Ok(())
            }
            Body::Reopened { more, sent: true, .. } => self.reopened_for_sent(more, &event),
            Body::Reopened { message, more, .. } => {
                self.reopened(message.as_ref(), more, &event);
                Ok(())
            }
            Body::RolledBack { since } => {
                self.limit_question = None;
                self.roll_back(*since, &event)
            }
            _ => self.within_turn(&event),
        };
        self.extend_span(&event);
        result.map_err(|error| format!("event {}: {error}", event.seq))
    }

    fn extend_span(&mut self, event: &Event) {
        let (first, last) = self.span.unwrap_or((event.ran_ms, event.ran_ms));
        self.span = Some((first, last.max(event.ran_ms)));
    }

    /// Adds an event of another chat.
    fn elsewhere(&mut self, event: &Arc<Event>) {
        if self.keep_for_background(event) {
            return;
        }
        self.usage.add_event(event);
        self.within(event);
        if !self.open.is_empty() && (matches!(event.body, Body::ModelReplied(_)) || is_shared(&event.body)) {
            self.within_step.push((event.seq, event.ran_ms));
        }
    }

    /// Whether the event asks or answers whether a limit is raised.
    fn is_of_limit_question(&self, event: &Event) -> bool {
        match &event.body {
            Body::InputRequired(question) => question.is_about_limit(),
            Body::InputProvided { to, .. } => {
                let open = self.limit_question.as_ref().filter(|asked| asked.answer.is_none());
                open.is_some_and(|asked| asked.question.who == *to)
            }
            _ => false,
        }
    }

    /// Takes in what was allowed beyond limits, and what a person was asked about one.
    fn fold_of_run(&mut self, event: &Event) {
        if let Body::LimitsChanged { more, .. } = &event.body {
            self.raise_while_open(more, event.seq);
        }
        match (&event.body, &mut self.limit_question) {
            (Body::InputRequired(question), asked) => {
                let (question, asked_ms) = (question.clone(), event.ran_ms);
                *asked = Some(LimitQuestion { seq: event.seq, question, asked_ms, answer: None });
            }
            (Body::InputProvided { text, .. }, asked) => {
                if let Some(asked) = asked {
                    asked.answer = Some(Arc::clone(text));
                    self.waits.push((asked.asked_ms, event.ran_ms));
                }
                asked.take_if(|asked| asked.is_declined());
            }
            (Body::LimitsChanged { .. }, asked) => {
                asked.take_if(|asked| asked.is_answered_of(None));
            }
            (Body::OwnLimitsRaised { of, .. }, asked) => {
                asked.take_if(|asked| asked.is_answered_of(Some(of)));
            }
            _ => {}
        }
    }

    fn opened(&mut self, opening: &Opening, event: &Arc<Event>) -> Result<(), String> {
        if self.opening.is_some() {
            return Err("the chat is open already".into());
        }
        let line = |message: &Message| TranscriptMessage {
            seq: event.seq,
            source: MessageSource::Opening,
            message: message.clone(),
        };
        self.messages = opening.messages.iter().map(line).collect();
        self.participants.clone_from(&opening.participants);
        opening.messages.iter().for_each(|message| self.track_calls(message));
        self.latest = self.messages.len();
        self.before = opening.inherited.min(self.messages.len() as u64);
        self.opened = event.seq;
        let author = opening.messages.last().map(|message| &message.from);
        self.last_speaker = author.filter(|name| opening.participants.contains(name)).cloned();
        self.opening = Some(opening.clone());
        self.share(event);
        self.events.push(Arc::clone(event));
        Ok(())
    }

    fn begun_turns(&mut self, requests: &[TurnRequest], event: &Arc<Event>) -> Result<(), String> {
        if let Some(open) = self.open.first() {
            return Err(format!("it is still `{}`'s turn", open.request.who));
        }
        // A public step resets the latest messages; a private one does not.
        if requests.iter().any(|request| !request.to.is_private()) {
            self.latest = self.messages.len();
            self.unanswered.clear();
            // A turn for a result goes before that of the speaker who was chosen.
            self.next_speaker.take_if(|who| !requests.iter().all(|request| is_before(request, who)));
        }
        for request in requests {
            self.sees_results(request);
            self.turns.entry(request.who.clone()).or_default().begun += 1;
            self.steps += 1;
            self.open.push(OpenTurn::new(request.clone(), event.seq));
        }
        self.events.push(Arc::clone(event));
        Ok(())
    }

    fn posted(&mut self, message: &Message, event: &Arc<Event>) -> Result<(), String> {
        self.latest = self.messages.len();
        self.steps += 1;
        self.messages.push(TranscriptMessage {
            seq: event.seq,
            source: MessageSource::Posted,
            message: message.clone(),
        });
        self.track_calls(message);
        self.share(event);
        self.events.push(Arc::clone(event));
        Ok(())
    }

    fn arrives(&mut self, event: &Arc<Event>) {
        self.arrived.push(Arc::clone(event));
        self.take_in_arrived();
    }

    /// Messages from outside and results of background tasks, once no turn is open. They are no step: the messages of the last step stay the latest.
    fn take_in_arrived(&mut self) {
        if !self.open.is_empty() {
            return;
        }
        for event in std::mem::take(&mut self.arrived) {
            if let Body::Sent(message) = &event.body {
                self.messages.push(TranscriptMessage {
                    seq: event.seq,
                    source: MessageSource::Sent,
                    message: message.clone(),
                });
                self.ended_before = self.ended.len();
                self.unanswered.push(event.seq);
                self.track_calls(message);
            }
            self.share(&event);
            self.events.push(event);
        }
    }

    fn joined(&mut self, who: &Name, event: &Arc<Event>) {
        self.steps += 1;
        self.left.retain(|(gone, _)| gone != who);
        if !self.participants.contains(who) {
            self.participants.push(who.clone());
        }
        self.events.push(Arc::clone(event));
    }

    /// Under a higher limit, counters continue. With a new message, they start from 0.
    fn reopened(&mut self, message: Option<&Message>, more: &LimitOverrides, event: &Arc<Event>) {
        (self.closed, self.next_speaker) = (None, None);
        let used = self.used();
        self.raised.limits.raise(&used, more);
        // Agents that ended the chat, at a limit of their own or because a person left, have not finished their turns.
        for (who, _) in std::mem::take(&mut self.over) {
            let turns = self.turns.get_mut(&who);
            turns.into_iter().for_each(|turns| turns.finished = turns.finished.saturating_sub(1));
        }
        // The messages that ended the chat are no longer the latest: they must not end it again at once.
        self.latest = self.messages.len();
        if let Some(message) = message {
            self.before = self.messages.len() as u64 - self.private_messages;
            self.opened = event.seq;
            self.ended_before = self.ended.len();
            self.unanswered.clear();
            self.result_before = Arc::default();
            self.raised.limits = RaisedLimits::default();
            self.earlier = (self.usage.tokens(), self.usage.cost);
            self.finished = 0;
            self.steps = 0;
            self.follow_ups.clear();
            self.turns.values_mut().for_each(|turns| turns.finished = 0);
            self.span = None;
            self.waits.clear();
            let participant = self.participants.contains(&message.from).then(|| message.from.clone());
            self.last_speaker = participant;
            self.messages.push(TranscriptMessage {
                seq: event.seq,
                source: MessageSource::Opening,
                message: message.clone(),
            });
            self.latest = self.messages.len();
            self.track_calls(message);
        }
        self.share(event);
        self.events.push(Arc::clone(event));
    }

    /// As [`reopened`](Self::reopened), with the last message that was sent and has no answer. Policies read it as that of any other
    /// reopening, and views have it where it was sent.
    fn reopened_for_sent(&mut self, more: &LimitOverrides, event: &Event) -> Result<(), String> {
        let sent = self.unanswered.last().copied();
        let Some(at) = sent.and_then(|sent| self.messages.iter().rposition(|line| line.seq == sent)) else {
            return Err("no message waits for an answer".into());
        };
        let message = self.messages.remove(at).message;
        let result = self.closed.take().map(|(_, result)| result);
        let body = Body::Reopened { message: Some(message.clone()), more: *more, sent: true };
        self.reopened(Some(&message), more, &Arc::new(Event { body, ..event.clone() }));
        self.result_before = result.unwrap_or_default();
        Ok(())
    }

    /// Restores the state before an event. Usage stays, and turn numbers are not reused.
    fn roll_back(&mut self, since: u64, event: &Arc<Event>) -> Result<(), String> {
        let mut before = Self::new(self.at.clone());
        for earlier in self.events.iter().filter(|event| event.seq < since) {
            // What an earlier rollback took back is not among these events. Folding that again would double the work with each rollback.
            match earlier.body {
                Body::RolledBack { .. } => before.events.push(Arc::clone(earlier)),
                _ => before.apply(Arc::clone(earlier))?,
            }
            before.extend_span(earlier);
        }
        before.keep_background_of(self);
        for (who, turns) in &self.turns {
            before.turns.entry(who.clone()).or_default().begun = turns.begun;
        }
        (before.usage, before.earlier, before.raised) = (self.usage, self.earlier, self.raised);
        before.inherited = std::mem::take(&mut self.inherited);
        before.known_until = self.known_until;
        before.arrived = std::mem::take(&mut self.arrived);
        // Where the chat has ended with its tasks, neither has.
        before.arrived.retain(|event| matches!(event.body, Body::Sent(_)));
        let last = before.events.len();
        let shared = self.shared.iter().filter(|(_, event)| event.seq < since);
        before.shared = shared.map(|(at, event)| ((*at).min(last), Arc::clone(event))).collect();
        before.events.push(Arc::clone(event));
        *self = before;
        self.take_in_arrived();
        Ok(())
    }

    /// Tracks the calls that others are asked to make.
    fn track_calls(&mut self, message: &Message) {
        let answered = |id: &str, to: &Name| {
            message.parts.iter().any(|part| matches!(part, Part::ToolResult(o) if o.id == id && o.to == *to))
        };
        if !self.pending.is_empty() {
            self.pending.retain(|(who, call)| *who != message.from && !answered(&call.id, who));
        }
        self.pending.extend(message.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some((message.from.clone(), call.clone())),
            _ => None,
        }));
    }

    fn add_message(&mut self, message: &Message, seq: u64) {
        let line = TranscriptMessage { seq, source: MessageSource::Turn, message: message.clone() };
        self.private_messages += u64::from(line.is_private());
        if !line.is_private() {
            self.track_calls(message);
        }
        self.messages.push(line);
    }

    fn ended(
        &mut self,
        who: &Name,
        event: &Arc<Event>,
        effect: impl FnOnce(&mut Self),
    ) -> Result<(), String> {
        let Some(index) = self.open.iter().position(|turn| turn.request.who == *who) else {
            return Err(format!("it is not `{who}`'s turn"));
        };
        let turn = self.open.remove(index);
        let is_private = turn.request.to.is_private();
        let is_silent = match &event.body {
            Body::Message(message) => message.parts.iter().all(|part| part.is_blank() || part.is_thought()),
            _ => true,
        };
        self.ended.push(EndedTurn { seq: event.seq, who: who.clone(), is_private, is_silent });
        turn.events.iter().for_each(|event| self.learn(event));
        let shared = in_order(turn.events.iter().chain(&turn.within));
        self.events.extend(turn.events);
        self.share_all(shared);
        self.share(event);
        self.events.push(Arc::clone(event));
        self.turns.entry(who.clone()).or_default().finished += 1;
        if !is_private {
            self.finished += 1;
            // Its turn was before: the others follow whom they would have followed.
            if !self.is_for_result(&turn.request) {
                self.last_speaker = Some(who.clone());
            }
        }
        effect(self);
        if self.open.is_empty() {
            self.count_waits();
        }
        self.take_in_arrived();
        Ok(())
    }

    /// A step is over: people were waited for before each answer in it, since what happened last. The order in which the events of its
    /// turns were added makes no difference.
    fn count_waits(&mut self) {
        let within = std::mem::take(&mut self.within_step);
        let begun = self.events.iter().rposition(|event| matches!(event.body, Body::TurnStarted { .. }));
        let of_step = self.events.get(begun.unwrap_or(0)..).unwrap_or_default();
        let is_answer = |event: &Arc<Event>| matches!(event.body, Body::InputProvided { .. });
        if !of_step.iter().any(is_answer) {
            return;
        }
        let own = of_step.iter().map(|event| (event.seq, event.ran_ms, is_answer(event)));
        let within = within.into_iter().map(|(seq, ran_ms)| (seq, ran_ms, false));
        let mut all: Vec<(u64, u64, bool)> = own.chain(within).collect();
        all.sort_unstable();
        self.waits.extend(all.windows(2).filter_map(|pair| match pair {
            [(_, from, _), (_, to, true)] => Some((*from, *to)),
            _ => None,
        }));
    }

    /// Records missing capabilities at the end of the turn, so that a resumed turn begins with the same state.
    fn learn(&mut self, event: &Event) {
        if let Body::CapabilityMissing { who, model, capability: missing, .. } = &event.body {
            self.missing.push((who.clone(), Arc::clone(model), *missing));
        }
    }

    fn charged(&mut self, charge: &Charge, seq: u64) {
        self.usage.charge(charge);
        if let Some(turn) = self.open.iter_mut().find(|turn| turn.request.who == charge.who) {
            turn.charged(charge, seq);
        }
    }

    fn within_turn(&mut self, event: &Arc<Event>) -> Result<(), String> {
        let who = match &event.body {
            Body::ModelReplied(ModelReply { who, .. })
            | Body::Prompted { who, .. }
            | Body::ToolCalled { who, .. }
            | Body::ToolReturned { who, .. }
            | Body::Cleared { who, .. }
            | Body::Remembered { who, .. }
            | Body::CapabilityMissing { who, .. }
            | Body::SealsRefused { who, .. }
            | Body::ParametersIgnored { who, .. }
            | Body::OutputLimited(OutputLimit { who, .. })
            | Body::TooLong { who, .. }
            | Body::Compacted(Compacted { who, .. })
            | Body::ContinuationFailed { who, .. }
            | Body::ReplyInterrupted { who, .. }
            | Body::InputRequired(Question { who, .. })
            | Body::InputProvided { to: who, .. }
            | Body::BackgroundStarted(BackgroundTask { who, .. })
            | Body::BackgroundEnded(BackgroundResult { who, .. })
            | Body::Failed { who, .. } => who,
            _ => return Err("it cannot stand here".into()),
        };
        if !self.open.iter().any(|turn| turn.request.who == *who) {
            return Err(format!("it is not `{who}`'s turn"));
        }
        match &event.body {
            Body::BackgroundStarted(task) => self.background_started(task, event.seq),
            Body::BackgroundEnded(result) => self.background_ended(result)?,
            _ => {}
        }
        let Some(turn) = self.open.iter_mut().find(|turn| turn.request.who == *who) else {
            return Err(format!("it is not `{who}`'s turn"));
        };
        self.usage.add_event(event);
        match &event.body {
            Body::InputRequired(question) => turn.asked = Some(question.clone()),
            Body::InputProvided { .. } => drop(turn.asked.take().ok_or("nothing was asked")?),
            _ => {}
        }
        turn.last = LastEvent { seq: event.seq, proves_no_call: matches!(event.body, Body::Failed { .. }) };
        match &event.body {
            Body::ToolReturned { id, .. } => turn.settle(Some(id)),
            Body::ModelReplied(_) | Body::Failed { .. } => turn.settle(None),
            _ => {}
        }
        turn.events.push(Arc::clone(event));
        Ok(())
    }
}
