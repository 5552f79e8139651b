//! The reference of events, `docs/reference/events.md`, from the types that are written and their documentation.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use syn::{Attribute, Field, Fields, GenericArgument, Item, ItemEnum, ItemStruct, PathArguments, Type};

const HEAD: &str = "# Events\n\nThe events of a conversation, one JSON object each, as `--json` and `polylogue show ID --json` print them and stores keep \
                    them. Generated from the types of the program. A field marked *optional* is omitted when it is empty or has its default.\n\n\
                    `run --json`, `resume --json` and `chat --json` print `run_started`, `bound` where the conversation begins, the events, and `run_ended`, for each conversation. `resume` and \
                    `chat --resume` do not repeat the events of earlier runs, whichever process ran them, a worker or a server too: they begin with what \
                    commands such as `send`, `move` or `cancel` have added since. `polylogue show ID --json` prints `bound` and all events. An instruction with which \
                    the last run ended can be printed twice, with the same `seq`. With `--server`, there is no `run_ended` if you leave a conversation \
                    that the server continues. When the [bound](../bound.md#the-bound-is-enforced) does not apply any more, they print `bound_ended` \
                    once. These lines are not in the log.\n";

#[test]
fn the_page_is_that_of_the_types() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut types = Types::default();
    types.read(&crates.join("polylogue-core/src"));
    types.read(&crates.join("polylogue-cli/src/screen"));
    let page = types.page();
    let place = crates.join("../docs/reference/events.md");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&place, &page).unwrap();
    }
    let hint = "docs/reference/events.md is out of date; regenerate it with `UPDATE=1 cargo test -p polylogue-cli reference`";
    assert!(fs::read_to_string(&place).unwrap_or_default() == page, "{hint}");
}

/// The types of some folders that are written as JSON, by name.
#[derive(Default)]
struct Types {
    structs: BTreeMap<String, ItemStruct>,
    enums: BTreeMap<String, ItemEnum>,
}

