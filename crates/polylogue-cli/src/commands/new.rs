//! `polylogue new`: a team file to begin with.

use std::fs;
use std::path::Path;

use polylogue_config::suggest;

use super::{write_data, write_file, write_rows};
use crate::args;
use crate::error::{CliError, Exit};
use crate::place::shell_word;
use crate::screen::Sanitized;
use crate::shipped::{self, DEMO, Template};
use crate::stderr::print_note;
use crate::whole_file;

pub(crate) fn run(args: &args::new::New) -> Result<Exit, CliError> {
    let templates = Template::all();
    if args.list {
        return list(&templates);
    }
    let wanted = args.template.as_deref().unwrap_or(Template::DEFAULT);
    let demo = Template::of_demo(wanted);
    let named = || templates.iter().find(|template| template.name == wanted);
    let Some(template) = demo.as_ref().or_else(named) else { return Err(unknown(wanted, &templates)) };
    if args.file.as_os_str() == "-" {
        write_data(template.text)?;
        return Ok(Exit::Done);
    }
    write_file(&args.file, &renamed(template, &args.file), args.force)?;
    save_files(template, args.file.parent().unwrap_or(Path::new("")))?;
    let file = shell_word(&args.file);
    match &demo {
        Some(demo) => print_note(&format!("wrote {file}: the demo `{}`", demo.name)),
        None => print_note(&format!("wrote {file}: {}", template.about())),
    }
    print_note(&format!("try it without a model:  polylogue run {file} --offline"));
    print_note(&format!("run it with a model:     polylogue run {file} --model openai:gpt-4o-mini"));
    Ok(Exit::Done)
}

/// Patterns whose template or demo has another name.
const PATTERNS: [(&str, &str); 7] = [
    ("round_robin", "two-agents"),
    ("sequential", "sequence"),
    ("parallel", "graph"),
    ("dag", "demo:market-report"),
    ("group_solve", "tasks"),
    ("swarm", "handoffs"),
    ("group_chat", "group"),
];

/// There is no template or demo `wanted`.
fn unknown(wanted: &str, templates: &[Template]) -> CliError {
    let names = templates.iter().map(|template| template.name);
    let hint = if wanted.ends_with(".yaml") || wanted.ends_with(".yml") {
        let file = shell_word(Path::new(wanted));
        format!("the template comes before the file: `polylogue new {} {file}`", Template::DEFAULT)
    } else if Template::of_demo(&format!("{DEMO}{wanted}")).is_some() {
        format!(
            "it is a demo: `polylogue new {DEMO}{wanted}` writes its file, `polylogue run {DEMO}{wanted}` runs it"
        )
    } else if let Some((_, name)) = PATTERNS.iter().find(|(known, _)| *known == wanted) {
        format!("`polylogue new {name}` writes a team with this pattern")
    } else {
        let close = match wanted.strip_prefix(DEMO) {
            Some(demo) => suggest::closest(demo, shipped::teams()).map(|name| format!("{DEMO}{name}")),
            None => suggest::closest(wanted, names).map(str::to_owned),
        };
        let meant = close.map(|name| format!("did you mean `{name}`? "));
        format!("{}`polylogue new --list` lists templates and demos", meant.unwrap_or_default())
    };
    CliError::usage(format!("there is no template `{wanted}`")).hint(hint)
}

fn list(templates: &[Template]) -> Result<Exit, CliError> {
    let width = templates.iter().map(|template| template.name.len()).max().unwrap_or_default();
    let mut text = String::from("Templates, for `polylogue new TEMPLATE`:\n");
    for template in templates {
        text += &format!("  {:width$}  {}\n", template.name, template.about());
    }
    text += "\nDemos, which run without a model or a key, by `polylogue run demo:NAME`; `polylogue new demo:NAME` writes the team file:\n";
    for names in shipped::teams().chunks(6) {
        text += &format!("  {}\n", names.join(", "));
    }
    write_rows(&Sanitized::plain(&text), false)?;
    Ok(Exit::Done)
}

/// The text of the template with the name of the file as the name of the team, if it can be one.
fn renamed(template: &Template, file: &Path) -> String {
    let name = file.file_stem().and_then(|stem| stem.to_str()).filter(|stem| *stem != "team");
    match name.filter(|name| polylogue::Name::new(name).is_ok()) {
        Some(name) => {
            let text = template.text.replacen(
                &format!("\nname: {}\n", template.name),
                &format!("\nname: {name}\n"),
                1,
            );
            // Steps of the script for the selector of the outermost chat have the name of the team, too.
            text.replace(&format!("\n  - {}_", template.name), &format!("\n  - {name}_"))
        }
        None => template.text.to_owned(),
    }
}

/// Writes the files that a demo names to `folder`, below its own. Those that are there stay.
fn save_files(template: &Template, folder: &Path) -> Result<(), CliError> {
    for (path, content) in template.files() {
        let path = folder.join(path);
        let unwritten = |error| CliError::failed(format!("`{}` cannot be written: {error}", path.display()));
        if !path.exists() {
            path.parent().map_or(Ok(()), fs::create_dir_all).map_err(unwritten)?;
            whole_file::create(&path, &content).map_err(unwritten)?;
        }
    }
    Ok(())
}
