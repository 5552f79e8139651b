//! Conditions on a conversation, in CEL.
//!
//! An expression is compiled and checked when a file is read: its variables exist, its result is a boolean, and it is
//! small enough to evaluate with bounded time and stack.

mod analysis;
mod call;
mod code;
mod contradiction;
mod fields;
mod look;
mod no_condition;
mod texts;

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use cel::{Context, Env, Program, Value};
use polylogue_core::{Name, Policy, Step, Transcript, wrap_policy};

pub(crate) use analysis::{Cast, Verdict, is_equal};
pub(crate) use call::CallCondition;
pub(crate) use code::CodeCondition;
pub(crate) use fields::{FieldLimit, ReadField};
use look::{OF_CONVERSATIONS, look_through};
pub(crate) use no_condition::NoCondition;
use serde_json::{Map as JsonMap, Value as Json};
pub(crate) use texts::SoughtText;

/// Maximum length of an expression, in bytes.
const LONGEST: usize = 500;
/// Maximum depth of nested brackets.
const MOST_BRACKETS: usize = 12;
/// Stack size of the parser in bytes; it recurses a dozen frames per bracket.
const PARSER_STACK: usize = 64 << 20;

/// A condition on a conversation.
#[derive(Clone, derive_more::Debug)]
#[debug("Condition({text:?})")]
pub(crate) struct Condition {
    text: Arc<str>,
    program: Arc<Program>,
    /// Whether it uses `state`, which is folded from the whole log and so computed only if used.
    asks_state: bool,
}

impl Condition {
    /// Compiles and checks `text`.
    pub(crate) fn new(text: &str) -> Result<Self, NoCondition> {
        let program = compiled(text, OF_CONVERSATIONS)?;
        let asks_state = program.references().has_variable("state");
        let condition = Self { text: text.into(), program: Arc::new(program), asks_state };
        condition.try_out()?;
        Ok(condition)
    }

    /// The same for a build.
    pub(crate) fn compile(text: &str) -> polylogue::Result<Self> {
        Self::new(text).map_err(|error| error.of(text))
    }

    /// Its text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Evaluates it on `transcript`.
    ///
    /// # Errors
    /// If it cannot be evaluated, such as for a missing key of the state.
    pub(crate) fn holds(&self, transcript: &Transcript) -> Result<bool, String> {
        let mut facts = Facts::of(transcript);
        if self.asks_state {
            facts.state = polylogue::tools::state::of(transcript);
        }
        match self.program.execute(&facts.context()) {
            Ok(Value::Bool(holds)) => Ok(holds),
            Ok(other) => Err(format!("it gives {}, and neither `true` nor `false`", kind(&other))),
            Err(error) => Err(describe(&error)),
        }
    }

    /// Whether it holds, for places that take nothing but yes or no: what cannot be evaluated is noted for [`judged`], and
    /// does not hold.
    pub(crate) fn holds_or_records_error(&self, transcript: &Transcript) -> bool {
        self.holds(transcript).unwrap_or_else(|why| {
            let flaw = format!("has the condition `{}`, which cannot be evaluated: {why}", self.text);
            FLAW.set(Some(flaw));
            false
        })
    }

    /// Evaluates it on an empty conversation, to find type errors.
    fn try_out(&self) -> Result<(), NoCondition> {
        match self.program.execute(&Facts::default().context()) {
            Ok(Value::Bool(_)) => Ok(()),
            Ok(other) => Err(NoCondition::because(format!(
                "it gives {}, and neither `true` nor `false`",
                kind(&other)
            ))),
            // The state and the values of messages are unknown until the chat runs.
            Err(cel::ExecutionError::NoSuchOverload(error))
                if !self.program.references().has_variable("state") && !self.text.contains("last.value") =>
            {
                Err(NoCondition::because(error.to_string()))
            }
            Err(_) => Ok(()),
        }
    }
}

/// Compiles an expression with the variables `names`.
fn compiled(text: &str, names: &'static [&'static str]) -> Result<Program, NoCondition> {
    check_size(text)?;
    let source = text.to_owned();
    // The parser recurses deeply, so it runs on its own stack.
    let parser = std::thread::Builder::new().stack_size(PARSER_STACK).spawn(move || {
        let program = Program::compile(&source).map_err(|errors| syntax_error(&errors, &source))?;
        look_through(program.expression(), names)?;
        Ok(program)
    });
    let parser = parser.map_err(|error| NoCondition::because(format!("it cannot be read: {error}")))?;
    parser.join().map_err(|_| NoCondition::because("the parser fails at it"))?
}

thread_local! {
    /// A condition that could not be evaluated while a policy ran. Empty while no policy runs.
    static FLAW: Cell<Option<String>> = const { Cell::new(None) };
}

/// `policy`, which fails if one of its conditions cannot be evaluated.
///
/// A condition within a policy can only return a boolean. Policies never wait, so a note on this thread belongs to the
/// running policy, and the step stays a function of the transcript.
pub(crate) fn judged(policy: impl Policy) -> impl Policy {
    wrap_policy(policy, |policy, chat: &Transcript| {
        FLAW.set(None);
        let step = policy.next(chat);
        match FLAW.take() {
            Some(flaw) => Step::Fail(flaw.into()),
            None => step,
        }
    })
}

