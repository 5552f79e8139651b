//! When a person approves what an agent does.

use std::collections::{BTreeMap, BTreeSet};

use polylogue::Result;
use polylogue::layers::code::CodeBlock;
use polylogue::tools::Approval;
use polylogue::tools::approval::{ApprovalRequest, Decision, is_like_tool};
use polylogue_config::{At, Config};
use polylogue_http::host_of;
use polylogue_tools::command::Declaration;
use serde_json::{Value, json};

use crate::built_in::{changes_files, file_tool_names, known_tool_names, runs_programs};
use crate::condition::{CallCondition, CodeCondition};
use crate::path::Paths;
use crate::rules::{Action, Rules};
use crate::text::{CallConditionText, CodeConditionText, RegexText, compile_regex};

/// Whether a person must approve something.
type ApprovalCheck<T> = Box<dyn Fn(&T) -> bool + Send + Sync>;

/// Condition under which a person must approve code before it is executed.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "CodeApproval")]
pub enum CodeApproval {
    /// Never.
    Never,
    /// Every block.
    Always,
    /// Blocks that meet a condition in CEL, with the variables `code`, `language`, `file` and `outside`.
    #[key(as = CodeConditionText, nonempty)]
    When(String),
    /// Blocks that match a regular expression.
    #[key(as = RegexText, nonempty)]
    Matches(String),
}

impl CodeApproval {
    fn build(&self, paths: Paths) -> Result<ApprovalCheck<CodeBlock>> {
        Ok(match self {
            Self::Never => Box::new(|_| false),
            Self::Always => Box::new(|_| true),
            Self::When(text) => {
                let condition = CodeCondition::new(text).map_err(|error| error.of(text))?;
                Box::new(move |block| condition.holds(&paths.in_block(block)))
            }
            Self::Matches(pattern) => {
                let regex = compile_regex(pattern)?;
                Box::new(move |block| regex.is_match(&block.code))
            }
        })
    }
}

/// Condition under which a person must approve a tool call before it is executed.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "Approval")]
pub enum ApprovalRule {
    /// Never.
    Never,
    /// Every call.
    Always,
    /// Calls of these tools. `*` in a name matches any characters.
    #[key(nonempty, unique)]
    Tools(Vec<At<String>>),
    /// Calls that meet a condition in CEL, with the variables `tool`, `args`, `who` and `outside`.
    #[key(as = CallConditionText, nonempty)]
    When(String),
    /// Calls whose arguments, as JSON, match a regular expression.
    #[key(as = RegexText, nonempty)]
    Matches(String),
}

impl ApprovalRule {
    fn build(&self, paths: Paths) -> Result<ApprovalCheck<ApprovalRequest>> {
        Ok(match self {
            Self::Never => Box::new(|_| false),
            Self::Always => Box::new(|_| true),
            Self::Tools(names) => {
                let names = names.clone();
                Box::new(move |wanted| names.iter().any(|name| is_like_tool(name, &wanted.call.tool)))
            }
            Self::When(text) => {
                let condition = CallCondition::new(text).map_err(|error| error.of(text))?;
                Box::new(move |wanted| condition.holds(&paths.in_request(wanted)))
            }
            Self::Matches(pattern) => {
                let regex = compile_regex(pattern)?;
                Box::new(move |wanted| {
                    let requests = [wanted, &paths.in_request(wanted)];
                    requests.into_iter().any(|wanted| regex.is_match(&wanted.call.args.to_string()))
                })
            }
        })
    }
}

/// Decides whether a person is asked before something is done: by the user's rules, then by what the team file says.
pub(crate) struct Approver {
    pub(crate) rules: Rules,
    /// Identifies the content of the team, for rules that are about it.
    pub(crate) team: Option<String>,
    /// The commands of the team file.
    pub(crate) commands: BTreeMap<String, Declaration>,
    /// The hosts that calls over HTTP reach.
    pub(crate) hosts: BTreeMap<String, String>,
    /// Where paths lead.
    pub(crate) paths: Paths,
    /// Whether nothing isolates programs.
    pub(crate) is_open: bool,
    /// Whether programs work in a directory of the user's.
    pub(crate) is_project: bool,
}

