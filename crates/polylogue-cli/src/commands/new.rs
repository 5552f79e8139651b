//! `polylogue new`: a team file to begin with.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use super::{write_data, write_rows};
use crate::args;
use crate::error::{CliError, Exit};
use crate::place::shell_word;
use crate::screen::Sanitized;
use crate::shipped::{self, Template};
use crate::stderr::print_note;

pub(crate) fn run(args: &args::new::New) -> Result<Exit, CliError> {
    let templates = Template::all();
    if args.list {
        return list(&templates);
    }
    let wanted = args.template.as_deref().unwrap_or(Template::DEFAULT);
    let Some(template) = templates.iter().find(|template| template.name == wanted) else {
        if wanted.ends_with(".yaml") || wanted.ends_with(".yml") {
            let hint = format!(
                "the template comes before the file: `polylogue new {} {}`",
                Template::DEFAULT,
                shell_word(Path::new(wanted))
            );
            return Err(CliError::usage(format!("there is no template `{wanted}`")).hint(hint));
        }
        let names: Vec<_> = templates.iter().map(|template| format!("`{}`", template.name)).collect();
        return Err(CliError::usage(format!("there is no template `{wanted}`"))
            .hint(format!("there are {}; `polylogue new --list` explains them", names.join(", "))));
    };
    if args.file.as_os_str() == "-" {
        write_data(template.text)?;
        return Ok(Exit::Done);
    }
    save(&args.file, args.force, &named(template, &args.file))?;
    let file = shell_word(&args.file);
    print_note(&format!("wrote {file}: {}", template.about()));
    print_note(&format!("try it without a model:  polylogue run {file} --offline"));
    print_note(&format!("run it with a model:     polylogue run {file} --model openai:gpt-4o-mini"));
    Ok(Exit::Done)
}

fn list(templates: &[Template]) -> Result<Exit, CliError> {
    let width = templates.iter().map(|template| template.name.len()).max().unwrap_or_default();
    let mut text = String::from("Templates, for `polylogue new TEMPLATE`:\n");
    for template in templates {
        text += &format!("  {:width$}  {}\n", template.name, template.about());
    }
    text += "\nDemos, which run without a model or a key, by `polylogue run demo:NAME`:\n";
    for names in shipped::teams().chunks(6) {
        text += &format!("  {}\n", names.join(", "));
    }
    write_rows(&Sanitized::plain(&text), false)?;
    Ok(Exit::Done)
}

/// The text of the template with the name of the file as the name of the team, if it can be one.
fn named(template: &Template, file: &Path) -> String {
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

fn save(file: &Path, force: bool, text: &str) -> Result<(), CliError> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).create_new(!force);
    match options.open(file).and_then(|mut file| file.write_all(text.as_bytes())) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            Err(CliError::usage(format!("`{}` exists", file.display()))
                .hint("name another file, or overwrite it with `--force`"))
        }
        Err(error) => Err(CliError::failed(format!("`{}` cannot be written: {error}", file.display()))),
    }
}
