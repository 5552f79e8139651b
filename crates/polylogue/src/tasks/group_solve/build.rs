//! Builds the chat, or reports what is wrong.

use std::sync::Arc;

use polylogue_core::{Audience, Chat, ChatBuilder, Error, Name, Result};

use super::member::Member;
use super::plan::{Discussion, EndMode, GroupSolvePolicy, Plan};
use super::words::MANAGER;
use super::{Group, GroupSolve};
use crate::tasks::task::Task;

impl GroupSolve {
    /// The chat.
    ///
    /// # Errors
    /// When settings do not fit together; checked before any model call.
    pub fn chat(self, name: &str) -> Result<Chat> {
        let (chat, policy) = self.begin(name)?;
        chat.policy(policy).build()
    }

    /// The chat without its policy, and its policy, to configure the chat further, or to wrap the policy, as in
    /// `until(max_cost(..), policy)`.
    ///
    /// # Errors
    /// As [`chat`](Self::chat).
    pub fn begin(self, name: &str) -> Result<(ChatBuilder, GroupSolvePolicy)> {
        let Self { before, group, after } = self;
        before.iter().chain(&after).try_for_each(check_alone)?;
        let group = group.map(|group| group.checked(&before, &after)).transpose()?;
        let plan = Plan { before, group, after };
        let plan = Arc::new(plan);
        let mut chat = Chat::named(name).opening(|_| Vec::new()).max_turns(plan.cap());
        for (who, is_member) in plan.agents() {
            let agent = Member::new(who, Arc::clone(&plan));
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

fn wrong<T>(what: impl Into<String>) -> Result<T> {
    Err(Error::config(what.into()))
}

/// Whether a solo task has no settings for groups.
fn check_alone(task: &Task) -> Result<()> {
    task.check()?;
    if !task.is_flagged() && !task.keeps() {
        return Ok(());
    }
    let (who, what) = (task.who(), if task.is_flagged() { "stops by itself" } else { "keeps reflections" });
    wrong(format!(
        "the task of `{who}` {what}, but is solved alone, where it is not asked whether it is complete: that is for tasks of a \
         group"
    ))
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
            return wrong("a group needs at least two tasks; to solve one alone, use `tasks::tasks`");
        }
        if self.max_iterations == 0 {
            return wrong("a group needs at least 1 iteration; got `max_iterations(0)`");
        }
        let shifts = self.owner.is_some() || self.content.is_some();
        if self.tasks.len() > 2 && (shifts || self.reconciles) {
            return wrong(
                "the recipient of the first message, its text, and reconciled first messages are settings of two tasks; \
                 in a larger group every agent receives all messages from the beginning",
            );
        }
        Ok(())
    }

    fn check_names(&self) -> Result<()> {
        for (index, task) in self.tasks.iter().enumerate() {
            let who = task.who();
            if self.tasks.iter().take(index).any(|other| other.who() == who) {
                return wrong(format!("two tasks of the group are of `{who}`, who would talk to itself"));
            }
            if self.tasks.len() > 2 && who.as_str() == MANAGER {
                return wrong(format!(
                    "no agent of a larger group can be named `{MANAGER}`, who gives the tasks"
                ));
            }
        }
        Ok(())
    }

    fn check_flags(&self) -> Result<()> {
        for task in &self.tasks {
            task.check()?;
            let who = task.who();
            if task.is_forgotten() {
                return wrong(format!("the task of `{who}` forgets, and a talk needs what was said in it"));
            }
            if task.keeps() && !task.is_flagged() {
                return wrong(format!(
                    "the task of `{who}` keeps reflections, but is never reflected on: it needs `self_terminating`, too"
                ));
            }
        }
        if self.mode != EndMode::MaxIterations && !self.tasks.iter().any(Task::is_flagged) {
            return wrong(
                "the group ends when a task is complete, but no agent is asked whether one is: give a task `self_terminating`, \
                 or end by `EndMode::MaxIterations`",
            );
        }
        Ok(())
    }

    /// The index of the task whose agent gets the first message.
    fn owner(&self) -> Result<usize> {
        let Some(owner) = &self.owner else { return Ok(1) };
        let found = self.tasks.iter().position(|task| task.who().as_str() == owner);
        found.map_or_else(
            || {
                let names: Vec<_> = self.tasks.iter().map(|task| format!("`{}`", task.who())).collect();
                let names = names.join(" and ");
                wrong(format!("`{owner}` is to be told the first message, but the tasks are of {names}"))
            },
            Ok,
        )
    }
}
