//! The texts that conditions look for in the last message.

use cel::common::ast::operators::{EQUALS, IN, LOGICAL_AND, LOGICAL_OR};
use cel::common::ast::{CallExpr, Expr};
use cel::parser::Expression;

use super::Condition;
use super::analysis::{is_select, literal};

/// A text that a condition looks for in the last message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SoughtText<'c> {
    /// It is the message.
    Whole(&'c str),
    /// The message begins or ends with it.
    AtEdge(&'c str),
    /// The message contains it.
    Part(&'c str),
    /// The regular expression matches the message.
    Pattern(&'c str),
}

impl Condition {
    /// What `judge` says against texts without which it does not hold. Of alternatives, nothing is said if there is nothing against
    /// one of them. Texts that the message must not have are left out.
    pub(crate) fn judge_texts<'c, T>(
        &'c self,
        judge: &mut impl FnMut(SoughtText<'c>) -> Option<T>,
    ) -> Vec<T> {
        objections(self.program.expression(), judge).unwrap_or_default()
    }
}

/// The same of an expression; `None` if it looks for no text.
fn objections<'c, T>(
    of: &'c Expression,
    judge: &mut impl FnMut(SoughtText<'c>) -> Option<T>,
) -> Option<Vec<T>> {
    let Expr::Call(CallExpr { func_name, target, args }) = &of.expr else { return None };
    match (func_name.as_str(), args.as_slice()) {
        (LOGICAL_AND, parts) => {
            let all: Vec<Vec<T>> = parts.iter().filter_map(|part| objections(part, judge)).collect();
            (!all.is_empty()).then(|| all.into_iter().flatten().collect())
        }
        (LOGICAL_OR, parts) => any(parts.iter().filter_map(|part| objections(part, judge)).collect()),
        (IN, [one, list]) if is_text(one) => {
            let Expr::List(list) = &list.expr else { return None };
            let texts: Vec<&str> = list.elements.iter().map(literal).collect::<Option<_>>()?;
            any(texts.into_iter().map(|text| judge(SoughtText::Whole(text)).into_iter().collect()).collect())
        }
        (function, args) => {
            let sought = match (function, target.as_deref(), args) {
                (EQUALS, None, [one, other]) if is_text(one) => SoughtText::Whole(literal(other)?),
                (EQUALS, None, [one, other]) if is_text(other) => SoughtText::Whole(literal(one)?),
                ("contains", Some(of), [text]) if is_text(of) => SoughtText::Part(literal(text)?),
                ("startsWith" | "endsWith", Some(of), [text]) if is_text(of) => {
                    SoughtText::AtEdge(literal(text)?)
                }
                ("matches", Some(of), [text]) if is_text(of) => SoughtText::Pattern(literal(text)?),
                _ => return None,
            };
            Some(judge(sought).into_iter().collect())
        }
    }
}

/// What is said against all of the alternatives; nothing if one is all right.
fn any<T>(alternatives: Vec<Vec<T>>) -> Option<Vec<T>> {
    match alternatives.iter().any(Vec::is_empty) {
        true => Some(Vec::new()),
        false => (!alternatives.is_empty()).then(|| alternatives.into_iter().flatten().collect()),
    }
}

/// Whether it is the text of the last message.
fn is_text(of: &Expression) -> bool {
    is_select(of, "last", "text")
}
