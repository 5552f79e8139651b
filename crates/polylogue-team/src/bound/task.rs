//! The turns of tasks: role-play, tasks that are solved alone, and discussions.

use polylogue::tasks::EndMode;
use polylogue::{Name, Result};

use super::amount::{Effect, Sum};
use super::case::{MESSAGE, PROMPT};
use super::scene::{Scene, overhead};
use super::speaker::Speaker;
use super::summaries;
use super::walk::Walk;
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
        scene.post(roles[0].as_str().len(), rules);
        scene.free.prompts =
            scene.free.prompts.saturating_add(rules).saturating_add(overhead(roles[0].as_str().len()));
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
        let Some(speaker) = self.plain_agent(builder, who)? else { return Ok(()) };
        let speaker = speaker.with_system(rules);
        let context = scene.seen_by(who.as_str());
        let proposal = speaker.turn(self.case, speaker.view(self.case, context, scene.longest), scene.task);
        let mut sum = proposal.sum;
        if let Some(critic) = given.critic.as_ref().filter(|critic| critic.options > 1) {
            let options = critic.options as u128;
            sum.add_times(proposal.sum, options - 1);
            if let Some(chooser) = self.plain_agent(builder, &critic.who)? {
                // Every choice continues the conversation with the critic.
                let prompt = options.saturating_mul(proposal.message.saturating_add(PROMPT));
                let asked = prompt.saturating_add(PROMPT).saturating_add(MESSAGE);
                for _ in 0..=self.case.times(critic.retries.into(), 0) {
                    scene.keep(critic.who.as_str(), asked);
                    let own = scene.own.get(critic.who.as_str()).copied().unwrap_or_default();
                    let choice = chooser.with_system(rules).turn(self.case, own, scene.task);
                    scene.keep(critic.who.as_str(), choice.message.saturating_add(MESSAGE));
                    self.note(&scene.chat, critic.who.as_str(), choice.sum);
                    scene.sum.add(choice.sum);
                }
            }
        }
        self.note(&scene.chat, who.as_str(), sum);
        scene.take(who.as_str().len(), Effect { sum, ..proposal });
        scene.keep(who.as_str(), proposal.kept);
        scene.post(who.as_str().len(), proposal.message);
        Ok(())
    }

    fn plain_agent<'a>(&mut self, builder: &AgentBuilder<'a>, who: &Name) -> Result<Option<Speaker>> {
        let found = builder.team.agents.iter().find(|agent| agent.name == *who);
        match found.and_then(|agent| Some((agent, agent.model()?))) {
            Some((agent, keys)) => self.assistant(builder, agent, keys).map(|of| Some(Speaker::clone(&of))),
            None => {
                self.has_people = true;
                Ok(None)
            }
        }
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
            return self.participant(builder, scene, &task.who);
        };
        let Some(assistant) = builder.worker(task, &BuildScope::default())? else {
            return Ok(Effect::default());
        };
        let mut keys = keys.clone();
        keys.tools.value.extend(task.tools.iter().cloned());
        keys.output_schema = task.output_schema.clone().or(keys.output_schema);
        let model = builder.model_of(&agent.name, keys.model.as_ref().map(|model| model.as_str()))?;
        let speaker =
            Speaker::of(agent, &keys, &assistant, model)?.with_attempts(self.attempts_of(builder, &keys));
        let summaries = summaries::of_agent(self.root, builder, (agent, &keys), speaker.default_summaries())?;
        let speaker = speaker.compacted(summaries);
        self.note_model(&speaker, (builder.name, &agent.name));
        let context = scene.seen_by(agent.name.as_str());
        let context = speaker.view(self.case, context, scene.longest);
        let effect = speaker.task_turn(self.case, context, scene.task, last);
        self.note(&scene.chat, agent.name.as_str(), effect.sum);
        Ok(effect)
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
            scene.post(task.who.as_str().len(), effect.message.saturating_add(prompt_of(scene, task)));
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
            scene.post(task.who.as_str().len(), effect.message.saturating_add(words));
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
    let quotes = task.prompt.fill("x").len().saturating_sub(task.prompt.fill("").len()) as u128;
    let prompt = (task.prompt.fill("").len() as u128).saturating_add(quotes.saturating_mul(scene.task));
    prompt.saturating_add(media).saturating_add(MESSAGE).saturating_add(WORDS)
}