impl Types {
    fn read(&mut self, dir: &Path) {
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                self.read(&path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let file = syn::parse_file(&fs::read_to_string(&path).unwrap()).unwrap();
                file.items.into_iter().for_each(|item| self.item(item));
            }
        }
    }

    fn item(&mut self, item: Item) {
        match item {
            Item::Struct(item) if is_written(&item.attrs) => {
                self.structs.insert(item.ident.to_string(), item);
            }
            Item::Enum(item) if is_written(&item.attrs) => {
                self.enums.insert(item.ident.to_string(), item);
            }
            _ => {}
        }
    }

    fn page(&self) -> String {
        let mut page = HEAD.to_owned();
        let mut used = BTreeSet::new();
        page.push_str("\n## Fields of every event\n\n");
        let common =
            self.structs["Event"].fields.iter().filter(|field| !serde(&field.attrs).contains("flatten"));
        self.table(&mut page, &common.collect::<Vec<_>>(), &mut used);
        page.push_str("\n| `type` | string | The name of the event |\n".trim_start());
        page.push_str("\n## Lines of a run\n");
        self.variants(&mut page, "RunLine", &mut used);
        page.push_str("\n## Events of a log\n");
        self.variants(&mut page, "Body", &mut used);
        page.push_str("\n## Types\n");
        let mut done = BTreeSet::new();
        while let Some(name) = used.difference(&done).next().cloned() {
            self.definition(&mut page, &name, &mut used);
            done.insert(name);
        }
        page
    }

    /// The events of an enum whose `type` names the variant.
    fn variants(&self, page: &mut String, name: &str, used: &mut BTreeSet<String>) {
        for variant in &self.enums[name].variants {
            let _ =
                write!(page, "\n### `{}`\n\n{}\n\n", snake(&variant.ident.to_string()), docs(&variant.attrs));
            match &variant.fields {
                Fields::Unnamed(fields) => {
                    let inner = named(&fields.unnamed[0].ty).0;
                    self.table(page, &self.structs[&inner].fields.iter().collect::<Vec<_>>(), used);
                }
                fields => self.table(page, &fields.iter().collect::<Vec<_>>(), used),
            }
        }
    }

    fn table(&self, page: &mut String, fields: &[&Field], used: &mut BTreeSet<String>) {
        if fields.is_empty() {
            return;
        }
        page.push_str("| field | type | meaning |\n|---|---|---|\n");
        for field in fields {
            let rules = serde(&field.attrs);
            let own = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
            let name = renamed(&rules).unwrap_or(own);
            let (of, shown) = named(&field.ty);
            if self.structs.contains_key(&of) || self.enums.contains_key(&of) {
                used.insert(of);
            }
            let optional = if rules.contains("skip_serializing_if") { " *optional*" } else { "" };
            let meaning = docs(&field.attrs).replace('|', "\\|").replace('\n', " ");
            let _ = writeln!(page, "| `{name}` | {shown}{optional} | {meaning} |");
        }
    }

    fn definition(&self, page: &mut String, name: &str, used: &mut BTreeSet<String>) {
        if let Some(of) = self.structs.get(name) {
            let _ = write!(page, "\n### {name}\n\n{}\n", docs(&of.attrs));
            match &of.fields {
                Fields::Named(fields) if !serde(&of.attrs).contains("into =") => {
                    page.push('\n');
                    self.table(page, &fields.named.iter().collect::<Vec<_>>(), used);
                }
                Fields::Unnamed(fields) if !serde(&of.attrs).contains("into =") => {
                    let _ = writeln!(page, "\nWritten as {}.", named(&fields.unnamed[0].ty).1);
                }
                _ => page.push_str("\nWritten as string.\n"),
            }
        } else if let Some(of) = self.enums.get(name) {
            let _ = write!(page, "\n### {name}\n\n{}\n\n", docs(&of.attrs));
            page.push_str("| value | meaning |\n|---|---|\n");
            for variant in &of.variants {
                let label =
                    renamed(&serde(&variant.attrs)).unwrap_or_else(|| snake(&variant.ident.to_string()));
                let value = self.value(&label, &variant.fields, used);
                let meaning = docs(&variant.attrs).replace('|', "\\|").replace('\n', " ");
                let _ = writeln!(page, "| {value} | {meaning} |");
            }
        }
    }

    /// A value of an enum: its name alone, or an object with its name as the key.
    fn value(&self, label: &str, fields: &Fields, used: &mut BTreeSet<String>) -> String {
        let mut note = |field: &Field| {
            let (of, shown) = named(&field.ty);
            if self.structs.contains_key(&of) || self.enums.contains_key(&of) {
                used.insert(of);
            }
            shown
        };
        match fields {
            Fields::Unit => format!("`\"{label}\"`"),
            Fields::Unnamed(fields) => format!("`{{\"{label}\": ...}}` with {}", note(&fields.unnamed[0])),
            Fields::Named(fields) => {
                let fields = fields.named.iter().map(|field| {
                    let name = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
                    format!("`{name}` ({})", note(field))
                });
                format!("`{{\"{label}\": {{...}}}}` with {}", fields.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

fn is_written(attrs: &[Attribute]) -> bool {
    let derives = |attr: &&Attribute| attr.path().is_ident("derive");
    attrs.iter().filter(derives).any(|attr| source(attr).contains("Serialize"))
}

fn source(attr: &Attribute) -> String {
    match &attr.meta {
        syn::Meta::List(list) => list.tokens.to_string(),
        _ => String::new(),
    }
}

/// The rules of serde on an item.
fn serde(attrs: &[Attribute]) -> String {
    let rules = attrs.iter().filter(|attr| attr.path().is_ident("serde")).map(source);
    rules.collect::<Vec<_>>().join(", ")
}

fn renamed(rules: &str) -> Option<String> {
    let rule = rules.split(',').map(str::trim).find_map(|rule| rule.strip_prefix("rename ="))?;
    Some(rule.trim().trim_matches('"').to_owned())
}

/// The documentation of an item, up to its first section, with names instead of links.
pub(super) fn docs(attrs: &[Attribute]) -> String {
    let line = |attr: &Attribute| match &attr.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => {
                Some(text.value().trim().to_owned())
            }
            _ => None,
        },
        _ => None,
    };
    let lines: Vec<String> = attrs.iter().filter_map(line).collect();
    let first: Vec<String> =
        lines.into_iter().take_while(|line| !line.starts_with('#') && !line.starts_with("```")).collect();
    let text = first.join("\n").trim().to_owned();
    let mut plain = String::new();
    let mut rest = text.as_str();
    while let Some((before, link)) = rest.split_once("[`") {
        let Some((name, after)) = link.split_once("`]") else { break };
        let after = after
            .strip_prefix('(')
            .and_then(|target| target.split_once(')'))
            .map_or(after, |(_, after)| after);
        let _ = write!(plain, "{before}`{name}`");
        rest = after;
    }
    without_links(&(plain + rest))
}

/// The text of links to items, instead of the links.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](crate::") {
        let Some(((before, words), (_, after))) = before.rsplit_once('[').zip(after.split_once(')')) else {
            break;
        };
        plain.extend([before, words]);
        rest = after;
    }
    plain + rest
}

/// The name of the type within containers, and how the whole is shown.
fn named(of: &Type) -> (String, String) {
    let Type::Path(path) = of else {
        return match of {
            Type::Reference(reference) => named(&reference.elem),
            _ => ("str".into(), "string".into()),
        };
    };
    let Some(last) = path.path.segments.last() else { return Default::default() };
    let inner = match &last.arguments {
        PathArguments::AngleBracketed(arguments) => {
            arguments.args.iter().find_map(|argument| match argument {
                GenericArgument::Type(inner) => Some(named(inner)),
                _ => None,
            })
        }
        _ => None,
    };
    match (last.ident.to_string().as_str(), inner) {
        ("Vec", Some((name, shown))) => (name, format!("list of {shown}")),
        ("Option" | "Box" | "Arc", Some(inner)) => inner,
        ("str" | "String" | "MediaUrl", _) => ("str".into(), "string".into()),
        ("bool", _) => ("bool".into(), "boolean".into()),
        ("u8" | "u16" | "u32" | "u64" | "usize" | "i64", _) => ("integer".into(), "integer".into()),
        ("f32" | "f64", _) => ("number".into(), "number".into()),
        ("Value", _) => ("Value".into(), "JSON".into()),
        (name, _) => (name.into(), format!("[{name}](#{})", name.to_lowercase())),
    }
}

fn snake(name: &str) -> String {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    snake
}
