//! What one turn of a participant takes: an agent with its layers, a chat, a team.

use std::collections::BTreeMap;
use std::rc::Rc;

use polylogue::{Name, Result};
use polylogue_core::{Outcome, Params, TaskFrom};

use super::amount::{Effect, Sum};
use super::case::{self, CALL, CALL_TOKENS, Case, MESSAGE, PROMPT};
use super::model;
use super::scene::{Scene, overhead};
use super::speaker::longest_of;
use super::walk::{Executed, InnerRun, Walk};
use crate::agent::{Agent, ModelKeys};
use crate::build::AgentBuilder;
use crate::chat::InnerChat;
use crate::nested_chats::{NestedChat, NestedContext};
use crate::reasoning::{PlanAndSolve, Reasoning, Refine, Rewoo};
use crate::team::SubTeam;

/// The longest fact of a long-term memory, in bytes.
const FACT: u128 = 16_000;

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
        let mut inner = Scene::new(who, scene.task, &scene.owners);
        inner.chat.clone_from(&scene.chat);
        inner.post(who.as_str().len(), scene.shared.saturating_add(PROMPT));
        let mut task = self.foreground(builder, &mut inner, who)?;
        task.sum.base = task.sum.base.saturating_add(PROMPT + overhead(who.as_str().len()));
        let message = task.message.min(self.case.text(Outcome::MAX_BYTES as u128).saturating_add(PROMPT));
        // One that may not begin is a turn as any other: it is the one or the other.
        let (rows, continued) = (self.rows.clone(), self.continued.clone());
        let turn = self.foreground(builder, scene, who)?;
        (self.rows, self.continued) = (rows, continued);
        Ok(Effect { message, kept: 0, ..task }.max(turn))
    }

    fn foreground<'a>(
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
            let task = inner_task(inner, scene);
            let owners = scene.owners.clone();
            let effect = self.inner(builder, inner, task, &owners)?;
            return Ok(effect);
        }
        match team.teams.iter().find(|sub| sub.name == *who) {
            Some(sub) => self.sub_team(builder, sub, scene),
            None => Ok(Effect::default()),
        }
    }

    fn sub_team<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        sub: &'a SubTeam,
        scene: &Scene,
    ) -> Result<Effect> {
        let task = task_from(&sub.task_from, scene);
        let inner = builder.of_sub(sub);
        self.deeper(|walk| walk.chat(&inner, (&sub.name, &sub.team.chat), (task, 0), &[]))
    }

    /// A run of the chat `inner` with a task of `task` bytes.
    pub(super) fn inner<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        inner: &'a InnerChat,
        task: u128,
        owners: &[Name],
    ) -> Result<Effect> {
        let key = inner.continues.as_ref().map(|other| {
            let of = if other.as_str() == crate::chat::ITSELF { &*inner.name } else { &**other };
            (builder.name.clone(), of.clone())
        });
        let earlier = key.as_ref().and_then(|key| self.continued.get(key)).copied().unwrap_or_default();
        let effect = self.inner_once(builder, inner, (task, earlier), owners)?;
        let own = (builder.name.clone(), inner.name.value.clone());
        for key in key.into_iter().chain([own]) {
            let said = self.continued.entry(key).or_default();
            *said = said.saturating_add(effect.kept);
        }
        Ok(Effect { kept: 0, ..effect })
    }

    /// A run of `inner`, which is computed once for each task: a nested chat runs in each turn of its agent.
    fn inner_once<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        inner: &'a InnerChat,
        (task, earlier): (u128, u128),
        owners: &[Name],
    ) -> Result<Effect> {
        let run = |walk: &mut Self| {
            walk.deeper(|walk| walk.chat(builder, (&inner.name, &inner.chat), (task, earlier), owners))
        };
        if self.has_continued {
            return run(self);
        }
        let key = (std::ptr::from_ref(inner).addr(), self.depth, task, earlier, owners.to_vec());
        let found = match self.inner_runs.get(&key) {
            Some(found) => Rc::clone(found),
            None => {
                let rows = std::mem::take(&mut self.rows);
                let effect = run(self)?;
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
        let mut bytes = 0_u128;
        let result = self.case.text(Outcome::MAX_BYTES as u128).saturating_add(CALL);
        if agent.code_execution.on().is_some() {
            // The blocks of a message have one result.
            bytes = result;
        }
        if agent.runs_output_blocks.is_some() {
            let blocks = self.case.times((scene.longest / 16).max(1), 1);
            bytes = bytes.saturating_add(blocks.saturating_mul(result));
        }
        if !agent.executes_tools.is_empty() {
            let Executed { longest, reply } = self.executed_by(builder, agent)?;
            let most = u128::from(agent.tool_limits.max_output_bytes);
            let asked = if agent.approval.is_some() { case::answer(agent).saturating_add(PROMPT) } else { 0 };
            let result =
                self.case.text(longest.min(most)).saturating_add(CALL + MESSAGE).saturating_add(asked);
            // A person suggests no calls.
            let calls = self.case.times((self.case.reply(reply) / CALL_TOKENS).max(1), 1);
            bytes = bytes.saturating_add(calls.saturating_mul(result));
        }
        Ok(Effect::of_text(bytes))
    }

    /// What the tools that `agent` executes return, and how long the messages are that suggest calls.
    fn executed_by<'a>(&mut self, builder: &AgentBuilder<'a>, agent: &'a Agent) -> Result<Executed> {
        let key = (builder.name.clone(), agent.name.value.clone());
        if let Some(found) = self.computed.executed.get(&key) {
            return Ok(*found);
        }
        let mut found = Executed { longest: 0, reply: 0 };
        for given in &agent.executes_tools {
            found.longest = found.longest.max(longest_of(&builder.tools_for_others(agent, given)?));
        }
        for agent in &builder.team.agents {
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
        let carried = match &nested.context {
            NestedContext::Nothing => 0,
            NestedContext::Last => scene.longest,
            NestedContext::All => seen,
            NestedContext::Reflect(gist) => {
                let mut inner = Scene::new(&nested.chat, seen, &scene.owners);
                let prompt = gist.prompt.len() as u128;
                inner.begin_after(seen);
                let said = self.ask(builder, &mut inner, &gist.by, prompt)?;
                scene.sum.add(inner.sum);
                said
            }
        };
        let task = inner_task(inner, scene).max(scene.longest).saturating_add(carried).saturating_add(PROMPT);
        let mut owners = scene.owners.clone();
        owners.push(agent.name.value.clone());
        self.inner(builder, inner, task, &owners)
    }

    /// A reply by the model of `agent`, in the way in which it reasons.
    fn voice<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        agent: &'a Agent,
        keys: &'a ModelKeys,
    ) -> Result<Effect> {
        let facts = agent.memory().map_or(0, |memory| memory.auto_recall as u128);
        let recalled = facts.saturating_mul(self.case.text(FACT).saturating_add(MESSAGE));
        let context = scene.seen_by(agent.name.as_str()).saturating_add(recalled);
        let speaker = self.assistant(builder, agent, keys)?;
        let (case, task) = (self.case, scene.task);
        let context = speaker.view(case, context, scene.longest);
        let has_only_messages = facts == 0 && keys.examples.is_empty() && keys.reasoning.is_none();
        let speaker = match has_only_messages {
            true => speaker.in_a_history_of(scene.messages_of(agent.name.as_str())),
            false => speaker,
        };
        let mut effect = match keys.reasoning.as_deref() {
            None if scene.is_silent => speaker.silent_turn(case, context, task, scene.longest),
            None => speaker.turn_after(case, context, task, scene.longest),
            Some(Reasoning::React(react)) => {
                speaker.react(case, context, task, (react.rounds.into(), react.summarize))
            }
            Some(Reasoning::PlanAndSolve(plan)) => {
                self.plan_and_solve(builder, scene, (agent, keys), plan)?
            }
            Some(Reasoning::Rewoo(plan)) => self.rewoo(builder, scene, (agent, keys), plan)?,
            Some(Reasoning::Refine(refine)) => self.refine(builder, scene, (agent, keys), refine)?,
            Some(Reasoning::Best(best)) => {
                let proposal = speaker.turn(case, context, task);
                let options = best.options as u128;
                let critic = self.other(builder, Some(&best.critic), (agent, keys))?;
                let prompt = options.saturating_mul(proposal.message.saturating_add(PROMPT));
                let choice = critic.turn(case, prompt, 0);
                let mut sum = Sum::default();
                sum.add_times(proposal.sum, options);
                sum.add_times(choice.sum, 1 + case.times(best.retries.into(), 0));
                Effect { sum, ..proposal }
            }
        };
        self.note(&scene.chat, agent.name.as_str(), effect.sum);
        let tools = self.agent_tools(builder, scene, agent, keys)?;
        effect.sum.add(tools);
        Ok(effect)
    }

    /// The agents that `agent` calls as tools.
    fn agent_tools<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        agent: &'a Agent,
        keys: &'a ModelKeys,
    ) -> Result<Sum> {
        let mut sum = Sum::default();
        if scene.owners.contains(&agent.name) || keys.agent_tools.is_empty() {
            return Ok(sum);
        }
        let mut owners = scene.owners.clone();
        owners.push(agent.name.value.clone());
        let asked = self.assistant(builder, agent, keys)?.reply(self.case);
        for tool in keys.agent_tools.iter() {
            let key = (builder.name.clone(), tool.who.value.clone());
            let mut inner = Scene::new(&tool.who, asked, &owners);
            // Every call continues the conversation with the agent.
            inner.begin_after(self.continued.get(&key).copied().unwrap_or_default());
            let calls = self.case.times(tool.max_calls.into(), 1);
            if tool.background {
                self.repeat(&mut inner, (calls, 1), |walk, inner, _| {
                    // Every task is a new conversation.
                    (inner.shared, inner.own) = (0, BTreeMap::new());
                    inner.post(agent.name.as_str().len(), asked);
                    walk.say(builder, inner, &[&tool.who])?;
                    walk.follow_ups(builder, inner, &[&tool.who], polylogue::Chat::DEFAULT_MAX_FOLLOW_UPS)
                })?;
                let result =
                    inner.longest.min(self.case.text(Outcome::MAX_BYTES as u128)).saturating_add(PROMPT);
                scene.keep(agent.name.as_str(), calls.saturating_mul(result));
                sum.add(inner.sum);
                continue;
            }
            self.repeat(&mut inner, (calls, 1), |walk, inner, _| {
                inner.post(agent.name.as_str().len(), asked);
                walk.say(builder, inner, &[&tool.who])
            })?;
            self.continued.insert(key, inner.shared);
            sum.add(inner.sum);
        }
        Ok(sum)
    }

    /// Adds the turns that those of `names` who start background tasks have for results, `most` each.
    pub(super) fn follow_ups<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        names: &[&Name],
        most: u64,
    ) -> Result<()> {
        let starts = |who: &&Name| {
            let agent = builder.team.agents.iter().find(|agent| agent.name == **who);
            agent.is_some_and(Agent::starts_background) && !scene.owners.contains(who)
        };
        let starters: Vec<&Name> = names.iter().copied().filter(starts).collect();
        let count = starters.len() as u128;
        let turns = self.case.times(most.into(), 1).saturating_mul(count);
        self.repeat(scene, (turns, count), |walk, scene, nth| {
            let at = usize::try_from(nth % count.max(1)).unwrap_or_default();
            starters.get(at).map_or(Ok(()), |who| walk.say(builder, scene, &[who]))
        })
    }

    /// The agent `name`, or the agent itself.
    fn other<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        name: Option<&Name>,
        (agent, keys): (&'a Agent, &'a ModelKeys),
    ) -> Result<Rc<super::speaker::Speaker>> {
        let found = name.and_then(|name| builder.team.agents.iter().find(|agent| agent.name == *name));
        let (agent, keys) = found.and_then(|of| Some((of, of.model()?))).unwrap_or((agent, keys));
        self.assistant(builder, agent, keys)
    }

    /// The agent `name`, or the agent itself without tools.
    fn planner<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        name: Option<&Name>,
        (agent, keys): (&'a Agent, &'a ModelKeys),
    ) -> Result<Rc<super::speaker::Speaker>> {
        match name {
            Some(_) => self.other(builder, name, (agent, keys)),
            None => self.without_tools(builder, agent, keys),
        }
    }

    /// What an agent that is asked in an inner chat has seen there, with `prompt` bytes more.
    fn asked_before(&self, scene: &mut Scene, agent: &Agent, role: &str, prompt: u128) -> u128 {
        let key = format!("{} {role}", agent.name);
        scene.keep(&key, prompt.saturating_add(MESSAGE));
        scene.own.get(&key).copied().unwrap_or_default()
    }

    fn plan_and_solve<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        itself: (&'a Agent, &'a ModelKeys),
        given: &PlanAndSolve,
    ) -> Result<Effect> {
        let planner = self.planner(builder, given.planner.as_deref(), itself)?;
        let solver = self.other(builder, given.solver.as_deref(), itself)?;
        let (case, objective) = (self.case, scene.longest.saturating_add(PROMPT));
        let context = self.asked_before(scene, itself.0, "plans", objective);
        let plan = planner.turn(case, context, scene.task);
        scene.keep(&format!("{} plans", itself.0.name), plan.message.saturating_add(plan.kept));
        let mut effect = Effect { sum: plan.sum, ..Effect::default() };
        let mut done = objective;
        for _ in 0..case.times(given.max_steps as u128, 3) {
            let context = done.saturating_add(plan.message);
            let step = solver.turn(case, context, context);
            effect.sum.add(step.sum);
            effect.message = step.message;
            done = done.saturating_add(step.message).saturating_add(plan.message).saturating_add(PROMPT);
        }
        Ok(effect)
    }

    fn rewoo<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        itself: (&'a Agent, &'a ModelKeys),
        given: &Rewoo,
    ) -> Result<Effect> {
        let planner = self.planner(builder, given.planner.as_deref(), itself)?;
        let solver = self.planner(builder, given.solver.as_deref(), itself)?;
        let (case, question) = (self.case, scene.longest.saturating_add(PROMPT));
        let described = self.assistant(builder, itself.0, itself.1)?.tool_bytes();
        let context = self.asked_before(scene, itself.0, "plans", question.saturating_add(described));
        let plan = planner.turn(case, context, scene.task);
        let steps = case.times((plan.message / 8).max(1), 2);
        let result = case.text(Outcome::MAX_BYTES as u128).saturating_add(CALL);
        let evidence = plan.message.saturating_add(steps.saturating_mul(result));
        let context = self.asked_before(scene, itself.0, "solves", question.saturating_add(evidence));
        let mut answer = solver.turn(case, context, scene.task);
        answer.sum.add(plan.sum);
        Ok(answer)
    }

    fn refine<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        itself: (&'a Agent, &'a ModelKeys),
        given: &Refine,
    ) -> Result<Effect> {
        let writer = self.assistant(builder, itself.0, itself.1)?;
        let critic = self.other(builder, given.critic.as_deref(), itself)?;
        let (case, task) = (self.case, scene.longest.saturating_add(PROMPT));
        let mut effect = Effect::default();
        let mut prompt = task;
        for round in 0..=case.times(given.rounds.into(), 1) {
            if round > 0 {
                let ask = task.saturating_add(effect.message).saturating_add(PROMPT);
                let context = self.asked_before(scene, itself.0, "criticizes", ask);
                let criticism = critic.turn(case, context, scene.task);
                let said = criticism.message.saturating_add(criticism.kept).saturating_add(MESSAGE);
                scene.keep(&format!("{} criticizes", itself.0.name), said);
                effect.sum.add(criticism.sum);
                prompt = criticism.message;
            }
            let context = self.asked_before(scene, itself.0, "writes", prompt);
            let draft = writer.turn(case, context, scene.task);
            let said = draft.message.saturating_add(draft.kept).saturating_add(MESSAGE);
            scene.keep(&format!("{} writes", itself.0.name), said);
            effect.sum.add(draft.sum);
            effect.message = draft.message;
        }
        Ok(effect)
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
        Some(text) => {
            let quotes = text.fill("x").len().saturating_sub(text.fill("").len()) as u128;
            (text.fill("").len() as u128).saturating_add(quotes.saturating_mul(scene.task))
        }
        None => task_from(&inner.task_from, scene),
    };
    let carries = inner.task.is_some() || inner.carryover.is_some();
    own.saturating_add(if carries { scene.shared } else { 0 }).saturating_add(PROMPT)
}

fn task_from(from: &TaskFrom, scene: &Scene) -> u128 {
    match from {
        TaskFrom::Last => scene.longest,
        TaskFrom::Task => scene.task,
        _ => scene.shared.saturating_add(scene.task),
    }
}
