//! Running code in messages.
//!
//! [`Coder`] is a layer of a [`Stack`](crate::layers::reply::Stack). It finds the fenced code blocks in the messages that its
//! agent sees, runs them one after the other with the tools for their languages, stops at the first failure, and
//! replies in the format that models were trained on:
//!
//! ```text
//! exitcode: 0 (execution succeeded)
//! Code output: 42
//! ```
//!
//! Each run is a tool call in the log: one that was in flight when the process died is reported with an unknown
//! outcome, and only repeated if the tool is declared repeatable. The tools of `polylogue_tools::code` run code in a
//! sandbox; any [`Tool`] with a string parameter `code` works.
//!
//! # What counts as code
//! Fenced blocks as in Markdown: with backticks or tildes, longer fences around shorter ones, in lists and quotes, with
//! any tag. An unclosed fence is an incomplete program and does not run. A block without a tag runs when it reads like
//! Python or starts like a command line ([`CodeBlock::language`]); documents and data (`markdown`, `text`, `json` ...) do
//! not run. A first line such as `# filename: plot.py` names the file; other comments do not.
//!
//! # An assistant that writes, and a proxy that runs
//! ```
//! # fn example(model: polylogue_core::AnyModel, python: polylogue_core::AnyTool) -> polylogue_core::Result<()> {
//! use polylogue::tools::approval::Approval;
//! use polylogue::layers::code::{CodeBlock, Coder};
//! use polylogue::layers::human_input::HumanInput;
//! use polylogue::layers::reply::Stack;
//! use polylogue::stop::says;
//! use polylogue::policies::with_termination;
//! use polylogue::{Assistant, Chat, round_robin};
//!
//! // Code that deletes needs approval.
//! let coder = Coder::new().tool(python).approval(Approval::when(|block: &CodeBlock| block.code.contains("remove")));
//! let chat = Chat::builder("coding")
//!     .participant(Assistant::new("Coder", model)?.system("Solve the task with Python. Say TERMINATE when it is solved."))
//!     .participant(Stack::new("Runner")?.then(HumanInput::never()).then(coder).otherwise("Continue."))
//!     .policy(with_termination(round_robin(), says("TERMINATE")))
//!     .build()?;
//! # Ok(())
//! # }
//! ```

mod result;

use polylogue_core::{
    Act, AnyTool, Message, MessageSource, Name, Part, QuestionKind, Result, Tool, ToolCall, ToolResult,
    TranscriptMessage, Turn,
};
use serde_json::{Map, Value, json};

use self::result::Results;
pub use self::result::reply_of;
pub use crate::code_block::{CodeBlock, blocks, fence};
use crate::layers::reply::ReplyLayer;
use crate::tools::approval::{Approval, Verdict, asked, rejected, request, visible};

/// Prefix of the ids of calls by which a [`Coder`] runs code.
pub const CALL_ID: &str = "code-";

/// Runs the code in the messages that its agent sees: the layer `code`. See the [module](self).
///
/// Passes on when there is nothing to run, and in private turns.
#[derive(Debug, Clone)]
#[must_use]
pub struct Coder {
    tools: Vec<AnyTool>,
    /// Which tool runs which language: the tag in lower case, and the name of the tool.
    tags: Vec<(String, String)>,
    window: Option<usize>,
    approval: Approval<CodeBlock>,
}

impl Default for Coder {
    fn default() -> Self {
        Self::new()
    }
}

impl Coder {
    /// Creates a coder without languages and without approval.
    pub const fn new() -> Self {
        Self { tools: Vec::new(), tags: Vec::new(), window: None, approval: Approval::never() }
    }

    /// Adds a tool that runs a language: one named `python`, `shell` or `javascript` runs all the usual tags of its
    /// language, any other the tag of its own name.
    pub fn tool(self, tool: impl Tool) -> Self {
        let tool = AnyTool::new(tool);
        let name = tool.spec().name.clone();
        let tags = match &*name {
            "python" => vec!["python", "py", "python3"],
            "shell" => vec!["shell", "sh", "bash"],
            "javascript" => vec!["javascript", "js", "node"],
            own => vec![own],
        };
        self.tool_for(&tags, tool)
    }

    /// Adds a tool that runs blocks with one of `tags`, case-insensitive. It gets the code in `code`, and `filename`
    /// and `language` if its schema has these parameters. The last tool added for a tag runs it.
    pub fn tool_for(mut self, tags: &[&str], tool: impl Tool) -> Self {
        let tool = AnyTool::new(tool);
        let name = tool.spec().name.clone();
        for tag in tags.iter().map(|tag| tag.to_lowercase()) {
            self.tags.retain(|(other, _)| *other != tag);
            self.tags.push((tag, name.clone()));
        }
        self.tools.retain(|other| other.spec().name != name);
        self.tools.push(tool);
        self
    }

    /// Searches the last `messages` of the chat that the agent sees for code, whichever agent spoke since; 0 searches none. The
    /// agent's own messages never run. Default: the messages since the agent's last turn.
    pub fn last(self, messages: usize) -> Self {
        Self { window: Some(messages), ..self }
    }

    /// Sets which blocks need approval by a person. Default: none.
    pub fn approval(self, approval: Approval<CodeBlock>) -> Self {
        Self { approval, ..self }
    }

    /// The tool that runs `block`.
    fn runner(&self, block: &CodeBlock) -> Option<&AnyTool> {
        let language = block.language.as_deref()?;
        let (_, name) = self.tags.iter().find(|(tag, _)| tag == language)?;
        self.tools.iter().find(|tool| tool.spec().name == *name)
    }

