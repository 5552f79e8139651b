//! The prompts of an orchestrator.

/// The prompts of the planner and of the participant that fills in the ledger.
///
/// In the prompts `{task}` stands for the task of the chat, `{team}` for the participants with their descriptions, one
/// per line, `{names}` for their names, `{facts}` and `{plan}` for the latest versions, `{schema}` for the JSON Schema
/// of [`Progress`](super::Progress), and `{flaw}` for the error of a ledger. Other braces stay unchanged.
///
/// ```
/// use polylogue::policies::orchestrator::{Orchestrator, OrchestratorPrompts};
/// let prompts = OrchestratorPrompts { answer: "Answer `{task}` in one sentence.".into(), ..OrchestratorPrompts::default() };
/// let orchestrator = Orchestrator::new("Planner")?.prompts(prompts);
/// # Ok::<(), polylogue::kernel::data::NameError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrchestratorPrompts {
    /// Asks for the facts, before the first plan.
    pub facts: String,
    /// Asks for a plan.
    pub plan: String,
    /// Posted in the chat for each plan.
    pub briefing: String,
    /// Asks for the ledger, before each turn.
    pub progress: String,
    /// Asks again when the ledger cannot be parsed.
    pub unreadable: String,
    /// Asks for updated facts, without progress.
    pub updated_facts: String,
    /// Asks for another plan.
    pub updated_plan: String,
    /// Asks for the final answer.
    pub answer: String,
}

impl Default for OrchestratorPrompts {
    fn default() -> Self {
        Self {
            facts: "Here is a task:\n\n{task}\n\nBefore anybody begins, write down what you know of it, under four \
                headings: facts that the task gives; facts to look up, and where; facts to work out; guesses. Do not plan \
                yet."
                .into(),
            plan: "The team that is to do it:\n{team}\n\nWrite a short plan, as a list, of who does what. Not everybody has \
                to take part."
                .into(),
            briefing: "The task:\n\n{task}\n\nThe team:\n{team}\n\nWhat is known:\n\n{facts}\n\nThe plan:\n\n{plan}".into(),
            progress: "The task is:\n\n{task}\n\nThe team:\n{team}\n\nJudge how it stands, by what was said so far:\n\
                - is_request_satisfied: whether the task is done completely.\n\
                - is_in_loop: whether the same is asked for or tried again and again.\n\
                - is_progress_being_made: whether the last turns brought something new; true when nobody had a turn yet.\n\
                - next_speaker: who should have the next turn, one of: {names}.\n\
                - instruction_or_question: what to tell or ask them, with all they need to know.\n\
                Give a short reason for each. Answer with a JSON object, and nothing else, of this schema:\n{schema}"
                .into(),
            unreadable: "This could not be used: {flaw}. Answer again, with a JSON object and nothing else, of this \
                schema:\n{schema}"
                .into(),
            updated_facts: "The work does not get on. The task is still:\n\n{task}\n\nWhat was known:\n\n{facts}\n\nWrite it \
                down anew, with what was learned since: what is certain now, what turned out wrong, and at least one new \
                guess."
                .into(),
            updated_plan: "Say in a few words what went wrong with the last plan. Then write a new one that avoids it, as a \
                list of who does what. The team:\n{team}"
                .into(),
            answer: "The work ends here. The task was:\n\n{task}\n\nGive the final answer to whoever set the task, from \
                what was said so far. If it is not done, say what is known and what is missing."
                .into(),
        }
    }
}
