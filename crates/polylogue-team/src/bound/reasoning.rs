//! What an agent takes that reasons: the agents that it asks, which remember what it asked before, and chats of its own, which begin again each time.

use std::rc::Rc;

use polylogue::agents::reason::ChoiceTexts;
use polylogue::{Name, Result};

use super::amount::Effect;
use super::case::{CALL, MESSAGE, PROMPT};
use super::scene::Scene;
use super::speaker::Speaker;
use super::walk::{Walk, introduction};
use crate::agent::{Agent, ModelKeys};
use crate::build::AgentBuilder;
use crate::reasoning::{Best, PlanAndSolve, Reasoning, Refine, Rewoo};

/// The longest fact of a long-term memory, in bytes.
const FACT: u128 = 16_000;

/// An agent that is asked within a turn: itself or another one, with its tools or without.
pub(super) struct Helper<'a> {
    pub(super) agent: &'a Agent,
    pub(super) keys: &'a ModelKeys,
    pub(super) speaker: Rc<Speaker>,
    pub(super) has_tools: bool,
}

/// How the best of several drafts is chosen.
pub(super) struct Choice {
    pub(super) options: u128,
    pub(super) retries: u128,
    pub(super) texts: ChoiceTexts,
    /// Bytes that are added to each question.
    pub(super) more: u128,
}

impl Choice {
    /// Bytes of a question that shows drafts of `draft` bytes.
    fn prompt(&self, draft: u128) -> u128 {
        // Placeholders are longer than the numbers that they stand for.
        let each = draft.saturating_add(self.texts.option.len() as u128).saturating_add(8);
        let listed = self.options.saturating_mul(each);
        let of = |text: &str| {
            let quotes = text.matches("{options}").count() as u128;
            quotes.saturating_mul(listed).saturating_add(text.len() as u128)
        };
        of(&self.texts.prompt)
            .max(of(&self.texts.retry_prompt))
            .saturating_add(PROMPT)
            .saturating_add(self.more)
    }
}

