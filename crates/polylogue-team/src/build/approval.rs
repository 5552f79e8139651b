//! A person who is asked before something is done, and the user's rules, which count before what the team file says.

use std::collections::{BTreeMap, BTreeSet};

use polylogue::layers::code::Block;
use polylogue::tools::Approval;
use polylogue::tools::approval::{ApprovalRequest, Decision};
use polylogue::{Result, Tool as _};
use serde_json::{Value, json};

use super::builder::AgentBuilder;
use crate::approval::{ApprovalRule, CodeApproval};
use crate::built_in::{changes_files, file_tool_names, known_tools, runs_programs};
use crate::path::{is_path, normalized};
use crate::rules::{Action, Rules};
use crate::sandbox::SandboxBackend;
use crate::team::host;

impl AgentBuilder<'_> {
    /// Approval of code. Code that nothing isolates always needs it, whatever the file says.
    pub(super) fn approval_of_code(&self, given: Option<&CodeApproval>) -> Result<Approval<Block>> {
        let given = if self.is_open() || self.context.is_project() {
            &CodeApproval::Always
        } else {
            given.unwrap_or(&CodeApproval::Never)
        };
        let (asks, known) = (given.build()?, Known::of(self));
        Ok(Approval::by(move |block: &Block| known.decide(&known.action_of_code(block), || asks(block))))
    }

    /// Approval of tool calls.
    pub(super) fn approval_of_calls(
        &self,
        given: Option<&ApprovalRule>,
    ) -> Result<Approval<ApprovalRequest>> {
        let asks = given.unwrap_or(&ApprovalRule::Never).build()?;
        let (known, is_open) = (Known::of(self), self.is_open());
        let is_project = self.context.is_project();
        Ok(Approval::by(move |wanted: &ApprovalRequest| {
            let tool = &*wanted.call.tool;
            let runs = runs_programs(tool) || known.commands.contains_key(tool);
            let is_guarded = runs && (is_open || is_project) || is_project && changes_files(tool);
            known.decide(&known.action_of_call(wanted), || is_guarded || asks(wanted))
        }))
    }

    /// Whether nothing isolates programs.
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
    fn of(builder: &AgentBuilder<'_>) -> Self {
        let team = builder.team;
        let rules = builder.context.rules().clone();
        let built_in = if rules.is_empty() { BTreeSet::new() } else { built_in() };
        let calls = team.calls.iter().filter_map(|call| Some((call.name.clone(), call.host()?)));
        let operations = team.openapi.values().flat_map(|document| &document.operations);
        let operations = operations.filter_map(|of| Some((of.name.clone(), of.host()?)));
        Self {
            rules,
            team: builder.context.content().map(str::to_owned),
            built_in,
            commands: team.commands.iter().map(|of| (of.name.clone(), of.in_words())).collect(),
            hosts: calls.chain(operations).collect(),
        }
    }

    /// The user's rules, then what the team file says.
    fn decide(&self, deed: &Action<'_>, asks: impl FnOnce() -> bool) -> Decision {
        let by_rule = if self.rules.is_empty() { None } else { self.rules.decide(deed) };
        by_rule.unwrap_or_else(|| if asks() { Decision::Ask } else { Decision::Run })
    }

    fn action_of_call<'a>(&'a self, wanted: &'a ApprovalRequest) -> Action<'a> {
        let (tool, args) = (&*wanted.call.tool, &wanted.call.args);
        let text = |name: &str| args.get(name).and_then(Value::as_str);
        let command = match self.commands.get(tool) {
            Some(words) => Some(filled(words, args)),
            None if runs_programs(tool) => text("code").map(str::to_owned),
            None => None,
        };
        let paths = args.as_object().into_iter().flatten().filter(|(name, _)| is_path(name));
        let paths = paths.filter_map(|(_, value)| value.as_str()).map(normalized).collect();
        let url = text("url").filter(|_| !self.hosts.contains_key(tool)).map(host);
        let hosts = self.hosts.get(tool).cloned().into_iter().chain(url);
        Action {
            tool,
            is_own: !self.built_in.contains(tool),
            command,
            hosts: hosts.map(|host| host.to_lowercase()).collect(),
            paths,
            arguments: args.clone(),
            team: self.team.as_deref(),
        }
    }

    fn action_of_code<'a>(&'a self, block: &'a Block) -> Action<'a> {
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
        Action { tool, is_own: false, command, hosts: Vec::new(), paths, arguments, team }
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
