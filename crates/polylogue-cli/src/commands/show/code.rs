//! `show --code N`: one block of code of a conversation.

use polylogue::layers::code::blocks;
use polylogue_core::Event;
use polylogue_core::text_of;
use serde_json::Value;

use crate::commands::write_data;
use crate::error::{CliError, Exit};
use crate::limit::counted;
use polylogue_runtime::presentation::{Detail, Item, Kind, Presentation};

/// Prints the block `nth`, from 1.
pub(crate) fn print(events: &[Event], nth: u64) -> Result<Exit, CliError> {
    let mut found: Vec<String> = Vec::new();
    for item in Presentation::of(Detail::Whole, events) {
        found.extend(code_in(&item));
    }
    let index = usize::try_from(nth).unwrap_or(usize::MAX).saturating_sub(1);
    let Some(code) = found.get(index) else {
        let what = format!("the conversation has {}", counted(found.len() as u64, "code block"));
        return Err(CliError::usage(what).hint("blocks are counted in the order in which `show` prints them"));
    };
    write_data(code)?;
    Ok(Exit::Done)
}

/// The code of an item: blocks in texts, and the code that calls have as an argument.
fn code_in(item: &Item) -> Vec<String> {
    let fenced = |text: &str| blocks(text).into_iter().map(|block| block.code).collect();
    match &item.kind {
        Kind::Message(said) => fenced(&text_of(&said.parts)),
        Kind::Narration { text, .. } => fenced(text),
        Kind::ToolCalled { call, is_code: false, .. } => {
            call.args.get("code").and_then(Value::as_str).map(str::to_owned).into_iter().collect()
        }
        _ => Vec::new(),
    }
}
