//! The description of a configuration type, as plain data.
//!
//! The derive macro makes it. Schema, reference, suggestions and messages are functions of it, so a key is described
//! once.

use serde_json::Value;

/// Returns the description of a type. Types are named by function, because they can contain themselves.
pub type TypeFn = fn() -> &'static Type;

/// The description of a type.
#[derive(Debug)]
pub struct Type {
    /// The name in the schema and the reference; empty for types without their own section.
    pub name: &'static str,
    /// The documentation, paragraphs separated by blank lines.
    pub doc: &'static str,
    /// The values that it takes.
    pub kind: Kind,
}

/// The values that a type takes.
#[derive(Debug)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// A whole number within these bounds.
    Whole {
        /// The least value.
        least: i64,
        /// The greatest value.
        most: i64,
    },
    /// A finite number.
    Number,
    /// A text.
    Text(Text),
    /// A text, a number, `true` or `false`, kept in the notation of the file.
    Scalar,
    /// Any value, passed on unchanged.
    Any,
    /// Any mapping, passed on unchanged.
    Object,
    /// A list.
    List(TypeFn),
    /// A mapping from names of the user's choice.
    Table(TypeFn),
    /// A mapping with one name of the user's choice.
    Pair(TypeFn),
    /// A value that can be absent.
    Optional(TypeFn),
    /// One value, or a list of them.
    OneOrMany(TypeFn),
    /// `true`, `false`, or the settings of what is switched on.
    Switch(TypeFn),
    /// A mapping with these keys.
    Struct(&'static Struct),
    /// A word, or a mapping with one key.
    Choice(&'static [Variant]),
    /// A mapping whose keys depend on the value of some of them.
    Kinds(&'static [KindOf]),
    /// One of several types, which differ in the shape of their values.
    Shapes(&'static [TypeFn]),
}

/// A kind of text.
#[derive(Debug)]
pub struct Text {
    /// The name in the reference, such as `duration`; empty for plain text.
    pub format: &'static str,
    /// A regular expression that legal texts match, for editors; empty for none.
    pub pattern: &'static str,
    /// Examples for editors and the reference.
    pub examples: &'static [&'static str],
    /// The treatment of `{{variables}}` in it.
    pub variables: Variables,
}

impl Text {
    /// Plain text in which every variable must be known.
    pub const PLAIN: Self = Self { format: "", pattern: "", examples: &[], variables: Variables::All };
}

/// The reason why a text is not legal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Illegal {
    /// The message, such as: `tomorrow` is not a duration.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
    /// The place in the text, in bytes, if that is known.
    pub offset: Option<usize>,
}

impl Illegal {
    /// Creates the error for a text that is wrong as a whole.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// Adds a hint on how to fix it.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// The treatment of `{{variables}}` in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variables {
    /// They are replaced; an unknown one is an error.
    All,
    /// Known ones are replaced; everything else between braces is part of the text.
    Known,
    /// The text has none: braces are plain text.
    None,
}

/// A mapping with fixed keys.
#[derive(Debug)]
pub struct Struct {
    /// The keys, in the order of the reference.
    pub keys: &'static [Key],
    /// The key whose value can stand for the whole mapping.
    pub shorthand: Option<&'static str>,
    /// Keys that are probably meant by a value without a key, which is an error; the first that takes such a value is named.
    pub alone: &'static [&'static str],
    /// Whether at least one key is required.
    pub nonempty: bool,
}

/// A key of a mapping.
#[derive(Debug)]
pub struct Key {
    /// The name; empty for keys that are flattened into the mapping.
    pub name: &'static str,
    /// The documentation.
    pub doc: &'static str,
    /// The type of its value.
    pub ty: TypeFn,
    /// Whether the key is required.
    pub required: bool,
    /// The default value.
    pub default: Option<fn() -> Value>,
    /// The effect of its absence, where that is not a value.
    pub none: &'static str,
    /// Further limits on the value.
    pub limits: Limits,
    /// Keys that must be given with it.
    pub requires: &'static [&'static str],
    /// Keys that cannot be given with it.
    pub excludes: &'static [&'static str],
    /// Whether its value can hold a secret, and is never shown.
    pub secret: bool,
}

/// Limits on a value beyond its type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The least and the greatest number.
    pub range: Option<(f64, f64)>,
    /// Whether a text, list or mapping must hold something.
    pub nonempty: bool,
    /// Whether the items of a list must differ.
    pub unique: bool,
}

impl Limits {
    /// No limits.
    pub const NONE: Self = Self { range: None, nonempty: false, unique: false };
}

