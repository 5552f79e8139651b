//! An agent with tasks; the plan says which one is next.

use std::sync::Arc;

use polylogue_core::{Act, Agent, HistoryEntry, Name, Result, Turn, text_of};

use super::check::Check;
use super::plan::Plan;
use super::run::{Job, NextStep};
use crate::Assistant;
use crate::tasks::task::Task;
use crate::termination::verdict::Verdict;

/// An agent of the plan. In its turn it finds its current task in the log.
pub(super) struct Participant {
    who: Name,
    plan: Arc<Plan>,
}

impl Participant {
    pub(super) const fn new(who: Name, plan: Arc<Plan>) -> Self {
        Self { who, plan }
    }

    fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.plan.tasks().filter(|task| *task.who() == self.who)
    }
}

impl Agent for Participant {
    fn name(&self) -> &Name {
        &self.who
    }

    fn description(&self) -> &str {
        self.tasks().map(Task::description).find(|text| !text.is_empty()).unwrap_or_default()
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let due = self.plan.due(turn.transcript());
        match job(&due, turn) {
            Some(Job::Speak(task)) => task.work(turn).await,
            Some(Job::Learn(words)) => {
                turn.remember(vec![HistoryEntry::Sent(Arc::clone(words))]).await?;
                Ok(Act::Pass)
            }
            Some(Job::Judge { agent, check, keeps }) => judge(agent, check, *keeps, turn).await,
            // Another policy gave it the turn, such as one that asks for a summary.
            None => match self.tasks().next() {
                Some(task) => task.work(turn).await,
                None => Ok(Act::Pass),
            },
        }
    }
}

/// The job of the turn, if it is part of the plan.
fn job<'d, 'p>(due: &'d NextStep<'p>, turn: &Turn<'_>) -> Option<&'d Job<'p>> {
    due.job.as_ref().filter(|_| due.is_request(turn.request()))
}

/// The agent says what is left to do, and decides whether anything is.
async fn judge(agent: &Assistant, check: &Check, keeps: bool, turn: &mut Turn<'_>) -> Result<Act> {
    let thinker = agent.clone().without_tools();
    let opinion = act_text(&thinker.act(turn).await?);
    let mut verdict = Verdict::of_reply("", None);
    let keeps_to_schemas = thinker.keeps_to_schemas(turn);
    for (question, decider) in check.asks_then(thinker, keeps_to_schemas) {
        turn.prompt(question).await?;
        let reply = act_text(&decider.act(turn).await?);
        verdict = Verdict::of_reply(&reply, check.read(&reply));
        if !verdict.unclear {
            break;
        }
    }
    let opinion: Arc<str> = opinion.into();
    if keeps {
        turn.remember(vec![HistoryEntry::Sent(Arc::clone(&opinion))]).await?;
    }
    Ok(Act::Say(vec![polylogue_core::Part::Text(opinion), verdict.part()]))
}

fn act_text(act: &Act) -> String {
    if let Act::Say(parts) = act { text_of(parts).into_owned() } else { String::new() }
}
