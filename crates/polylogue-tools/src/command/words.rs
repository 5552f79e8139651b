//! The words of a command, with places for arguments.

use polylogue_core::ToolError;
use polylogue_core::text::of_json;
use serde_json::Value;

use super::declaration::{Declaration, Kind, Words, undeclared};
use super::values::{GivenArguments, check_size};

/// How many bytes of arguments a command may have: Linux takes 2 MiB with everything else.
const MAX_BYTES: usize = 1 << 20;

/// The words behind the program.
#[derive(Debug, Clone)]
pub(super) struct Template(Vec<Piece>);

/// Words that are there together or not.
#[derive(Debug, Clone)]
struct Piece {
    when: Option<String>,
    words: Vec<Word>,
}

#[derive(Debug, Clone)]
struct Word {
    parts: Vec<Part>,
    /// Whether a text at its beginning may begin with `-`.
    free: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Text(String),
    Argument(String),
}

impl Template {
    /// The program and the words of `declaration`, or what is wrong with them.
    pub(super) fn of(declaration: &Declaration) -> Result<(String, Self), String> {
        let (program, rest) = match declaration.command.split_first() {
            Some((Words::One(program), rest)) if !program.is_empty() => (program, rest),
            _ => return Err("its first word must be the program".into()),
        };
        if !parsed(program)?.iter().all(|part| matches!(part, Part::Text(_))) {
            return Err("the program cannot come from an argument".into());
        }
        let mut free = false;
        let mut pieces = Vec::new();
        for words in rest {
            let (when, words) = match words {
                Words::One(word) => (None, std::slice::from_ref(word)),
                Words::When { when, words } => (Some(when.clone()), &**words),
            };
            let words = words.iter().map(|word| Word::of(word, declaration, &mut free));
            pieces.push(Piece { words: words.collect::<Result<_, _>>()?, when });
        }
        let template = Self(pieces);
        template.check(declaration)?;
        Ok((text(&parsed(program)?), template))
    }

    fn check(&self, declaration: &Declaration) -> Result<(), String> {
        let whens = self.0.iter().filter_map(|piece| piece.when.as_ref());
        let named: Vec<&str> = whens.map(String::as_str).chain(self.places()).collect();
        if let Some(name) = named.iter().find(|name| !declaration.arguments.contains_key(**name)) {
            return Err(undeclared(name, &declaration.arguments));
        }
        match declaration.arguments.keys().find(|name| !named.contains(&name.as_str())) {
            Some(name) => Err(format!("the argument `{name}` is not used")),
            None => Ok(()),
        }
    }

