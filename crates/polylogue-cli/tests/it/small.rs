//! A server of a small model: plain text is all that it knows. Agents that call tools are asked about them in words, and what
//! it replies is what the script of the team would have them do.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use polylogue_models::{ScriptCall, ScriptStep};
use polylogue_team::Team;
use polylogue_test::server::{Answer, Behavior, Playbook, Received};

/// Agents that speak by the script of `team`, on a server that refuses `tools` and `response_format`. Each agent is known by
/// its model, which has its name; other callers, such as a policy, by the system text.
pub(crate) fn small_model(team: &Team) -> Behavior {
    let mut lines: HashMap<String, Lines> = HashMap::new();
    for step in team.script.steps().iter().filter(|step| step.error.is_none()) {
        let is_agent = team.agents.iter().any(|agent| agent.name == step.who);
        let key = if is_agent { step.who.as_str() } else { OTHERS };
        lines.entry(key.to_owned()).or_default().add(step);
    }
    let systems: HashMap<String, String> = team
        .agents
        .iter()
        .map(|agent| {
            // Up to where the task stands.
            let system = agent.model().map(|keys| keys.system.fill("\u{0}")).unwrap_or_default();
            let fixed = system.split('\u{0}').next().unwrap_or_default().trim();
            (agent.name.to_string(), fixed.to_owned())
        })
        .collect();
    let lines = Mutex::new(lines);
    let play = move |asked: &Received, _: usize| {
        let own = systems.get(asked.model());
        let is_own = own.is_some_and(|own| asked.system().unwrap_or_default().contains(own.as_str()));
        let who = if is_own { asked.model() } else { OTHERS };
        let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        match lines.entry(who.to_owned()).or_default().reply(&asked.last_text()) {
            Some(text) => Answer::text(text),
            None => Answer::unexpected(format!("{who} has nothing to reply to: {}", asked.last_text())),
        }
    };
    Behavior::from(Playbook::new(play)).text_only()
}

/// A caller that is not an agent of the team.
pub(crate) const OTHERS: &str = "others";

/// The file of `team`, each agent with a model that is called like it.
pub(crate) fn of_own_models(team: &Team, file: &str) -> String {
    let mut file = format!("model: openai:{OTHERS}\n{file}");
    for agent in team.agents.iter().filter(|agent| agent.model().is_some_and(|keys| keys.model.is_none())) {
        let begins = format!("\n  - name: {}\n", agent.name);
        assert!(file.contains(&begins), "{} is written in another form", agent.name);
        file = file.replace(&begins, &format!("{begins}    model: openai:{}\n", agent.name));
    }
    file
}

/// What one of them does next.
#[derive(Debug, Default)]
struct Lines(VecDeque<Line>);

#[derive(Debug)]
enum Line {
    Call(ScriptCall),
    Say(String),
}

impl Lines {
    /// No agent that is asked for arguments says text besides calls.
    fn add(&mut self, step: &ScriptStep) {
        if step.calls.is_empty() {
            let thought = step.think.as_ref().map(|thought| format!("<think>{thought}</think>\n"));
            let text = step.say.as_deref().unwrap_or_default();
            self.0.push_back(Line::Say(thought.unwrap_or_default() + text));
        }
        self.0.extend(step.calls.iter().cloned().map(Line::Call));
    }

    fn call(&self) -> Option<&ScriptCall> {
        match self.0.front()? {
            Line::Call(call) => Some(call),
            Line::Say(_) => None,
        }
    }

    /// The reply to what was said last.
    fn reply(&mut self, last: &str) -> Option<String> {
        let asks = |what: &str| last.contains(what);
        let decides = asks("Answer only `yes` or `no`");
        Some(if asks("Do not solve the task yet") {
            "I understand.".to_owned()
        } else if asks("help you to solve this task") || asks("Do you need another tool call") {
            "<think>Who knows? yes, no, yes</think>Perhaps.".to_owned()
        } else if decides {
            let word = if self.call().is_some() { "Yes" } else { "No" };
            format!("<think>{word}, or not?</think>{word}.")
        } else if asks("Answer with exactly one of these names") {
            format!("`{}`", self.call()?.tool)
        } else if asks("as one JSON object and nothing else") || asks("Output the whole JSON object") {
            let Some(Line::Call(call)) = self.0.pop_front() else { return None };
            format!("Here you are:\n```json\n{}\n```", call.args)
        } else {
            self.say()?
        })
    }

    /// What it says next, without the calls for which it was not asked again.
    fn say(&mut self) -> Option<String> {
        loop {
            if let Line::Say(text) = self.0.pop_front()? {
                return Some(text);
            }
        }
    }
}
