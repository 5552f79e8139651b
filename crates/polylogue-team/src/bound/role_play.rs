//! The turns of a role-play: a specifier and a planner, then messages of both roles, each the best of several if there is a critic.

use std::rc::Rc;

use polylogue::agents::reason::ChoiceTexts;
use polylogue::{Name, Result};

use super::amount::Effect;
use super::reasoning::{Choice, Helper};
use super::scene::{Scene, overhead};
use super::walk::{Added, Walk, introduction};
use crate::build::AgentBuilder;
use crate::pattern::RolePlay;

impl Walk<'_> {
    /// The texts that `given` adds to requests.
    pub(super) fn added(&mut self, builder: &AgentBuilder<'_>, given: &RolePlay) -> Result<Added> {
        let key = std::ptr::from_ref(given).addr();
        if let Some(found) = self.computed.added.get(&key) {
            return Ok(*found);
        }
        let added = Added::of(&given.cast(&builder.agents())?);
        self.computed.added.insert(key, added);
        Ok(added)
    }

    /// A role-play.
    pub(super) fn role_play<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        given: &RolePlay,
    ) -> Result<()> {
        let (added, idea) = (self.added(builder, given)?, scene.task);
        if let Some(specifier) = &given.specifier {
            let said = self.prepare(builder, scene, &specifier.who, added.specifier.with(idea))?;
            scene.task = idea.max(said);
        }
        if let Some(planner) = &given.planner {
            let said = self.prepare(builder, scene, planner, added.planner.with(scene.task))?;
            // In a line of its own.
            scene.task = scene.task.saturating_add(said).saturating_add(1);
        }
        let (by_user, opening) = (introduction(builder.team, &Name::user()), added.opening.with(idea));
        scene.post(by_user, opening);
        scene.pin();
        scene.free.prompts = scene.free.prompts.saturating_add(opening).saturating_add(overhead(by_user));
        let roles = [(&*given.user.who, added.user), (&*given.assistant.who, added.assistant)];
        let rules = roles.map(|(who, rules)| (who, rules.with(scene.task)));
        // A blank message is asked for again.
        let tries = self.case.times(2, 1);
        let rounds = self.case.times(given.max_rounds.into(), 3).saturating_mul(2).saturating_add(1);
        let messages = rounds.min(given.max_messages.map_or(u128::MAX, u128::from));
        let turns = messages.saturating_mul(tries);
        let turns = turns.min(self.max_turns.map_or(u128::MAX, u128::from));
        self.repeat(scene, (turns, 2 * tries), |walk, scene, nth| {
            let second = (nth / tries) % 2 == 1;
            let role = if second { rules[1] } else { rules[0] };
            walk.play(builder, scene, role, (given, added))
        })
    }

    /// The private turns of `who` before the roles speak, with a prompt of so many bytes: a blank answer is asked for again. Returns the
    /// bytes of the answer.
    fn prepare(
        &mut self,
        builder: &AgentBuilder<'_>,
        scene: &mut Scene,
        who: &Name,
        prompt: u128,
    ) -> Result<u128> {
        let mut said = 0;
        for _ in 0..self.case.times(2, 1) {
            said = self.ask(builder, scene, who, prompt)?.max(said);
        }
        Ok(said)
    }

    /// A message of the role `who`, which has rules of so many bytes: the best of several proposals, if there is a critic.
    fn play<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        (who, rules): (&Name, u128),
        (given, added): (&RolePlay, Added),
    ) -> Result<()> {
        let Some(player) = self.player(builder, who, rules)? else { return Ok(()) };
        let critic = given.critic.as_ref().filter(|critic| critic.options > 1);
        let effect = match critic {
            None => self.helps(builder, scene, &player)?,
            Some(critic) => {
                let chooser = self.player(builder, &critic.who, added.critic.with(scene.task))?;
                let texts = critic.texts.clone().unwrap_or_default().or(ChoiceTexts::default());
                let (options, retries) = (critic.options as u128, critic.retries.into());
                let choice = Choice { options, retries, texts, more: added.language };
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
}
