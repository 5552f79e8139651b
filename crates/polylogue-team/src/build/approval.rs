//! A person who is asked before something is done, and the user's rules, which count before what the team file says.

use std::collections::{BTreeMap, BTreeSet};

use polylogue::layers::code::Block;
use polylogue::tools::Approval;
use polylogue::tools::approval::{Decision, Wanted};
use polylogue::{Error, Result, Tool as _};
use serde_json::{Value, json};

use super::AgentBuilder;
use super::agent::expression;
use super::tools::{file_tool_names, known_tools, runs_programs};
use crate::approval::{ApprovalRule, CodeApproval};
use crate::condition::{CallCondition, CodeCondition, NoCondition};
use crate::path::{is_path, normalized, with_normalized};
use crate::rules::{Deed, Rules};
use crate::working::SandboxBackend;

/// Whether something is asked about.
type Asks<T> = Box<dyn Fn(&T) -> bool + Send + Sync>;

impl AgentBuilder<'_> {
    /// When a person is asked before code is run. What nothing encloses is not run unasked, whatever the file says.
    pub(super) fn approval_of_code(&self, given: Option<&CodeApproval>) -> Result<Approval<Block>> {
        let asks: Asks<Block> = match given {
            _ if self.is_open() => Box::new(|_| true),
            None | Some(CodeApproval::Never) => Box::new(|_| false),
            Some(CodeApproval::Always) => Box::new(|_| true),
            Some(CodeApproval::When(text)) => {
                let condition = CodeCondition::new(text).map_err(|error| refused(text, &error))?;
                Box::new(move |block| condition.holds(block))
            }
            Some(CodeApproval::Matches(pattern)) => {
                let regex = expression(pattern)?;
                Box::new(move |block| regex.is_match(&block.code))
            }
        };
        let known = Known::of(self);
        Ok(Approval::by(move |block: &Block| known.decide(&known.deed_of_code(block), || asks(block))))
    }

    /// The same of calls of tools.
    pub(super) fn approval_of_calls(&self, given: Option<&ApprovalRule>) -> Result<Approval<Wanted>> {
        let asks: Asks<Wanted> = match given {
            None | Some(ApprovalRule::Never) => Box::new(|_| false),
            Some(ApprovalRule::Always) => Box::new(|_| true),
            Some(ApprovalRule::Tools(names)) => {
                let names = names.clone();
                Box::new(move |wanted| {
                    names.iter().any(|name| polylogue::tools::approval::is_like_tool(name, &wanted.call.tool))
                })
            }
            Some(ApprovalRule::When(text)) => {
                let condition = CallCondition::new(text).map_err(|error| refused(text, &error))?;
                Box::new(move |wanted| condition.holds(wanted))
            }
            Some(ApprovalRule::Matches(pattern)) => {
                let regex = expression(pattern)?;
                Box::new(move |wanted| {
                    let args = &wanted.call.args;
                    [args, &with_normalized(args)].into_iter().any(|args| regex.is_match(&args.to_string()))
                })
            }
        };
        let (known, is_open) = (Known::of(self), self.is_open());
        Ok(Approval::by(move |wanted: &Wanted| {
            let tool = &*wanted.call.tool;
            let is_bare = is_open && (runs_programs(tool) || known.commands.contains_key(tool));
            known.decide(&known.deed_of_call(wanted), || is_bare || asks(wanted))
        }))
    }

    /// Whether nothing encloses what is run.
    fn is_open(&self) -> bool {
        self.team.sandbox.backend == SandboxBackend::None
    }
}

/// What is known of the tools of a team, and the user's rules.
struct Known {
    rules: Rules,
    team: Option<String>,
    /// The tools of this program: their names say what they are.
    built_in: BTreeSet<String>,
    /// The commands of the team file, in words.
    commands: BTreeMap<String, String>,
    /// The hosts that calls over HTTP reach.
    hosts: BTreeMap<String, String>,
}

impl Known {
    fn of(crew: &AgentBuilder<'_>) -> Self {
        let team = crew.team;
        let rules = crew.workplace.rules().clone();
        let built_in = if rules.is_empty() { BTreeSet::new() } else { built_in() };
        let calls = team.calls.iter().filter_map(|call| Some((call.name.clone(), call.host()?)));
        let operations = team.openapi.values().flat_map(|document| &document.operations);
        let operations = operations.filter_map(|of| Some((of.name.clone(), of.host()?)));
        Self {
            rules,
            team: crew.workplace.content().map(str::to_owned),
            built_in,
            commands: team.commands.iter().map(|of| (of.name.clone(), of.in_words())).collect(),
            hosts: calls.chain(operations).collect(),
        }
    }

    /// The user's rules, then what the team file says.
    fn decide(&self, deed: &Deed<'_>, asks: impl FnOnce() -> bool) -> Decision {
        let by_rule = if self.rules.is_empty() { None } else { self.rules.decide(deed) };
        by_rule.unwrap_or_else(|| if asks() { Decision::Ask } else { Decision::Run })
    }

    fn deed_of_call<'a>(&'a self, wanted: &'a Wanted) -> Deed<'a> {
        let (tool, args) = (&*wanted.call.tool, &wanted.call.args);
        let text = |name: &str| args.get(name).and_then(Value::as_str);
        let command = match self.commands.get(tool) {
            Some(words) => Some(filled(words, args)),
            None if runs_programs(tool) => text("code").map(str::to_owned),
            None => None,
        };
        let paths = args.as_object().into_iter().flatten().filter(|(name, _)| is_path(name));
        let paths = paths.filter_map(|(_, value)| value.as_str()).map(normalized).collect();
        let url = text("url").filter(|_| !self.hosts.contains_key(tool)).map(crate::permission::host);
        let hosts = self.hosts.get(tool).cloned().into_iter().chain(url);
        Deed {
            tool,
            is_own: !self.built_in.contains(tool),
            command,
            hosts: hosts.map(|host| host.to_lowercase()).collect(),
            paths,
            arguments: args.clone(),
            team: self.team.as_deref(),
        }
    }

    fn deed_of_code<'a>(&'a self, block: &'a Block) -> Deed<'a> {
        let tool = match block.language.as_deref().unwrap_or_default() {
            "py" | "python3" => "python",
            "sh" | "bash" => "shell",
            "js" | "node" => "javascript",
            other => other,
        };
        let mut arguments = json!({"code": block.code});
        if let (Some(file), Some(arguments)) = (&block.file, arguments.as_object_mut()) {
            arguments.insert("filename".into(), json!(file));
        }
        let paths = block.file.as_deref().map(normalized).into_iter().collect();
        let (command, team) = (Some(block.code.clone()), self.team.as_deref());
        Deed { tool, is_own: false, command, hosts: Vec::new(), paths, arguments, team }
    }
}

fn built_in() -> BTreeSet<String> {
    let memory = ["remember", "recall", "forget"].map(str::to_owned);
    let known = known_tools().into_iter().map(|tool| tool.spec().name.clone());
    known.chain(file_tool_names()).chain(memory).collect()
}

/// The words of a command with its arguments.
fn filled(words: &str, args: &Value) -> String {
    args.as_object().into_iter().flatten().fold(words.to_owned(), |words, (name, value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        words.replace(&format!("{{{name}}}"), &text)
    })
}

fn refused(text: &str, error: &NoCondition) -> Error {
    Error::config(format!("`{text}` is no condition: {}", error.why))
}