impl Walk<'_> {
    /// A reply by the model of `agent`, in the way in which it reasons.
    pub(super) fn voice<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        agent: &'a Agent,
        keys: &'a ModelKeys,
    ) -> Result<Effect> {
        let facts = agent.memory().map_or(0, |memory| memory.auto_recall as u128);
        let recalled = facts.saturating_mul(self.case.text(FACT).saturating_add(MESSAGE));
        let (itself, task) = ((agent, keys), scene.longest.saturating_add(recalled).saturating_add(PROMPT));
        let (message, sum) = match keys.reasoning.as_deref() {
            None => return self.reply(builder, scene, itself, (recalled, None)),
            Some(Reasoning::React(react)) => {
                return self.reply(builder, scene, itself, (recalled, Some(react)));
            }
            Some(Reasoning::PlanAndSolve(plan)) => {
                self.apart(scene, |walk, scene| walk.plan_and_solve(builder, scene, itself, (plan, task)))?
            }
            Some(Reasoning::Rewoo(plan)) => {
                self.apart(scene, |walk, scene| walk.rewoo(builder, scene, itself, (plan, task)))?
            }
            Some(Reasoning::Refine(refine)) => {
                self.apart(scene, |walk, scene| walk.refine(builder, scene, itself, (refine, task)))?
            }
            Some(Reasoning::Best(best)) => {
                self.apart(scene, |walk, scene| walk.best(builder, scene, itself, best))?
            }
        };
        Ok(Effect { sum, message, ..Effect::default() })
    }

    /// The agent `named`, or the agent itself, which then only has tools if they are wanted.
    fn helper<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        named: Option<&Name>,
        itself: (&'a Agent, &'a ModelKeys),
        wants_tools: bool,
    ) -> Result<Helper<'a>> {
        let found = named.and_then(|name| builder.team.agents.iter().find(|agent| agent.name == *name));
        let found = found.and_then(|of| Some((of, of.model()?)));
        let has_tools = wants_tools || found.is_some();
        let (agent, keys) = found.unwrap_or(itself);
        let speaker = match has_tools {
            true => self.assistant(builder, agent, keys)?,
            false => self.without_tools(builder, agent, keys)?,
        };
        Ok(Helper { agent, keys, speaker, has_tools })
    }

    /// A turn of `helper` in `scene`.
    pub(super) fn helps<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        helper: &Helper<'a>,
    ) -> Result<Effect> {
        let Helper { agent, keys, speaker, has_tools } = helper;
        let context = speaker.view(self.case, scene, scene.seen_by(agent.name.as_str()));
        let (case, task, last) = (self.case, scene.task, scene.longest);
        let act = |results: u128| speaker.turn_after(case, context.saturating_add(results), task, last);
        if *has_tools {
            let caller = Some(&**speaker).filter(|speaker| speaker.calls_functions(case));
            return self.with_agent_tools(builder, scene, (agent, keys), (caller, act));
        }
        let effect = act(0);
        self.note(&scene.chat, agent.name.as_str(), effect.sum);
        Ok(effect)
    }

    /// Has `helper` asked by `who` in its turn, with a message of `bytes`. Returns the bytes of the reply.
    fn asks<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        (who, helper): (&Name, &Helper<'a>),
        bytes: u128,
    ) -> Result<u128> {
        let whom = &helper.agent.name;
        let turns = if helper.has_tools { self.turns_of_call(builder, scene, whom) } else { 1 };
        let help = |walk: &mut Self, inner: &mut Scene| walk.helps(builder, inner, helper);
        self.call(builder, scene, (who, whom), (bytes, turns), help)
    }

    fn plan_and_solve<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        itself: (&'a Agent, &'a ModelKeys),
        (given, objective): (&PlanAndSolve, u128),
    ) -> Result<u128> {
        let planner = self.helper(builder, given.planner.as_deref(), itself, false)?;
        let solver = self.helper(builder, given.solver.as_deref(), itself, true)?;
        let plan = self.asks(builder, scene, (&itself.0.name, &planner), objective)?;
        let (mut done, mut result) = (objective, 0);
        let steps = self.case.times(given.max_steps as u128, 3);
        // Each is walked through: what is done grows, and is in no scene.
        for _ in 0..steps {
            // Each step is solved in a chat of its own, whose task it is.
            let mut inner = scene.new_call();
            inner.task = done.saturating_add(plan);
            inner.post(introduction(builder.team, &Name::user()), inner.task);
            let step = self.helps(builder, &mut inner, &solver)?;
            inner.sum.add(step.sum);
            scene.sum.add(inner.sum);
            result = step.message;
            done = done.saturating_add(result).saturating_add(plan).saturating_add(PROMPT);
        }
        Ok(result)
    }

    fn rewoo<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        itself: (&'a Agent, &'a ModelKeys),
        (given, question): (&Rewoo, u128),
    ) -> Result<u128> {
        let (case, who) = (self.case, &itself.0.name);
        let planner = self.helper(builder, given.planner.as_deref(), itself, false)?;
        let solver = self.helper(builder, given.solver.as_deref(), itself, false)?;
        let worker = self.assistant(builder, itself.0, itself.1)?;
        let asked = question.saturating_add(worker.tool_bytes());
        let plan = self.asks(builder, scene, (who, &planner), asked)?;
        let steps = case.times((plan / 8).clamp(1, given.max_steps.max(1) as u128), 2);
        let spent = self.spent(&scene.chat, who, steps.saturating_mul(worker.tool_cost()));
        scene.sum.add(spent);
        let result = case.text(worker.tool_result()).saturating_add(CALL);
        // Names of tools that there are not are repeated.
        let evidence = plan.saturating_mul(2).saturating_add(steps.saturating_mul(result));
        self.asks(builder, scene, (who, &solver), question.saturating_add(evidence))
    }

    fn refine<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        itself: (&'a Agent, &'a ModelKeys),
        (given, task): (&Refine, u128),
    ) -> Result<u128> {
        let who = &itself.0.name;
        let writer = self.helper(builder, None, itself, true)?;
        let critic = self.helper(builder, given.critic.as_deref(), itself, true)?;
        let mut draft = self.asks(builder, scene, (who, &writer), task)?;
        let rounds = self.case.times(given.rounds.into(), 1);
        self.repeat(scene, (rounds, 1), |walk, scene, _| {
            let shown = task.saturating_add(draft).saturating_add(PROMPT);
            let criticism = walk.asks(builder, scene, (who, &critic), shown)?;
            draft = walk.asks(builder, scene, (who, &writer), criticism)?;
            Ok(())
        })?;
        Ok(draft)
    }

    fn best<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        itself: (&'a Agent, &'a ModelKeys),
        given: &Best,
    ) -> Result<u128> {
        let proposer = self.helper(builder, None, itself, true)?;
        let critic = self.helper(builder, Some(&given.critic), itself, true)?;
        let texts = given.texts.clone().unwrap_or_default().or(ChoiceTexts::default());
        let choice = Choice { options: given.options as u128, retries: given.retries.into(), texts, more: 0 };
        self.best_of(builder, scene, (&proposer, Some(&critic)), &choice)
    }

    /// The best of several drafts of `proposer`, by the choice of `critic`, if a model chooses. Adds what they take, and returns the bytes
    /// of a draft.
    pub(super) fn best_of<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        (proposer, critic): (&Helper<'a>, Option<&Helper<'a>>),
        choice: &Choice,
    ) -> Result<u128> {
        let who = &proposer.agent.name;
        let mut draft = 0;
        self.repeat(scene, (choice.options, 1), |walk, scene, _| {
            // Each is written in a chat of its own, which opens with all that its author has seen: no window cuts that off.
            let mut inner = scene.new_call();
            inner.longest = scene.longest;
            inner.begin_after(scene.seen_by(who.as_str()));
            inner.pin();
            let effect = walk.helps(builder, &mut inner, proposer)?;
            inner.sum.add(effect.sum);
            scene.sum.add(inner.sum);
            draft = effect.message;
            Ok(())
        })?;
        let Some(critic) = critic.filter(|_| choice.options > 1) else { return Ok(draft) };
        let (prompt, tries) = (choice.prompt(draft), 1 + self.case.times(choice.retries, 0));
        self.repeat(scene, (tries, 1), |walk, scene, _| {
            walk.asks(builder, scene, (who, critic), prompt).map(|_| ())
        })?;
        Ok(draft)
    }
}
