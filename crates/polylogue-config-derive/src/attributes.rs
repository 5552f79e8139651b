//! Attributes and documentation comments.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Expr, Ident, LitStr, Result, Type};

/// The options of a type: `#[config(...)]`.
#[derive(Default)]
pub(crate) struct TypeOptions {
    pub(crate) name: Option<String>,
    pub(crate) shorthand: Option<String>,
    pub(crate) alone: Vec<String>,
    pub(crate) by_shape: bool,
    pub(crate) nonempty: bool,
    /// The type of which it is the notation.
    pub(crate) target: Option<Type>,
    /// Whether names of scoped kinds in it belong to it.
    pub(crate) scope: bool,
}

impl TypeOptions {
    /// Whether an option besides the name is given.
    pub(crate) const fn has_more_than_name(&self) -> bool {
        let Self { name: _, shorthand, alone, by_shape, nonempty, target, scope } = self;
        shorthand.is_some() || !alone.is_empty() || *by_shape || *nonempty || target.is_some() || *scope
    }

    pub(crate) fn of(attributes: &[Attribute]) -> Result<Self> {
        let mut options = Self::default();
        for attribute in attributes.iter().filter(|one| one.path().is_ident("config")) {
            attribute.parse_nested_meta(|meta| {
                match meta.path.get_ident().map(Ident::to_string).as_deref() {
                    Some("name") => options.name = Some(meta.value()?.parse::<LitStr>()?.value()),
                    Some("shorthand") => options.shorthand = Some(meta.value()?.parse::<LitStr>()?.value()),
                    Some("alone") => options.alone.push(meta.value()?.parse::<LitStr>()?.value()),
                    Some("by_shape") => options.by_shape = true,
                    Some("nonempty") => options.nonempty = true,
                    Some("scope") => options.scope = true,
                    _ if meta.path.segments.first().is_some_and(|one| one.ident == "for") => {
                        options.target = Some(meta.value()?.parse()?);
                    }
                    _ => {
                        let known =
                            "expected `name`, `shorthand`, `alone`, `by_shape`, `nonempty`, `scope` or `for`";
                        return Err(meta.error(known));
                    }
                }
                Ok(())
            })?;
        }
        Ok(options)
    }
}

/// The options of a key: `#[key(...)]`.
#[derive(Default)]
pub(crate) struct KeyOptions {
    pub(crate) name: Option<String>,
    pub(crate) default: Option<Expr>,
    pub(crate) none: Option<String>,
    pub(crate) range: Option<(Expr, Expr)>,
    pub(crate) nonempty: bool,
    pub(crate) unique: bool,
    pub(crate) requires: Vec<String>,
    pub(crate) excludes: Vec<String>,
    pub(crate) secret: bool,
    pub(crate) flatten: bool,
    pub(crate) adapter: Option<Type>,
    pub(crate) required: bool,
    pub(crate) skip: bool,
}

impl KeyOptions {
    pub(crate) fn of(attributes: &[Attribute]) -> Result<Self> {
        let mut options = Self::default();
        for attribute in attributes.iter().filter(|one| one.path().is_ident("key")) {
            attribute.parse_nested_meta(|meta| options.take(&meta))?;
        }
        Ok(options)
    }

    /// Whether an option is given that only a field has.
    pub(crate) const fn is_of_field(&self) -> bool {
        let Self { default, none, requires, excludes, secret, flatten, required, skip, .. } = self;
        let has_default = default.is_some() || none.is_some();
        let is_related = !requires.is_empty() || !excludes.is_empty();
        has_default || is_related || *secret || *flatten || *required || *skip
    }

    /// The limits on a value, as an expression.
    pub(crate) fn limits(&self) -> TokenStream {
        let range = match &self.range {
            Some((least, most)) => quote!(::std::option::Option::Some((#least as f64, #most as f64))),
            None => quote!(::std::option::Option::None),
        };
        let (nonempty, unique) = (self.nonempty, self.unique);
        quote!(__config::Limits { range: #range, nonempty: #nonempty, unique: #unique })
    }

    fn take(&mut self, meta: &syn::meta::ParseNestedMeta<'_>) -> Result<()> {
        let text = || -> Result<String> { Ok(meta.value()?.parse::<LitStr>()?.value()) };
        match meta.path.get_ident().map(Ident::to_string).as_deref() {
            Some("name") => self.name = Some(text()?),
            Some("default") => self.default = Some(meta.value()?.parse()?),
            Some("none") => self.none = Some(text()?),
            Some("range") => self.range = Some(range(meta.value()?.parse()?)?),
            Some("nonempty") => self.nonempty = true,
            Some("unique") => self.unique = true,
            Some("requires") => self.requires.push(text()?),
            Some("excludes") => self.excludes.push(text()?),
            Some("secret") => self.secret = true,
            Some("flatten") => self.flatten = true,
            Some("required") => self.required = true,
            Some("skip") => self.skip = true,
            _ if meta.path.segments.first().is_some_and(|one| one.ident == "as") => {
                self.adapter = Some(meta.value()?.parse()?);
            }
            _ => {
                let known = "expected `name`, `default`, `none`, `range`, `nonempty`, `unique`, `requires`, `excludes`, `secret`, `required`, `as`, `skip` or `flatten`";
                return Err(meta.error(known));
            }
        }
        Ok(())
    }
}

fn range(expression: Expr) -> Result<(Expr, Expr)> {
    match expression {
        Expr::Range(syn::ExprRange { start: Some(start), end: None, .. }) => {
            Ok((*start, syn::parse_quote!(f64::INFINITY)))
        }
        Expr::Range(syn::ExprRange {
            start: Some(start),
            end: Some(end),
            limits: syn::RangeLimits::Closed(_),
            ..
        }) => Ok((*start, *end)),
        other => Err(syn::Error::new_spanned(other, "write a range such as `0..=100` or `1..`")),
    }
}

/// The documentation of an item: the lines of a paragraph joined, paragraphs separated by blank lines.
pub(crate) fn documentation(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter(|one| one.path().is_ident("doc")).filter_map(|one| {
        match &one.meta.require_name_value().ok()?.value {
            Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        }
    });
    let mut paragraphs = vec![String::new()];
    for line in lines {
        let line = line.trim();
        match paragraphs.last_mut() {
            Some(last) if line.is_empty() && !last.is_empty() => paragraphs.push(String::new()),
            Some(last) if !line.is_empty() => {
                if !last.is_empty() {
                    last.push(' ');
                }
                last.push_str(line);
            }
            _ => {}
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs.join("\n\n")
}

/// `PlanAndSolve` as `plan_and_solve`.
pub(crate) fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for (at, c) in name.char_indices() {
        if c.is_uppercase() && at > 0 {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    snake
}
