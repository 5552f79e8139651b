//! What conditions read of the structured value of the last message.

use std::fmt;

use cel::common::ast::operators::{EQUALS, GREATER, GREATER_EQUALS, IN, INDEX, LESS, LESS_EQUALS};
use cel::common::ast::{CallExpr, Expr};
use cel::parser::Expression;
use serde_json::Value as Json;

use super::Condition;
use super::analysis::{constant, is_ident, literal, visit};

/// A field of the structured value of the last message, as a condition reads it.
#[derive(Debug, PartialEq)]
pub(crate) struct ReadField<'c> {
    /// The names that follow `last.value`, from the outermost one on.
    pub(crate) path: Vec<&'c str>,
    /// A constant that it is compared with: one of those that it may equal.
    pub(crate) equals: Option<Json>,
    /// The number that it is to be above or below.
    pub(crate) limit: Option<FieldLimit>,
}

/// A side of a number on which a condition wants a field to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FieldLimit {
    pub(crate) number: f64,
    pub(crate) is_above: bool,
    /// Whether the field can equal the number.
    pub(crate) includes: bool,
}

impl FieldLimit {
    /// Whether `value` is on that side.
    pub(crate) fn allows(self, value: f64) -> bool {
        let is_beyond = if self.is_above { value > self.number } else { value < self.number };
        is_beyond || self.includes && value == self.number
    }
}

impl fmt::Display for FieldLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = match (self.is_above, self.includes) {
            (true, false) => "above",
            (true, true) => "at least",
            (false, false) => "below",
            (false, true) => "at most",
        };
        write!(f, "{side} {}", self.number)
    }
}

impl Condition {
    /// The fields that it reads, and each constant that one is compared with.
    pub(crate) fn fields(&self) -> Vec<ReadField<'_>> {
        let mut fields = Vec::new();
        visit(self.program.expression(), &mut |of| {
            let read = path(of).filter(|path| !path.is_empty());
            fields.extend(read.map(|path| ReadField { path, equals: None, limit: None }));
            for (side, value) in equalities(of) {
                fields.extend(path(side).map(|path| ReadField { path, equals: Some(value), limit: None }));
            }
            let limited = limit(of).and_then(|(side, limit)| Some((path(side)?, limit)));
            fields.extend(limited.map(|(path, limit)| ReadField { path, equals: None, limit: Some(limit) }));
        });
        fields
    }
}

/// The names that follow `last.value`, if the expression begins so.
fn path(of: &Expression) -> Option<Vec<&str>> {
    let (inner, name) = match &of.expr {
        Expr::Select(select) if select.field == "value" && is_ident(&select.operand, "last") => {
            return Some(Vec::new());
        }
        Expr::Select(select) => (&*select.operand, select.field.as_str()),
        Expr::Call(CallExpr { func_name, args, .. }) if func_name == INDEX => {
            let [inner, name] = args.as_slice() else { return None };
            (inner, literal(name)?)
        }
        _ => return None,
    };
    let mut path = path(inner)?;
    path.push(name);
    Some(path)
}

/// What the expression compares with constants for equality, with each of these.
fn equalities(of: &Expression) -> Vec<(&Expression, Json)> {
    let Expr::Call(CallExpr { func_name, args, .. }) = &of.expr else { return Vec::new() };
    let [one, other] = args.as_slice() else { return Vec::new() };
    match (func_name.as_str(), &other.expr) {
        (EQUALS, _) => {
            let sides = [(one, constant(other)), (other, constant(one))].into_iter();
            sides.filter_map(|(side, value)| Some((side, value?))).collect()
        }
        (IN, Expr::List(list)) => list.elements.iter().filter_map(|of| Some((one, constant(of)?))).collect(),
        _ => Vec::new(),
    }
}

/// What the expression compares with a constant number, and on which side of this it is to be.
fn limit(of: &Expression) -> Option<(&Expression, FieldLimit)> {
    let Expr::Call(CallExpr { func_name, args, .. }) = &of.expr else { return None };
    let [one, other] = args.as_slice() else { return None };
    let (is_above, includes) = match func_name.as_str() {
        GREATER => (true, false),
        GREATER_EQUALS => (true, true),
        LESS => (false, false),
        LESS_EQUALS => (false, true),
        _ => return None,
    };
    match (constant(one), constant(other)) {
        (None, Some(number)) => Some((one, FieldLimit { number: number.as_f64()?, is_above, includes })),
        (Some(number), None) => {
            Some((other, FieldLimit { number: number.as_f64()?, is_above: !is_above, includes }))
        }
        _ => None,
    }
}
