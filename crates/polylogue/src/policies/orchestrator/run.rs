//! Replays the work from its start to the first step that is not in the log.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::stop::LibraryStopReason;
use polylogue_core::{
    Body, Choice, Chooser, Message, Name, Policy, Step, StopReason, Transcript, TurnRequest,
};

use super::Orchestrator;
use super::progress::Progress;
use crate::placeholders::filled;
use crate::policies::replay::{Kind, Replay, ReplayStep, joined};

impl Policy for Orchestrator {
    fn next(&self, chat: &Transcript) -> Step {
        if let Some((_, reason)) = chat.ended_by() {
            return Step::close(reason.clone(), chat);
        }
        let works = |name: &Name| *name != self.planner && *name != self.progress_agent;
        let mut later = joined(chat);
        let is_later = |name: &Name| later.iter().any(|(_, who)| *who == name);
        let team = chat.participants().iter().filter(|name| works(name) && !is_later(name));
        let team = team.cloned().collect();
        later.retain(|(_, who)| works(who));
        let mut work = OrchestratorRun {
            ledger: self,
            chat,
            past: Replay::of(chat),
            team,
            later: later.into(),
            facts: String::new(),
            plan: String::new(),
        };
        match work.go() {
            Ok(step) => step,
            Err(step) => *step,
        }
    }
}

/// What the log has; otherwise the first step that is not in it.
type Replayed<T> = Result<T, Box<Step>>;

struct OrchestratorRun<'a> {
    ledger: &'a Orchestrator,
    chat: &'a Transcript,
    past: Replay<'a>,
    /// The participants present at this point.
    team: Vec<Name>,
    /// Those who join after it, with the indices of the events.
    later: VecDeque<(usize, &'a Name)>,
    facts: String,
    plan: String,
}

impl<'a> OrchestratorRun<'a> {
    fn go(&mut self) -> Replayed<Step> {
        let Orchestrator { words, max_turns, max_stalls, max_plans, .. } = self.ledger;
        self.check_team()?;
        self.make_plan(&words.facts, &words.plan)?;
        let (mut turns, mut stalls, mut plans) = (0, 0, 1);
        loop {
            self.check_team()?;
            let found = self.progress()?;
            if found.as_ref().is_some_and(|(progress, _)| progress.is_request_satisfied.answer) {
                let by = self.ledger.progress_agent.clone();
                return self.finish(LibraryStopReason::RequestSatisfied { by }.into());
            }
            if turns >= *max_turns {
                return self.finish(StopReason::Turns { limit: *max_turns, next: None });
            }
            stalls = match &found {
                Some((progress, _)) if is_moving(progress) => u64::saturating_sub(stalls, 1),
                _ => stalls + 1,
            };
            if stalls < *max_stalls {
                if let Some((progress, reply)) = found {
                    self.instruct(&progress, reply)?;
                    turns += 1;
                }
            } else if plans < *max_plans {
                (stalls, plans) = (0, plans + 1);
                self.make_plan(&words.updated_facts, &words.updated_plan)?;
            } else {
                return self.finish(StopReason::from(LibraryStopReason::Stalled { plans: *max_plans }));
            }
        }
    }

    /// Fails if no participant is present to do the work.
    fn check_team(&mut self) -> Replayed<()> {
        self.admit();
        if !self.team.is_empty() {
            return Ok(());
        }
        let reason =
            StopReason::from(LibraryStopReason::NoParticipants { last: self.chat.left().last().cloned() });
        Err(Step::close(reason, self.chat).into())
    }

    /// The planner writes facts and plan, and both are posted in the chat.
    fn make_plan(&mut self, facts: &str, plan: &str) -> Replayed<()> {
        let planner = &self.ledger.planner;
        self.facts = self.ask(planner, facts, "")?;
        self.plan = self.ask(planner, plan, "")?;
        self.post(|run| run.fill(&run.ledger.words.briefing, ""))
    }

    /// The ledger, and the reply with it; `None` if no reply could be parsed.
    fn progress(&mut self) -> Replayed<Option<(Progress, String)>> {
        let Orchestrator { words, progress_agent, max_retries, .. } = self.ledger;
        let mut reply = self.ask(progress_agent, &words.progress, "")?;
        for _ in 0..*max_retries {
            match Progress::parse(&reply, &self.team) {
                Ok(progress) => return Ok(Some((progress, reply))),
                Err(flaw) => reply = self.ask(progress_agent, &words.unreadable, &flaw)?,
            }
        }
        Ok(Progress::parse(&reply, &self.team).ok().map(|progress| (progress, reply)))
    }

