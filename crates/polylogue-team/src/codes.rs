//! The kinds of findings, with what they mean and how to fix them.

pub(crate) use polylogue_config::codes::{
    DUPLICATE_NAME, INVALID, MISSING_KEY, SYNTAX, UNKNOWN_KEY, UNKNOWN_NAME, UNKNOWN_VARIABLE,
};
use polylogue_config::diagnostic::Severity;

pub(crate) const CIRCULAR_WAIT: &str = "circular-wait";
pub(crate) const DEAD_END: &str = "dead-end";
pub(crate) const FILE: &str = "unreadable-file";
pub(crate) const MISSING_FILE: &str = "missing-file";
pub(crate) const NEVER_HOLDS: &str = "never-holds";
pub(crate) const NO_EFFECT: &str = "no-effect";
pub(crate) const NO_EXIT: &str = "no-exit";
pub(crate) const NO_REPLY: &str = "no-reply";
pub(crate) const NO_STOP: &str = "no-stop";
pub(crate) const OUT_OF_RANGE: &str = "out-of-range";
pub(crate) const SECRET: &str = "secret";
pub(crate) const STOP_TEXT: &str = "stop-text";
pub(crate) const UNHEARD: &str = "unheard-text";
pub(crate) const UNSEEN_RESULT: &str = "unseen-result";
pub(crate) const UNSEEN_TASK: &str = "unseen-task";
pub(crate) const UNKNOWN_MODEL: &str = "unknown-model";
pub(crate) const UNKNOWN_TOOL: &str = "unknown-tool";
pub(crate) const UNREACHABLE: &str = "unreachable";
pub(crate) const UNUSED: &str = "unused";

/// A kind of finding.
///
/// ```
/// let kinds = polylogue_team::finding_kinds();
/// assert!(kinds.iter().any(|kind| kind.code == "unreachable"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindingKind {
    /// The code, such as `no-stop`.
    pub code: &'static str,
    /// Whether a team with such a finding can run.
    pub severity: Severity,
    /// The mistake in one sentence.
    pub summary: &'static str,
    /// Why it matters, and how to fix it.
    pub help: &'static str,
}

/// Returns all kinds of findings in team files: errors first, each group by code.
pub const fn finding_kinds() -> &'static [FindingKind] {
    KINDS
}

const fn error(code: &'static str, summary: &'static str, help: &'static str) -> FindingKind {
    FindingKind { code, severity: Severity::Error, summary, help }
}

const fn warning(code: &'static str, summary: &'static str, help: &'static str) -> FindingKind {
    FindingKind { code, severity: Severity::Warning, summary, help }
}

