//! Code in messages, and what came of running it.
//!
//! [`Coder`] is a layer of a [`Stack`](crate::reply::Stack). It finds the fenced code blocks of what its agent heard, runs
//! them one after the other by the tools it was given for their languages, stops at the first that fails, and replies in
//! the words that models were trained on:
//!
//! ```text
//! exitcode: 0 (execution succeeded)
//! Code output: 42
//! ```
//!
//! Each run is a tool call in the log: one that was in flight when the process died is reported as of unknown outcome, and
//! is not made again unless the tool is declared repeatable. The tools of `polylogue_tools::code` run code enclosed in a
//! sandbox; any [`Tool`] that takes a text `code` will do.
//!
//! # What counts as code
//! Fences as Markdown has them: of backticks or tildes, longer ones around shorter ones, in lists and quotes, with any
//! tag. A fence that is not closed is half a program, and is not run. A block without a tag is run when it reads like Python
//! or begins like a command line ([`Block::language`]); documents and data (`markdown`, `text`, `json` ...) are nobody's program. A first
//! line such as `# filename: plot.py` names the file; no other comment does.
//!
//! # An assistant that writes, and a proxy that runs
//! ```
//! # fn example(model: polylogue_core::AnyModel, python: polylogue_core::AnyTool) -> polylogue_core::Result<()> {
//! use polylogue::approval::Approval;
//! use polylogue::code::{Block, Coder};
//! use polylogue::oversight::Oversight;
//! use polylogue::reply::Stack;
//! use polylogue::stop::says;
//! use polylogue::{Assistant, Chat, in_turn, until};
//!
//! // Somebody is asked before anything is run that deletes.
//! let coder = Coder::new().tool(python).approval(Approval::when(|block: &Block| block.code.contains("remove")));
//! let chat = Chat::named("coding")
//!     .with(Assistant::new("Coder", model)?.system("Solve the task with Python. Say TERMINATE when it is solved."))
//!     .with(Stack::new("Runner")?.then(Oversight::never()).then(coder).otherwise("Go on."))
//!     .policy(until(says("TERMINATE"), in_turn()))
//!     .build()?;
//! # Ok(())
//! # }
//! ```

mod block;
mod infer;
mod result;
mod window;

use polylogue_core::{Act, AnyTool, Call, Name, Outcome, Part, Result, Tool, Turn};
use serde_json::{Map, Value, json};

pub use self::block::{Block, blocks};
use self::result::Results;
pub use self::result::reply_of;
use crate::approval::{Approval, Verdict, asked, choices, rejected, visible};
use crate::reply::Reply;

/// How the ids of calls begin by which a [`Coder`] runs code.
pub const CALL_ID: &str = "code-";

/// Runs the code in what its agent heard: the layer `code`. See the [module](self).
///
/// It passes on when there is nothing to run, and replies to nothing that is asked aside.
#[derive(Debug, Clone)]
pub struct Coder {
    tools: Vec<AnyTool>,
    /// Which tool runs which language: its tag in lower case, and the tool's name.
    tags: Vec<(String, String)>,
    window: Option<usize>,
    approval: Approval<Block>,
}

impl Default for Coder {
    fn default() -> Self {
        Self::new()
    }
}

impl Coder {
    /// A coder that runs no language yet, and asks nobody.
    #[must_use]
    pub const fn new() -> Self {
        Self { tools: Vec::new(), tags: Vec::new(), window: None, approval: Approval::never() }
    }

    /// Runs a language by `tool`: one named `python`, `shell` or `javascript` by all the tags that these go by, another by its
    /// own name.
    #[must_use]
    pub fn tool(self, tool: impl Tool) -> Self {
        let tool = AnyTool::new(tool);
        let name = tool.spec().name.clone();
        let tags = match &*name {
            "python" => vec!["python", "py", "python3"],
            "shell" => vec!["shell", "sh", "bash"],
            "javascript" => vec!["javascript", "js", "node"],
            own => vec![own],
        };
        self.runs(&tags, tool)
    }

