//! Plan and solve.

use polylogue_core::{Act, Agent, AnyAgent, Error, Name, NameError, Result, SubAgent, Turn};

use super::{alone, result_of};

/// One agent makes a plan and another solves its steps one by one, each in its own chat that starts with the objective
/// and the results of the steps before. The result of the last step is the message.
///
/// A plan is numbered lines; a line without a number continues the step above. A plan without numbers is one step.
#[derive(Debug, Clone)]
pub struct PlanAndSolve {
    name: Name,
    planner: AnyAgent,
    solver: AnyAgent,
    max_steps: usize,
}

const FORM: &str = "Make a plan for this objective. Write each step in a line that begins with its number and a dot. \
                    The last step has to lead to the answer. Write <END_OF_PLAN> after it.";
const END: &str = "<END_OF_PLAN>";

impl PlanAndSolve {
    /// Default limit on the steps of a plan.
    pub const DEFAULT_MAX_STEPS: usize = 20;

    /// Creates an agent named `name` with a planner and a solver.
    ///
    /// # Errors
    /// When the name is illegal.
    pub fn new(name: impl AsRef<str>, planner: impl Agent, solver: impl Agent) -> Result<Self, NameError> {
        let (planner, solver) = (AnyAgent::new(planner), AnyAgent::new(solver));
        Ok(Self { name: Name::new(name)?, planner, solver, max_steps: Self::DEFAULT_MAX_STEPS })
    }

    /// Sets the limit on the steps of a plan. The turn fails if the plan has more.
    #[must_use]
    pub fn max_steps(self, steps: usize) -> Self {
        Self { max_steps: steps, ..self }
    }
}

impl Agent for PlanAndSolve {
    fn name(&self) -> &Name {
        &self.name
    }

    fn sub_agents(&self) -> Vec<SubAgent> {
        vec![SubAgent::of(&self.planner)]
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let objective = turn.message().text().into_owned();
        let plan = turn.ask(&self.planner, format!("{FORM}\n\nObjective: {objective}")).await?;
        let steps = steps(&plan.text());
        if steps.len() > self.max_steps {
            let (planner, max) = (self.planner.name(), self.max_steps);
            return Err(Error::agent(format!(
                "the plan of `{planner}` has {} steps, and may have {max}",
                steps.len()
            )));
        }
        let chat = alone(&self.solver).build()?;
        let (mut done, mut answer) = (String::new(), None);
        for step in steps {
            let results = if done.is_empty() { String::new() } else { format!("Results so far:\n{done}\n") };
            let task = format!("Objective: {objective}\n\n{results}Solve this step and no other: {step}");
            let result = result_of(turn, &chat, &task).await?;
            done.push_str(&format!("- Step: {step}\n  Result: {result}\n"));
            answer = Some(result);
        }
        Ok(answer.map_or(Act::Pass, Act::say))
    }
}

/// The steps of a plan, without their numbers.
fn steps(plan: &str) -> Vec<String> {
    let plan = plan.split(END).next().unwrap_or_default();
    let mut steps: Vec<String> = Vec::new();
    for line in plan.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match (numbered(line), steps.last_mut()) {
            (Some(step), _) => steps.push(step.to_owned()),
            (None, Some(step)) => {
                step.push(' ');
                step.push_str(line);
            }
            // Text before the first step.
            (None, None) => {}
        }
    }
    let whole = plan.trim();
    if steps.is_empty() && !whole.is_empty() { vec![whole.to_owned()] } else { steps }
}

fn numbered(line: &str) -> Option<&str> {
    let (number, step) = line.split_once(['.', ')'])?;
    let is_number = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
    (is_number && step.starts_with(' ')).then(|| step.trim())
}
