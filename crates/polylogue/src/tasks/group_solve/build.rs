//! Builds the chat, or reports what is wrong.

use std::sync::Arc;

use polylogue_core::{Audience, Chat, ChatBuilder, Error, Name, PatternError, Result, UnknownName};

use super::participant::Participant;
use super::plan::{Discussion, EndMode, GroupSolvePolicy, Plan};
use super::words::MANAGER;
use super::{Group, GroupSolve};
use crate::tasks::task::Task;

impl GroupSolve {
    /// Builds the chat.
    ///
    /// # Errors
    /// When settings do not fit together; checked before any model call.
    pub fn build(self, name: impl AsRef<str>) -> Result<Chat> {
        let (chat, policy) = self.into_parts(name.as_ref())?;
        chat.policy(policy).build()
    }

    /// Returns the chat without its policy, and its policy, to configure the chat further, or to wrap the policy, as in
    /// `with_termination(policy, max_cost(..))`.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn into_parts(self, name: &str) -> Result<(ChatBuilder, GroupSolvePolicy)> {
        let Self { before, group, after } = self;
        before.iter().chain(&after).try_for_each(check_alone)?;
        let group = group.map(|group| group.checked(&before, &after)).transpose()?;
        let plan = Plan { before, group, after };
        let plan = Arc::new(plan);
        let mut chat = Chat::builder(name).opening(|_| Vec::new()).max_turns(plan.cap());
        for (who, is_member) in plan.agents() {
            let agent = Participant::new(who, Arc::clone(&plan));
            chat = if is_member { chat.participant(agent) } else { chat.private_agent(agent) };
        }
        Ok((chat, GroupSolvePolicy(plan)))
    }
}

impl Plan {
    pub(super) fn tasks(&self) -> impl Iterator<Item = &Task> {
        let group = self.group.iter().flat_map(|group| &group.tasks);
        group.chain(&self.before).chain(&self.after)
    }

    /// All agents, and whether they are participants: those with only solo tasks, while others talk, are private
    /// agents.
    fn agents(&self) -> Vec<(Name, bool)> {
        let mut agents: Vec<(Name, bool)> = Vec::new();
        for task in self.tasks() {
            if !agents.iter().any(|(who, _)| who == task.who()) {
                let talks = self.group.as_ref().is_none_or(|group| group.names.contains(task.who()));
                agents.push((task.who().clone(), talks));
            }
        }
        agents
    }

    /// An upper bound on the number of turns.
    fn cap(&self) -> u64 {
        let alone = self.before.len() as u64 + self.after.len() as u64;
        let talk = self.group.as_ref().map_or(0, |group| {
            let size = group.tasks.len() as u64;
            // Each agent learns, answers its task and reflects; then speaks and reflects repeatedly.
            size.saturating_mul(group.max_iterations.saturating_mul(2).saturating_add(3))
        });
        talk.saturating_add(alone).saturating_add(1)
    }
}

/// Whether a solo task has no settings for groups.
fn check_alone(task: &Task) -> Result<()> {
    task.check()?;
    if !task.is_flagged() && !task.keeps() {
        return Ok(());
    }
    let has = if task.is_flagged() { "stops by itself" } else { "keeps reflections" };
    let but = "is solved alone, where it is not asked whether it is complete";
    Err(task.conflict(has, but, "that is a setting for tasks of a group"))
}

impl Group {
    fn checked(self, before: &[Task], after: &[Task]) -> Result<Discussion> {
        self.check_size()?;
        self.check_names()?;
        self.check_flags()?;
        self.check.validate()?;
        let owner = self.owner()?;
        let names: Vec<Name> = self.tasks.iter().map(|task| task.who().clone()).collect();
        let has_others = before.iter().chain(after).any(|task| !names.contains(task.who()));
        let to = if has_others { Audience::Only(names.clone()) } else { Audience::All };
        let Self { tasks, mode, max_iterations, content, reconciles, check, .. } = self;
        Ok(Discussion { tasks, names, to, mode, max_iterations, owner, content, reconciles, check })
    }

    fn check_size(&self) -> Result<()> {
        if self.tasks.len() < 2 {
            return Err(too_few("task", 2));
        }
        if self.max_iterations == 0 {
            return Err(too_few("iteration", 1));
        }
        let shifts = self.owner.is_some() || self.content.is_some();
        if self.tasks.len() > 2 && (shifts || self.reconciles) {
            return Err(conflict(
                "sets the recipient or the text of the first message, or reconciles first messages",
                "has more than two tasks",
                "in a larger group every agent receives all messages from the beginning",
            ));
        }
        Ok(())
    }

    fn check_names(&self) -> Result<()> {
        for (index, task) in self.tasks.iter().enumerate() {
            let who = task.who();
            if self.tasks.iter().take(index).any(|other| other.who() == who) {
                return Err(PatternError::ListedTwice { kind: "agent", name: who.to_string() }.into());
            }
            if self.tasks.len() > 2 && who.as_str() == MANAGER {
                let has = format!("has an agent named `{MANAGER}`");
                return Err(conflict(&has, "gives its tasks by this name", "rename the agent"));
            }
        }
        Ok(())
    }

    fn check_flags(&self) -> Result<()> {
        for task in &self.tasks {
            task.check()?;
            if task.is_forgotten() {
                let but = "the agents of a group need its messages";
                return Err(task.conflict("forgets", but, "solve it alone, before or after the group"));
            }
            if task.keeps() && !task.is_flagged() {
                return Err(task.conflict(
                    "keeps reflections",
                    "is never reflected on",
                    "make it `self_terminating`, too",
                ));
            }
        }
        if self.mode != EndMode::MaxIterations && !self.tasks.iter().any(Task::is_flagged) {
            return Err(conflict(
                "ends when a task is complete",
                "asks no agent whether one is",
                "make a task `self_terminating`, or end by `EndMode::MaxIterations`",
            ));
        }
        Ok(())
    }

    /// The index of the task whose agent gets the first message.
    fn owner(&self) -> Result<usize> {
        let Some(owner) = &self.owner else { return Ok(1) };
        let found = self.tasks.iter().position(|task| task.who().as_str() == owner);
        found.ok_or_else(|| {
            let unknown = UnknownName::new("agent", owner).within("as the recipient of the first message");
            unknown.known(self.tasks.iter().map(Task::who)).into()
        })
    }
}

fn too_few(what: &'static str, least: u64) -> Error {
    PatternError::TooFew { of: "a group", what, least }.into()
}

fn conflict(has: &str, but: &str, hint: &'static str) -> Error {
    let of = "the group".into();
    PatternError::Conflict { of, has: has.into(), but: but.into(), hint: Some(hint) }.into()
}
