//! Agents that are asked within a turn: as tools, and by agents that reason.

use polylogue::{Chat, Name, Result};
use polylogue_core::ToolResult;

use super::amount::{Effect, Sum};
use super::case::PROMPT;
use super::participant::task_from;
use super::scene::Scene;
use super::walk::{Walk, introduction, longest_prefix};
use crate::agent::{Agent, ModelKeys};
use crate::build::AgentBuilder;
use crate::working::AgentTool;

impl Walk<'_> {
    /// A call of `whom` in a turn of `who`, with a message of `bytes`, which takes `turns` turns such as `act`. Adds what it takes, and
    /// returns the bytes of the reply. It continues the conversation of earlier calls, in this turn and in those before.
    pub(super) fn call(
        &mut self,
        builder: &AgentBuilder<'_>,
        scene: &mut Scene,
        (who, whom): (&Name, &Name),
        (bytes, turns): (u128, u128),
        mut act: impl FnMut(&mut Self, &mut Scene) -> Result<Effect>,
    ) -> Result<u128> {
        let mut inner = scene.take_call(who, whom);
        // The message can be one of any author.
        inner.post(longest_prefix(builder.team, |_| true), bytes);
        let mut reply = 0;
        self.repeat(&mut inner, (turns, 1), |walk, inner, _| {
            let effect = act(walk, inner)?;
            reply = effect.message;
            inner.keep(whom.as_str(), effect.kept);
            inner.post(whom.as_str().len(), reply);
            inner.sum.add(effect.sum);
            Ok(())
        })?;
        scene.sum.add(std::mem::take(&mut inner.sum));
        scene.put_call(who, whom, inner);
        Ok(reply)
    }

    /// The turns of `whom` in one call: one, and those for results of the background tasks that it starts.
    pub(super) fn turns_of_call(&self, builder: &AgentBuilder<'_>, scene: &Scene, whom: &Name) -> u128 {
        let results = self.case.times(Chat::DEFAULT_MAX_FOLLOW_UPS.into(), 1);
        if starts_background(builder, scene, whom) { results.saturating_add(1) } else { 1 }
    }

    /// `effect`, a turn of the model of `agent`, with the agents that it calls as tools.
    pub(super) fn with_agent_tools<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        (agent, keys): (&'a Agent, &'a ModelKeys),
        mut effect: Effect,
    ) -> Result<Effect> {
        self.note(&scene.chat, agent.name.as_str(), effect.sum);
        effect.sum.add(self.agent_tools(builder, scene, (agent, keys))?);
        Ok(effect)
    }

    /// The agents that `agent` calls as tools in one turn of its model.
    fn agent_tools<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        (agent, keys): (&'a Agent, &'a ModelKeys),
    ) -> Result<Sum> {
        if scene.owners.contains(&agent.name) || keys.agent_tools.is_empty() {
            return Ok(Sum::default());
        }
        let asked = self.assistant(builder, agent, keys)?.reply(self.case);
        scene.owners.push(agent.name.value.clone());
        let ((), sum) = self.apart(scene, |walk, scene| {
            keys.agent_tools.iter().try_for_each(|tool| {
                let calls = walk.case.times(tool.max_calls.into(), 1);
                walk.repeat(scene, (calls, 1), |walk, scene, _| match tool.background {
                    true => walk.background_task(builder, scene, (&agent.name, &tool.who), asked),
                    false => walk.tool_call(builder, scene, (&agent.name, tool), asked),
                })
            })
        })?;
        scene.owners.pop();
        Ok(sum)
    }

    /// A call of an agent tool by `who`, with a text of `asked` bytes.
    fn tool_call<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        (who, tool): (&Name, &'a AgentTool),
        asked: u128,
    ) -> Result<()> {
        let turns = self.turns_of_call(builder, scene, &tool.who);
        let call = |walk: &mut Self, inner: &mut Scene| walk.called(builder, inner, &tool.who, asked);
        self.call(builder, scene, (who, &tool.who), (asked, turns), call).map(|_| ())
    }

    /// A background task of `who` in which `whom` works, with a text of `asked` bytes: a conversation of its own. Its result stays with `who`.
    fn background_task<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        (who, whom): (&Name, &Name),
        asked: u128,
    ) -> Result<()> {
        let mut inner = scene.new_call();
        inner.post(introduction(builder.team, who), asked);
        let effect = self.called(builder, &mut inner, whom, asked)?;
        inner.keep(whom.as_str(), effect.kept);
        inner.post(introduction(builder.team, whom), effect.message);
        inner.sum.add(effect.sum);
        self.follow_ups(builder, &mut inner, &[whom], Chat::DEFAULT_MAX_FOLLOW_UPS)?;
        let result = inner.longest.min(self.case.text(ToolResult::MAX_BYTES as u128)).saturating_add(PROMPT);
        scene.keep(who.as_str(), result);
        scene.sum.add(inner.sum);
        Ok(())
    }

    /// A turn of `whom` in `scene`, in which it is called as a tool with a text of `asked` bytes. A chat or a team takes that as its task.
    fn called<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        whom: &Name,
        asked: u128,
    ) -> Result<Effect> {
        let team = builder.team;
        if let Some(inner) = team.chats.iter().find(|inner| inner.name == *whom) {
            let effect = self.inner(builder, inner, (asked, 0), &scene.owners.clone())?;
            return Ok(Effect { kept: 0, ..effect });
        }
        match team.teams.iter().find(|sub| sub.name == *whom) {
            // In the background it takes what it takes from any chat.
            Some(sub) => self.sub_team(builder, sub, task_from(&sub.task_from, scene).max(asked)),
            None => self.foreground(builder, scene, whom),
        }
    }

    /// Adds the turns that those of `names` who start background tasks have for results, `most` each.
    pub(super) fn follow_ups<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        names: &[&Name],
        most: u64,
    ) -> Result<()> {
        let starters: Vec<&Name> =
            names.iter().copied().filter(|who| starts_background(builder, scene, who)).collect();
        let count = starters.len() as u128;
        let turns = self.case.times(most.into(), 1).saturating_mul(count);
        self.repeat(scene, (turns, count), |walk, scene, nth| {
            let at = usize::try_from(nth % count.max(1)).unwrap_or_default();
            starters.get(at).map_or(Ok(()), |who| walk.say(builder, scene, &[who]))
        })
    }
}

/// Whether `who` is an agent that can start background tasks in `scene`.
fn starts_background(builder: &AgentBuilder<'_>, scene: &Scene, who: &Name) -> bool {
    let agent = builder.team.agents.iter().find(|agent| agent.name == *who);
    agent.is_some_and(Agent::starts_background) && !scene.owners.contains(who)
}
