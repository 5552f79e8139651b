//! The JSON Schema of a configuration type.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::{Discriminant, discriminant};

use serde_json::{Map, Value, json};

use crate::types::{Key, Kind, KindOf, Limits, Literal, Struct, Text, Type, TypeFn, Variant};

/// Writes the JSON Schema (draft 2020-12) of files of type `ty`, for editors and for programs that write such files.
pub fn schema(ty: &'static Type) -> Value {
    let mut definitions = Definitions::default();
    let mut root = definitions.inline(ty, Limits::NONE);
    describe(&mut root, ty.doc);
    let mut schema = Map::new();
    schema.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
    if let Value::Object(root) = root {
        schema.extend(root);
    }
    let done = definitions.done.into_iter().map(|(name, schema)| (name.to_owned(), schema));
    schema.insert("$defs".into(), Value::Object(done.collect()));
    Value::Object(schema)
}

/// Returns the names in `$defs` that several different types of `ty` share. Only the first of them would be in the schema, so
/// there must be none.
///
/// ```
/// use polylogue_config::{Config, schema};
/// #[derive(Config)]
/// struct Limits {
///     /// Number of turns.
///     turns: u32,
/// }
/// assert!(schema::clashes(Limits::ty()).is_empty());
/// ```
pub fn clashes(ty: &'static Type) -> BTreeSet<&'static str> {
    let mut definitions = Definitions::default();
    definitions.inline(ty, Limits::NONE);
    definitions.clashes
}

/// Schemas of named types; a type that is being written is there as null.
#[derive(Default)]
struct Definitions {
    done: BTreeMap<&'static str, Value>,
    types: BTreeMap<&'static str, &'static Type>,
    clashes: BTreeSet<&'static str>,
}

impl Definitions {
    /// The schema of `ty`: a reference if it has a name.
    fn of(&mut self, ty: &'static Type, limits: Limits) -> Value {
        if ty.name.is_empty() {
            return self.inline(ty, limits);
        }
        if !self.types.entry(ty.name).or_insert(ty).is_like(ty) {
            self.clashes.insert(ty.name);
        }
        if !self.done.contains_key(ty.name) {
            self.done.insert(ty.name, Value::Null);
            let mut schema = self.inline(ty, limits);
            describe(&mut schema, ty.doc);
            self.done.insert(ty.name, schema);
        }
        json!({ "$ref": format!("#/$defs/{}", ty.name) })
    }

    fn inline(&mut self, ty: &'static Type, limits: Limits) -> Value {
        match &ty.kind {
            Kind::Bool => json!({ "type": "boolean" }),
            Kind::Whole { least, most } => whole(*least, *most, limits.range),
            Kind::Number => match limits.range {
                Some((least, most)) => json!({ "type": "number", "minimum": least, "maximum": most }),
                None => json!({ "type": "number" }),
            },
            Kind::Text(of) => text(of, limits),
            Kind::Scalar => json!({ "type": ["string", "number", "boolean"] }),
            Kind::Any => Value::Object(Map::new()),
            Kind::Object if limits.nonempty => json!({ "type": "object", "minProperties": 1 }),
            Kind::Object => json!({ "type": "object" }),
            Kind::List(item) => self.list(*item, limits),
            Kind::Table(value) => {
                let value = self.of(value(), within(limits));
                let least = usize::from(limits.nonempty);
                json!({ "type": "object", "additionalProperties": value, "minProperties": least })
            }
            Kind::Pair(value) => {
                let value = self.of(value(), Limits::NONE);
                json!({ "type": "object", "additionalProperties": value, "minProperties": 1, "maxProperties": 1 })
            }
            Kind::Optional(ty) => self.of(ty(), limits),
            Kind::OneOrMany(ty) => any_of(vec![self.of(ty(), within(limits)), self.list(*ty, limits)]),
            Kind::Switch(ty) => any_of(vec![json!({ "type": "boolean" }), self.of(ty(), limits)]),
            Kind::Struct(of) => self.mapping(of, &[]),
            Kind::Choice(variants) => self.choice(variants),
            Kind::Kinds(kinds) => self.kinds(kinds),
            Kind::Shapes(shapes) => any_of(shapes.iter().map(|ty| self.of(ty(), limits)).collect()),
        }
    }

    fn list(&mut self, item: TypeFn, limits: Limits) -> Value {
        let mut schema = json!({ "type": "array", "items": self.of(item(), within(limits)) });
        if limits.nonempty {
            put(&mut schema, "minItems", 1.into());
        }
        if limits.unique {
            put(&mut schema, "uniqueItems", true.into());
        }
        schema
    }

    /// A mapping with fixed keys, some of which have only these values.
    fn mapping(&mut self, of: &Struct, fixed: &[(&str, Literal)]) -> Value {
        let all = of.all();
        let mut properties = Map::new();
        for key in &all {
            let literal = fixed.iter().find(|(name, _)| *name == key.name);
            let schema = match literal {
                Some((_, literal)) => json!({ "const": constant(*literal), "description": key.doc }),
                None => self.property(key),
            };
            properties.insert(key.name.to_owned(), schema);
        }
        let is_fixed = |key: &&&Key| fixed.iter().any(|(name, _)| *name == key.name);
        let always = of.of_all_kinds();
        let needed = all
            .iter()
            .filter(|key| is_fixed(key) || always.iter().any(|one| one.name == key.name && one.required));
        let required: Vec<&str> = needed.map(|key| key.name).collect();
        let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
        if !required.is_empty() {
            put(&mut schema, "required", json!(required));
        }
        if of.nonempty {
            put(&mut schema, "minProperties", 1.into());
        }
        together(&mut schema, &all);
        let kinds: Vec<&KindOf> = of.kinds().collect();
        if !kinds.is_empty() {
            put(&mut schema, "allOf", kinds.iter().map(|kind| keys_of_kind(kind, &kinds)).collect());
        }
        let short = of.shorthand.and_then(|name| all.iter().find(|key| key.name == name));
        match short {
            Some(key) => any_of(vec![self.of((key.ty)(), key.limits), schema]),
            None => schema,
        }
    }

    fn property(&mut self, key: &Key) -> Value {
        let mut schema = self.of((key.ty)(), key.limits);
        describe(&mut schema, key.doc);
        if let Some(default) = key.default {
            put(&mut schema, "default", default());
        }
        schema
    }

    fn choice(&mut self, variants: &'static [Variant]) -> Value {
        let mut alternatives = Vec::new();
        for one in variants.iter().filter(|one| one.is_word()) {
            alternatives.push(json!({ "const": one.name, "description": one.doc }));
        }
        for one in variants {
            let Some(ty) = one.ty else { continue };
            let mut inner = self.of(ty(), one.limits);
            describe(&mut inner, one.doc);
            alternatives.push(json!({
                "type": "object",
                "properties": { one.name: inner },
                "required": [one.name],
                "additionalProperties": false,
            }));
        }
        any_of(alternatives)
    }

    fn kinds(&mut self, kinds: &'static [KindOf]) -> Value {
        let mut alternatives = Vec::new();
        for kind in kinds {
            let Kind::Struct(of) = &kind.ty().kind else { continue };
            let mut schema = self.mapping(of, kind.when);
            describe(&mut schema, kind.ty().doc);
            if kind.when.is_empty() {
                let others: Vec<Value> =
                    kinds.iter().filter(|kind| !kind.when.is_empty()).map(|kind| chosen(kind.when)).collect();
                put(&mut schema, "not", any_of(others));
            }
            alternatives.push(schema);
        }
        any_of(alternatives)
    }
}

impl Type {
    /// Whether both describe the same values in the same words. The description of one type can be at several addresses.
    fn is_like(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || self.outline() == other.outline()
    }

    /// What tells the type from others: its documentation, its kind, and the names and documentation of its parts.
    fn outline(&self) -> Vec<(&'static str, &'static str, Discriminant<Kind>)> {
        let part = |name, doc, ty: TypeFn| (name, doc, discriminant(&ty().kind));
        let mut parts = vec![(self.name, self.doc, discriminant(&self.kind))];
        match &self.kind {
            Kind::Struct(of) => parts.extend(of.all().iter().map(|key| part(key.name, key.doc, key.ty))),
            Kind::Choice(variants) => parts.extend(
                variants
                    .iter()
                    .map(|one| (one.name, one.doc, discriminant(one.ty.map_or(&Kind::Any, |ty| &ty().kind)))),
            ),
            Kind::Kinds(kinds) => parts.extend(kinds.iter().map(|kind| part(kind.noun, "", kind.ty))),
            Kind::Shapes(shapes) => parts.extend(shapes.iter().map(|ty| part(ty().name, ty().doc, *ty))),
            _ => {}
        }
        parts
    }
}

impl KindOf {
    fn ty(&self) -> &'static Type {
        (self.ty)()
    }
}

