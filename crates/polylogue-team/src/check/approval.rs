//! A person is asked before tools that are there.

use polylogue::approval::is_like_tool;

use super::{Outline, working};
use crate::build::{FILES, file_tool_names};
use crate::diagnostic::Report;
use crate::suggest;
use crate::yaml::Node;

/// What chats give `who` to do.
pub(super) fn tasks_of<'n>(outline: &Outline<'n>, who: &str) -> impl Iterator<Item = &'n Node> {
    let tasks = outline.chats().flat_map(|(_, chat)| {
        let (alone, talks) = (chat.get("pattern").get("tasks"), chat.get("pattern").get("group_solve"));
        let tasks = [alone, talks.get("before"), talks.get("tasks"), talks.get("after")];
        tasks.into_iter().flat_map(Node::items)
    });
    tasks.filter(move |task| task.get("who").text() == Some(who))
}

/// The tools of an agent, as far as the file says them.
struct Tools {
    names: Vec<String>,
    /// Whether others may come, from elsewhere.
    open: bool,
}

pub(super) fn check(outline: &Outline<'_>, report: &mut Report<'_>) {
    for participant in &outline.participants {
        let Some(entry) = participant.node.entry("approval") else { continue };
        let tools = Tools::of(outline, participant.name, participant.node);
        if tools.open || report.full() {
            continue;
        }
        if tools.names.is_empty() {
            let hint = "give it `tools` or `executes_tools`; code that it runs has an `approval` in `code_execution`";
            let message = format!("`{}` has no tools that a person could be asked about", participant.name);
            report.warning(&entry.key_span, message, hint);
            continue;
        }
        for node in entry.value.get("tools").items() {
            let Some(text) = node.text().filter(|text| !text.is_empty() && !text.contains('*')) else {
                continue;
            };
            if !tools.names.iter().any(|name| is_like_tool(text, name)) {
                let hint = suggest::hint(text, tools.names.iter().map(String::as_str));
                report.warning(&node.span, format!("`{}` has no tool `{text}`", participant.name), hint);
            }
        }
    }
}

impl Tools {
    fn of(outline: &Outline<'_>, who: &str, agent: &Node) -> Self {
        let mut tools = Self { names: Vec::new(), open: false };
        let blocks = agent.get("runs_output_blocks");
        for given in [agent.get("tools"), agent.get("executes_tools"), blocks.get("tools")] {
            tools.take(given);
        }
        tools.names.extend(
            blocks.get("code").entries().iter().filter_map(|entry| entry.value.text().map(str::to_owned)),
        );
        tools.names.extend(working::handoffs(agent));
        for (who, _, consult) in working::consults(agent) {
            let tool = consult.get("tool").text().map(str::to_owned);
            tools.names.push(tool.unwrap_or_else(|| working::tool_name(who, "")));
        }
        tasks_of(outline, who).for_each(|task| tools.take(task.get("tools")));
        tools
    }

    fn take(&mut self, tools: &Node) {
        for tool in tools.items() {
            match tool.text().or_else(|| tool.get("tool").text()) {
                Some(FILES) => self.names.extend(file_tool_names()),
                Some(name) => self.names.push(name.to_owned()),
                None => self.open = true,
            }
        }
    }
}
