//! Replays the plan from its start to the first step that is not in the log.

use std::sync::Arc;

use crate::stop::{Counted, LibraryStopReason};
use polylogue_core::{
    Audience, Choice, Chooser, Message, Name, Part, Policy, Step, StopReason, Transcript, TurnRequest,
};

use super::check::Check;
use super::plan::{Discussion, EndMode, GroupSolvePolicy, Plan};
use super::words::{MANAGER, acknowledged, in_private, main_task, role_play, your_turn};
use crate::Assistant;
use crate::policies::replay::{Kind, Replay, ReplayStep};
use crate::tasks::task::Task;
use crate::termination::verdict::Verdict;

impl Policy for GroupSolvePolicy {
    fn next(&self, chat: &Transcript) -> Step {
        self.0.due(chat).step
    }
}

/// The next step: one that is not in the log.
pub(super) struct NextStep<'p> {
    pub(super) step: Step,
    /// Its job, if it is a turn.
    pub(super) job: Option<Job<'p>>,
}

impl NextStep<'_> {
    pub(super) fn is_request(&self, request: &TurnRequest) -> bool {
        matches!(&self.step, Step::Turn(due) if due == request)
    }
}

/// The job of a turn.
pub(super) enum Job<'p> {
    /// Speak about a task.
    Speak(&'p Task),
    /// Remember this text as its own.
    Learn(Arc<str>),
    /// Say whether the task is complete.
    Judge { agent: &'p Assistant, check: &'p Check, keeps: bool },
}

/// A missing step ends the replay.
type Replayed<'p, T> = Result<T, Box<NextStep<'p>>>;

fn due<'p, T>(step: Step, job: Option<Job<'p>>) -> Replayed<'p, T> {
    Err(Box::new(NextStep { step, job }))
}

/// Why a plan without a group ends.
fn tasks_done(tasks: usize) -> StopReason {
    LibraryStopReason::TasksDone { count: tasks as u64 }.into()
}

impl Plan {
    /// The next step of the work; while a turn of it is open, that turn.
    pub(super) fn due(&self, chat: &Transcript) -> NextStep<'_> {
        if let Some((_, reason)) = chat.ended_by() {
            return NextStep { step: Step::close(reason.clone(), chat), job: None };
        }
        let mut work = SolveRun { chat, past: Replay::of(chat), answer: "".into() };
        match work.go(self) {
            Ok(reason) => NextStep { step: Step::Close { reason, summary: work.answer }, job: None },
            Err(due) => *due,
        }
    }
}

struct SolveRun<'a> {
    chat: &'a Transcript,
    past: Replay<'a>,
    /// The last answer.
    answer: Arc<str>,
}