    /// Runs blocks with one of `tags`, in any case, by `tool`: its `code` is the code, and its `filename` and `language` what
    /// the block has, as far as the tool's schema has these arguments. What was given for a tag last counts.
    #[must_use]
    pub fn runs(mut self, tags: &[&str], tool: impl Tool) -> Self {
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

    /// Looks for code in the last `messages` of the room that the agent sees, whoever spoke since; none when it is 0. The
    /// agent's own words are never run. Without this, it looks at what was said since the agent spoke last.
    #[must_use]
    pub fn last(self, messages: usize) -> Self {
        Self { window: Some(messages), ..self }
    }

    /// Sets when a person is asked before a block is run. By default nobody is.
    #[must_use]
    pub fn approval(self, approval: Approval<Block>) -> Self {
        Self { approval, ..self }
    }

    /// The tool that runs `block`.
    fn runner(&self, block: &Block) -> Option<&AnyTool> {
        let language = block.language.as_deref()?;
        let (_, name) = self.tags.iter().find(|(tag, _)| tag == language)?;
        self.tools.iter().find(|tool| tool.spec().name == *name)
    }

    /// What there is to run: the blocks of the newest message that has some.
    fn due(&self, turn: &Turn<'_>) -> Vec<Block> {
        let programs = |text: &str| {
            let mut found = blocks(text);
            found.retain(|block| self.runner(block).is_some() || block.is_program());
            found
        };
        let messages = window::messages(turn, self.window);
        let mut found = messages.map(|message| programs(&message.plain()));
        found.find(|blocks| !blocks.is_empty()).unwrap_or_default()
    }

    /// What is to be done with `block`; how the turn ends when there is no answer yet.
    fn decide(&self, turn: &mut Turn<'_>, block: &Block, nth: usize) -> Result<Verdict, Act> {
        // Nobody is asked about what is not going to be run.
        let Some(tool) = self.runner(block) else { return Ok(Verdict::Run) };
        let (me, call) = (turn.me().clone(), call(turn, tool, block, nth));
        let question = || (question(&me, block), call.clone());
        self.approval.of(turn, block, question, |_, is_fenced| is_fenced)
    }

    async fn run(&self, turn: &mut Turn<'_>, block: &Block, nth: usize) -> Result<Outcome> {
        let Some(tool) = self.runner(block) else { return Ok(self.refused(block)) };
        let call = call(turn, tool, block, nth);
        let outcomes = turn.call(&self.tools, &[call]).await?;
        Ok(outcomes.into_iter().next().unwrap_or_else(Outcome::unknown))
    }

    fn refused(&self, block: &Block) -> Outcome {
        let known: Vec<String> = self.tags.iter().map(|(tag, _)| format!("`{tag}`")).collect();
        let known = if known.is_empty() { "no language".into() } else { known.join(", ") };
        let language = block.language.as_deref().unwrap_or_default();
        Outcome::failed(format!("unknown language `{language}`; what can be run here is {known}"))
    }
}

fn question(me: &Name, block: &Block) -> String {
    let language = visible(block.language.as_deref().unwrap_or("this"));
    let inferred = if block.inferred { ", by the look of it" } else { "" };
    let choices = choices("code in a fenced block is run in its place");
    asked(&format!("`{me}` is about to run {language} code{inferred}"), &block.code, &choices)
}

/// The call of `tool` that runs `block`.
fn call(turn: &Turn<'_>, tool: &AnyTool, block: &Block, nth: usize) -> Call {
    Call {
        id: format!("{CALL_ID}{}-{nth}", turn.transcript().turns_begun_by(turn.me()).saturating_sub(1)),
        tool: tool.spec().name.clone(),
        args: arguments(tool, block),
    }
}

/// The arguments of `tool` for `block`.
fn arguments(tool: &AnyTool, block: &Block) -> Value {
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

impl Reply for Coder {
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
                    results.add(Outcome::failed(rejected("The code was not run", &why)));
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
