//! Prompts from messages, by the chat template of the file.

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Value};
use serde::Serialize;
use serde_json::ser::Formatter;
use serde_json::{Map, Value as Json};

use crate::error::Defect;
use crate::gguf::GgufFile;
use crate::tokenizer::Tokenizer;

/// For a file without a template whose model knows the tokens of `ChatML`.
const CHATML: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n\
                      {% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// For any other file without a template: names before the messages.
const PLAIN: &str = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n\n{% endfor %}\
                     {% if add_generation_prompt %}assistant:{% endif %}";

/// Where a reply by the plain template ends, besides the model's own end.
const PLAIN_STOP: &str = "\n\nuser:";

/// The steps that a template can take, so that none runs without end.
const FUEL: u64 = 5_000_000;

/// A chat template.
pub(crate) struct Template {
    source: String,
    begin: String,
    end: String,
    /// Texts that end a reply.
    pub(crate) stop: Option<&'static str>,
}

/// What a template receives besides messages.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    pub(crate) tools: Vec<Json>,
    /// Whether the model reasons, for templates that ask.
    pub(crate) thinking: Option<bool>,
    pub(crate) more: Map<String, Json>,
}

impl Template {
    /// The template of `file`, which is tried with one message.
    pub(crate) fn of(file: &GgufFile, tokenizer: &Tokenizer) -> Result<Self, Defect> {
        let own = file.text("tokenizer.chat_template").filter(|own| !own.trim().is_empty());
        let is_chatml = tokenizer.vocabulary.special("<|im_end|>").is_some();
        let source = own.unwrap_or(if is_chatml { CHATML } else { PLAIN });
        let template = Self {
            // Blocks of another tool, which marks what is trained; Jinja does not know them.
            source: source.replace("{% generation %}", "").replace("{% endgeneration %}", ""),
            begin: tokenizer.name(tokenizer.vocabulary.begin),
            end: tokenizer.name(tokenizer.vocabulary.ends.first().copied()),
            stop: (own.is_none() && !is_chatml).then_some(PLAIN_STOP),
        };
        let message = serde_json::json!({"role": "user", "content": "hello"});
        match template.render(&[message], &Settings::default()) {
            Ok(_) => Ok(template),
            Err(error) => Err(Defect::unsupported(
                format!("its chat template cannot be used: {}", one_line(&error)),
                "another edition of the model may have a template that works",
            )),
        }
    }

    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// The prompt of `messages`, which ends where the reply begins.
    pub(crate) fn render(&self, messages: &[Json], settings: &Settings) -> Result<String, Error> {
        let mut environment = Environment::new();
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.set_fuel(Some(FUEL));
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", |text: String| -> Result<String, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, text))
        });
        environment.add_filter("tojson", to_json);
        let mut context = settings.more.clone();
        context.insert("messages".into(), messages.into());
        context.insert("add_generation_prompt".into(), true.into());
        context.insert("bos_token".into(), self.begin.clone().into());
        context.insert("eos_token".into(), self.end.clone().into());
        if !settings.tools.is_empty() {
            context.insert("tools".into(), settings.tools.clone().into());
        }
        if let Some(thinking) = settings.thinking {
            context.insert("enable_thinking".into(), thinking.into());
        }
        environment.template_from_str(&self.source)?.render(Value::from_serialize(&context))
    }
}

/// An error of a template without its source.
pub(crate) fn one_line(error: &Error) -> String {
    error.detail().map_or_else(|| error.kind().to_string(), str::to_owned)
}

/// JSON as Python writes it, for which templates are made: with a space after `:` and `,`, and nothing escaped for HTML.
#[expect(clippy::needless_pass_by_value, reason = "the form of filters")]
fn to_json(value: Value, options: Kwargs) -> Result<Value, Error> {
    let indent: Option<usize> = options.get("indent").ok().flatten();
    // `ensure_ascii`, `separators` and `sort_keys` change no meaning.
    let mut bytes = Vec::new();
    let failed = |error: serde_json::Error| Error::new(ErrorKind::BadSerialization, error.to_string());
    if value.kind() == ValueKind::Undefined {
        return Ok(Value::from("null"));
    }
    match indent {
        Some(indent) => {
            let spaces = " ".repeat(indent.min(16));
            let pretty = serde_json::ser::PrettyFormatter::with_indent(spaces.as_bytes());
            let mut out = serde_json::Serializer::with_formatter(&mut bytes, pretty);
            value.serialize(&mut out).map_err(failed)?;
        }
        None => {
            let mut out = serde_json::Serializer::with_formatter(&mut bytes, Spaced);
            value.serialize(&mut out).map_err(failed)?;
        }
    }
    Ok(Value::from_safe_string(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Writes a space after `:` and `,`.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + std::io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }
    fn begin_object_key<W: ?Sized + std::io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }
    fn begin_object_value<W: ?Sized + std::io::Write>(&mut self, out: &mut W) -> std::io::Result<()> {
        out.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rendered(source: &str, settings: &Settings) -> Result<String, Error> {
        let template =
            Template { source: source.into(), begin: "<s>".into(), end: "</s>".into(), stop: None };
        let messages = [json!({"role": "user", "content": "<a> & \"b\"\n"})];
        template.render(&messages, settings)
    }

    #[test]
    fn templates_receive_what_those_of_python_receive() {
        let source = "{{ bos_token }}{% for m in messages %}\n[{{ m['role'] }}] {{ m.content.strip() }}{% endfor %}\n{% if tools %}{{ tools | tojson }}{% endif %}{{ enable_thinking }}";
        let settings = Settings {
            tools: vec![json!({"name": "f", "list": [1, 2]})],
            thinking: Some(false),
            more: Map::new(),
        };
        let expected = "<s>[user] <a> & \"b\"[{\"name\": \"f\", \"list\": [1, 2]}]False";
        assert_eq!(rendered(source, &settings).unwrap(), expected);
        let indented = rendered("{{ {'a': '<'} | tojson(indent=4) }}", &Settings::default());
        assert_eq!(indented.unwrap(), "{\n    \"a\": \"<\"\n}");
    }

    #[test]
    fn a_template_that_refuses_or_never_ends_is_an_error() {
        let refused = rendered("{{ raise_exception('roles must alternate') }}", &Settings::default());
        assert_eq!(one_line(&refused.unwrap_err()), "roles must alternate");
        let endless =
            "{% for a in range(10000) %}{% for b in range(10000) %}{{ a * b }}{% endfor %}{% endfor %}";
        assert!(rendered(endless, &Settings::default()).is_err());
    }
}
