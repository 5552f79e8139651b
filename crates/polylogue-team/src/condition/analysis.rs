//! What can be said of a condition without a conversation.

use std::collections::BTreeSet;

use cel::common::ast::operators::{EQUALS, IN, INDEX, LOGICAL_AND, LOGICAL_OR};
use cel::common::ast::{CallExpr, EntryExpr, Expr, LiteralValue};
use cel::parser::Expression;
use serde_json::Value as Json;

use super::{Condition, Facts};
use cel::Value;

/// The highest number of evaluations of a part of a condition.
const MOST: usize = 2_000;
/// The variable of the shared state.
const STATE: &str = "state";
/// The only name for a variable that a condition does not use.
const UNUSED: &[&str] = &[""];

impl Condition {
    /// The texts with which it compares the speaker or the sender of the last message.
    pub(crate) fn compared_names(&self) -> Vec<&str> {
        self.names_compared_with(is_name)
    }

    /// Those of them that it compares with the speaker or looks for among the participants: all of these are in the chat.
    pub(crate) fn compared_participants(&self) -> Vec<&str> {
        self.names_compared_with(|of| is_ident(of, "speaker"))
    }

    fn names_compared_with(&self, is_name: impl Fn(&Expression) -> bool) -> Vec<&str> {
        let mut names = Vec::new();
        visit(self.program.expression(), &mut |expression| {
            let Expr::Call(CallExpr { func_name, args, .. }) = &expression.expr else { return };
            let [one, other] = args.as_slice() else { return };
            match func_name.as_str() {
                EQUALS if is_name(one) => names.extend(literal(other)),
                EQUALS if is_name(other) => names.extend(literal(one)),
                IN if is_name(one) => {
                    if let Expr::List(list) = &other.expr {
                        names.extend(list.elements.iter().filter_map(literal));
                    }
                }
                IN if is_ident(other, "participants") => names.extend(literal(one)),
                _ => {}
            }
        });
        names
    }

    /// Whether it uses the state.
    pub(crate) const fn uses_state(&self) -> bool {
        self.asks_state
    }

    /// The keys of the state that it reads by their names, or asks for.
    pub(crate) fn state_keys(&self) -> BTreeSet<&str> {
        let mut keys = BTreeSet::new();
        visit(self.program.expression(), &mut |of| match &of.expr {
            Expr::Select(select) if is_ident(&select.operand, STATE) => {
                keys.insert(select.field.as_str());
            }
            Expr::Call(CallExpr { func_name, args, .. }) => {
                let [one, other] = args.as_slice() else { return };
                match func_name.as_str() {
                    INDEX if is_ident(one, STATE) => keys.extend(literal(other)),
                    IN if is_ident(other, STATE) => keys.extend(literal(one)),
                    _ => {}
                }
            }
            _ => {}
        });
        keys
    }

    /// Whether it uses the structured value of the last message.
    pub(crate) fn uses_value(&self) -> bool {
        let mut uses = false;
        visit(self.program.expression(), &mut |expression| {
            uses |= is_select(expression, "last", "value");
        });
        uses
    }

    /// Whether it can hold after at most `turns` turns of `cast`. Parts that depend on more than this can.
    pub(crate) fn can_hold(&self, turns: u64, cast: Cast<'_>) -> bool {
        can_hold(self.program.expression(), turns, cast)
    }
}

/// Whom a condition can find in a conversation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cast<'n> {
    /// Those who may have spoken last. The empty text stands for no one.
    pub(crate) speakers: &'n [&'n str],
    /// Those who may be among the participants.
    pub(crate) present: &'n [&'n str],
}

/// What is known of a condition after a number of turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Holds,
    Fails,
    Unknown,
}

impl Condition {
    /// Whether it holds after exactly `turns` turns, the last of which was one of `speaker`.
    pub(crate) fn after(&self, turns: u64, speaker: &str) -> Verdict {
        verdict(self.program.expression(), turns, speaker)
    }
}