/// That a mapping of `kind` has no keys that only others of `kinds` have.
fn keys_of_kind(kind: &KindOf, kinds: &[&KindOf]) -> Value {
    let others =
        kinds.iter().flat_map(|other| other.ty().keys().into_iter().map(move |key| (other, key.name)));
    let others = others.filter(|(_, name)| !kind.has_key(name));
    let refused: Map<String, Value> = others
        .map(|(other, name)| {
            let switch =
                other.when.iter().any(|(key, literal)| *key == name && matches!(literal, Literal::Bool(_)));
            (name.to_owned(), if switch { json!({ "type": "boolean" }) } else { Value::Bool(false) })
        })
        .collect();
    let choice = if kind.when.is_empty() {
        let when = kinds.iter().filter(|kind| !kind.when.is_empty()).map(|kind| chosen(kind.when));
        json!({ "not": any_of(when.collect()) })
    } else {
        chosen(kind.when)
    };
    json!({ "if": choice, "then": { "properties": refused } })
}

/// That the keys have the values that choose a kind.
fn chosen(when: &[(&str, Literal)]) -> Value {
    let constants: Map<String, Value> =
        when.iter().map(|(key, is)| ((*key).to_owned(), json!({ "const": constant(*is) }))).collect();
    let keys: Vec<&str> = when.iter().map(|(key, _)| *key).collect();
    json!({ "properties": constants, "required": keys })
}

