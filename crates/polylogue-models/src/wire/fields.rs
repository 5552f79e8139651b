//! Writes the fields of a request besides its messages.

use bytes::{BufMut, BytesMut};
use polylogue_core::ToolSpec;
use serde::Serialize;
use serde_json::{Map, Value};

use super::json;
use crate::schema::arguments::with_items;

/// Writes fields. Fields in `extra` take precedence, so that no key occurs twice.
pub(crate) struct Fields<'a> {
    out: &'a mut BytesMut,
    extra: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(out: &'a mut BytesMut, extra: &'a Map<String, Value>) -> Self {
        Self { out, extra }
    }

    /// Adds a field if it has a value and is not in `extra`.
    pub(crate) fn add(&mut self, name: &str, value: Option<&impl Serialize>) {
        if let Some(value) = value.filter(|_| !self.extra.contains_key(name)) {
            self.put(name, value);
        }
    }

    /// Adds a field by a callback, unless it is in `extra`.
    pub(crate) fn raw(&mut self, name: &str, write: impl FnOnce(&mut BytesMut)) {
        if !self.extra.contains_key(name) {
            self.begin(name);
            write(self.out);
        }
    }

    /// Adds a field even if it is in `extra`.
    pub(crate) fn put(&mut self, name: &str, value: &impl Serialize) {
        self.begin(name);
        json::value(self.out, value);
    }

    /// Writes the closing brace of the body.
    pub(crate) fn end(self) {
        self.out.put_u8(b'}');
    }

    fn begin(&mut self, name: &str) {
        self.out.put_u8(b',');
        json::string(self.out, name);
        self.out.put_u8(b':');
    }
}

/// Writes the list of tools, in OpenAI's format for all protocols.
pub(crate) fn write_tools(out: &mut BytesMut, tools: &[ToolSpec]) {
    out.put_u8(b'[');
    for tool in tools {
        json::separate(out);
        json::quoted(out, r#"{"type":"function","function":{"name":"#, &tool.name, "");
        json::quoted(out, r#","description":"#, &tool.description, r#","parameters":"#);
        json::value(out, &with_items(&tool.parameters));
        out.extend_from_slice(b"}}");
    }
    out.put_u8(b']');
}
