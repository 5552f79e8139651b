//! `polylogue waiting` and `polylogue answer`: the questions of all conversations that wait for people.

use polylogue_core::{Instruction, LogId, OpenQuestion, Timestamp};
use polylogue_runtime::question_text::{asks, in_words};
use polylogue_runtime::waiting::WaitingRun;
use serde_json::json;

use super::runs::age;
use super::steer::{Texts, found, give, resume};
use super::{unwritable, write_rows};
use crate::args;
use crate::error::{CliError, Exit};
use crate::place::{self, PlaceOption};
use crate::prompt::{question::meant, user_name};
use crate::screen::Sanitized;
use crate::stderr::{print_note, print_note_wrapped};
use crate::text_arg::text_of;

pub(crate) async fn run(cli: &args::Cli, args: &args::steer::Waiting) -> Result<Exit, CliError> {
    let runtime = place::existing(&cli.named_store())?;
    print(&runtime.waiting().await?, args, &PlaceOption::of_store(&cli.named_store()))
}

/// Prints the questions of these conversations.
pub(crate) fn print(
    waiting: &[WaitingRun],
    args: &args::steer::Waiting,
    place: &PlaceOption,
) -> Result<Exit, CliError> {
    for run in waiting {
        for open in &run.questions {
            let text = if args.json { as_json(run, open)? } else { shown(run, open) };
            write_rows(&text, args.json)?;
        }
    }
    let is_ambiguous = waiting.iter().any(|run| run.questions.len() > 1);
    match waiting {
        _ if args.json => {}
        [] => print_note("no question waits for an answer"),
        _ if is_ambiguous => print_note_wrapped(&format!(
            "answer with `{}`; the number of the question can be left out if there is only one",
            place.command("answer ID NUMBER TEXT")
        )),
        _ => print_note_wrapped(&format!("answer with `{}`", place.command("answer ID TEXT"))),
    }
    Ok(Exit::Done)
}

pub(crate) async fn answer(cli: &args::Cli, args: &args::steer::Answer) -> Result<Exit, CliError> {
    let (runtime, id) = found(cli, &args.id).await?;
    let (number, text) = given(args)?;
    let open = chosen(runtime.open_questions(&id).await?, &id, number)?;
    let text = meant(&open.question, text_of(text)?).into();
    let by = args.by.as_deref().map(Into::into).or_else(user_name);
    let idle = format!("answered; `{}` continues the conversation", resume(cli, &id));
    let texts = Texts { done: "answered", idle: &idle };
    give(&runtime, &id, Instruction::Answer { question: open.seq, text, by }, &texts).await
}

/// The number of a question, if one is given, and the answer.
pub(crate) fn given(args: &args::steer::Answer) -> Result<(Option<u64>, &str), CliError> {
    match args.answer.as_slice() {
        [number, text] => Ok((Some(number_of(number)?), text)),
        [text] => Ok((None, text)),
        _ => Err(CliError::usage("expected an answer, or the number of a question and an answer")),
    }
}

fn number_of(text: &str) -> Result<u64, CliError> {
    text.parse().map_err(|_| {
        CliError::usage(format!("`{text}` is not the number of a question"))
            .hint("`polylogue waiting` lists them; quote an answer of several words")
    })
}

/// The question with this number, or the only one.
pub(crate) fn chosen(
    mut open: Vec<OpenQuestion>,
    id: &LogId,
    number: Option<u64>,
) -> Result<OpenQuestion, CliError> {
    let numbers = || open.iter().map(|open| open.seq.to_string()).collect::<Vec<_>>().join(", ");
    match number {
        _ if open.is_empty() => {
            let error = CliError::from(polylogue_runtime::Error::NoQuestion { id: id.clone() });
            Err(error.hint(format!(
                "`polylogue waiting` lists questions; `polylogue send {id} TEXT` sends a message"
            )))
        }
        Some(number) => match open.iter().position(|open| open.seq == number) {
            Some(at) => Ok(open.swap_remove(at)),
            None => Err(CliError::usage(format!("`{id}` has no open question {number}"))
                .hint(format!("open: {}", numbers()))),
        },
        None if open.len() > 1 => Err(CliError::usage(format!("`{id}` has {} open questions", open.len()))
            .hint(format!("name one: `polylogue answer {id} NUMBER TEXT`, of {}", numbers()))),
        None => Ok(open.swap_remove(0)),
    }
}

/// A question in two lines: where, who is asked, since when, until when; and what.
fn shown(run: &WaitingRun, open: &OpenQuestion) -> Sanitized {
    let (now, id) = (Timestamp::now().0, &run.listing.id);
    let asks = asks(&open.question).trim_end_matches(':');
    let chat = if open.chat.is_root() { String::new() } else { format!(" in `{}`", open.chat) };
    let since = age(now.saturating_sub(open.asked.0) / 1000);
    let until = match (open.until(), &open.question.default) {
        (Some(until), Some(default)) => {
            let left = age(until.0.saturating_sub(now) / 1000);
            format!("; in {left} the answer is `{}`", default.text)
        }
        _ => String::new(),
    };
    let who = &open.question.who;
    let head = format!(
        "{id}  question {}  {}: {who}{asks}{chat}, {since} ago{until}",
        open.seq,
        run.listing.shown_title()
    );
    let text: Vec<String> = in_words(&open.question).lines().map(|line| format!("    {line}")).collect();
    Sanitized::plain(&format!("{head}\n{}\n", text.join("\n")))
}

fn as_json(run: &WaitingRun, open: &OpenQuestion) -> Result<Sanitized, CliError> {
    let question = &open.question;
    let row = json!({
        "conversation": run.listing.id, "title": run.listing.shown_title(), "question": open.seq, "chat": open.chat, "who": question.who,
        "text": question.text, "kind": question.kind, "choices": question.choices, "call": question.call, "asked_ms": open.asked,
        "until_ms": open.until(),
        "default_answer": question.default.as_ref().map(|default| &default.text),
    });
    Sanitized::json(&row).map_err(unwritable)
}
