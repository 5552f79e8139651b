//! The user's own rules for approvals, which no team file can weaken.

use std::sync::{Arc, PoisonError, RwLock};

use polylogue::tools::approval::{Decision, is_like, is_like_tool};
use polylogue_config::diagnostic::{Diagnostics, Report};
use polylogue_config::source::Source;
use polylogue_config::yaml::Data;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::masking::parse_yaml;

/// A condition of a rule on what it applies to: all given fields must match. `*` in a text matches any characters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// The name of the tool; of code in messages `python`, `shell` or `javascript`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The code or the command that is run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The host that is reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The file or folder, by where it is: relative to the work directory, for tools that work in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The arguments of the call, exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The team, by the digest of its content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
}

/// A rule and its decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleEntry {
    /// The action is denied.
    Deny(Rule),
    /// A person is asked.
    Ask(Rule),
    /// The action runs without asking.
    Allow(Rule),
}

/// The user's rules: deny precedes ask, and ask precedes allow. If no rule applies, the team file decides. Clones share
/// the rules.
#[derive(Debug, Clone, Default)]
pub struct Rules(Arc<RwLock<Vec<RuleEntry>>>);

/// An action that needs a decision.
#[derive(Debug, Default)]
pub(crate) struct Action<'a> {
    pub(crate) tool: &'a str,
    /// Whether the team file declares the tool: then its name alone says nothing.
    pub(crate) is_own: bool,
    pub(crate) command: Option<String>,
    pub(crate) hosts: Vec<String>,
    /// The address of which no host can be read: rules about hosts can deny it or ask, but not allow it.
    pub(crate) unread: Option<String>,
    pub(crate) paths: Vec<String>,
    pub(crate) arguments: Value,
    pub(crate) team: Option<&'a str>,
}

impl Rules {
    /// Reads a list of rules in YAML, each `deny`, `ask` or `allow` with what it is about; errors call it `file_name`.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    ///
    /// ```
    /// use polylogue_team::Rules;
    /// let text = "- deny: {tool: shell, command: \"*rm -rf*\"}\n- allow: {tool: shell, command: git status}\n";
    /// assert!(Rules::read(text, "approvals.yaml").is_ok());
    /// assert!(Rules::read("- deny: {toool: shell}", "approvals.yaml").is_err());
    /// ```
    pub fn read(text: &str, file_name: &str) -> Result<Self, Diagnostics> {
        let source = Source::new(file_name, text);
        let mut report = Report::new(&source);
        let mut all = Vec::new();
        if text.lines().any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#')) {
            let root = parse_yaml(&mut report);
            if let Some(root) = &root {
                if !matches!(root.data, Data::List(_)) {
                    let hint = "begin each rule with `- deny:`, `- ask:` or `- allow:`";
                    report.error_with_hint(&root.span, "this is not a list of rules", hint);
                }
                for item in root.items() {
                    match serde_json::from_value::<RuleEntry>(item.to_value()) {
                        Ok(entry) if entry.rule().is_empty() => {
                            let hint =
                                "name a `tool`, a `command`, a `host`, a `path`, `arguments` or a `team`";
                            report.error_with_hint(&item.span, "the rule matches nothing", hint);
                        }
                        Ok(entry) => all.push(entry),
                        Err(error) => {
                            let hint = "a rule is such as `deny: {tool: shell, command: \"*rm -rf*\"}`";
                            report.error_with_hint(&item.span, format!("this is not a rule: {error}"), hint);
                        }
                    }
                }
            }
        }
        if report.failed() { Err(report.finish()) } else { Ok(Self(Arc::new(RwLock::new(all)))) }
    }

    /// Adds a rule, for all that share these.
    pub fn add(&self, entry: RuleEntry) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Returns the number of rules.
    pub fn len(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether a rule about hosts applies to one of two and not to the other.
    pub(crate) fn tell_apart(&self, one: &str, other: &str) -> bool {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut hosts = all.iter().filter_map(|entry| entry.rule().host.as_deref());
        hosts.any(|pattern| is_like_host(pattern, one) != is_like_host(pattern, other))
    }

    /// The decision on `action`; none if no rule applies.
    pub(crate) fn decide(&self, action: &Action<'_>) -> Option<Decision> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let has = |which: fn(&RuleEntry) -> Option<&Rule>, all_of_it: bool| {
            all.iter().filter_map(which).any(|rule| rule.is_about(action, all_of_it))
        };
        if has(|entry| if let RuleEntry::Deny(rule) = entry { Some(rule) } else { None }, false) {
            return Some(Decision::Deny("A rule of the user denies it.".into()));
        }
        if has(|entry| if let RuleEntry::Ask(rule) = entry { Some(rule) } else { None }, false) {
            return Some(Decision::Ask);
        }
        has(|entry| if let RuleEntry::Allow(rule) = entry { Some(rule) } else { None }, true)
            .then_some(Decision::Run)
    }
}

impl RuleEntry {
    const fn rule(&self) -> &Rule {
        match self {
            Self::Deny(rule) | Self::Ask(rule) | Self::Allow(rule) => rule,
        }
    }
}

impl Rule {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it applies to `action`. To allow an action, the rule must match all of it and identify the tool: a name that
    /// a team file defines is not enough.
    fn is_about(&self, action: &Action<'_>, all_of_it: bool) -> bool {
        let fits = |pattern: &Option<String>, text: Option<&str>| match pattern {
            None => true,
            Some(pattern) => text.is_some_and(|text| is_like(pattern.trim(), text.trim())),
        };
        let some_fit =
            |pattern: &Option<String>, texts: &[String], like: fn(&str, &str) -> bool| match pattern {
                None => true,
                Some(pattern) if all_of_it => {
                    !texts.is_empty() && texts.iter().all(|text| like(pattern, text))
                }
                Some(pattern) => texts.iter().any(|text| like(pattern, text)),
            };
        let unread = action.unread.iter().filter(|_| !all_of_it);
        let hosts: Vec<String> = action.hosts.iter().chain(unread).cloned().collect();
        let is_known = !all_of_it || !action.is_own || self.team.is_some() || self.command.is_some();
        is_known
            && self.tool.as_deref().is_none_or(|pattern| is_like_tool(pattern.trim(), action.tool.trim()))
            && fits(&self.command, action.command.as_deref())
            && fits(&self.team, action.team)
            && some_fit(&self.host, &hosts, is_like_host)
            && some_fit(&self.path, &action.paths, is_like)
            && self.arguments.as_ref().is_none_or(|arguments| *arguments == action.arguments)
    }
}

/// A host may be named with its port or without.
fn is_like_host(pattern: &str, host: &str) -> bool {
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let bare = host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(host, |(bare, _)| bare);
    let pattern = pattern.to_lowercase();
    is_like(&pattern, host) || is_like(&pattern, bare)
}
