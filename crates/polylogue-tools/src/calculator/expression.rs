//! Parses and evaluates expressions in one pass.
//!
//! `expression := term {(+|-) term}`, `term := factor {(*|/|%) factor}`, `factor := (+|-) factor | power`,
//! `power := atom [^ factor]`, `atom := number | ( expression )`.

/// Maximum nesting of parentheses, signs and powers, because parsing is recursive.
const DEEPEST: usize = 64;

/// The value of `text`, or its error.
pub(super) fn evaluate(text: &str) -> Result<f64, String> {
    let mut reader = Reader { rest: text.trim_start(), depth: 0 };
    if reader.rest.is_empty() {
        return Err("the expression is empty".into());
    }
    let value = reader.expression()?;
    match reader.rest.chars().next() {
        None if value.is_finite() => Ok(value),
        None => Err("the result is too large".into()),
        Some(c) => Err(format!("`{c}` is not expected; there are numbers, + - * / % ^ and brackets")),
    }
}

struct Reader<'t> {
    rest: &'t str,
    depth: usize,
}

impl Reader<'_> {
    fn expression(&mut self) -> Result<f64, String> {
        let mut value = self.term()?;
        loop {
            if self.takes('+') {
                value += self.term()?;
            } else if self.takes('-') || self.takes('−') {
                value -= self.term()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn term(&mut self) -> Result<f64, String> {
        let mut value = self.factor()?;
        loop {
            if self.takes('*') || self.takes('×') {
                value *= self.factor()?;
            } else if self.takes('/') || self.takes('÷') {
                value /= self.divisor()?;
            } else if self.takes('%') {
                value %= self.divisor()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn divisor(&mut self) -> Result<f64, String> {
        let value = self.factor()?;
        if value == 0.0 { Err("this divides by zero".into()) } else { Ok(value) }
    }

    fn factor(&mut self) -> Result<f64, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("the expression is nested more than {DEEPEST} deep"));
        }
        let value = if self.takes('-') || self.takes('−') {
            -self.factor()?
        } else if self.takes('+') {
            self.factor()?
        } else {
            self.power()?
        };
        self.depth -= 1;
        Ok(value)
    }

    fn power(&mut self) -> Result<f64, String> {
        let base = self.atom()?;
        if !self.takes('^') {
            return Ok(base);
        }
        let value = base.powf(self.factor()?);
        if value.is_nan() { Err("this power is not a real number".into()) } else { Ok(value) }
    }

    fn atom(&mut self) -> Result<f64, String> {
        if self.takes('(') {
            let value = self.expression()?;
            return if self.takes(')') { Ok(value) } else { Err("a bracket is not closed".into()) };
        }
        let digits = self.rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(self.rest.len());
        let (number, rest) = self.rest.split_at(digits);
        let value = number.parse().map_err(|_| match (number, rest.chars().next()) {
            ("", None) => "a number is missing at the end".to_owned(),
            ("", Some(c)) => format!("a number is missing before `{c}`"),
            _ => format!("`{number}` is not a number"),
        })?;
        self.rest = rest.trim_start();
        Ok(value)
    }

    fn takes(&mut self, sign: char) -> bool {
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::evaluate;

    #[test]
    fn expressions_are_worked_out_as_in_school() {
        for (text, value) in [
            ("14 + 1", 15.0),
            ("2 + 3 * 4", 14.0),
            ("(2 + 3) * 4", 20.0),
            ("10 - 4 - 3", 3.0),
            ("2 ^ 3 ^ 2", 512.0),
            ("-2 ^ 2", -4.0),
            ("2 ^ -1", 0.5),
            ("7 % 4 * 2", 6.0),
            (" 1.5×4 ÷ 3 − 1 ", 1.0),
            ("--3", 3.0),
            ("((((1))))", 1.0),
        ] {
            assert_eq!(evaluate(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn an_invalid_expression_says_why() {
        for (text, why) in [
            ("", "the expression is empty"),
            ("1 +", "a number is missing at the end"),
            ("* 2", "a number is missing before `*`"),
            ("(1", "a bracket is not closed"),
            ("1)", "`)` is not expected; there are numbers, + - * / % ^ and brackets"),
            ("2 x 3", "`x` is not expected; there are numbers, + - * / % ^ and brackets"),
            ("1.2.3", "`1.2.3` is not a number"),
            ("1 / (2 - 2)", "this divides by zero"),
            ("5 % 0", "this divides by zero"),
            ("(-8) ^ 0.5", "this power is not a real number"),
            ("10 ^ 10 ^ 10", "the result is too large"),
        ] {
            assert_eq!(evaluate(text), Err(why.to_owned()), "{text}");
        }
        let deep = format!("{}1{}", "(".repeat(100_000), ")".repeat(100_000));
        assert_eq!(evaluate(&deep), Err("the expression is nested more than 64 deep".to_owned()));
        assert!(evaluate(&"-".repeat(100_000)).is_err());
    }

    proptest! {
        #[test]
        fn a_text_of_any_length_is_parsed(text in "[0-9.+*/%^() -]{0,60}|.{0,40}") {
            if let Ok(value) = evaluate(&text) {
                prop_assert!(value.is_finite());
            }
        }
    }
}
