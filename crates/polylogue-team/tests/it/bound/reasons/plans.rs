//! Reasons of patterns with a plan: orchestrators, tasks, groups that solve tasks, and role-plays.

use polylogue::stop::ModelMistake;
use polylogue::tasks::EndMode;
use polylogue_core::{Name, Part};
use polylogue_team::{GroupSolve, Orchestrator, Pattern, RolePlay};
use serde_json::Value;

use super::talk::Past;
use super::{Case, Check, ensure};

impl<'a> Case<'a> {
    fn orchestrator(&self) -> Result<&'a Orchestrator, String> {
        match self.spec.map(|chat| &chat.pattern) {
            Some(Pattern::Orchestrator(keys)) => Ok(keys),
            _ => Err("it has no orchestrator".into()),
        }
    }

    fn group_solve(&self) -> Result<&'a GroupSolve, String> {
        match self.spec.map(|chat| &chat.pattern) {
            Some(Pattern::GroupSolve(keys)) => Ok(keys),
            _ => Err("it has no group that solves tasks".into()),
        }
    }

    fn role_play(&self) -> Option<&'a RolePlay> {
        match self.spec.map(|chat| &chat.pattern) {
            Some(Pattern::RolePlay(keys)) => Some(keys),
            _ => None,
        }
    }

    /// The last ledger of `by` says so.
    pub(super) fn request_satisfied(&self, by: &Name) -> Check {
        let keys = self.orchestrator()?;
        let own = keys.progress_agent.as_ref().unwrap_or(&keys.planner);
        ensure(own.value == *by, format!("`{}` judges it", own.value))?;
        let ledger = self.ledgers(by).last().cloned();
        ensure(ledger.is_some_and(|ledger| is_satisfied(&ledger)), "its last ledger does not say so")
    }

    /// As many plans were made as are allowed, and no ledger says that the request is satisfied.
    pub(super) fn stalled(&self, plans: u64) -> Check {
        let keys = self.orchestrator()?;
        ensure(keys.max_plans == plans, format!("the limit is {}", keys.max_plans))?;
        // After each plan the planner posts a briefing, and before each turn an instruction.
        let posted = self.talk.said().filter(|line| line.via == super::talk::Via::Posted).count() as u64;
        let turns = self.talk.public().count() as u64;
        ensure(posted == plans + turns, format!("{posted} messages were posted for {turns} turns"))?;
        ensure(turns < keys.max_turns, "all turns were taken")?;
        let own = keys.progress_agent.as_ref().unwrap_or(&keys.planner);
        ensure(!self.ledgers(&own.value).iter().any(is_satisfied), "a ledger says that it is satisfied")
    }

    /// The objects in private messages of `who` that are ledgers.
    fn ledgers(&self, who: &Name) -> Vec<Value> {
        let private = self.talk.turns.iter().filter(|turn| turn.is_private && turn.who == who);
        let ledger = |turn: &Past<'_>| {
            let text = turn.text();
            let starts = text.match_indices('{').map(|(at, _)| at);
            let mut objects = starts.filter_map(|at| {
                serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>().next()?.ok()
            });
            objects.find(|value| value.get("is_request_satisfied").is_some())
        };
        private.filter_map(ledger).collect()
    }

    /// Each task had its turns, in order.
    pub(super) fn tasks_done(&self, count: u64) -> Check {
        let tasks: Vec<&Name> = match self.spec.map(|chat| &chat.pattern) {
            Some(Pattern::Tasks(tasks)) => tasks.iter().map(|task| &task.who.value).collect(),
            _ => return Err("it has no tasks".into()),
        };
        ensure(tasks.len() as u64 == count, format!("there are {} tasks", tasks.len()))?;
        let owners: Vec<&Name> =
            self.talk.turns.iter().filter(|turn| !turn.is_for_result()).map(|turn| turn.who).collect();
        ensure(owners == tasks, format!("the turns are those of {owners:?}"))
    }

    /// All iterations: in each, everyone who has a task spoke to the others.
    pub(super) fn iterations(&self, count: u64) -> Check {
        let keys = self.group_solve()?;
        ensure(*keys.end == EndMode::MaxIterations, "it ends otherwise")?;
        ensure(keys.max_iterations == count, format!("the limit is {}", keys.max_iterations))?;
        self.has_iterations(keys, count)
    }

    fn has_iterations(&self, keys: &GroupSolve, count: u64) -> Check {
        let tasks = keys.tasks.len() as u64;
        // Two answer their tasks alone first; in a larger group, everyone begins with its task.
        let wanted = if tasks == 2 { count * tasks } else { (count + 1) * tasks };
        let turns = self.talk.group_turns() as u64;
        ensure(turns == wanted, format!("there are {turns} turns of the group"))
    }

    /// Everyone named judged its task complete, in that order.
    pub(super) fn completed(&self, who: &[Name]) -> Check {
        let keys = self.group_solve()?;
        ensure(*keys.end != EndMode::MaxIterations, "no one is asked whether a task is complete")?;
        let is_complete = |turn: &&Past<'_>| {
            let parts = turn.message().map_or(&[][..], |message| &message.parts);
            let verdict = |part: &Part| match part {
                Part::Data(data) => data.get("verdict")?.get("complete")?.as_bool(),
                _ => None,
            };
            parts.iter().find_map(verdict) == Some(true)
        };
        let judged: Vec<&Name> = self.talk.turns.iter().filter(is_complete).map(|turn| turn.who).collect();
        ensure(judged.iter().copied().eq(who), format!("{judged:?} judged so"))?;
        ensure(!who.is_empty(), "no one did")
    }

    /// Two limits of this name: of role-plays, and of groups that judge their tasks.
    pub(super) fn rounds(&self, limit: u64) -> Check {
        let Some(keys) = self.role_play() else {
            let keys = self.group_solve()?;
            ensure(*keys.end != EndMode::MaxIterations, "it ends otherwise")?;
            ensure(keys.max_iterations == limit, format!("the limit is {}", keys.max_iterations))?;
            return self.has_iterations(keys, limit);
        };
        ensure(keys.max_rounds == limit, format!("the limit is {}", keys.max_rounds))?;
        let spoken = self.spoken();
        ensure(spoken / 2 == limit, format!("{spoken} messages are {} rounds", spoken / 2))
    }

    pub(super) fn role_play_messages(&self, limit: u64) -> Check {
        let set = self.role_play().and_then(|keys| keys.max_messages);
        ensure(set == Some(limit), format!("the limit is {set:?}"))?;
        let spoken = self.spoken();
        ensure(spoken == limit, format!("there are {spoken} messages"))
    }

    /// Turns in which something was said.
    fn spoken(&self) -> u64 {
        self.talk.public().filter(|turn| !turn.is_silent()).count() as u64
    }

    /// Whether `text` is the marker of a role-play.
    pub(super) fn is_marker(&self, text: &str) -> bool {
        self.role_play().is_some_and(|keys| keys.done.text.as_str() == text)
    }

    /// The role that instructs wrote the marker last, and not before.
    pub(super) fn said_marker(&self, text: &str, by: &Name) -> Check {
        let keys = self.role_play().ok_or("it has no marker")?;
        let marker = text.trim().to_lowercase();
        let is_said = |said: &str| {
            let said = said.to_lowercase();
            let bare = |text: &str| text.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
            said.contains(&marker) && (keys.done.anywhere || bare(&said) == bare(&marker))
        };
        let own: Vec<_> = self.talk.said().filter(|line| line.message.from == *by).collect();
        let last = self.talk.latest().any(|line| line.message.from == *by && is_said(&line.text()));
        ensure(last, "the last message has no marker")?;
        let before = own.iter().filter(|line| line.step < self.talk.steps).any(|line| is_said(&line.text()));
        ensure(!before, "it was said before")?;
        let first = self.talk.public().next().map(|turn| turn.who);
        ensure(first == Some(by), "it is not the role that instructs")
    }

    /// The last messages of a role: blank ones, those without an instruction, or those that instruct.
    pub(super) fn role_play_errors(&self, who: &Name, of: &ModelMistake, limit: u64) -> Check {
        let keys = self.role_play().ok_or("no agent ended its turn with it")?;
        let last = usize::try_from(limit).unwrap();
        match of {
            ModelMistake::Reply => {
                let own = self.talk.turns.iter().rev().take(2);
                let own: Vec<_> = own.filter(|turn| turn.who == who && turn.is_silent()).collect();
                ensure(limit == 1 && own.len() == 2, "it was not silent twice")
            }
            ModelMistake::Role => {
                let is_user = self.talk.public().next().is_some_and(|turn| turn.who == who);
                let set = if is_user { keys.max_uninstructed } else { keys.max_flips.unwrap_or(1) };
                ensure(set == last, format!("the limit is {set}"))?;
                let spoke = self.talk.public().rev().filter(|turn| turn.who == who && !turn.is_silent());
                let texts: Vec<String> = spoke.take(last).map(Past::text).collect();
                let is_wrong = |text: &String| text.contains("Instruction") != is_user;
                ensure(texts.len() == last && texts.iter().all(is_wrong), "it kept to its role")
            }
            _ => Err("a role-play does not count these".into()),
        }
    }
}

fn is_satisfied(ledger: &Value) -> bool {
    ledger.pointer("/is_request_satisfied/answer") == Some(&Value::Bool(true))
}