impl<'a> SolveRun<'a> {
    fn go<'p>(&mut self, plan: &'p Plan) -> Replayed<'p, StopReason> {
        plan.before.iter().try_for_each(|task| self.alone(task))?;
        let reason = match &plan.group {
            Some(talk) if talk.tasks.len() == 2 => self.pair(talk)?,
            Some(talk) => self.larger_group(talk)?,
            None => tasks_done(plan.before.len() + plan.after.len()),
        };
        plan.after.iter().try_for_each(|task| self.alone(task))?;
        Ok(reason)
    }

    fn alone<'p>(&mut self, task: &'p Task) -> Replayed<'p, ()> {
        let to = if task.is_forgotten() { Audience::private() } else { only(task) };
        self.solve(task, to)
    }

    /// An agent answers its own task.
    fn solve<'p>(&mut self, task: &'p Task, to: Audience) -> Replayed<'p, ()> {
        let prompt = self.give_task(task, task)?;
        self.speak(task, TurnRequest { who: task.who().clone(), prompt, to, choice: None })
    }

    /// Sends the prompt of `task` to the agent of `to`: in the next turn request, or, with media, as a message before
    /// it.
    fn give_task<'p>(&mut self, task: &Task, to: &Task) -> Replayed<'p, Option<Arc<str>>> {
        let prompt = task.prompt(self.chat.task());
        if !task.has_media() {
            return Ok(Some(prompt));
        }
        self.post(&Name::user(), only(to), task.parts(prompt))?;
        Ok(None)
    }

    fn speak<'p>(&mut self, task: &'p Task, request: TurnRequest) -> Replayed<'p, ()> {
        let step = self.turn(request, Job::Speak(task))?;
        self.answer = step.text().into();
        Ok(())
    }

    fn turn<'p>(&mut self, request: TurnRequest, job: Job<'p>) -> Replayed<'p, ReplayStep<'a>> {
        let kind = if request.to.is_private() { Kind::Private } else { Kind::Chat };
        match self.past.take(kind, &request.who) {
            Some(step) if step.left => due(self.left(&request.who), None),
            Some(step) => Ok(step),
            None => due(Step::Turn(request), Some(job)),
        }
    }

    fn left(&self, who: &Name) -> Step {
        let why = self.chat.left().iter().find(|(gone, _)| gone == who);
        let why = why.map(|(_, why)| why.clone()).unwrap_or_default();
        Step::close(StopReason::Left { who: who.clone(), why }, self.chat)
    }

    fn post<'p>(&mut self, from: &Name, to: Audience, parts: Vec<Part>) -> Replayed<'p, ()> {
        match self.past.take(Kind::Posted, from) {
            Some(_) => Ok(()),
            None => due(Step::Post(Message { to, parts, ..Message::new(from.clone(), "") }), None),
        }
    }

    /// Sends an agent a prompt, with the answer that it remembers.
    fn learn<'p>(&mut self, who: &Task, prompt: Option<Arc<str>>, words: Arc<str>) -> Replayed<'p, ()> {
        let request = TurnRequest { who: who.who().clone(), prompt, to: only(who), choice: None };
        self.turn(request, Job::Learn(words)).map(|_| ())
    }

    /// Two agents: each answers its task alone, then they reply to each other.
    fn pair<'p>(&mut self, talk: &'p Discussion) -> Replayed<'p, StopReason> {
        let [one, two] = talk.tasks.as_slice() else { return Ok(tasks_done(talk.tasks.len())) };
        self.solve(one, only(one))?;
        let first = Arc::clone(&self.answer);
        if talk.reconciles {
            let prompt = self.give_task(one, two)?;
            self.learn(two, prompt, Arc::clone(&first))?;
        }
        self.solve(two, only(two))?;
        let second = Arc::clone(&self.answer);
        if talk.reconciles {
            let prompt = self.give_task(two, one)?;
            self.learn(one, prompt, Arc::clone(&second))?;
        }
        // The last one in the other's history: where both know both answers, that is the second.
        let copied = if talk.owner == 1 && !talk.reconciles { first } else { second };
        let shift = talk.content.clone().unwrap_or(copied);
        let mut end = End::of(talk);
        self.talk(talk, &mut end, Some(shift))
    }

    /// Three or more: a manager assigns the tasks and calls on the speakers, and all see all messages.
    fn larger_group<'p>(&mut self, talk: &'p Discussion) -> Replayed<'p, StopReason> {
        for task in &talk.tasks {
            let prompt = role_play(task.who(), &talk.names).into();
            self.learn(task, Some(prompt), acknowledged(task.who()).into())?;
        }
        let mut end = End::of(talk);
        for task in &talk.tasks {
            if end.is_reached() {
                return Ok(end.reason());
            }
            let text = main_task(task.who(), &task.prompt(self.chat.task()));
            self.call_on(talk, task.parts(text.into()))?;
            self.say(talk, &mut end, task, None)?;
        }
        self.talk(talk, &mut end, None)
    }

    /// The iterations.
    fn talk<'p>(
        &mut self,
        talk: &'p Discussion,
        end: &mut End<'p>,
        mut shift: Option<Arc<str>>,
    ) -> Replayed<'p, StopReason> {
        for _ in 0..talk.max_iterations {
            for task in talk.order() {
                if end.is_reached() {
                    return Ok(end.reason());
                }
                if talk.tasks.len() > 2 {
                    self.call_on(talk, vec![Part::text(your_turn(task.who()))])?;
                }
                self.say(talk, end, task, shift.take())?;
            }
        }
        Ok(end.reason())
    }

    fn call_on<'p>(&mut self, talk: &Discussion, parts: Vec<Part>) -> Replayed<'p, ()> {
        Name::new(MANAGER).map_or(Ok(()), |manager| self.post(&manager, talk.to.clone(), parts))
    }

    /// An agent speaks to the others, and is asked whether its task is complete.
    fn say<'p>(
        &mut self,
        talk: &'p Discussion,
        end: &mut End<'p>,
        task: &'p Task,
        prompt: Option<Arc<str>>,
    ) -> Replayed<'p, ()> {
        let request = TurnRequest { who: task.who().clone(), prompt, to: talk.to.clone(), choice: None };
        let of = talk.order().map(|task| task.who().clone()).collect();
        self.speak(task, request.with_choice(Choice { of, by: Chooser::Order, reply: None }))?;
        end.spoke();
        if let Some(agent) = task.assistant().filter(|_| end.wants(task))
            && self.is_complete(talk, task, agent)?
        {
            end.completed(task);
        }
        Ok(())
    }

    fn is_complete<'p>(
        &mut self,
        talk: &'p Discussion,
        task: &'p Task,
        agent: &'p Assistant,
    ) -> Replayed<'p, bool> {
        let question = talk.check.asks_first();
        let question = if talk.tasks.len() > 2 { in_private(question) } else { question.to_owned() };
        let to = if task.keeps() { only(task) } else { Audience::private() };
        let request =
            TurnRequest { who: task.who().clone(), prompt: Some(question.into()), to, choice: None };
        let step = self.turn(request, Job::Judge { agent, check: &talk.check, keeps: task.keeps() })?;
        Ok(step.message.and_then(Verdict::of).is_some_and(|verdict| verdict.complete))
    }
}

