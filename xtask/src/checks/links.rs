//! Links between the Markdown files of the repository lead somewhere.

use std::collections::HashMap;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::finding::{Finding, line_at};
use crate::repo::Repo;

pub(super) fn check(repo: &Repo) -> Vec<Finding> {
    repo.texts(".md").flat_map(|(file, text)| of_one_file(repo, file, text)).collect()
}

fn of_one_file(repo: &Repo, file: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (event, span) in parser(text).into_offset_iter() {
        let (Event::Start(Tag::Link { dest_url, .. }) | Event::Start(Tag::Image { dest_url, .. })) = event
        else {
            continue;
        };
        if let Some((flaw, hint)) = flaw(repo, file, &dest_url) {
            found.push(Finding::new(file, line_at(text, span.start), flaw, hint));
        }
    }
    found
}

fn flaw(repo: &Repo, file: &str, link: &str) -> Option<(String, &'static str)> {
    if has_scheme(link) {
        return None;
    }
    let (path, heading) = link.split_once('#').unwrap_or((link, ""));
    let Some(target) = resolve(file, path) else {
        return Some((format!("the link `{link}` leads out of the repository"), "give its URL instead"));
    };
    if !repo.has(&target) {
        return Some((format!("the link `{link}` leads nowhere"), "correct the path, or add the file"));
    }
    let headings = repo.text(&target).filter(|_| target.ends_with(".md") && !heading.is_empty()).map(anchors);
    let missing = headings.is_some_and(|anchors| !anchors.iter().any(|anchor| anchor == heading));
    missing.then(|| {
        (format!("the link `{link}` leads to no heading of {target}"), "correct what follows the `#`")
    })
}

/// Whether `link` is a URL and no path, nor an item of a crate.
fn has_scheme(link: &str) -> bool {
    let scheme = link.split_once(':').map(|(scheme, _)| scheme);
    let is_scheme = scheme.is_some_and(|scheme| {
        scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    });
    is_scheme && !link.contains("::")
}

/// The path that a link in `file` means, or `None` when it leads out of the repository.
fn resolve(file: &str, path: &str) -> Option<String> {
    if path.is_empty() {
        return Some(file.to_owned());
    }
    let path = path.replace("%20", " ");
    let mut folders: Vec<&str> = Vec::new();
    if !path.starts_with('/') {
        folders.extend(file.split('/'));
        folders.pop();
    }
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(folders.pop()?),
            name => folders.push(name),
        }
    }
    Some(folders.join("/"))
}

fn parser(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_STRIKETHROUGH)
}

/// The anchors of the headings of `text`, as the common forges make them.
fn anchors(text: &str) -> Vec<String> {
    let mut anchors = Vec::new();
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut heading: Option<String> = None;
    for event in parser(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(text) | Event::Code(text) => {
                if let Some(words) = &mut heading {
                    words.push_str(&text);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let slug = slug(&heading.take().unwrap_or_default());
                let before = seen.entry(slug.clone()).or_default();
                anchors.push(if *before == 0 { slug } else { format!("{slug}-{before}") });
                *before += 1;
            }
            _ => {}
        }
    }
    anchors
}

fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{brief, repo};

    const OTHER: (&str, &str) = ("docs/b.md", "# One, `two`!\n\n## Again\n\n## Again\n");

    fn found(text: &str) -> Vec<String> {
        brief(&check(&repo(&[("docs/a.md", text), OTHER, ("Cargo.lock", "")])))
    }

    #[test]
    fn links_that_lead_somewhere_are_right() {
        for link in [
            "b.md",
            "./b.md#one-two",
            "b.md#again-1",
            "../Cargo.lock",
            "/docs/b.md",
            "../docs",
            "..",
            "#here",
            "https://example.org/x.md",
            "mailto:a@example.org",
        ] {
            let text = format!("# Here\n\n[x]({link}) `[y](gone.md)`\n");
            assert!(found(&text).is_empty(), "{link}: {:?}", found(&text));
        }
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        for (link, flaw) in [
            ("gone.md", "leads nowhere"),
            ("/b.md", "leads nowhere"),
            ("b.md#three", "leads to no heading of docs/b.md"),
            ("#gone", "leads to no heading of docs/a.md"),
            ("crate::Log::open", "leads nowhere"),
            ("../../x", "leads out of the repository"),
        ] {
            let wanted = format!("docs/a.md:3: the link `{link}` {flaw}");
            assert_eq!(found(&format!("a\n\n[x]({link})")), [wanted.as_str()]);
            assert_eq!(found(&format!("a\n\n![x]({link})")), [wanted.as_str()]);
            assert_eq!(found(&format!("a\n\n[x][y]\n\n[y]: {link}")), [wanted.as_str()]);
        }
    }
}
