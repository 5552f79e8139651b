//! Agents that are asked within a turn: as tools, and by agents that reason.

use polylogue::{Chat, Name, Result};
use polylogue_core::ToolResult;

use super::amount::{Effect, Sum};
use super::case::PROMPT;
use super::participant::task_from;
use super::scene::Scene;
use super::speaker::Speaker;
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

    /// A turn of the model of `agent`, as `act` says of results of so many bytes, with the agents that it calls as tools. With a `speaker`,
    /// which [calls functions](Speaker::calls_functions), these results are what they return; otherwise `act` counts them.
    pub(super) fn with_agent_tools<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        (agent, keys): (&'a Agent, &'a ModelKeys),
        (speaker, act): (Option<&Speaker>, impl FnOnce(u128) -> Effect),
    ) -> Result<Effect> {
        let (tasks, mut results) = self.agent_tools(builder, scene, (agent, keys), true)?;
        let (called, replies) = self.agent_tools(builder, scene, (agent, keys), false)?;
        if results > 0 && speaker.is_some_and(|speaker| !speaker.sees_all()) {
            // A window cuts off results of earlier tasks, and the model can still wait for those that are open.
            let open = *keys.max_background_tasks as u128;
            results = results.saturating_add(open.saturating_mul(ToolResult::MAX_BYTES as u128 + PROMPT));
        }
        let mut effect = act(if speaker.is_some() { results.saturating_add(replies) } else { 0 });
        if speaker.is_some() {
            // Results of tasks stay with the agent in any case.
            effect.kept = effect.kept.saturating_add(replies);
            effect.sum.growth = effect.sum.growth.saturating_add(results).saturating_add(replies);
        }
        self.note(&scene.chat, agent.name.as_str(), effect.sum);
        effect.sum.add(tasks);
        effect.sum.add(called);
        Ok(effect)
    }

    /// The agents that `agent` calls as tools in one turn of its model, in the background or not, and the bytes of what they return.
    fn agent_tools<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        (agent, keys): (&'a Agent, &'a ModelKeys),
        in_background: bool,
    ) -> Result<(Sum, u128)> {
        let mut tools = keys.agent_tools.iter().filter(|tool| tool.background == in_background).peekable();
        if scene.owners.contains(&agent.name) || tools.peek().is_none() {
            return Ok((Sum::default(), 0));
        }
        let asked = self.assistant(builder, agent, keys)?.reply(self.case);
        scene.owners.push(agent.name.value.clone());
        let (results, sum) = self.apart(scene, |walk, scene| {
            let mut results = 0_u128;
            for tool in tools {
                let (calls, mut longest) = (walk.case.times(tool.max_calls.into(), 1), 0);
                walk.repeat(scene, (calls, 1), |walk, scene, _| {
                    let result = match tool.background {
                        true => walk.background_task(builder, scene, (&agent.name, &tool.who), asked)?,
                        false => walk.tool_call(builder, scene, (&agent.name, tool), asked)?,
                    };
                    longest = longest.max(result);
                    Ok(())
                })?;
                results = results.saturating_add(calls.saturating_mul(longest));
            }
            Ok(results)
        })?;
        scene.owners.pop();
        Ok((sum, results))
    }

    /// A call of an agent tool by `who`, with a text of `asked` bytes. Returns the bytes of the result.
    fn tool_call<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        (who, tool): (&Name, &'a AgentTool),
        asked: u128,
    ) -> Result<u128> {
        let turns = self.turns_of_call(builder, scene, &tool.who);
        let call = |walk: &mut Self, inner: &mut Scene| walk.called(builder, inner, &tool.who, asked);
        let reply = self.call(builder, scene, (who, &tool.who), (asked, turns), call)?;
        Ok(self.result_of(reply))
    }

    /// A background task of `who` in which `whom` works, with a text of `asked` bytes: a conversation of its own. Its result stays with
    /// `who`. Returns the bytes of the result.
    fn background_task<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        (who, whom): (&Name, &Name),
        asked: u128,
    ) -> Result<u128> {
        let mut inner = scene.new_call();
        inner.post(introduction(builder.team, who), asked);
        let effect = self.called(builder, &mut inner, whom, asked)?;
        inner.keep(whom.as_str(), effect.kept);
        inner.post(introduction(builder.team, whom), effect.message);
        inner.sum.add(effect.sum);
        self.follow_ups(builder, &mut inner, &[whom], Chat::DEFAULT_MAX_FOLLOW_UPS)?;
        let result = self.result_of(inner.longest);
        scene.keep(who.as_str(), result);
        scene.sum.add(inner.sum);
        Ok(result)
    }

    /// The bytes of the result of a call of an agent, which replies with so many bytes or fails.
    fn result_of(&self, reply: u128) -> u128 {
        let most = self.case.text(ToolResult::MAX_BYTES as u128);
        reply.max(self.case.text(FAILURE)).min(most).saturating_add(PROMPT)
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

/// The most bytes of a reason for which a call of an agent fails.
const FAILURE: u128 = 4_000;

/// Whether `who` is an agent that can start background tasks in `scene`.
pub(super) fn starts_background(builder: &AgentBuilder<'_>, scene: &Scene, who: &Name) -> bool {
    let agent = builder.team.agents.iter().find(|agent| agent.name == *who);
    agent.is_some_and(Agent::starts_background) && !scene.owners.contains(who)
}
