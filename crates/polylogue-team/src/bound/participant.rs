//! What one turn of a participant takes: an agent with its layers, a chat, a team.

use std::rc::Rc;

use polylogue::{Chat, Name, Result};
use polylogue_core::{Params, TaskFrom, ToolResult};

use super::amount::{Effect, Sum};
use super::case::{self, CALL, CALL_TOKENS, Case, MESSAGE, PROMPT, filled};
use super::model;
use super::scene::{Scene, overhead};
use super::speaker::of_others;
use super::walk::{Executed, InnerRun, Walk, introduction};
use crate::agent::{Agent, ModelKeys};
use crate::build::AgentBuilder;
use crate::chat::InnerChat;
use crate::nested_chats::{NestedChat, NestedContext};
use crate::output_blocks::RunsOutputBlocks;
use crate::reasoning::React;
use crate::team::SubTeam;

impl Walk<'_> {
    /// A turn of `who` in the chat of `scene`. Where it is a background task, the turn for its result takes nothing more.
    pub(super) fn participant<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        who: &Name,
    ) -> Result<Effect> {
        if !scene.background.contains(who) {
            return self.foreground(builder, scene, who);
        }
        // It works in a conversation of its own, in which it can have turns for results of tasks that it starts.
        let (mut inner, introduction) = (scene.new_call(), introduction(builder.team, who));
        let before = self.rows.clone();
        inner.post(introduction, scene.shared.max(scene.task).saturating_add(PROMPT));
        let mut task = self.foreground(builder, &mut inner, who)?;
        inner.keep(who.as_str(), task.kept);
        inner.post(introduction, task.message);
        self.follow_ups(builder, &mut inner, &[who], Chat::DEFAULT_MAX_FOLLOW_UPS)?;
        task.sum.add(inner.sum);
        task.sum.base = task.sum.base.saturating_add(PROMPT + overhead(introduction));
        let message = task.message.min(self.case.text(ToolResult::MAX_BYTES as u128).saturating_add(PROMPT));
        // One that may not begin is a turn as any other: it is the one or the other.
        let rows = std::mem::replace(&mut self.rows, before);
        let turn = self.foreground(builder, scene, who)?;
        for (key, row) in rows {
            self.rows.entry(key).and_modify(|other| *other = other.max(row)).or_insert(row);
        }
        Ok(Effect { message, kept: 0, ..task }.max(turn))
    }

    /// A turn of `who` that is no background task.
    pub(super) fn foreground<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        who: &Name,
    ) -> Result<Effect> {
        let team = builder.team;
        if let Some(agent) = team.agents.iter().find(|agent| agent.name == *who) {
            return self.agent(builder, scene, agent);
        }
        if let Some(inner) = team.chats.iter().find(|inner| inner.name == *who) {
            return self.inner_turn(builder, scene, inner);
        }
        match team.teams.iter().find(|sub| sub.name == *who) {
            Some(sub) => self.sub_team(builder, sub, task_from(&sub.task_from, scene)),
            None => Ok(Effect::default()),
        }
    }

    /// A run of the team `sub` with a task of `task` bytes.
    pub(super) fn sub_team<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        sub: &'a SubTeam,
        task: u128,
    ) -> Result<Effect> {
        let inner = builder.of_sub(sub);
        let effect = self.deeper(|walk| walk.chat(&inner, (&sub.name, &sub.team.chat), (task, 0), &[]))?;
        Ok(Effect { kept: 0, ..effect })
    }

    /// A turn of the chat `inner`, which may continue its last conversation, or that of another participant.
    fn inner_turn<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        inner: &'a InnerChat,
    ) -> Result<Effect> {
        let before = inner.continues.as_ref().map(|name| match name.as_str() {
            crate::chat::ITSELF => &inner.name.value,
            _ => &name.value,
        });
        let earlier = before.map_or(0, |name| scene.held_by(name));
        let effect =
            self.inner(builder, inner, (inner_task(inner, scene), earlier), &scene.owners.clone())?;
        scene.hold(&inner.name, earlier.saturating_add(effect.kept));
        Ok(Effect { kept: 0, ..effect })
    }

    /// A run of the chat `inner` with a task of `task` bytes after an `earlier` conversation. It is computed once for each: a nested chat
    /// runs in each turn of its agent. What it keeps is what was said in it.
    pub(super) fn inner<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        inner: &'a InnerChat,
        (task, earlier): (u128, u128),
        owners: &[Name],
    ) -> Result<Effect> {
        let key = (std::ptr::from_ref(inner).addr(), self.depth, task, earlier, owners.to_vec());
        let found = match self.inner_runs.get(&key) {
            Some(found) => Rc::clone(found),
            None => {
                let rows = std::mem::take(&mut self.rows);
                let effect = self
                    .deeper(|walk| walk.chat(builder, (&inner.name, &inner.chat), (task, earlier), owners))?;
                let rows = std::mem::replace(&mut self.rows, rows);
                let found = Rc::new(InnerRun { effect, rows, free: self.free });
                self.inner_runs.insert(key, Rc::clone(&found));
                found
            }
        };
        self.free = found.free;
        for ((chat, who), sum) in &found.rows {
            self.note(chat, who, *sum);
        }
        Ok(found.effect)
    }

    fn agent<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        agent: &'a Agent,
    ) -> Result<Effect> {
        let mut effect = Effect::default();
        if agent.is_human() || agent.human_input.is_some() {
            self.has_people = true;
            effect = Effect::of_text(self.case.text(case::answer(agent)));
        }
        if !scene.owners.contains(&agent.name) {
            for nested in &agent.nested_chats {
                effect = both(effect, self.nested(builder, scene, agent, nested)?);
            }
        }
        effect = both(effect, self.executed(builder, scene, agent)?);
        if let Some(keys) = agent.model() {
            effect = both(effect, self.voice(builder, scene, agent, keys)?);
        }
        let default = agent.default_reply.as_ref().map_or(0, |text| text.len() as u128);
        Ok(both(effect, Effect::of_text(default)))
    }

    /// The results of what `agent` executes for others: calls in their messages, and code.
    fn executed<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &Scene,
        agent: &'a Agent,
    ) -> Result<Effect> {
        let (mut bytes, mut spent) = (0_u128, 0_u128);
        let result = self.case.text(ToolResult::MAX_BYTES as u128).saturating_add(CALL);
        if agent.code_execution.on().is_some() {
            // The blocks of a message have one result.
            bytes = result;
        }
        let executes = !agent.executes_tools.is_empty() || agent.runs_output_blocks.is_some();
        let Executed { longest, reply, cost } = match executes {
            true => self.executed_by(builder, agent)?,
            false => Executed::default(),
        };
        if agent.runs_output_blocks.is_some() {
            let blocks = self.case.times((scene.longest / 16).max(1), 1);
            bytes = bytes.saturating_add(blocks.saturating_mul(result));
            spent = blocks.saturating_mul(cost);
        }
        if !agent.executes_tools.is_empty() {
            let most = u128::from(agent.tool_limits.max_output_bytes);
            let asked = if agent.approval.is_some() { case::answer(agent).saturating_add(PROMPT) } else { 0 };
            let result =
                self.case.text(longest.min(most)).saturating_add(CALL + MESSAGE).saturating_add(asked);
            // A person suggests no calls.
            let calls = self.case.times((self.case.reply(reply) / CALL_TOKENS).max(1), 1);
            bytes = bytes.saturating_add(calls.saturating_mul(result));
            spent = spent.saturating_add(calls.saturating_mul(cost));
        }
        let sum = self.spent(&scene.chat, &agent.name, spent);
        Ok(Effect { sum, ..Effect::of_text(bytes) })
    }

    /// The money that tools which `who` runs cost, without a model call of its own.
    pub(super) fn spent(&mut self, chat: &str, who: &Name, picodollars: u128) -> Sum {
        let mut sum = Sum::default();
        if picodollars > 0 {
            sum.add_spending(picodollars);
            self.note(chat, who.as_str(), sum);
        }
        sum
    }

    /// What the tools return that `agent` executes for others, what they cost, and how long the messages are that suggest calls.
    fn executed_by<'a>(&mut self, builder: &AgentBuilder<'a>, agent: &'a Agent) -> Result<Executed> {
        let key = (builder.name.clone(), agent.name.value.clone());
        if let Some(found) = self.computed.executed.get(&key) {
            return Ok(*found);
        }
        let mut found = Executed::default();
        for given in &agent.executes_tools {
            let (longest, cost) = of_others(&builder.tools_for_others(agent, given)?);
            found.longest = found.longest.max(longest);
            found.cost = found.cost.max(cost);
        }
        for name in agent.runs_output_blocks.iter().flat_map(RunsOutputBlocks::tools) {
            found.cost = found.cost.max(of_others(&builder.tools_in_blocks(agent, name)?).1);
        }
        let speakers = if agent.executes_tools.is_empty() { &[][..] } else { builder.team.agents.as_slice() };
        for agent in speakers {
            let Some(keys) = agent.model() else { continue };
            let own = builder.model_of(&agent.name, keys.model.as_ref().map(|model| model.as_str()))?;
            let params = Params::from(keys.parameters.value.clone());
            found.reply = found.reply.max(model::longest(&own, &params, Case::Worst));
        }
        self.computed.executed.insert(key, found);
        Ok(found)
    }

    /// A nested chat that replies for `agent`.
    fn nested<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        agent: &Agent,
        nested: &NestedChat,
    ) -> Result<Effect> {
        let Some(inner) = builder.team.chats.iter().find(|inner| inner.name == nested.chat) else {
            return Ok(Effect::default());
        };
        let seen = scene.seen_by(agent.name.as_str());
        let mut summarizing = Sum::default();
        let carried = match &nested.context {
            NestedContext::Nothing => 0,
            NestedContext::Last => scene.longest,
            NestedContext::All => seen,
            NestedContext::Reflect(gist) => {
                let mut inner = Scene::new(&nested.chat, seen, &scene.owners);
                let prompt = gist.prompt.len() as u128;
                inner.begin_after(seen);
                let said = self.ask(builder, &mut inner, &gist.by, prompt)?;
                summarizing = inner.sum;
                said
            }
        };
        let task = inner_task(inner, scene).max(scene.longest).saturating_add(carried).saturating_add(PROMPT);
        let mut owners = scene.owners.clone();
        owners.push(agent.name.value.clone());
        let mut effect = self.inner(builder, inner, (task, 0), &owners)?;
        effect.sum.add(summarizing);
        Ok(Effect { kept: 0, ..effect })
    }

    /// A reply by the model of `agent` in one conversation, reminded of facts of so many bytes, in rounds of tools if it reasons in these.
    pub(super) fn reply<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        (agent, keys): (&'a Agent, &'a ModelKeys),
        (recalled, rounds): (u128, Option<&React>),
    ) -> Result<Effect> {
        if recalled > 0 {
            // It stays in the history.
            scene.keep(agent.name.as_str(), recalled);
        }
        let speaker = self.assistant(builder, agent, keys)?;
        let (case, task) = (self.case, scene.task);
        let context = speaker.view(case, scene, scene.seen_by(agent.name.as_str()));
        let has_only_messages = recalled == 0 && keys.examples.is_empty() && rounds.is_none();
        let speaker = match has_only_messages {
            true => speaker.in_a_history_of(scene.messages_of(agent.name.as_str())),
            false => speaker,
        };
        let (is_silent, last) = (scene.is_silent, scene.longest);
        let act = |results: u128| {
            let context = context.saturating_add(results);
            match rounds {
                Some(react) => speaker.react(case, context, task, (react.rounds.into(), react.summarize)),
                None if is_silent => speaker.silent_turn(case, context, task, last),
                None => speaker.turn_after(case, context, task, last),
            }
        };
        let caller = Some(&*speaker).filter(|speaker| rounds.is_none() && speaker.calls_functions(case));
        self.with_agent_tools(builder, scene, (agent, keys), (caller, act))
    }
}