/// An alternative of a choice.
#[derive(Debug)]
pub struct Variant {
    /// The word, or the one key.
    pub name: &'static str,
    /// The documentation.
    pub doc: &'static str,
    /// The type of the key's value; without one it is only a word.
    pub ty: Option<TypeFn>,
    /// Further limits on the value.
    pub limits: Limits,
}

/// An alternative that is chosen by the values of some keys.
#[derive(Debug)]
pub struct KindOf {
    /// The name in messages, such as `a person`.
    pub noun: &'static str,
    /// The hint for a key of another kind; empty for nothing.
    pub hint: &'static str,
    /// The keys and values that choose it; the alternative without any is the default.
    pub when: &'static [(&'static str, Literal)],
    /// The type, a mapping.
    pub ty: TypeFn,
}

/// A value that chooses an alternative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Literal {
    /// `true` or `false`.
    Bool(bool),
    /// A word.
    Text(&'static str),
}

impl Type {
    /// Returns the keys of its mapping, flattened ones included; none if it has no fixed keys. Of a type with several kinds,
    /// the keys of all.
    pub fn keys(&self) -> Vec<&'static Key> {
        match &self.kind {
            Kind::Struct(of) => of.all(),
            Kind::Kinds(kinds) => once(kinds.iter().flat_map(|kind| (kind.ty)().keys())),
            Kind::Optional(ty) | Kind::Switch(ty) | Kind::OneOrMany(ty) | Kind::List(ty) => ty().keys(),
            Kind::Shapes(shapes) => shapes.iter().flat_map(|ty| ty().keys()).collect(),
            _ => Vec::new(),
        }
    }

    /// The keys that its mapping can have whatever its kind.
    pub(crate) fn keys_of_all_kinds(&self) -> Vec<&'static Key> {
        match &self.kind {
            Kind::Struct(of) => of.of_all_kinds(),
            _ => Vec::new(),
        }
    }

    /// Whether its mapping can have the key `name`, as one of its fixed keys or as an alternative.
    pub(crate) fn has_key(&self, name: &str) -> bool {
        match &self.kind {
            Kind::Choice(variants) => variants.iter().any(|one| one.ty.is_some() && one.name == name),
            _ => self.keys().iter().any(|key| key.name == name),
        }
    }

    /// Returns whether an empty mapping is a legal value.
    pub fn takes_nothing(&self) -> bool {
        matches!(&self.kind, Kind::Struct(of) if !of.nonempty && of.all().iter().all(|key| !key.required))
    }

    /// Returns the type behind `Optional`.
    pub fn inner(&'static self) -> &'static Self {
        match &self.kind {
            Kind::Optional(ty) => ty().inner(),
            _ => self,
        }
    }
}

impl Struct {
    /// Returns all keys, flattened ones included.
    pub fn all(&self) -> Vec<&'static Key> {
        let of = |key: &'static Key| if key.name.is_empty() { (key.ty)().keys() } else { vec![key] };
        once(self.keys.iter().flat_map(of))
    }

    /// The keys without those of the kinds that are flattened into it.
    pub(crate) fn of_all_kinds(&self) -> Vec<&'static Key> {
        let of = |key: &'static Key| {
            if key.name.is_empty() { (key.ty)().keys_of_all_kinds() } else { vec![key] }
        };
        self.keys.iter().flat_map(of).collect()
    }

    /// The kinds that are flattened into it.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &'static KindOf> {
        self.keys.iter().filter(|key| key.name.is_empty()).flat_map(|key| match &(key.ty)().kind {
            Kind::Kinds(kinds) => *kinds,
            _ => &[],
        })
    }
}

/// The keys without those of a name that was before: kinds can share a key.
fn once(keys: impl Iterator<Item = &'static Key>) -> Vec<&'static Key> {
    let mut all: Vec<&Key> = Vec::new();
    for key in keys {
        if !all.iter().any(|known| known.name == key.name) {
            all.push(key);
        }
    }
    all
}

impl KindOf {
    /// Returns the values of keys that choose it, such as `` `human: true` ``; empty for the default kind.
    pub fn chosen_by(&self) -> String {
        let of = |(key, literal): &(&str, Literal)| match literal {
            Literal::Bool(value) => format!("`{key}: {value}`"),
            Literal::Text(value) => format!("`{key}: {value}`"),
        };
        self.when.iter().map(of).collect::<Vec<_>>().join(" and ")
    }

    /// Returns whether its mapping can have the key `name`.
    pub fn has_key(&self, name: &str) -> bool {
        (self.ty)().keys().iter().any(|key| key.name == name)
    }
}

impl Variant {
    /// Returns whether the word alone is legal.
    pub fn is_word(&self) -> bool {
        self.ty.is_none_or(|ty| ty().takes_nothing())
    }
}
