//! Prompts that ask for tools which the agent does not have, and calls that no agent executes.

use std::collections::BTreeSet;

use super::approval::Tools;
use super::sentence;
use crate::agent::{Agent, ModelKeys};
use crate::built_in::{FILES, known_tool_names};
use crate::codes;
use crate::diagnostic::Report;
use crate::outline::Outline;
use crate::team::Team;
use crate::tooling::ToolEntry;

/// Words that ask for a call.
const VERBS: [&str; 8] = ["use", "call", "run", "invoke", "using", "calling", "running", "invoking"];
/// Words that can be between such a word and the name of a tool.
const FILLERS: [&str; 6] = ["the", "your", "a", "tool", "function", "command"];
/// What a tool is called, next to its name.
const NOUNS: [&str; 3] = ["tool", "function", "command"];

pub(super) fn check(team: &Team, outline: &Outline<'_>, report: &mut Report<'_>) {
    warn_of_unexecuted(team, outline, report);
    // Other agents can run what an agent writes in blocks and in code.
    let runs_texts =
        |agent: &Agent| agent.runs_output_blocks.is_some() || agent.code_execution.on().is_some();
    if outline.agents().any(runs_texts) {
        return;
    }
    let own: BTreeSet<String> = named_tools(team).collect();
    let mut all = own.clone();
    let has_prompt = |agent: &Agent| agent.model().is_some_and(|keys| keys.system.ok && names_a_tool(keys));
    // Most teams do not need these.
    if outline.agents().any(has_prompt) {
        all.extend(known_tool_names());
    }
    for agent in outline.agents() {
        if report.full_of_warnings() {
            return;
        }
        if let Some(keys) = agent.model().filter(|keys| keys.system.ok) {
            warn_of_missing(team, (agent, keys), (&own, &all), report);
        }
    }
}

/// Warns of tools that an agent suggests and that none executes.
fn warn_of_unexecuted(team: &Team, outline: &Outline<'_>, report: &mut Report<'_>) {
    let executed = Tools::executed(team, outline).names;
    for agent in outline.agents() {
        let suggested = agent.model().into_iter().flat_map(|keys| keys.suggests_tools.iter());
        for name in suggested.filter(|name| name.ok) {
            let is_executed = |name: &String| executed.contains(name);
            if report.full_of_warnings() || Tools::named(team, name).names.iter().any(is_executed) {
                continue;
            }
            let message = format!("no agent executes `{name}`, which `{}` calls", agent.name);
            let hint = format!(
                "give an agent `executes_tools: [{name}]`, or move it to the `tools` of `{}`",
                agent.name
            );
            report.warning(codes::NO_EFFECT, &name.span, message, hint);
        }
    }
}

/// Whether the system message has a word for tools.
fn names_a_tool(keys: &ModelKeys) -> bool {
    let system = keys.system.fill("").to_lowercase();
    NOUNS.iter().any(|noun| system.contains(noun))
}

/// The tools that agents of the team have, and those that its file declares.
fn named_tools(team: &Team) -> impl Iterator<Item = String> {
    let own = team.given_tools().filter_map(ToolEntry::own).map(|own| own.tool.value.clone());
    own.chain(team.declared_tools()).filter(|name| name != FILES)
}

/// Warns of the first tool that the system message asks for and that the agent does not have: one of `known`, of which the team itself has or
/// declares some.
fn warn_of_missing(
    team: &Team,
    (agent, keys): (&Agent, &ModelKeys),
    (of_team, known): (&BTreeSet<String>, &BTreeSet<String>),
    report: &mut Report<'_>,
) {
    let system = keys.system.fill("");
    let mut asked = asked_for(&system, known);
    // The names of other tools are also words: only those that cannot be meant otherwise count.
    asked.retain(|name| {
        of_team.contains(*name) || name.contains('_') || system.contains(&format!("`{name}`"))
    });
    if asked.is_empty() {
        return;
    }
    let tools = Tools::of(team, agent);
    let own: BTreeSet<&str> = tools.names.iter().map(String::as_str).collect();
    let is_missing =
        |name: &&&str| !own.contains(**name) && !keys.suggests_tools.iter().any(|own| own.as_str() == **name);
    if let Some(name) = asked.iter().find(is_missing).filter(|_| !tools.open) {
        let message = format!("`{}` is prompted to call `{name}`, which it does not have", agent.name);
        let hint = format!("add `{name}` to its `tools`, or change the prompt");
        report.warning(codes::UNKNOWN_TOOL, &keys.system.span, message, hint);
    }
}

/// Those of `names` that sentences of `text` ask for, in their order.
fn asked_for<'n>(text: &str, names: &'n BTreeSet<String>) -> Vec<&'n str> {
    let is_in_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let mut found = Vec::new();
    let mut at = 0;
    for piece in text.split_inclusive(|c: char| !is_in_name(c)) {
        let word = piece.trim_end_matches(|c: char| !is_in_name(c));
        let (begin, end) = (at, at + word.len());
        at += piece.len();
        if let (Some(name), Some(after)) = (names.get(word), text.get(end..))
            && !found.contains(&name.as_str())
            && asks(sentence::before(text, begin), after)
        {
            found.push(name.as_str());
        }
    }
    found
}

/// Whether a sentence that begins with `before` asks its reader to call the tool whose name is between it and `after`.
fn asks(before: &str, after: &str) -> bool {
    let is_quote = |c: char| matches!(c, '`' | '"' | '\'' | '“' | '”' | '‘' | '’' | '*');
    let mut words: Vec<String> = before
        .trim_end_matches(is_quote)
        .split(char::is_whitespace)
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let next = after.trim_start_matches(is_quote).split_whitespace().next().unwrap_or_default();
    let next = next.trim_end_matches(|c: char| !c.is_alphanumeric());
    let mut is_tool = NOUNS.contains(&next);
    while words.last().is_some_and(|word| FILLERS.contains(&word.as_str())) {
        is_tool |= words.pop().is_some_and(|word| NOUNS.contains(&word.as_str()));
    }
    let is_asked = words
        .pop()
        .is_some_and(|word| VERBS.contains(&word.trim_start_matches(|c: char| !c.is_alphanumeric())));
    // What others do is said with words before it.
    let is_to_reader = match words.last().map(String::as_str) {
        None | Some("-" | "*" | "please" | "always" | "then" | "first" | "you") => true,
        Some(word) => word.ends_with([',', ':', ';']),
    };
    is_tool && is_asked && is_to_reader && !sentence::is_negated(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_reader_is_asked_to_call_is_found() {
        let names = BTreeSet::from(["calculator".to_owned(), "get_price".to_owned()]);
        for (text, expected) in [
            ("Use the tool `calculator` for sums.", &["calculator"][..]),
            ("You add up.\n- Call the get_price tool first.", &["get_price"]),
            (
                "When it is a sum, use the \"calculator\" tool. Call the tool get_price.",
                &["calculator", "get_price"],
            ),
            ("You are good. Please use your function get_price, then stop.", &["get_price"]),
            ("A calculator is on your desk.", &[]),
            ("Use calculators.", &[]),
            ("Use a calculator if you like.", &[]),
            ("Never use the tool `calculator`.", &[]),
            ("Ann can use the tool `calculator`.", &[]),
            ("Ask Ann to use the tool `calculator`.", &[]),
            ("The tool `calculator` belongs to Ann.", &[]),
            ("Gib mir größere Zahlen: calculator", &[]),
            ("", &[]),
        ] {
            assert_eq!(asked_for(text, &names), expected, "{text}");
        }
    }
}