/// Both: the first may be made, and then the other one.
fn both(one: Effect, other: Effect) -> Effect {
    let mut sum = one.sum;
    sum.add(other.sum);
    let (message, free) = (one.message.max(other.message), one.free.max(other.free));
    Effect { sum, message, kept: one.kept.saturating_add(other.kept), free }
}

/// The bytes of the task that a chat takes from the one around it.
fn inner_task(inner: &InnerChat, scene: &Scene) -> u128 {
    let own = match &inner.task {
        Some(text) => filled(text, scene.task),
        None => task_from(&inner.task_from, scene),
    };
    let context = inner.carryover.as_ref().map_or(&[][..], |carried| &carried.context);
    // Each in a line.
    let texts = context.iter().map(|text| filled(text, scene.task).saturating_add(1));
    let carries = inner.task.is_some() || inner.carryover.is_some();
    let carried = texts.fold(if carries { scene.shared } else { 0 }, u128::saturating_add);
    own.saturating_add(carried).saturating_add(PROMPT)
}

/// The bytes of the task of a chat or a team that takes it from the chat around it.
pub(super) fn task_from(from: &TaskFrom, scene: &Scene) -> u128 {
    match from {
        TaskFrom::Last => scene.longest,
        TaskFrom::Task => scene.task,
        _ => scene.shared.saturating_add(scene.task),
    }
}
