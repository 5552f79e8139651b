//! The calls of an orchestrator: facts, plans, ledgers, turns, and the answer.

use polylogue::policies::orchestrator::Progress;
use polylogue::{Name, Result};

use super::case::{MESSAGE, PROMPT};
use super::scene::Scene;
use super::walk::{Walk, introduction};
use crate::build::AgentBuilder;
use crate::pattern::Orchestrator;

/// The bytes of what the placeholders of prompts stand for.
struct Values {
    task: u128,
    team: u128,
    names: u128,
    schema: u128,
    facts: u128,
    plan: u128,
}

impl Values {
    fn of(builder: &AgentBuilder<'_>, scene: &Scene, team: &[&Name]) -> Self {
        let sum = |of: &dyn Fn(&Name) -> usize| team.iter().map(|who| of(who) as u128 + 4).sum();
        let named: Vec<Name> = team.iter().map(|who| (*who).clone()).collect();
        Self {
            task: scene.task,
            team: sum(&|who| who.as_str().len() + builder.team.description_of(who).len()),
            names: sum(&|who| who.as_str().len()),
            schema: Progress::schema(&named).to_string().len() as u128,
            facts: 0,
            plan: 0,
        }
    }

    /// The bytes of `prompt` with its placeholders filled.
    fn fill(&self, prompt: &str) -> u128 {
        // An error names the participants, and quotes a part of the ledger.
        let flaw = self.names.saturating_add(PROMPT);
        let each = [
            ("{task}", self.task),
            ("{team}", self.team),
            ("{names}", self.names),
            ("{schema}", self.schema),
            ("{facts}", self.facts),
            ("{plan}", self.plan),
            ("{flaw}", flaw),
        ];
        each.into_iter().fold(prompt.len() as u128, |sum, (name, bytes)| {
            sum.saturating_add((prompt.matches(name).count() as u128).saturating_mul(bytes))
        })
    }
}

impl Walk<'_> {
    pub(super) fn orchestrator<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        (given, turns): (&Orchestrator, u128),
        everyone: &[&Name],
    ) -> Result<()> {
        let turns = turns.min(given.max_turns.into());
        let plans = self.case.times(given.max_plans.into(), 1);
        let planner = &*given.planner;
        let prompts = &given.prompts;
        let mut values = Values::of(builder, scene, everyone);
        values.facts = self.ask(builder, scene, planner, values.fill(&prompts.facts))?;
        values.plan = self.ask(builder, scene, planner, values.fill(&prompts.plan))?;
        scene.post(introduction(builder.team, planner), values.fill(&prompts.briefing));
        // Other plans can come after any ledger: they are read from the beginning, and written at the end.
        let again = [values.fill(&prompts.updated_facts), values.fill(&prompts.updated_plan)];
        for _ in 1..plans {
            for (prompt, said) in again.into_iter().zip([values.facts, values.plan]) {
                scene.keep(planner.as_str(), prompt.saturating_add(said).saturating_add(2 * MESSAGE));
            }
            scene.post(introduction(builder.team, planner), values.fill(&prompts.briefing));
        }
        self.ledgers(builder, scene, (given, turns, plans), (everyone, &values))?;
        for _ in 1..plans {
            for prompt in again {
                self.ask(builder, scene, planner, prompt)?;
            }
        }
        self.ask(builder, scene, planner, values.fill(&prompts.answer)).map(|_| ())
    }

    /// The ledgers, and the turns to which they lead.
    fn ledgers<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        (given, turns, plans): (&Orchestrator, u128, u128),
        (everyone, values): (&[&Name], &Values),
    ) -> Result<()> {
        let planner = &*given.planner;
        let author = given.progress_agent.as_deref().unwrap_or(planner);
        let (first, other) = (values.fill(&given.prompts.progress), values.fill(&given.prompts.unreadable));
        let tries = self.case.times(given.max_retries.into(), 0);
        // Ledgers that cannot be read lead to no turn: they count as stalls, one of which each turn can take back. The last ledger is one
        // that ends it: after the last turn, or as the last stall.
        let stalls = self.case.times(plans.saturating_mul(given.max_stalls.into()).saturating_add(turns), 1);
        self.repeat(scene, (turns.saturating_add(stalls), 1), |walk, scene, nth| {
            let mut said = walk.ask(builder, scene, author, first)?;
            for _ in 0..tries {
                said = walk.ask(builder, scene, author, other)?;
            }
            if nth >= turns {
                return Ok(());
            }
            scene.post(introduction(builder.team, planner), said);
            // In a typical run, one after the other.
            let at = usize::try_from(nth % (everyone.len() as u128).max(1)).unwrap_or_default();
            let one = everyone.get(at..=at).filter(|_| walk.case.is_typical());
            walk.say(builder, scene, one.unwrap_or(everyone))
        })
    }
}