fn verdict(expression: &Expression, turns: u64, speaker: &str) -> Verdict {
    let references = expression.references();
    if references.variables().iter().all(|name| matches!(*name, "turns" | "speaker")) {
        let turns = i64::try_from(turns).unwrap_or(i64::MAX);
        let context = Facts { turns, speaker, ..Facts::default() }.context();
        return match context.resolve(expression) {
            Ok(Value::Bool(true)) => Verdict::Holds,
            Ok(Value::Bool(false)) => Verdict::Fails,
            _ => Verdict::Unknown,
        };
    }
    let Expr::Call(CallExpr { func_name, args, .. }) = &expression.expr else { return Verdict::Unknown };
    let decides = match func_name.as_str() {
        LOGICAL_AND => Verdict::Fails,
        LOGICAL_OR => Verdict::Holds,
        _ => return Verdict::Unknown,
    };
    // A part that cannot be evaluated makes no difference where another one decides.
    let any = args.iter().any(|part| verdict(part, turns, speaker) == decides);
    if any { decides } else { Verdict::Unknown }
}

fn can_hold(expression: &Expression, turns: u64, cast: Cast<'_>) -> bool {
    if let Some(can) = can_be_true(expression, turns, cast.speakers) {
        return can;
    }
    if asks_for_participant(expression) {
        let context = Facts { participants: cast.present.to_vec(), ..Facts::default() }.context();
        return !matches!(context.resolve(expression), Ok(Value::Bool(false)));
    }
    let Expr::Call(CallExpr { func_name, args, .. }) = &expression.expr else { return true };
    match (func_name.as_str(), args.as_slice()) {
        (LOGICAL_AND, parts) => parts.iter().all(|part| can_hold(part, turns, cast)),
        (LOGICAL_OR, parts) => parts.iter().any(|part| can_hold(part, turns, cast)),
        (IN, [name, list]) if is_ident(list, "participants") => {
            literal(name).is_none_or(|name| cast.present.contains(&name))
        }
        _ => true,
    }
}

/// Whether it asks for a participant and nothing else, as `participants.exists(p, p == 'Bob')` does: more participants make it no less true.
fn asks_for_participant(expression: &Expression) -> bool {
    let Expr::Comprehension(all) = &expression.expr else { return false };
    // Only `exists` begins with `false`.
    let is_exists = matches!(&all.accu_init.expr, Expr::Literal(LiteralValue::Boolean(is)) if !*is.inner());
    let own = [all.iter_var.as_str(), all.accu_var.as_str()];
    let mut others = 0_usize;
    visit(expression, &mut |part| {
        others += usize::from(matches!(&part.expr, Expr::Ident(name) if !own.contains(&name.as_str())));
    });
    is_exists && is_ident(&all.iter_range, "participants") && others == 1
}

/// Evaluates an expression of the number of turns, the speaker and the author of the last message for all their values. `None` if it
/// depends on more, or if these are too many.
fn can_be_true(expression: &Expression, turns: u64, speakers: &[&str]) -> Option<bool> {
    let references = expression.references();
    let is_known = |name: &&str| match *name {
        "turns" | "speaker" => true,
        "last" => uses_last_for_author(expression),
        _ => false,
    };
    if !references.variables().iter().all(is_known) {
        return None;
    }
    let names = |variable: &str| if references.has_variable(variable) { speakers } else { UNUSED };
    let (by, from) = (names("speaker"), names("last"));
    let last = if references.has_variable("turns") { turns } else { 0 };
    let count = usize::try_from(last).unwrap_or(usize::MAX).saturating_mul(by.len() * from.len());
    if count > MOST {
        return None;
    }
    let is_true = |turns: u64, speaker: &str, from: &str| {
        let turns = i64::try_from(turns).unwrap_or(i64::MAX);
        let context = Facts { turns, speaker, from, ..Facts::default() }.context();
        !matches!(context.resolve(expression), Ok(Value::Bool(false)))
    };
    Some((0..=last).any(|turns| by.iter().any(|&by| from.iter().any(|&from| is_true(turns, by, from)))))
}