    /// The arguments of its places.
    fn places(&self) -> impl Iterator<Item = &str> {
        let parts = self.0.iter().flat_map(|piece| &piece.words).flat_map(|word| &word.parts);
        parts.filter_map(|part| match part {
            Part::Argument(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// The words, with what was given in its places.
    pub(super) fn fill(&self, given: &GivenArguments<'_>) -> Result<Vec<String>, ToolError> {
        check_size(self.places(), given, MAX_BYTES)?;
        let mut words = Vec::new();
        for piece in &self.0 {
            let is_there =
                |name: &String| given.get(&**name).is_some_and(|value| **value != Value::Bool(false));
            if piece.when.as_ref().is_none_or(is_there) {
                for word in &piece.words {
                    words.extend(word.fill(given)?);
                }
            }
        }
        Ok(words)
    }
}

impl Word {
    fn of(word: &str, declaration: &Declaration, free: &mut bool) -> Result<Self, String> {
        let parts = parsed(word)?;
        *free |= word == "--";
        let mut word_is_free = *free;
        for part in &parts {
            let Part::Argument(name) = part else { continue };
            let Some(argument) = declaration.arguments.get(name) else { continue };
            word_is_free |= argument.may_be_option;
            if argument.kind == Kind::Strings && parts.len() > 1 {
                return Err(format!("`{name}` is a list, and needs its own word"));
            }
        }
        Ok(Self { parts, free: word_is_free })
    }

    /// The words that it comes to: none when an argument was left out.
    fn fill(&self, given: &GivenArguments<'_>) -> Result<Vec<String>, ToolError> {
        let mut word = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => word.push_str(text),
                Part::Argument(name) => match given.get(&**name) {
                    None => return Ok(Vec::new()),
                    Some(Value::Array(items)) => {
                        let texts = items.iter().map(of_json);
                        return texts.map(|text| self.checked(name, text, true)).collect();
                    }
                    Some(value) => {
                        let is_first = word.is_empty();
                        word.push_str(&self.checked(name, of_json(value), is_first)?);
                    }
                },
            }
        }
        Ok(vec![word])
    }

    fn checked(&self, name: &str, text: String, is_first: bool) -> Result<String, ToolError> {
        if text.contains('\0') {
            return Err(ToolError(format!("`{name}` may not have a zero byte in it")));
        }
        if is_first && !self.free && text.starts_with('-') {
            return Err(ToolError(format!(
                "`{name}` may not begin with `-`: it would be taken for an option"
            )));
        }
        Ok(text)
    }
}

fn text(parts: &[Part]) -> String {
    parts.iter().map(|(Part::Text(text) | Part::Argument(text))| text.as_str()).collect()
}

/// The texts and places in a word.
pub(crate) fn parsed(word: &str) -> Result<Vec<Part>, String> {
    let (mut parts, mut text, mut rest) = (Vec::new(), String::new(), word);
    while let Some(at) = rest.find(['{', '}']) {
        let (before, brace) = rest.split_at(at);
        text.push_str(before);
        if let Some(after) = brace.strip_prefix("{{").or_else(|| brace.strip_prefix("}}")) {
            text.push_str(brace.get(..1).unwrap_or_default());
            rest = after;
            continue;
        }
        let place = brace.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let (name, after) = place.filter(|(name, _)| is_name(name)).ok_or_else(|| {
            format!("`{word}` has a brace that is no `{{argument}}`; write `{{{{` and `}}}}` for braces")
        })?;
        parts.push(Part::Text(std::mem::take(&mut text)));
        parts.push(Part::Argument(name.to_owned()));
        rest = after;
    }
    text.push_str(rest);
    parts.push(Part::Text(text));
    // An empty word is a word.
    if parts.len() > 1 {
        parts.retain(|part| *part != Part::Text(String::new()));
    }
    Ok(parts)
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn template(word: &str, kind: &str) -> Result<Template, String> {
        let declaration = json!({
            "name": "x", "description": "", "command": ["x", word], "arguments": {"a": {"type": kind}}
        });
        let declaration: Declaration = serde_json::from_value(declaration).unwrap();
        Template::of(&declaration).map(|(_, template)| template)
    }

    proptest! {
        #[test]
        fn a_text_is_one_word_whatever_is_in_it(text in any::<String>()) {
            let value = json!(text);
            let given = GivenArguments::from([("a", &value)]);
            let within = template("={a}.", "string").unwrap().fill(&given);
            let alone = template("{a}", "string").unwrap().fill(&given);
            let has_zero = text.contains('\0');
            prop_assert_eq!(within.ok(), (!has_zero).then(|| vec![format!("={text}.")]));
            prop_assert_eq!(alone.ok(), (!has_zero && !text.starts_with('-')).then(|| vec![text]));
        }

        #[test]
        fn each_text_of_a_list_becomes_one_argument(texts in proptest::collection::vec("[^-\0].*", 0..4)) {
            let texts: Vec<String> = texts.into_iter().filter(|text| !text.contains('\0')).collect();
            let value = json!(texts);
            let words = template("{a}", "strings").unwrap().fill(&GivenArguments::from([("a", &value)]));
            prop_assert_eq!(words.unwrap(), texts);
        }

        #[test]
        fn no_word_breaks_the_reader(word in "[a{} \\-é]{0,12}") {
            if let Ok(parts) = parsed(&word) {
                let written: String = parts.iter().map(|part| match part {
                    Part::Text(text) => text.replace('{', "{{").replace('}', "}}"),
                    Part::Argument(name) => format!("{{{name}}}"),
                }).collect();
                prop_assert_eq!(written, word);
            }
        }
    }
}