/// The agent alone: only it sees its message.
fn only(task: &Task) -> Audience {
    Audience::Only(vec![task.who().clone()])
}

impl Discussion {
    /// The order of speakers.
    fn order(&self) -> impl Iterator<Item = &Task> {
        let first = if self.tasks.len() == 2 { self.owner } else { 0 };
        self.tasks.iter().cycle().skip(first).take(self.tasks.len())
    }
}

/// The state of completion.
struct End<'p> {
    talk: &'p Discussion,
    complete: Vec<Name>,
    /// The number of remaining turns, once it is known.
    left: Option<u64>,
}

impl<'p> End<'p> {
    const fn of(talk: &'p Discussion) -> Self {
        Self { talk, complete: Vec::new(), left: None }
    }

    /// Counts a turn.
    const fn spoke(&mut self) {
        if let Some(left) = self.left {
            self.left = Some(left.saturating_sub(1));
        }
    }

    /// Whether it matters if the task is complete.
    fn wants(&self, task: &Task) -> bool {
        let counts = self.talk.mode != EndMode::MaxIterations && task.is_flagged();
        counts && self.left.is_none() && !self.complete.contains(task.who())
    }

    fn completed(&mut self, task: &Task) {
        self.complete.push(task.who().clone());
        let flagged = self.talk.tasks.iter().filter(|task| task.is_flagged()).count();
        self.left = match self.talk.mode {
            EndMode::MaxIterations => None,
            EndMode::FirstCompletion => Some(0),
            EndMode::OneLastChat => Some(1),
            EndMode::OneLastGroupChat => Some(self.talk.tasks.len() as u64),
            EndMode::AllComplete => (self.complete.len() == flagged).then_some(0),
        };
    }

    fn is_reached(&self) -> bool {
        self.left == Some(0)
    }

    /// The stop reason.
    fn reason(&self) -> StopReason {
        let completed = StopReason::from(LibraryStopReason::Completed { who: self.complete.clone() });
        let count = self.talk.max_iterations;
        let limit = match self.talk.mode {
            EndMode::MaxIterations => {
                StopReason::from(LibraryStopReason::CountReached { count, of: Counted::Iterations })
            }
            _ => StopReason::from(LibraryStopReason::Rounds { limit: count }),
        };
        match self.left {
            Some(0) => completed,
            // The limit came before the remaining turns.
            Some(_) => StopReason::All(vec![completed, limit]),
            None => limit,
        }
    }
}
