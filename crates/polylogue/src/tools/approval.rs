//! Approval: a person decides before a tool is called, or code runs.
//!
//! It works the same everywhere: question and answer are in the log; the run waits with
//! [`Status::Waiting`](polylogue_core::Status) meanwhile, and a resumed run does not repeat an answered question.
//!
//! | where | what the rule checks |
//! |---|---|
//! | [`Assistant::approval`](crate::Assistant::approval): before its own tools are called, however its model calls them, [in rounds](crate::agents::reason::React), too | [`ApprovalRequest`] |
//! | [`Executor::approval`](crate::layers::Executor::approval): before it makes the calls of others | [`ApprovalRequest`] |
//! | [`Rewoo::approval`](crate::agents::reason::Rewoo::approval), [`ActionExecutor::approval`](crate::layers::parse::ActionExecutor::approval): before they call tools | [`ApprovalRequest`] |
//! | [`Coder::approval`](crate::layers::Coder::approval): before it runs code | [`CodeBlock`](crate::layers::code::CodeBlock) |
//!
//! The question shows all that runs, [exact]: never as Markdown, with every character visible. Nothing is approved by default:
//! an empty answer is not an approval, a [default answer](crate::layers::AnswerTimeout) can only [refuse](is_refusal), and a
//! question without a clear answer after several attempts counts as rejected.
//!
//! The person approves, rejects, with an optional reason, edits the arguments or the code, or ends the conversation. A
//! rejected call fails, its caller receives the reason, and the conversation continues. Edited arguments have to satisfy the
//! schema of the tool, and the rule must not deny what was edited: the person learns what is wrong, and is asked again. Of
//! several calls in one message none runs before all are decided. No one is asked about a call whose arguments do not satisfy
//! the schema of its tool: it fails with what is wrong, and is not made.
//!
//! # Approval for a tool that deletes
//! ```
//! # fn example(model: polylogue_core::AnyModel, delete: polylogue_core::AnyTool) -> Result<(), polylogue_core::NameError> {
//! use polylogue::Assistant;
//! use polylogue::tools::approval::{Approval, ApprovalRequest};
//!
//! let clerk = Assistant::new("Clerk", model)?.tool(delete);
//! // By name, where `*` matches anything:
//! let clerk = clerk.clone().approval(Approval::of_tools(["delete", "write_*"]));
//! // By a function of the call:
//! let clerk = clerk.approval(Approval::when(|wanted: &ApprovalRequest| wanted.call.args["path"] != "draft.txt"));
//! # Ok(())
//! # }
//! ```

mod exact;
mod verdict;

use std::fmt;
use std::sync::Arc;

use polylogue_core::{Act, Body, InputRequest, Name, ToolCall, Turn};
use serde_json::Value;

pub use self::exact::{exact, visible};
pub(crate) use self::verdict::{Verdict, asked, rejected, request};

/// Returns whether the argument `name` of a call is code, which is shown as lines of code instead of a JSON string: a text with
/// the name `code`, or one of several lines.
///
/// ```
/// use polylogue::tools::approval::is_code;
///
/// assert!(is_code("code", &"ls".into()));
/// assert!(is_code("text", &"one\ntwo".into()));
/// assert!(!is_code("text", &"one".into()));
/// ```
pub fn is_code(name: &str, value: &Value) -> bool {
    value.as_str().is_some_and(|text| name == "code" || text.trim().contains('\n'))
}

/// Returns whether `answer` refuses what it is asked to approve: it rejects it, or ends the conversation. Only such an answer
/// can be the [default](crate::layers::AnswerTimeout) of an approval: what runs is decided by a person, and not by the end of a
/// time limit.
///
/// ```
/// use polylogue::tools::approval::is_refusal;
///
/// assert!(is_refusal("no, not at night") && is_refusal("exit"));
/// assert!(!is_refusal("yes") && !is_refusal("Go ahead.") && !is_refusal("{\"force\": true}"));
/// ```
pub fn is_refusal(answer: &str) -> bool {
    matches!(verdict::read(answer, &Name::user()), Some(Ok(Verdict::Rejected(_)) | Err(_)))
}

/// Limit on attempts to get a clear answer.
const MAX_ATTEMPTS: usize = 5;

/// The reason of a rejection after that.
const UNDECIDED: &str = "No answer was clear.";

/// A rule for when a person must approve a value of type `T`. See the [module](self).
pub struct Approval<T>(Option<Arc<Rule<T>>>);

type Rule<T> = dyn Fn(&T) -> Decision + Send + Sync;

/// The decision of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The call runs.
    Run,
    /// A person is asked.
    Ask,
    /// The call does not run, with the reason.
    Deny(String),
}

/// A call that needs a decision.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalRequest {
    /// The caller.
    pub who: Name,
    /// The call.
    pub call: ToolCall,
    /// The sources of text from outside that the agent that decides about it, or runs it, has [read](Turn::outside)
    /// before; empty if there are none.
    pub outside: Vec<Arc<str>>,
}

impl<T> Approval<T> {
    /// Requires no approval.
    pub const fn never() -> Self {
        Self(None)
    }

    /// Requires approval for everything.
    pub fn always() -> Self {
        Self::when(|_| true)
    }

    /// Requires approval when `rule`, a pure function, is true.
    pub fn when(rule: impl Fn(&T) -> bool + Send + Sync + 'static) -> Self {
        Self::by(move |what| if rule(what) { Decision::Ask } else { Decision::Run })
    }

