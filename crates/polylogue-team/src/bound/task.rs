//! The turns of tasks: those that are solved alone, and discussions.

use polylogue::tasks::EndMode;
use polylogue::{Name, Result};

use super::amount::{Effect, Sum};
use super::asked::starts_background;
use super::case::{MESSAGE, filled};
use super::scene::Scene;
use super::speaker::Speaker;
use super::summaries;
use super::walk::{Walk, introduction};
use crate::build::{AgentBuilder, BuildScope};
use crate::pattern::{GroupSolve, Task};

/// Bytes of the texts of a discussion in each turn.
const WORDS: u128 = 1_000;

impl Walk<'_> {
    /// A task that an agent solves alone.
    pub(super) fn alone<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        task: &'a Task,
    ) -> Result<()> {
        let effect = self.work(builder, scene, task)?;
        let said = effect.message.saturating_add(effect.kept).saturating_add(MESSAGE);
        scene.keep(task.who.as_str(), said);
        scene.longest = scene.longest.max(effect.message);
        scene.sum.add(effect.sum);
        Ok(())
    }

    /// A turn of the agent of `task`, after its prompt.
    fn work<'a>(&mut self, builder: &AgentBuilder<'a>, scene: &mut Scene, task: &'a Task) -> Result<Effect> {
        let prompt = self.prompt_of(scene, task);
        scene.keep(task.who.as_str(), prompt);
        self.worker(builder, scene, task, prompt)
    }

    /// A turn of the agent of `task`, with the tools of the task, which answers a text of `last` bytes.
    fn worker<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        task: &'a Task,
        last: u128,
    ) -> Result<Effect> {
        let found = builder.team.agents.iter().find(|agent| agent.name == task.who);
        let found = found.and_then(|agent| Some((agent, agent.plain()?)));
        let (Some((agent, keys)), false) = (found, task.tools.is_empty() && task.output_schema.is_none())
        else {
            return self.prompted(builder, scene, &task.who, last);
        };
        let Some(assistant) = builder.worker(task, &BuildScope::default())? else {
            return Ok(Effect::default());
        };
        let mut of_task = keys.clone();
        of_task.tools.value.extend(task.tools.iter().cloned());
        of_task.output_schema = task.output_schema.clone().or(of_task.output_schema);
        let model = builder.model_of(&agent.name, keys.model.as_ref().map(|model| model.as_str()))?;
        let speaker =
            Speaker::of(agent, &of_task, &assistant, model)?.with_attempts(self.attempts_of(builder, keys));
        let summaries = summaries::of_agent(self.root, builder, (agent, keys), speaker.default_summaries())?;
        let speaker = speaker.compacted(summaries);
        self.note_model(&speaker, (builder.name, &agent.name));
        let context = speaker.view(self.case, scene, scene.seen_by(agent.name.as_str()));
        let (case, of_chat) = (self.case, scene.task);
        let act = |results: u128| speaker.task_turn(case, context.saturating_add(results), of_chat, last);
        let caller = Some(&speaker).filter(|speaker| speaker.calls_functions(case));
        self.with_agent_tools(builder, scene, (agent, keys), (caller, act))
    }

    /// Bytes of the prompt of `task`, with the words around it.
    fn prompt_of(&mut self, scene: &Scene, task: &Task) -> u128 {
        let attached = self.attached(&task.media);
        let media = self.bytes_of(attached);
        filled(&task.prompt, scene.task).saturating_add(media).saturating_add(MESSAGE).saturating_add(WORDS)
    }

    /// A discussion of tasks, with the tasks before and after it.
    pub(super) fn group_solve<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        given: &'a GroupSolve,
    ) -> Result<()> {
        given.before.iter().try_for_each(|task| self.alone(builder, scene, task))?;
        let count = given.tasks.len() as u128;
        let is_pair = count == 2;
        // The introduction in a larger group names the others.
        let named: u128 = given.tasks.iter().map(|task| task.who.as_str().len() as u128 + 2).sum();
        for task in &given.tasks {
            // In a pair, each speaks alone first, and can then learn the task and the answer of the other one.
            if is_pair && !*given.reconcile {
                self.alone(builder, scene, task)?;
                continue;
            }
            scene.keep(task.who.as_str(), if is_pair { 0 } else { named });
            let effect = self.work(builder, scene, task)?;
            scene.sum.add(effect.sum);
            scene.keep(task.who.as_str(), effect.kept);
            let bytes = effect.message.saturating_add(self.prompt_of(scene, task));
            scene.post(introduction(builder.team, &task.who), bytes);
            if !is_pair {
                self.judge(builder, scene, (given, task))?;
            }
        }
        let shift = given.shift.says.as_ref().map_or(scene.longest, |text| text.len() as u128);
        scene.post(0, shift);
        let turns = self.case.times(given.max_iterations.into(), 3).saturating_mul(count);
        // In a pair, the one that receives the first message speaks first: by default, the second.
        let is_to = |to: &Name| given.tasks.iter().position(|task| task.who == *to);
        let first = if is_pair { given.shift.to.as_ref().and_then(is_to).unwrap_or(1) } else { 0 };
        // A manager calls on the speakers of larger groups.
        let words = if is_pair { 0 } else { WORDS };
        self.repeat(scene, (turns, count), |walk, scene, nth| {
            let at = usize::try_from((nth + first as u128) % count.max(1)).unwrap_or_default();
            let Some(task) = given.tasks.get(at) else { return Ok(()) };
            let effect = walk.worker(builder, scene, task, scene.longest)?;
            scene.sum.add(effect.sum);
            scene.keep(task.who.as_str(), effect.kept);
            scene.post(introduction(builder.team, &task.who), effect.message.saturating_add(words));
            walk.judge(builder, scene, (given, task))
        })?;
        given.after.iter().try_for_each(|task| self.alone(builder, scene, task))
    }

    /// The questions that ask an agent whether its task is complete: what remains, the decision, and once more.
    fn judge<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        (given, task): (&GroupSolve, &'a Task),
    ) -> Result<()> {
        if !*task.self_terminating || *given.end == EndMode::MaxIterations {
            return Ok(());
        }
        let before = scene.own.get(task.who.as_str()).copied();
        let (question, mut sum) = (question_of(given), Sum::default());
        for _ in 0..self.case.times(3, 2) {
            scene.keep(task.who.as_str(), question);
            let effect = self.participant(builder, scene, &task.who)?;
            scene.keep(task.who.as_str(), effect.message.saturating_add(MESSAGE));
            sum.add(effect.sum);
        }
        if !*task.keeps_reflections && !starts_background(builder, scene, &task.who) {
            // It forgets private turns, but for results of background tasks.
            scene.own.insert(task.who.to_string(), before.unwrap_or_default());
        }
        scene.sum.add(sum);
        Ok(())
    }
}

/// The most bytes of a question whether a task is complete.
fn question_of(given: &GroupSolve) -> u128 {
    let own = [&given.check.reflection, &given.check.decision, &given.check.again];
    let longest = own.into_iter().flatten().map(String::len).max().unwrap_or_default();
    WORDS.saturating_add(longest as u128)
}