impl Approver {
    /// Approval of code. Code that nothing isolates always needs it, whatever the file says.
    pub(crate) fn of_code(self, given: Option<&CodeApproval>) -> Result<Approval<CodeBlock>> {
        let given = if self.is_open || self.is_project {
            &CodeApproval::Always
        } else {
            given.unwrap_or(&CodeApproval::Never)
        };
        let asks = given.build(self.paths.clone())?;
        Ok(Approval::by(move |block: &CodeBlock| self.decide(&self.action_of_code(block), || asks(block))))
    }

    /// Approval of tool calls.
    pub(crate) fn of_calls(self, given: Option<&ApprovalRule>) -> Result<Approval<ApprovalRequest>> {
        let asks = given.unwrap_or(&ApprovalRule::Never).build(self.paths.clone())?;
        // Of no use without rules.
        let built_in = if self.rules.is_empty() { BTreeSet::new() } else { built_in() };
        Ok(Approval::by(move |wanted: &ApprovalRequest| {
            let tool = &*wanted.call.tool;
            let runs = runs_programs(tool) || self.commands.contains_key(tool);
            let is_guarded =
                runs && (self.is_open || self.is_project) || self.is_project && changes_files(tool);
            let action = self.action_of_call(wanted, !built_in.contains(tool));
            self.decide(&action, || is_guarded || asks(wanted))
        }))
    }

    /// The user's rules, then what the team file says.
    fn decide(&self, action: &Action<'_>, asks: impl FnOnce() -> bool) -> Decision {
        let by_rule = if self.rules.is_empty() { None } else { self.rules.decide(action) };
        by_rule.unwrap_or_else(|| if asks() { Decision::Ask } else { Decision::Run })
    }

    fn action_of_call<'a>(&'a self, wanted: &'a ApprovalRequest, is_own: bool) -> Action<'a> {
        let (tool, args) = (&*wanted.call.tool, &wanted.call.args);
        let text = |name: &str| args.get(name).and_then(Value::as_str);
        let command = match self.commands.get(tool) {
            // A call whose arguments do not fit runs nothing.
            Some(command) => command.words(args).ok().map(|words| words.join(" ")),
            None if runs_programs(tool) => text("code").map(str::to_owned),
            None => None,
        };
        let url = text("url").filter(|_| !self.hosts.contains_key(tool));
        let host = url.and_then(host_of_argument);
        let unread = url.filter(|_| host.is_none()).map(str::to_lowercase);
        let hosts = self.hosts.get(tool).cloned().into_iter().chain(host);
        Action {
            tool,
            is_own,
            command,
            hosts: hosts.map(|host| host.to_lowercase()).collect(),
            unread,
            paths: self.paths.of_call(&wanted.call),
            arguments: args.clone(),
            team: self.team.as_deref(),
        }
    }

    fn action_of_code<'a>(&'a self, block: &'a CodeBlock) -> Action<'a> {
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
        let paths = self.paths.in_block(block).file.into_iter().collect();
        let (command, team) = (Some(block.code.clone()), self.team.as_deref());
        Action { tool, is_own: false, command, paths, arguments, team, ..Action::default() }
    }
}

/// The tools of this program: their names say what they are.
fn built_in() -> BTreeSet<String> {
    let memory = ["remember", "recall", "forget"].map(str::to_owned);
    known_tool_names().chain(file_tool_names().iter().cloned()).chain(memory).collect()
}

/// The host of an address that a model wrote. Some tools take one without a scheme, such as `example.org/a`, and browsers one within
/// another, such as `view-source:http://example.org/`.
fn host_of_argument(address: &str) -> Option<String> {
    let mut rest = address.trim();
    loop {
        let host = host_of(rest).or_else(|| host_of(&format!("http://{rest}")));
        if host.is_some() {
            return host;
        }
        rest = rest.split_once(':')?.1.trim();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_an_address_is_found_in_every_form() {
        for (address, host) in [
            ("http://example.org/a", Some("example.org")),
            (" example.org:8080/a", Some("example.org:8080")),
            ("view-source:http://example.org/a", Some("example.org")),
            ("view-source: view-source:https://example.org:8443/", Some("example.org:8443")),
            ("view-source:example.org/a", Some("example.org")),
            ("blob:https://example.org/0a1b", Some("example.org")),
            ("filesystem:http://example.org/temporary/a", Some("example.org")),
            ("feed:https://docs.example/?u=http://example.org/", Some("docs.example")),
            ("not an address", None),
            ("also: not an address", None),
            ("", None),
        ] {
            assert_eq!(host_of_argument(address).as_deref(), host, "{address}");
        }
    }
}
