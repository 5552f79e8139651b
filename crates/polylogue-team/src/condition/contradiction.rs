//! Conditions that cannot hold, or always do, whatever is said: they are constants, want of a variable what it never is, or their parts
//! exclude each other.

use std::collections::HashMap;
use std::fmt;

use cel::Value;
use cel::common::ast::operators::{
    EQUALS, GREATER, GREATER_EQUALS, IN, LESS, LESS_EQUALS, LOGICAL_AND, LOGICAL_NOT, LOGICAL_OR, NOT_EQUALS,
};
use cel::common::ast::{CallExpr, Expr};
use cel::parser::Expression;
use serde_json::Value as Json;

use super::analysis::{constant, is_equal, shape};
use super::{Condition, functions};

/// The highest number of parts that are looked at: alternatives multiply them.
const MOST: usize = 2_000;

/// The comparisons, each with the same one for exchanged sides, and with its opposite.
const COMPARISONS: [(&str, &str, &str); 6] = [
    (EQUALS, EQUALS, NOT_EQUALS),
    (NOT_EQUALS, NOT_EQUALS, EQUALS),
    (GREATER, LESS, LESS_EQUALS),
    (GREATER_EQUALS, LESS_EQUALS, LESS),
    (LESS, GREATER, GREATER_EQUALS),
    (LESS_EQUALS, GREATER_EQUALS, GREATER),
];

/// The variables that are texts.
const TEXTS: [&str; 4] = ["speaker", "task", "last.text", "last.from"];

/// The variables that are numbers, and never below 0.
const COUNTS: [&str; 2] = ["turns", "messages"];

/// Why a condition cannot hold, whatever is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Impossible {
    /// It reads nothing, and is false.
    Constant,
    /// A part of it is the constant `false`.
    ConstantPart,
    /// It wants this variable, which is a text, to be something else.
    Text(&'static str),
    /// It wants this variable, which is a number from 0 on, to be something else.
    Count(&'static str),
    /// Its parts exclude each other.
    Parts,
}

impl fmt::Display for Impossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let never = "this condition never holds";
        match self {
            Self::Constant => write!(f, "{never}: it is the constant `false`"),
            Self::ConstantPart => write!(f, "{never}: a part of it is the constant `false`"),
            Self::Text(name) => write!(f, "{never}: `{name}` is a text, and is compared with what is none"),
            Self::Count(name) => write!(f, "{never}: `{name}` is a number, and never below 0"),
            Self::Parts => f.write_str("this condition contradicts itself: its parts exclude each other"),
        }
    }
}

impl Condition {
    /// Why it cannot hold, if that is known: the parts of `turns > 3 && turns < 2` cannot at the same time. Parts exclude each other if they
    /// compare the same with constants, or if one is the opposite of the other; that of `messages == -1` cannot by itself.
    pub(crate) fn impossible(&self) -> Option<Impossible> {
        let expression = self.program.expression();
        if self.program.references().variables().is_empty() {
            let is_false = matches!(self.program.execute(&functions()), Ok(Value::Bool(false)));
            return is_false.then_some(Impossible::Constant);
        }
        if can_be(expression, true, Known::default()) {
            return None;
        }
        if can_be(expression, true, Known::of_no_constants()) {
            return Some(Impossible::ConstantPart);
        }
        Some(never_equal(expression, true).unwrap_or(Impossible::Parts))
    }

    /// Whether it holds whatever is said, such as `true`.
    pub(crate) fn always_holds(&self) -> bool {
        !can_be(self.program.expression(), false, Known::default())
    }
}

fn can_be(expression: &Expression, holds: bool, known: Known) -> bool {
    let mut left = MOST;
    is_possible(vec![(expression, holds)], Vec::new(), known, &mut left)
}