    /// Lets `rule` decide what runs, what needs approval, and what is refused. A logged question stays a question, whatever the
    /// rule decides when the run is resumed.
    pub fn by(rule: impl Fn(&T) -> Decision + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(rule)))
    }

    /// Whether `what` needs approval, so that a person is asked.
    pub(crate) fn asks(&self, what: &T) -> bool {
        self.0.as_ref().is_some_and(|rule| rule(what) == Decision::Ask)
    }

    /// Refuses an edit that the rule denies, with the reason for the person.
    pub(crate) fn check_edited(&self, edited: &T) -> std::result::Result<(), String> {
        match self.0.as_ref().map(|rule| rule(edited)) {
            Some(Decision::Deny(why)) => {
                Err(format!("That change was refused: {}", why.trim_end_matches('.')))
            }
            Some(Decision::Run | Decision::Ask) | None => Ok(()),
        }
    }

    /// The verdict of the person on `what`: to run it, if no approval is needed. Otherwise how the turn ends, if the
    /// answer is pending or ends the chat. `question` returns the question, with the call that an approval allows;
    /// `takes` says whether an answer, in a fenced block or without, is a replacement; an error says what is wrong with one that cannot
    /// run, and the person is asked again.
    pub(crate) fn of(
        &self,
        turn: &mut Turn<'_>,
        what: &T,
        question: impl Fn() -> InputRequest,
        mut takes: impl FnMut(&str, bool) -> std::result::Result<bool, String>,
    ) -> Result<Verdict, Act> {
        match self.0.as_ref().map_or(Decision::Run, |rule| rule(what)) {
            Decision::Deny(why) => return Ok(Verdict::Rejected(why)),
            Decision::Run if !was_asked(turn, &question) => return Ok(Verdict::Run),
            Decision::Run | Decision::Ask => {}
        }
        let mut again = String::new();
        for attempt in 1..=MAX_ATTEMPTS {
            let Some(answer) = turn.answer() else {
                let question = question();
                let text = format!("{again}{}", question.text).into();
                return Err(Act::Ask(InputRequest { text, ..question }));
            };
            let (replacement, is_fenced) = match verdict::read(&answer, turn.me()) {
                Some(Err(reason)) => return Err(Act::Stop(reason)),
                Some(Ok(Verdict::Edited(text))) => (text, true),
                Some(Ok(verdict)) => return Ok(verdict),
                None => (answer.to_string(), false),
            };
            // What was decided stays decided, also if the tool takes other arguments now.
            let was_refused = was_asked(turn, &question);
            let was_taken = !was_refused && attempt < MAX_ATTEMPTS && turn.next_logged().is_some();
            again = match takes(&replacement, is_fenced) {
                Ok(true) if !was_refused => return Ok(Verdict::Edited(replacement)),
                Err(_) if was_taken => return Ok(Verdict::Edited(replacement)),
                Ok(_) => verdict::UNCLEAR.to_owned(),
                Err(flaw) => format!("{}. ", visible(&flaw)),
            };
        }
        Ok(Verdict::Rejected(UNDECIDED.to_owned()))
    }
}

/// Whether the logged turn asked this question next: its answer is valid for no other question.
pub(crate) fn was_asked(turn: &Turn<'_>, question: impl Fn() -> InputRequest) -> bool {
    let Some(Body::InputRequired(asked)) = turn.next_logged() else { return false };
    asked.call.as_ref() == question().call.as_deref()
}

impl Approval<ApprovalRequest> {
    /// Requires approval for calls of tools with these names, in which `*` matches any characters, or none.
    pub fn of_tools<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        Self::when(move |wanted| names.iter().any(|name| is_like_tool(name, &wanted.call.tool)))
    }
}

/// Returns whether `name` matches `pattern`, in which `*` matches any characters, or none.
pub fn is_like(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(head) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let tail = pieces.pop().unwrap_or_default();
    for piece in pieces {
        match left.split_once(piece) {
            Some((_, after)) => left = after,
            None => return false,
        }
    }
    left.ends_with(tail)
}

/// Returns whether the tool name `tool` matches `pattern`, as [`is_like`]; for a tool that is named after a participant,
/// `pattern` can have the participant's own name, as in `transfer_to_Ai assistant 1`.
pub fn is_like_tool(pattern: &str, tool: &str) -> bool {
    is_like(pattern, tool) || Name::tool_called(pattern) == tool
}

impl<T> Clone for Approval<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Default for Approval<T> {
    fn default() -> Self {
        Self::never()
    }
}

impl<T> fmt::Debug for Approval<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Approval(by rule)" } else { "Approval(never)" })
    }
}

#[cfg(test)]
mod tests {
    use super::{is_like, is_like_tool};
    use polylogue_core::Name;

    #[test]
    fn a_tool_can_be_named_by_the_participant_it_is_called_after() {
        let tool = Name::new("Ai assistant 1").unwrap().tool_name("transfer_to_");
        for pattern in ["transfer_to_Ai assistant 1", &tool, "transfer_to_*"] {
            assert!(is_like_tool(pattern, &tool), "{pattern}");
        }
        assert!(!is_like_tool("transfer_to_Ai assistant 2", &tool));
    }

    #[test]
    fn stars_stand_for_any_characters() {
        for (pattern, name, holds) in [
            ("rm", "rm", true),
            ("rm", "rm2", false),
            ("*", "anything", true),
            ("*", "", true),
            ("write_*", "write_file", true),
            ("write_*", "rewrite_file", false),
            ("*_file", "write_file", true),
            ("*_file", "write_files", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("ab*ba", "aba", false),
            ("a**b", "ab", true),
        ] {
            assert_eq!(is_like(pattern, name), holds, "{pattern} {name}");
        }
    }
}
