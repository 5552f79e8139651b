//! Checks of a compiled expression: it is small and uses known variables and functions only.

use cel::common::ast::{EntryExpr, Expr, LiteralValue};
use cel::parser::Expression;

use super::no_condition::NoCondition;
use crate::suggest;

/// Maximum depth of an expression: evaluating it recurses once per level.
const DEEPEST: usize = 16;
/// Variables of a condition on a conversation.
pub(super) const OF_CONVERSATIONS: &[&str] =
    &["last", "turns", "messages", "task", "state", "speaker", "participants"];
/// Variables of a condition on code.
pub(super) const OF_CODE: &[&str] = &["code", "language", "file", "outside"];
/// Variables of a condition on a tool call.
pub(super) const OF_CALLS: &[&str] = &["tool", "args", "who", "outside"];
/// Keys of `last`.
const OF_LAST: [&str; 3] = ["text", "from", "value"];
/// The functions, besides operators.
const FUNCTIONS: [&str; 9] =
    ["contains", "startsWith", "endsWith", "matches", "size", "int", "double", "string", "has"];

/// The functions of texts.
const TEXT_FUNCTIONS: [&str; 5] = ["contains", "startsWith", "endsWith", "matches", "size"];

/// Checks an expression with the variables `names`.
pub(super) fn look_through(
    expression: &Expression,
    names: &'static [&'static str],
) -> Result<(), NoCondition> {
    Look { names, bound: Vec::new() }.at(expression, 0)
}

struct Look<'e> {
    names: &'static [&'static str],
    /// The names that an `exists` or the like gives to the items of its list.
    bound: Vec<&'e str>,
}

impl<'e> Look<'e> {
    fn at(&mut self, of: &'e Expression, depth: usize) -> Result<(), NoCondition> {
        if depth > DEEPEST {
            let hint = "join several conditions by `any` and `all`, or by states";
            return Err(NoCondition::because("it is nested too deep").hint(hint));
        }
        let depth = depth + 1;
        match &of.expr {
            Expr::Unspecified | Expr::Literal(_) => Ok(()),
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => {
                self.field(&select.operand, &select.field)?;
                self.at(&select.operand, depth)
            }
            Expr::Call(call) => {
                check_function(&call.func_name)?;
                check_regex(&call.func_name, call.args.last())?;
                check_receiver(&call.func_name, call.target.as_deref())?;
                call.target
                    .iter()
                    .map(|target| &**target)
                    .chain(&call.args)
                    .try_for_each(|of| self.at(of, depth))
            }
            Expr::List(list) => list.elements.iter().try_for_each(|of| self.at(of, depth)),
            Expr::Map(map) => map.entries.iter().try_for_each(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => {
                    self.at(&entry.key, depth)?;
                    self.at(&entry.value, depth)
                }
                EntryExpr::StructField(field) => self.at(&field.value, depth),
            }),
            Expr::Struct(_) => Err(NoCondition::because("it cannot construct custom types")),
            Expr::Comprehension(all) => {
                self.at(&all.iter_range, depth)?;
                if !self.bound.is_empty() {
                    let why = "nested loops over lists are not allowed in it";
                    return Err(NoCondition::because(why));
                }
                self.bound.extend([&*all.iter_var, &*all.accu_var]);
                self.bound.extend(all.iter_var2.as_deref());
                // The macro brings its own levels.
                [&all.accu_init, &all.loop_cond, &all.loop_step, &all.result]
                    .into_iter()
                    .try_for_each(|of| self.at(of, depth))?;
                self.bound.clear();
                Ok(())
            }
        }
    }

    fn name(&self, name: &str) -> Result<(), NoCondition> {
        if self.names.contains(&name) || self.bound.contains(&name) {
            return Ok(());
        }
        let hint = suggest::hint(name, self.names.iter().copied());
        Err(NoCondition::because(format!("`{name}` is unknown")).hint(hint))
    }

    fn field(&self, of: &Expression, field: &str) -> Result<(), NoCondition> {
        match &of.expr {
            Expr::Ident(name) if name == "last" && !OF_LAST.contains(&field) => {
                let why = format!("there is no `{field}` of the last message");
                Err(NoCondition::because(why).hint(suggest::hint(field, OF_LAST)))
            }
            _ => Ok(()),
        }
    }
}

fn check_function(name: &str) -> Result<(), NoCondition> {
    let is_operator = name.starts_with(|c: char| !c.is_alphabetic());
    if is_operator || FUNCTIONS.contains(&name) {
        return Ok(());
    }
    let hint = suggest::hint(name, FUNCTIONS);
    Err(NoCondition::because(format!("there is no function `{name}`")).hint(hint))
}

/// The mistake `last.contains(...)`: it could be evaluated only after the first message.
fn check_receiver(function: &str, receiver: Option<&Expression>) -> Result<(), NoCondition> {
    match receiver.map(|of| &of.expr) {
        Some(Expr::Ident(name)) if name == "last" && TEXT_FUNCTIONS.contains(&function) => {
            let hint = format!("write `last.text.{function}(...)`");
            Err(NoCondition::because("`last` is a message, not a text").hint(hint))
        }
        _ => Ok(()),
    }
}

fn check_regex(function: &str, argument: Option<&Expression>) -> Result<(), NoCondition> {
    let ("matches", Some(Expr::Literal(LiteralValue::String(pattern)))) =
        (function, argument.map(|of| &of.expr))
    else {
        return Ok(());
    };
    match regex::Regex::new(pattern.inner()) {
        Ok(_) => Ok(()),
        Err(error) => {
            let error = error.to_string();
            let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
            Err(NoCondition::because(format!(
                "`{}` is not a valid regular expression: {why}",
                pattern.inner()
            )))
        }
    }
}