    /// The blocks to run: those of the newest message that has some.
    fn due(&self, turn: &Turn<'_>) -> Vec<CodeBlock> {
        let programs = |text: &str| {
            let mut found = blocks(text);
            found.retain(|block| self.runner(block).is_some() || block.is_program());
            found
        };
        let messages = searched(turn, self.window);
        let mut found = messages.map(|message| programs(&message.text()));
        found.find(|blocks| !blocks.is_empty()).unwrap_or_default()
    }

    /// The approval of `block`, or the act that ends the turn while it is pending.
    fn decide(&self, turn: &mut Turn<'_>, block: &CodeBlock, nth: usize) -> Result<Verdict, Act> {
        // A block without a tool needs no approval.
        let Some(tool) = self.runner(block) else { return Ok(Verdict::Run) };
        let (me, call) = (turn.me().clone(), call(turn, tool, block, nth));
        let question = || request(question(&me, block), QuestionKind::CodeApproval, call.clone());
        let takes = |code: &str, is_fenced: bool| {
            let edited = CodeBlock { code: code.to_owned(), ..block.clone() };
            if is_fenced { self.approval.check_edited(&edited).map(|()| true) } else { Ok(false) }
        };
        self.approval.of(turn, block, question, takes)
    }

    async fn run(&self, turn: &mut Turn<'_>, block: &CodeBlock, nth: usize) -> Result<ToolResult> {
        let Some(tool) = self.runner(block) else { return Ok(self.refused(block)) };
        let call = call(turn, tool, block, nth);
        let outcomes = turn.call_tools(&self.tools, &[call]).await?;
        Ok(outcomes.into_iter().next().unwrap_or_else(ToolResult::unknown))
    }

    fn refused(&self, block: &CodeBlock) -> ToolResult {
        let known: Vec<String> = self.tags.iter().map(|(tag, _)| format!("`{tag}`")).collect();
        let known = if known.is_empty() { "no language".into() } else { known.join(", ") };
        let language = block.language.as_deref().unwrap_or_default();
        ToolResult::failed(format!("unknown language `{language}`; what can be run here is {known}"))
    }
}

fn question(me: &Name, block: &CodeBlock) -> String {
    let language = visible(block.language.as_deref().unwrap_or("this"));
    let inferred = if block.inferred { ", by the look of it" } else { "" };
    let lead = format!("`{me}` is about to run {language} code{inferred}");
    asked(&lead, &[(String::new(), block.code.clone())])
}

/// The call of `tool` that runs `block`.
fn call(turn: &Turn<'_>, tool: &AnyTool, block: &CodeBlock, nth: usize) -> ToolCall {
    ToolCall {
        id: format!("{CALL_ID}{}-{nth}", turn.transcript().turns_begun_by(turn.me()).saturating_sub(1)),
        tool: tool.spec().name.clone(),
        args: arguments(tool, block),
    }
}

/// The arguments of `tool` for `block`.
fn arguments(tool: &AnyTool, block: &CodeBlock) -> Value {
    let takes = |name: &str| {
        tool.spec().parameters.get("properties").is_some_and(|properties| properties.get(name).is_some())
    };
    let mut args = Map::from_iter([("code".to_owned(), json!(block.code))]);
    for (name, value) in [("filename", &block.file), ("language", &block.language)] {
        if let Some(value) = value.as_ref().filter(|_| takes(name)) {
            args.insert(name.into(), json!(value));
        }
    }
    Value::Object(args)
}

impl ReplyLayer for Coder {
    fn label(&self) -> &'static str {
        "code"
    }

    async fn reply(&self, turn: &mut Turn<'_>) -> Result<Option<Act>> {
        if turn.request().to.is_private() {
            return Ok(None);
        }
        let due = self.due(turn);
        if due.is_empty() {
            return Ok(None);
        }
        let mut results = Results::default();
        let outside = turn.outside().await;
        for (nth, mut block) in due.into_iter().enumerate() {
            block.outside.clone_from(&outside);
            match self.decide(turn, &block, nth) {
                Err(act) => return Ok(Some(act)),
                Ok(Verdict::Run) => {}
                Ok(Verdict::Rejected(why)) => {
                    results.add(ToolResult::failed(rejected("The code was not run", &why)));
                    break;
                }
                Ok(Verdict::Edited(code)) => {
                    results.note(format!(
                        "Before it was run, the code was changed to:\n{}",
                        block.fenced(&code)
                    ));
                    block.code = code;
                }
            }
            results.add(self.run(turn, &block, nth).await?);
            if results.failed() {
                break;
            }
        }
        let parts: Vec<Part> = results.into_parts();
        Ok(Some(Act::Say(parts)))
    }
}

/// The messages of others that are searched for code, newest first.
///
/// Messages before the first turn are the task: they are searched only when there are no others, so that code in the
/// task does not run because a reply has none.
fn searched<'a>(turn: &Turn<'a>, last: Option<usize>) -> impl Iterator<Item = &'a Message> {
    let (chat, me) = (turn.transcript(), turn.me());
    let spoke = chat.recent_turns().find(|ended| ended.who == *me).map(|ended| ended.seq);
    let is_new = move |line: &&TranscriptMessage| last.is_some() || spoke.is_none_or(|seq| line.seq > seq);
    let seen = chat.messages().rev().filter(move |line| line.is_seen_by(me));
    let received =
        seen.take_while(is_new).take(last.unwrap_or(usize::MAX)).filter(move |line| line.message.from != *me);
    let mut began = false;
    received
        .take_while(move |line| {
            let is_task = line.source == MessageSource::Opening;
            let is_searched = !(is_task && began);
            began |= !is_task;
            is_searched
        })
        .map(|line| &line.message)
}
