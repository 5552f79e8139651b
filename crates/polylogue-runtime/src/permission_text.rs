//! What a team asks for, as text for people.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use polylogue::tools::approval::visible;
use polylogue_team::Grant;

use crate::RequestedPermission;

/// What it does with what it is allowed.
const fn does(grant: Grant) -> &'static str {
    match grant {
        Grant::UnsafeHost => "run on this machine with all your rights, outside any sandbox",
        Grant::Network => "reach over the network",
        Grant::Readable => "let its programs read",
        Grant::Mcp => "use MCP servers, which run outside the sandbox",
        Grant::Endpoints => "send its conversations to",
        Grant::Env => "send environment variables (variable -> where)",
        Grant::Memory => "read and change what other teams remember as",
        Grant::OutsideFiles => "include team files from outside its folder",
        Grant::Dotenv => "use addresses from the `.env` file of this folder",
        Grant::Prices => "count prices of its own, below yours or the list prices, for",
        Grant::UnknownPrice => "call models of unknown price under a limit on cost:",
    }
}

fn by_grant<'w>(wants: impl IntoIterator<Item = &'w RequestedPermission>) -> BTreeMap<Grant, Vec<&'w str>> {
    let mut all: BTreeMap<Grant, Vec<&str>> = BTreeMap::new();
    for want in wants {
        if let Some(grant) = want.grant() {
            all.entry(grant).or_default().push(&want.what);
        }
    }
    all
}

/// Returns a line for each permission, and one below it for each thing.
pub fn list<'w>(wants: impl IntoIterator<Item = &'w RequestedPermission>) -> String {
    let mut text = String::new();
    for (grant, what) in by_grant(wants) {
        let _ = writeln!(text, "  {} ({grant}):", does(grant));
        for one in what {
            let _ = writeln!(text, "    {}", visible(one));
        }
    }
    text.trim_end().to_owned()
}

/// Returns the allowed permissions in one line.
pub fn allowed(name: &str, wants: &[RequestedPermission]) -> String {
    let parts = by_grant(wants).into_iter().map(|(grant, what)| {
        let what = what.iter().map(|what| format!("`{}`", visible(what))).collect::<Vec<_>>().join(", ");
        format!("{}: {what}", does(grant))
    });
    format!("`{name}` is allowed to {}.", parts.collect::<Vec<_>>().join("; "))
}

/// Returns the message that a team runs without `wants`.
pub fn without(name: &str, wants: &[RequestedPermission]) -> String {
    let what: Vec<String> = wants.iter().map(|want| format!("`{}`", visible(&want.what))).collect();
    format!(
        "The prices of `{name}` for {} are below yours or the list prices, which count unless you add `--allow prices`.",
        what.join(", ")
    )
}

/// Returns the options that allow `wants`.
pub fn flags<'w>(wants: impl IntoIterator<Item = &'w RequestedPermission>) -> String {
    let grants: BTreeSet<Grant> = wants.into_iter().filter_map(RequestedPermission::grant).collect();
    let grants: Vec<&str> = grants.into_iter().map(Grant::word).collect();
    format!("if you trust it, add `--allow {}` for this run, or `--trust` to remember it", grants.join(","))
}
