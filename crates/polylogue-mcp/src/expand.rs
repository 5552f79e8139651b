//! Variables in declarations: `${NAME}` and `${NAME:-default}`.

use std::sync::{Arc, OnceLock};

use polylogue_http::{Redactor, is_secret_name};

type LookUp = dyn Fn(&str) -> Option<String> + Send + Sync;

/// The sources of variables.
#[derive(Clone, derive_more::Debug)]
#[debug("Variables")]
pub(crate) struct Variables {
    /// Variables that are passed to a server.
    values: Arc<LookUp>,
    /// Variables that determine which program runs, or where requests go.
    places: Arc<LookUp>,
}

impl Variables {
    pub(crate) fn new(look_up: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        let values: Arc<LookUp> = Arc::new(look_up);
        Self { places: Arc::clone(&values), values }
    }

    /// The same, with those of commands, arguments, folders and addresses looked up by `places`.
    pub(crate) fn placed_by(self, places: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { places: Arc::new(places), ..self }
    }

    /// A command, an argument, a folder or an address with its variables replaced, as [`expand`](Self::expand) does.
    ///
    /// # Errors
    /// As [`expand`](Self::expand).
    pub(crate) fn place(&self, text: &str, secrets: &mut Secrets) -> Result<String, String> {
        expanded(text, &*self.places, secrets)
    }

    /// `text` with its variables replaced; their values are added to `secrets`. A `$` that does not begin a variable is kept.
    ///
    /// # Errors
    /// When a variable is not set and has no default, or its brace is not closed.
    pub(crate) fn expand(&self, text: &str, secrets: &mut Secrets) -> Result<String, String> {
        expanded(text, &*self.values, secrets)
    }
}

fn expanded(text: &str, look_up: &LookUp, secrets: &mut Secrets) -> Result<String, String> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (inside, behind) =
            after.split_once('}').ok_or_else(|| format!("has `{text}`, which lacks a `}}` after `${{`"))?;
        let (name, otherwise) = match inside.split_once(":-") {
            Some((name, otherwise)) => (name, Some(otherwise)),
            None => (inside, None),
        };
        expanded.push_str(before);
        match (look_up(name).filter(|value| !value.is_empty()), otherwise) {
            (Some(value), _) => {
                expanded.push_str(&value);
                secrets.add(name, value);
            }
            (None, Some(otherwise)) => expanded.push_str(otherwise),
            (None, None) => return Err(format!("needs the variable `{name}`, which is not set")),
        }
        rest = behind;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// Values of a declaration that its server receives.
#[derive(Clone, Default, PartialEq, Eq, derive_more::Debug)]
#[debug("Secrets")]
pub(crate) struct Secrets {
    /// All that may be keys: values of variables, of the environment and of headers.
    all: Values,
    /// Those that are keys by their names.
    keys: Values,
}

/// Values that are redacted.
#[derive(Clone, Default)]
struct Values {
    values: Vec<String>,
    /// Of all of them, once a text is looked at.
    redactor: OnceLock<Redactor>,
}

impl Values {
    fn add(&mut self, value: String) {
        self.values.push(value);
        self.redactor = OnceLock::new();
    }

    /// `text` without them. Short ones are kept, since they would match everywhere.
    fn removed_from(&self, text: &str) -> String {
        let redactor = || Redactor::exact(self.values.iter().map(String::as_str));
        self.redactor.get_or_init(redactor).clean_as(text, "***")
    }
}

impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}

impl Eq for Values {}

impl Secrets {
    /// Adds the value of the variable or header called `name`.
    pub(crate) fn add(&mut self, name: &str, value: String) {
        if is_secret_name(name) {
            self.keys.add(value.clone());
        }
        self.all.add(value);
    }

    /// An error text without any of them.
    pub(crate) fn without_all(&self, text: &str) -> String {
        self.all.removed_from(text)
    }

    /// A text of a result without the keys. Other values, such as the path of a folder, may be what the result is about.
    pub(crate) fn without_keys(&self, text: &str) -> String {
        self.keys.removed_from(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<(String, Vec<String>), String> {
        let variables = Variables::new(|name| match name {
            "KEY" => Some("hunter22".into()),
            "EMPTY" => Some(String::new()),
            _ => None,
        });
        let mut secrets = Secrets::default();
        variables.expand(text, &mut secrets).map(|text| (text, secrets.all.values))
    }

    #[test]
    fn variables_are_replaced_and_dollars_left() {
        let key = || vec!["hunter22".to_owned()];
        assert_eq!(expanded("Bearer ${KEY}!"), Ok(("Bearer hunter22!".into(), key())));
        assert_eq!(expanded("$KEY $ {KEY} 5$"), Ok(("$KEY $ {KEY} 5$".into(), Vec::new())));
        assert_eq!(expanded("${NONE:-a b}${EMPTY:-c}"), Ok(("a bc".into(), Vec::new())));
        assert_eq!(expanded("é${KEY:-x}"), Ok(("éhunter22".into(), key())));
    }

    #[test]
    fn variables_that_are_not_there_are_named() {
        assert_eq!(expanded("${NONE}").unwrap_err(), "needs the variable `NONE`, which is not set");
        assert_eq!(expanded("a ${KEY").unwrap_err(), "has `a ${KEY`, which lacks a `}` after `${`");
    }

    #[test]
    fn secrets_are_taken_out() {
        let mut secrets = Secrets::default();
        for (name, value) in [("KEY", "hunter22"), ("SHORT_KEY", "a"), ("FOLDER", "/srv/data")] {
            secrets.add(name, value.to_owned());
        }
        let text = "hunter22 is a key of /srv/data";
        assert_eq!(secrets.without_all(text), "*** is a key of ***");
        assert_eq!(secrets.without_keys(text), "*** is a key of /srv/data");
        secrets.add("LONG_KEY", "0123456789abcdef".to_owned());
        assert_eq!(secrets.without_keys("hunter22 MDEyMzQ1Njc4OWFiY2RlZg=="), "*** ***g==");
    }
}