const KINDS: &[FindingKind] = &[
    error(
        DUPLICATE_NAME,
        "Two agents, chats or teams have the same name.",
        "Messages and events name their senders, so every participant needs its own name. Rename one of them.",
    ),
    error(
        INVALID,
        "A value does not fit its key, or does not fit together with another value.",
        "The message says which values the key takes. `docs/reference/team-file.md` lists all keys with their types.",
    ),
    error(MISSING_KEY, "A required key is missing.", "Add the key that the message names."),
    error(
        SYNTAX,
        "The file is not YAML, or uses a part of YAML that is not supported.",
        "The usual reasons are indentation, an unquoted text with `: ` or `#`, and a text that begins with `{{`.",
    ),
    error(
        UNKNOWN_KEY,
        "A key is unknown.",
        "An unknown key would be ignored silently, so it is an error. The hint names the closest key, or the key with this meaning if the name is that of another framework.",
    ),
    error(
        UNKNOWN_NAME,
        "A name is not defined in the team.",
        "Agents, chats, teams and tools are named exactly as they are defined. The hint names the closest one.",
    ),
    error(
        UNKNOWN_VARIABLE,
        "A text uses a variable that is not defined.",
        "Define it under `vars`; `--var NAME=VALUE` changes its value for a run.",
    ),
    error(
        FILE,
        "A file cannot be read.",
        "The team file, or a file that it names, is missing, too large or not UTF-8.",
    ),
    warning(
        CIRCULAR_WAIT,
        "Participants wait for each other.",
        "Each of them can speak, or join, only after another one of them, so that none ever does. Let one of them begin, or lead to one of them from another participant.",
    ),
    warning(
        DEAD_END,
        "No transition leads from a participant to another one.",
        "The chat ends after its turn, with the reason that there is no next speaker. Add a transition, or `NAME: end` if it is meant to end there.",
    ),
    warning(
        MISSING_FILE,
        "A command names a script that is not among the `files` of the team.",
        "Commands run in a work directory that has only these files, so the command would fail.",
    ),
    warning(
        NEVER_HOLDS,
        "A condition can never hold, or a transition can never be taken.",
        "What it leads to never happens, and a run fails where a condition reads a field that no reply has. Correct the condition, or remove it.",
    ),
    warning(
        NO_EFFECT,
        "A key has no effect.",
        "The team runs as if the key were not there. Remove it, or add what it applies to.",
    ),
    warning(
        NO_EXIT,
        "Participants follow one another without an exit.",
        "No transition leads out of the loop and the chat has no `stop`, so it runs to its 100th turn, and every turn costs money.",
    ),
    warning(NO_REPLY, "An agent has nothing to reply with.", "The chat ends when it is the agent's turn."),
    warning(
        NO_STOP,
        "Nothing ends a chat before the default limit on its turns.",
        "Without a termination condition, a chat runs to its 100th turn, and every turn costs money. Give it a `stop`.",
    ),
    warning(
        OUT_OF_RANGE,
        "A parameter is higher than the model takes.",
        "The provider refuses such requests, or a lower value is sent. Set one that the model takes, or choose another model.",
    ),
    warning(
        SECRET,
        "A text of the file contains what looks like an API key or a password.",
        "Team files are shared and stored with every conversation. Remove the key, revoke it, and set keys as environment variables.",
    ),
    warning(
        STOP_TEXT,
        "No prompt mentions a text that ends the chat, by which an edge of a graph is taken, or that a condition looks for.",
        "Models do not say a marker such as `DONE` unless they are asked to, so the chat would run to its limit, or never take that way. Ask for it in a system message, in the same letters: upper and lower case differ.",
    ),
    warning(
        UNHEARD,
        "A system message asks for `TERMINATE`, and no termination condition has this text.",
        "The agent says it when its work is done, and the conversation continues to its limit. Add a `stop`.",
    ),
    warning(
        UNSEEN_RESULT,
        "An agent may never see the result of its background task.",
        "The pattern, or `at_end: cancel`, gives it no turn for a result that comes when the chat would end. Ask it to call `wait_for_task` before it ends its turn, or call the agent without `background`.",
    ),
    warning(
        UNSEEN_TASK,
        "No participant sees the task, or one that speaks at the same time as the others receives nothing.",
        "An `opening` replaces the message with the task. Write `{{task}}` where it belongs, and name all receivers in `to`.",
    ),
    warning(
        UNKNOWN_MODEL,
        "A model has an unknown provider or name.",
        "The first call of the model would fail. The hint names the closest known one. An unknown provider is an error for `polylogue check`, unless the team has a script.",
    ),
    warning(
        UNKNOWN_TOOL,
        "A rule or a prompt names a tool that the agent does not have.",
        "The rule never applies: with a misspelled name in `approval`, calls are made without a question. A model that is prompted to call a missing tool, such as `transfer_to_NAME`, cannot.",
    ),
    warning(
        UNREACHABLE,
        "A participant can never speak.",
        "No chat that runs has it as a participant, no transition leads to it, or its chat ends before. Add it where it belongs, or remove it.",
    ),
    warning(
        UNUSED,
        "Something is defined and never used.",
        "This is usually a misspelled name elsewhere. Use it, or remove it.",
    ),
];