    /// Posts the instruction; the selected participant has a turn.
    fn instruct(&mut self, progress: &Progress, reply: String) -> Replayed<()> {
        self.post(|_| progress.instruction_or_question.answer.clone())?;
        let who = &progress.next_speaker.answer;
        match self.take(Kind::Chat, who).map(|turn| turn.left) {
            Some(left) => {
                self.team.retain(|name| !(left && name == who));
                Ok(())
            }
            None => {
                let by = Chooser::Agent(self.ledger.progress_agent.clone());
                let choice = Choice { of: self.team.clone(), by, reply: Some(reply.into()) };
                Err(Step::Turn(TurnRequest::to_all(who.clone()).with_choice(choice)).into())
            }
        }
    }

    /// The planner gives the final answer.
    fn finish(&mut self, reason: StopReason) -> Replayed<Step> {
        let answer = self.ask(&self.ledger.planner, &self.ledger.words.answer, "")?;
        let answer = Some(answer).filter(|answer| !answer.trim().is_empty()).map(Arc::from);
        Ok(Step::Close { reason, summary: answer.unwrap_or_else(|| self.chat.summary()) })
    }

    /// The answer of `who` in a private turn.
    fn ask(&mut self, who: &Name, text: &str, flaw: &str) -> Replayed<String> {
        if let Some(answer) = self.take(Kind::Private, who) {
            return Ok(answer.text().into_owned());
        }
        if let Some((who, why)) = self.chat.left().iter().find(|(gone, _)| gone == who) {
            let reason = StopReason::Left { who: who.clone(), why: why.clone() };
            return Err(Step::close(reason, self.chat).into());
        }
        Err(Step::Turn(TurnRequest::private(who.clone(), self.fill(text, flaw))).into())
    }

    /// The next step of this kind by `who` in the log. The team is that with which it was made; without a step, that of now.
    fn take(&mut self, kind: Kind, who: &Name) -> Option<ReplayStep<'a>> {
        self.admit();
        self.past.take(kind, who)
    }

    /// Adds those to the team who joined before the next step in the log.
    fn admit(&mut self) {
        let next = self.past.next_begins();
        let has_joined = |(at, _): &mut (usize, &Name)| next.is_none_or(|next| *at < next);
        while let Some((_, who)) = self.later.pop_front_if(has_joined) {
            self.team.push(who.clone());
        }
    }

    /// Posts `text` in the planner's name, unless the log has the message.
    fn post(&mut self, text: impl FnOnce(&Self) -> String) -> Replayed<()> {
        let planner = &self.ledger.planner;
        match self.take(Kind::Posted, planner) {
            Some(_) => Ok(()),
            None => Err(Step::Post(Message::new(planner.clone(), text(self))).into()),
        }
    }

    fn fill(&self, text: &str, flaw: &str) -> String {
        let schema = Progress::schema(&self.team).to_string();
        let values = [
            ("task", &*task(self.chat)),
            ("team", &self.team()),
            ("names", &self.names()),
            ("facts", &self.facts),
            ("plan", &self.plan),
            ("schema", &schema),
            ("flaw", flaw),
        ];
        filled(text, &values)
    }

    fn names(&self) -> String {
        self.team.iter().map(Name::as_str).collect::<Vec<_>>().join(", ")
    }

    /// The participants with their descriptions.
    fn team(&self) -> String {
        let line = |name: &Name| {
            let known = self.ledger.known.iter().find(|(known, _)| known == name);
            match known.map(|(_, text)| text.trim()).filter(|text| !text.is_empty()) {
                Some(text) => format!("{name}: {text}"),
                None => name.to_string(),
            }
        };
        self.team.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// The task of the chat; after a reopening, that of the reopening.
fn task(chat: &Transcript) -> Cow<'_, str> {
    let again = chat.events().iter().rev().find_map(|event| match &event.body {
        Body::Reopened { message, .. } => message.as_ref(),
        _ => None,
    });
    again.map_or(Cow::Borrowed(chat.task()), Message::text)
}

/// Whether there is progress.
const fn is_moving(progress: &Progress) -> bool {
    progress.is_progress_being_made.answer && !progress.is_in_loop.answer
}
