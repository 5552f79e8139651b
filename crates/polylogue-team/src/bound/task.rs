//! The turns of tasks: role-play, tasks that are solved alone, and discussions.

use std::rc::Rc;

use polylogue::agents::reason::ChoiceTexts;
use polylogue::tasks::EndMode;
use polylogue::{Name, Result};

use super::amount::{Effect, Sum};
use super::case::{MESSAGE, filled};
use super::reasoning::{Choice, Helper};
use super::scene::{Scene, overhead};
use super::speaker::Speaker;
use super::summaries;
use super::walk::{Walk, introduction};
use crate::build::{AgentBuilder, BuildScope};
use crate::pattern::{GroupSolve, RolePlay, Task};

/// Bytes of the rules of a role without the task, and how often they quote it.
const RULES: u128 = 6_000;
const QUOTES: u128 = 6;

/// Bytes of the texts of a discussion in each turn.
const WORDS: u128 = 1_000;

/// Tokens of a picture, a sound or a document, as a call is reserved.
pub(super) const MEDIA: u128 = polylogue_core::Bound::MEDIA_TOKENS as u128;

/// The most bytes with which a role-play opens: the rules of both roles.
pub(super) const fn role_play_opening(task: u128) -> u128 {
    RULES.saturating_add(task.saturating_mul(QUOTES)).saturating_mul(2)
}

impl Walk<'_> {
    /// A role-play: a specifier and a planner, then messages of both roles.
    pub(super) fn role_play<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        given: &RolePlay,
    ) -> Result<()> {
        // A blank answer is asked for again.
        let tries = self.case.times(2, 1);
        let before =
            given.specifier.as_ref().map(|specifier| &specifier.who).into_iter().chain(&given.planner);
        for who in before {
            for _ in 0..tries {
                let said = self.ask(builder, scene, who, RULES.saturating_add(scene.task))?;
                scene.task = scene.task.saturating_add(said);
            }
        }
        let rules = RULES.saturating_add(scene.task.saturating_mul(QUOTES));
        let roles = [&*given.user.who, &*given.assistant.who];
        let by_user = introduction(builder.team, &Name::user());
        scene.post(by_user, rules);
        scene.pin();
        scene.free.prompts = scene.free.prompts.saturating_add(rules).saturating_add(overhead(by_user));
        let rounds = self.case.times(given.max_rounds.into(), 3).saturating_mul(2).saturating_add(1);
        let messages = rounds.min(given.max_messages.map_or(u128::MAX, u128::from));
        let turns = messages.saturating_mul(tries);
        let turns = turns.min(self.max_turns.map_or(u128::MAX, u128::from));
        self.repeat(scene, (turns, 2 * tries), |walk, scene, nth| {
            let second = (nth / tries) % 2 == 1;
            let who = if second { roles[1] } else { roles[0] };
            walk.play(builder, scene, (who, rules), given)
        })
    }

    /// A message of the role `who`: the best of several proposals, if there is a critic.
    fn play<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        (who, rules): (&Name, u128),
        given: &RolePlay,
    ) -> Result<()> {
        let Some(player) = self.player(builder, who, rules)? else { return Ok(()) };
        let critic = given.critic.as_ref().filter(|critic| critic.options > 1);
        let effect = match critic {
            None => self.helps(builder, scene, &player)?,
            Some(critic) => {
                let chooser = self.player(builder, &critic.who, rules)?;
                let texts = critic.texts.clone().unwrap_or_default().over(ChoiceTexts::default());
                let choice =
                    Choice { options: critic.options as u128, retries: critic.retries.into(), texts };
                let (message, sum) = self.apart(scene, |walk, scene| {
                    walk.best_of(builder, scene, (&player, chooser.as_ref()), &choice)
                })?;
                Effect { sum, message, ..Effect::default() }
            }
        };
        let introduction = introduction(builder.team, who);
        scene.take(introduction, effect);
        scene.keep(who.as_str(), effect.kept);
        scene.post(introduction, effect.message);
        Ok(())
    }

    /// The agent `who` with rules of so many bytes; `None` if it is a person.
    fn player<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        who: &Name,
        rules: u128,
    ) -> Result<Option<Helper<'a>>> {
        let found = builder.team.agents.iter().find(|agent| agent.name == *who);
        let Some((agent, keys)) = found.and_then(|agent| Some((agent, agent.model()?))) else {
            self.has_people = true;
            return Ok(None);
        };
        let speaker = Rc::new(self.assistant(builder, agent, keys)?.with_system(rules));
        Ok(Some(Helper { agent, keys, speaker, has_tools: true }))
    }

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
        let prompt = prompt_of(scene, task);
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
        let effect = speaker.task_turn(self.case, context, scene.task, last);
        self.with_agent_tools(builder, scene, (agent, keys), effect)
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
        for task in &given.tasks {
            // In a pair, each speaks alone first, and can then learn the task and the answer of the other one.
            if is_pair && !*given.reconcile {
                self.alone(builder, scene, task)?;
                continue;
            }
            let effect = self.work(builder, scene, task)?;
            scene.sum.add(effect.sum);
            scene.keep(task.who.as_str(), effect.kept);
            let bytes = effect.message.saturating_add(prompt_of(scene, task));
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
        let mut sum = Sum::default();
        for _ in 0..self.case.times(3, 2) {
            scene.keep(task.who.as_str(), WORDS);
            let effect = self.participant(builder, scene, &task.who)?;
            scene.keep(task.who.as_str(), effect.message.saturating_add(MESSAGE));
            sum.add(effect.sum);
        }
        if !*task.keeps_reflections {
            // It forgets private turns.
            scene.own.insert(task.who.to_string(), before.unwrap_or_default());
        }
        scene.sum.add(sum);
        Ok(())
    }
}

/// Bytes of the prompt of `task`, with the words around it.
fn prompt_of(scene: &Scene, task: &Task) -> u128 {
    let media = (task.media.len() as u128).saturating_mul(MEDIA);
    let prompt = filled(&task.prompt, scene.task);
    prompt.saturating_add(media).saturating_add(MESSAGE).saturating_add(WORDS)
}
