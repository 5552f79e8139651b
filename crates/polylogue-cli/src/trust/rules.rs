//! The user's rules for approvals, in a file that the user writes and that the answer `always` adds to.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use polylogue_core::{Question, ToolCall};
use polylogue_files::private_options;
use polylogue_runtime::Access;
use polylogue_team::{Rule, RuleEntry, Rules};

use crate::error::CliError;
use crate::{place, whole_file};

/// The largest file that is read.
const LARGEST: u64 = 4 << 20;

/// The rules of the user; none when there is no file.
pub(crate) fn read() -> Result<Rules, CliError> {
    let Some(path) = place::of_rules() else { return Ok(Rules::default()) };
    Ok(Rules::read(&text(&path)?, &path.display().to_string())?)
}

fn text(path: &Path) -> Result<String, CliError> {
    let wrong = |why: String| {
        CliError::usage(format!("your rules for approvals cannot be read from `{}`: {why}", path.display()))
    };
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(wrong(error.to_string())),
        Ok(found) if found.len() > LARGEST => return Err(wrong("it is too large".into())),
        Ok(_) => {}
    }
    fs::read_to_string(path).map_err(|error| wrong(error.to_string()))
}

/// What the answer `always` does: exactly this call of this team is allowed from now on.
#[derive(Clone)]
pub(crate) struct Always {
    pub(crate) rules: Rules,
    /// Identifies the content of the team.
    pub(crate) team: String,
    /// Whether the person knows of it.
    is_shown: Arc<AtomicBool>,
}

/// The answer that allows a call from now on.
const ALWAYS: &str = "always";

impl Always {
    /// For the team that `access` is of.
    pub(crate) fn of(access: &Access) -> Self {
        Self { rules: access.rules.clone(), team: access.digest.clone(), is_shown: Arc::default() }
    }

    /// What the answer does, for the first question for approval.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        const HINT: &str = "`always` runs it, and allows exactly this call of this team from now on (`polylogue trust rules` says where).";
        (!self.is_shown.swap(true, Ordering::Relaxed)).then_some(HINT)
    }

    /// What `text` answers to `question`: `always` is kept as a rule, and means yes.
    pub(crate) fn answer(&self, question: &Question, text: String) -> Result<String, CliError> {
        match &question.call {
            Some(call) if text.trim().eq_ignore_ascii_case(ALWAYS) => {
                self.keep(call)?;
                Ok("yes".to_owned())
            }
            _ => Ok(text),
        }
    }

    fn keep(&self, call: &ToolCall) -> Result<(), CliError> {
        let entry = RuleEntry::Allow(Rule {
            tool: Some(call.tool.clone()),
            arguments: Some(call.args.clone()),
            team: Some(self.team.clone()),
            ..Rule::default()
        });
        let path = place::of_rules()
            .ok_or_else(|| CliError::usage("no home directory was found for your approval rules"))?;
        append(&path, &entry)?;
        self.rules.add(entry);
        Ok(())
    }
}

/// Adds a rule at the end of the file, if it is one that can be added to.
fn append(path: &Path, entry: &RuleEntry) -> Result<(), CliError> {
    let wrong = |why: String| {
        let what = format!("the rule cannot be kept in `{}`: {why}", path.display());
        CliError::failed(what).hint("answer `yes`, or add the rule by hand")
    };
    let line = serde_json::to_string(entry).map_err(|error| wrong(error.to_string()))?;
    let before = text(path)?;
    let gap = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    let added = format!("{gap}- {line}\n");
    Rules::read(&format!("{before}{added}"), "approvals.yaml")
        .map_err(|_| wrong("it would not be a list of rules any more".into()))?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| wrong(error.to_string()))?;
    }
    let file = private_options().append(true).create(true).open(path);
    let written = file.and_then(|file| whole_file::append(file, &added));
    written.map_err(|error| wrong(error.to_string()))
}