fn check_size(text: &str) -> Result<(), NoCondition> {
    if text.len() > LONGEST {
        let why = format!("it is longer than {LONGEST} characters");
        return Err(
            NoCondition::because(why).hint("join several conditions by `any` and `all`, or by states")
        );
    }
    let (mut open, mut deepest) = (0_usize, 0_usize);
    for c in text.chars() {
        match c {
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' => open = open.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(open);
    }
    match deepest > MOST_BRACKETS {
        true => {
            Err(NoCondition::because(format!("brackets are nested more than {MOST_BRACKETS} deep in it")))
        }
        false => Ok(()),
    }
}

fn syntax_error(errors: &cel::ParseErrors, source: &str) -> NoCondition {
    let Some(error) = errors.errors.first() else { return NoCondition::because("it cannot be read") };
    let why = error.msg.trim_start_matches("Syntax error: ");
    // The list of expected tokens is dropped.
    let why = why.split(" expecting ").next().unwrap_or(why).replace("'<EOF>'", "end");
    let at = offset(source, error.pos);
    // The parser's names for a token in the wrong place.
    let token = ["mismatched input ", "extraneous input ", "token recognition error at: "]
        .into_iter()
        .find_map(|name| why.strip_prefix(name));
    let before = at.and_then(|at| source.get(..at)).and_then(|text| text.split_whitespace().last());
    let hint = before.into_iter().chain(token).find_map(operator).map(str::to_owned);
    let why = token.map_or_else(|| why.clone(), |token| format!("unexpected {token}"));
    NoCondition { why, hint, at }
}

/// The hint for a `token` that is an operator in other languages.
fn operator(token: &str) -> Option<&'static str> {
    match token.trim_matches(['\'', ' ']).to_lowercase().as_str() {
        "and" => Some("write `&&` for `and`"),
        "or" => Some("write `||` for `or`"),
        "not" => Some("write `!` for `not`"),
        "=" => Some("write `==` to compare"),
        _ => None,
    }
}

/// The byte of `source` in line `line` and column `column`, both from 1.
fn offset(source: &str, (line, column): (isize, isize)) -> Option<usize> {
    let line = usize::try_from(line).ok()?.checked_sub(1)?;
    let column = usize::try_from(column).ok()?.checked_sub(1)?;
    let start: usize = source.split_inclusive('\n').take(line).map(str::len).sum();
    let rest = source.get(start..)?;
    Some(start + rest.char_indices().nth(column).map_or(rest.len(), |(at, _)| at))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Int(_) | Value::UInt(_) | Value::Float(_) => "a number",
        Value::String(_) => "a text",
        Value::List(_) => "a list",
        Value::Map(_) => "a mapping",
        Value::Null => "nothing",
        _ => "something",
    }
}

fn describe(error: &cel::ExecutionError) -> String {
    match error {
        cel::ExecutionError::NoSuchKey(key) => {
            format!("there is no `{key}`; `has(...)` asks whether there is")
        }
        error => error.to_string(),
    }
}

/// The variables of an expression.
#[derive(Default)]
struct Facts<'t> {
    text: String,
    from: &'t str,
    /// Value of the last message for programs: structured output, or a parsed output block.
    value: Option<&'t Json>,
    turns: i64,
    messages: i64,
    task: &'t str,
    speaker: &'t str,
    participants: Vec<&'t str>,
    state: JsonMap<String, Json>,
}

impl<'t> Facts<'t> {
    fn of(transcript: &'t Transcript) -> Self {
        let count = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let last = transcript.messages().next_back().map(|line| &line.message);
        Self {
            text: last.map(|message| message.text().into_owned()).unwrap_or_default(),
            from: last.map(|message| message.from.as_str()).unwrap_or_default(),
            value: last.and_then(polylogue::layers::parse::value),
            turns: count(transcript.turns()),
            messages: count(transcript.message_count()),
            task: transcript.task(),
            speaker: transcript.last_speaker().map(Name::as_str).unwrap_or_default(),
            participants: transcript.present().map(Name::as_str).collect(),
            state: JsonMap::new(),
        }
    }

    fn context(&self) -> Context<'static, 'static> {
        let mut context = functions();
        // `has(...)` works on an empty mapping.
        let of_last = self.value.map_or_else(|| map([]), value);
        let last = [("text", text(&self.text)), ("from", text(self.from)), ("value", of_last)];
        context.add_variable_from_value("last", map(last.map(|(key, value)| (key.to_owned(), value))));
        context.add_variable_from_value("turns", Value::Int(self.turns));
        context.add_variable_from_value("messages", Value::Int(self.messages));
        context.add_variable_from_value("task", text(self.task));
        context.add_variable_from_value("speaker", text(self.speaker));
        let participants: Vec<Value> = self.participants.iter().map(|name| text(name)).collect();
        context.add_variable_from_value("participants", Value::List(Arc::new(participants)));
        context.add_variable_from_value(
            "state",
            map(self.state.iter().map(|(key, of)| (key.clone(), value(of)))),
        );
        context
    }
}

/// A context with the standard functions only.
fn functions() -> Context<'static, 'static> {
    static FUNCTIONS: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));
    Context::with_env(Arc::clone(&FUNCTIONS))
}

fn text(text: &str) -> Value {
    Value::String(Arc::new(text.to_owned()))
}

fn map(entries: impl IntoIterator<Item = (String, Value)>) -> Value {
    let entries: HashMap<String, Value> = entries.into_iter().collect();
    Value::Map(entries.into())
}

/// A value of the state or of a message. All integers have one type, so that they can be compared and added.
fn value(of: &Json) -> Value {
    match of {
        Json::Null => Value::Null,
        Json::Bool(bool) => Value::Bool(*bool),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Value::Int(whole),
            None => Value::Float(number.as_f64().unwrap_or_default()),
        },
        Json::String(of) => text(of),
        Json::Array(items) => Value::List(Arc::new(items.iter().map(value).collect())),
        Json::Object(entries) => map(entries.iter().map(|(key, of)| (key.clone(), value(of)))),
    }
}

#[cfg(test)]
#[path = "condition_tests.rs"]
mod tests;