fn constant(literal: Literal) -> Value {
    match literal {
        Literal::Bool(value) => value.into(),
        Literal::Text(value) => value.into(),
    }
}

/// What the items of a list inherit.
const fn within(limits: Limits) -> Limits {
    Limits { range: limits.range, ..Limits::NONE }
}

fn whole(least: i64, most: i64, range: Option<(f64, f64)>) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "ranges of whole numbers are whole")]
    let (from, to) = range.map_or((least, most), |(from, to)| (least.max(from as i64), most.min(to as i64)));
    json!({ "type": "integer", "minimum": from, "maximum": to })
}

fn text(of: &Text, limits: Limits) -> Value {
    let mut schema = json!({ "type": "string" });
    for (key, value) in [("format", of.format), ("pattern", of.pattern)] {
        if !value.is_empty() {
            put(&mut schema, key, value.into());
        }
    }
    if !of.examples.is_empty() {
        put(&mut schema, "examples", json!(of.examples));
    }
    if limits.nonempty {
        put(&mut schema, "minLength", 1.into());
    }
    schema
}

/// Which keys need one another, and which exclude one another.
fn together(schema: &mut Value, all: &[&Key]) {
    let needs: Map<String, Value> = all
        .iter()
        .filter(|key| !key.requires.is_empty())
        .map(|key| (key.name.to_owned(), json!(key.requires)))
        .collect();
    if !needs.is_empty() {
        put(schema, "dependentRequired", Value::Object(needs));
    }
    let pairs: Vec<Value> = all
        .iter()
        .flat_map(|key| key.excludes.iter().map(|other| json!({ "required": [key.name, other] })))
        .collect();
    if !pairs.is_empty() {
        put(schema, "not", any_of(pairs));
    }
}

fn any_of(mut alternatives: Vec<Value>) -> Value {
    match alternatives.len() {
        1 => alternatives.remove(0),
        _ => json!({ "anyOf": alternatives }),
    }
}

fn describe(schema: &mut Value, doc: &str) {
    if !doc.is_empty() {
        put(schema, "description", doc.into());
    }
}

fn put(schema: &mut Value, key: &str, value: Value) {
    if let Value::Object(schema) = schema {
        schema.insert(key.to_owned(), value);
    }
}
