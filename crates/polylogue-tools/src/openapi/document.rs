//! Parses documents.

use std::collections::BTreeMap;

use polylogue_core::text::of_json;
use serde_json::{Map, Value};

use super::auth::{Credential, credential};
use crate::http::HttpMethod;

/// Maximum length of a chain of references.
const MOST_STEPS: usize = 16;
/// An `OpenAPI` document of version 3.0 or 3.1.
#[derive(Debug, Clone)]
pub struct Document(Value);

/// An operation in a document.
pub(super) struct Entry<'a> {
    pub(super) verb: HttpMethod,
    pub(super) path: &'a str,
    /// The path item, which applies to all operations of the path.
    pub(super) around: &'a Map<String, Value>,
    pub(super) says: &'a Map<String, Value>,
}

impl Document {
    /// Parses a document in JSON or YAML.
    ///
    /// # Errors
    /// When it is neither, or not a document of these versions.
    pub fn read(text: &str) -> Result<Self, String> {
        let text = text.trim_start_matches('\u{feff}');
        let value: Value = if text.trim_start().starts_with('{') {
            serde_json::from_str(text).map_err(|why| format!("it is not valid JSON: {why}"))?
        } else {
            serde_saphyr::from_str(text).map_err(|why| {
                let why = why.to_string();
                format!("it is not valid YAML: {}", why.lines().next().unwrap_or_default())
            })?
        };
        if value.get("swagger").is_some() {
            return Err(
                "it is of version 2 (`swagger`), which is not read; it can be converted to OpenAPI 3".into(),
            );
        }
        let version = value.get("openapi").map(of_json);
        match version {
            None => Err("it has no key `openapi`, so it is not an OpenAPI document".into()),
            Some(version) if !version.starts_with("3.") => {
                Err(format!("it is of version {version}; 3.0 and 3.1 are read"))
            }
            Some(_) if value.get("paths").and_then(Value::as_object).is_none_or(Map::is_empty) => {
                Err("it has no `paths`, so there is nothing to call".into())
            }
            Some(_) => Ok(Self(value)),
        }
    }

    /// Resolves a reference; other values are returned unchanged. Dangling and circular references become null.
    pub(super) fn resolved<'a>(&'a self, value: &'a Value) -> &'a Value {
        let mut at = value;
        for _ in 0..MOST_STEPS {
            let Some(reference) = at.get("$ref").and_then(Value::as_str) else { return at };
            let pointer = reference.strip_prefix('#').unwrap_or("/nothing outside is read");
            let pointer = percent_encoding::percent_decode_str(pointer).decode_utf8_lossy();
            match self.0.pointer(&pointer) {
                Some(next) => at = next,
                None => return &Value::Null,
            }
        }
        &Value::Null
    }

    /// The operations, in the order of the document.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let paths = self.0.get("paths").and_then(Value::as_object).into_iter().flatten();
        let items = paths.filter_map(|(path, item)| Some((path.as_str(), self.resolved(item).as_object()?)));
        items.flat_map(|(path, around)| {
            HttpMethod::ALL.into_iter().filter_map(move |verb| {
                let says = around.get(verb.word())?.as_object()?;
                Some(Entry { verb, path, around, says })
            })
        })
    }

    /// The base address, without a `/` at its end.
    pub(super) fn base(&self, given: Option<&str>) -> Result<String, String> {
        let server = self.0.pointer("/servers/0");
        let said = server.and_then(|server| Some((server, server.get("url")?.as_str()?)));
        let base = match (given, said) {
            (Some(given), _) => given.to_owned(),
            (None, Some((server, url))) => with_variables(server, url),
            (None, None) => return Err("it does not say where its server is; it needs a `base_url`".into()),
        };
        if !base.starts_with("https://") && !base.starts_with("http://") {
            return Err(format!(
                "its server is at `{base}`, which is not a whole address; it needs a `base_url`"
            ));
        }
        Ok(base.trim_end_matches('/').to_owned())
    }

    /// The credentials of the first supported security requirement of the operation `says`.
    pub(super) fn credentials(&self, says: &Map<String, Value>) -> BTreeMap<String, Credential> {
        let requirements = says.get("security").or_else(|| self.0.get("security")).and_then(Value::as_array);
        let of_scheme = |scheme: &String| {
            let declared = self.0.get("components")?.get("securitySchemes")?.get(scheme)?;
            Some((scheme.clone(), credential(self.resolved(declared))?))
        };
        let mut known = requirements.into_iter().flatten().filter_map(|requirement| {
            let schemes = requirement.as_object()?.keys();
            schemes.map(of_scheme).collect::<Option<BTreeMap<_, _>>>()
        });
        // A requirement without a key is the last to be taken.
        known.by_ref().find(|requirement| !requirement.is_empty()).unwrap_or_default()
    }
}

/// `url` with the defaults of its variables.
fn with_variables(server: &Value, url: &str) -> String {
    let variables = server.get("variables").and_then(Value::as_object);
    variables.into_iter().flatten().fold(url.to_owned(), |url, (name, variable)| {
        let default = variable.get("default").and_then(Value::as_str).unwrap_or_default();
        let place = format!("{{{name}}}");
        // Defaults may name variables again: what grows beyond any address stays unchanged, and is refused.
        let added = url.matches(&place).count().saturating_mul(default.len());
        if url.len().saturating_add(added) > LONGEST_ADDRESS { url } else { url.replace(&place, default) }
    })
}

/// Maximum length of a server's address in bytes.
const LONGEST_ADDRESS: usize = 8 * 1024;

/// `text` as a name that tools and arguments may have.
pub(super) fn legal(text: &str, most: usize) -> String {
    let mut name = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || c == '-' {
            name.push(c);
        } else if !name.ends_with('_') {
            name.push('_');
        }
    }
    let name: String = name.trim_matches('_').chars().take(most).collect();
    if name.is_empty() { "_".to_owned() } else { name }
}