/// Whether it uses nothing of the last message but its author.
fn uses_last_for_author(expression: &Expression) -> bool {
    let (mut uses, mut authors) = (0_usize, 0_usize);
    visit(expression, &mut |part| {
        uses += usize::from(is_ident(part, "last"));
        authors += usize::from(is_select(part, "last", "from"));
    });
    uses == authors
}

/// Calls `look` for an expression and all within it.
pub(super) fn visit<'e>(of: &'e Expression, look: &mut impl FnMut(&'e Expression)) {
    look(of);
    match &of.expr {
        Expr::Select(select) => visit(&select.operand, look),
        Expr::Call(call) => {
            call.target.iter().map(|target| &**target).chain(&call.args).for_each(|of| visit(of, look));
        }
        Expr::List(list) => list.elements.iter().for_each(|of| visit(of, look)),
        Expr::Map(map) => map.entries.iter().for_each(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => {
                visit(&entry.key, look);
                visit(&entry.value, look);
            }
            EntryExpr::StructField(field) => visit(&field.value, look),
        }),
        Expr::Comprehension(all) => {
            [&all.iter_range, &all.loop_cond, &all.loop_step].into_iter().for_each(|of| visit(of, look));
        }
        _ => {}
    }
}

/// Whether it is the speaker, or the sender of the last message.
fn is_name(of: &Expression) -> bool {
    is_ident(of, "speaker") || is_select(of, "last", "from")
}

pub(super) fn is_ident(of: &Expression, name: &str) -> bool {
    matches!(&of.expr, Expr::Ident(is) if is == name)
}

pub(super) fn is_select(of: &Expression, variable: &str, field: &str) -> bool {
    matches!(&of.expr, Expr::Select(select) if select.field == field && is_ident(&select.operand, variable))
}

pub(super) fn literal(of: &Expression) -> Option<&str> {
    if let Expr::Literal(LiteralValue::String(text)) = &of.expr { Some(text.inner()) } else { None }
}

/// The value of an expression that is one.
pub(super) fn constant(of: &Expression) -> Option<Json> {
    let Expr::Literal(value) = &of.expr else { return None };
    Some(match value {
        LiteralValue::Boolean(is) => Json::from(*is.inner()),
        LiteralValue::Double(number) => Json::from(*number.inner()),
        LiteralValue::Int(number) => Json::from(*number.inner()),
        LiteralValue::UInt(number) => Json::from(*number.inner()),
        LiteralValue::String(text) => Json::from(text.inner()),
        LiteralValue::Null => Json::Null,
        LiteralValue::Bytes(_) => return None,
    })
}

/// Whether two values are equal in a condition: numbers are, whatever their types.
pub(crate) fn is_equal(one: &Json, other: &Json) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

/// A text that equal expressions share. `None` if that cannot be said of an expression.
pub(super) fn shape(of: &Expression) -> Option<String> {
    let all = |of: &[Expression]| {
        let all: Option<Vec<String>> = of.iter().map(shape).collect();
        all.map(|all| all.join(", "))
    };
    Some(match &of.expr {
        Expr::Ident(name) => name.clone(),
        Expr::Literal(_) => constant(of)?.to_string(),
        Expr::Select(select) => {
            let asks = if select.test { "has " } else { "" };
            format!("{asks}{}.{}", shape(&select.operand)?, select.field)
        }
        Expr::Call(CallExpr { func_name, target, args }) => {
            let target = match target {
                Some(target) => shape(target)?,
                None => String::new(),
            };
            format!("{target}.{func_name}({})", all(args)?)
        }
        Expr::List(list) => format!("[{}]", all(&list.elements)?),
        _ => return None,
    })
}