/// The first part of an `expression`, which is to hold or to fail, that wants of a variable what it never is.
fn never_equal(expression: &Expression, holds: bool) -> Option<Impossible> {
    if let Expr::Call(CallExpr { func_name, target: None, args }) = &expression.expr {
        let within = |holds: bool| args.iter().find_map(|part| never_equal(part, holds));
        match func_name.as_str() {
            LOGICAL_NOT => return within(!holds),
            LOGICAL_AND | LOGICAL_OR => return within(holds),
            _ => {}
        }
    }
    let (term, says) = comparison(expression, holds)?;
    if Term::of(&term).take(says) {
        return None;
    }
    let named = |names: &[&'static str]| names.iter().copied().find(|name| *name == term);
    named(&TEXTS).map(Impossible::Text).or_else(|| named(&COUNTS).map(Impossible::Count))
}

/// Whether all of `parts` can hold, or fail, at the same time, with one of each of the `alternatives` and with what is `known`. When no
/// parts are `left` to be looked at, they can.
fn is_possible<'e>(
    mut parts: Vec<(&'e Expression, bool)>,
    mut alternatives: Vec<(&'e [Expression], bool)>,
    mut known: Known,
    left: &mut usize,
) -> bool {
    while let Some((part, holds)) = parts.pop() {
        let Some(fewer) = left.checked_sub(1) else { return true };
        *left = fewer;
        let (operator, args) = match &part.expr {
            Expr::Call(CallExpr { func_name, target: None, args }) => (func_name.as_str(), args.as_slice()),
            _ => ("", &[][..]),
        };
        match operator {
            LOGICAL_NOT => parts.extend(args.iter().map(|inner| (inner, !holds))),
            LOGICAL_AND if holds => parts.extend(args.iter().map(|inner| (inner, true))),
            LOGICAL_OR if !holds => parts.extend(args.iter().map(|inner| (inner, false))),
            LOGICAL_AND | LOGICAL_OR => alternatives.push((args, holds)),
            _ if !known.add(part, holds) => return false,
            _ => {}
        }
    }
    let Some((args, holds)) = alternatives.pop() else { return true };
    args.iter().any(|one| is_possible(vec![(one, holds)], alternatives.clone(), known.clone(), left))
}

/// What parts of a condition say that hold, or fail, at the same time.
#[derive(Clone, Default)]
struct Known {
    /// What is compared with constants.
    terms: HashMap<String, Term>,
    /// Whether other parts hold.
    parts: HashMap<String, bool>,
    /// Whether constants are taken for what can hold and fail.
    skips_constants: bool,
}

impl Known {
    /// Nothing, also of constants.
    fn of_no_constants() -> Self {
        Self { skips_constants: true, ..Self::default() }
    }

    /// Adds that `part` holds, or fails. `false` if that cannot be.
    fn add(&mut self, part: &Expression, holds: bool) -> bool {
        if let Some(Json::Bool(is)) = constant(part) {
            return self.skips_constants || is == holds;
        }
        if let Some((term, says)) = comparison(part, holds) {
            return self.terms.entry(term).or_insert_with_key(|term| Term::of(term)).take(says);
        }
        shape(part).is_none_or(|part| *self.parts.entry(part).or_insert(holds) == holds)
    }
}

/// What a comparison says of a value.
enum Says {
    OneOf(Vec<Json>),
    NoneOf(Vec<Json>),
    Least(Limit),
    Most(Limit),
}

/// A limit on a number, and whether the number can equal it.
type Limit = (f64, bool);

/// What it says that `part` holds, or fails, and of what, if it compares that with constants.
fn comparison(part: &Expression, holds: bool) -> Option<(String, Says)> {
    let Expr::Call(CallExpr { func_name, args, .. }) = &part.expr else { return None };
    let [one, other] = args.as_slice() else { return None };
    if func_name == IN {
        let Expr::List(list) = &other.expr else { return None };
        let values: Vec<Json> = list.elements.iter().map(constant).collect::<Option<_>>()?;
        return Some((shape(one)?, if holds { Says::OneOf(values) } else { Says::NoneOf(values) }));
    }
    let row = |name: &str| COMPARISONS.into_iter().find(|(own, ..)| *own == name);
    let (own, exchanged, _) = row(func_name)?;
    let (term, value, operator) = match (constant(one), constant(other)) {
        (None, Some(value)) => (one, value, own),
        (Some(value), None) => (other, value, exchanged),
        _ => return None,
    };
    let operator = if holds { operator } else { row(operator)?.2 };
    let says = match (operator, value.as_f64()) {
        (EQUALS, _) => Says::OneOf(vec![value]),
        (NOT_EQUALS, _) => Says::NoneOf(vec![value]),
        (GREATER, Some(limit)) => Says::Least((limit, false)),
        (GREATER_EQUALS, Some(limit)) => Says::Least((limit, true)),
        (LESS, Some(limit)) => Says::Most((limit, false)),
        (LESS_EQUALS, Some(limit)) => Says::Most((limit, true)),
        _ => return None,
    };
    Some((shape(term)?, says))
}

/// What comparisons say of one value.
#[derive(Clone, Default)]
struct Term {
    one_of: Option<Vec<Json>>,
    none_of: Vec<Json>,
    least: Vec<Limit>,
    most: Vec<Limit>,
    is_text: bool,
}

impl Term {
    /// What is known of the value of `term`, whatever is said.
    fn of(term: &str) -> Self {
        let least = if COUNTS.contains(&term) { vec![(0.0, true)] } else { Vec::new() };
        Self { least, is_text: TEXTS.contains(&term), ..Self::default() }
    }

    /// Adds what another comparison says. `false` if no value is so.
    fn take(&mut self, says: Says) -> bool {
        match says {
            Says::OneOf(values) => match &mut self.one_of {
                Some(own) => own.retain(|own| values.iter().any(|value| is_equal(own, value))),
                none => *none = Some(values),
            },
            Says::NoneOf(values) => self.none_of.extend(values),
            Says::Least(limit) => self.least.push(limit),
            Says::Most(limit) => self.most.push(limit),
        }
        match &self.one_of {
            Some(values) => values.iter().any(|value| self.allows(value)),
            None => self.least.iter().all(|least| self.most.iter().all(|most| is_ordered(*least, *most))),
        }
    }

    fn allows(&self, value: &Json) -> bool {
        let is_within = match value.as_f64() {
            Some(_) if self.is_text => false,
            Some(number) => {
                self.least.iter().all(|least| is_ordered(*least, (number, true)))
                    && self.most.iter().all(|most| is_ordered((number, true), *most))
            }
            None if self.is_text => value.is_string(),
            None => self.least.is_empty() && self.most.is_empty(),
        };
        is_within && !self.none_of.iter().any(|other| is_equal(other, value))
    }
}

/// Whether a number can be at least one limit and at most the other.
fn is_ordered((least, with_least): Limit, (most, with_most): Limit) -> bool {
    least < most || least == most && with_least && with_most
}
