//! Which messages are searched for code.

use polylogue_core::{Line, Message, Source, Turn};

/// The messages of others that are searched for code, newest first.
///
/// Messages before the first turn are the task: they are searched only when there are no others, so that code in the
/// task does not run because a reply has none.
pub(super) fn messages<'a>(turn: &Turn<'a>, last: Option<usize>) -> impl Iterator<Item = &'a Message> {
    let (chat, me) = (turn.transcript(), turn.me());
    let spoke = chat.recent_turns().find(|ended| ended.who == *me).map(|ended| ended.seq);
    let is_new = move |line: &&Line| last.is_some() || spoke.is_none_or(|seq| line.seq > seq);
    let seen = chat.messages().rev().filter(move |line| line.is_seen_by(me));
    let received =
        seen.take_while(is_new).take(last.unwrap_or(usize::MAX)).filter(move |line| line.message.from != *me);
    let mut began = false;
    received
        .take_while(move |line| {
            let is_task = line.source == Source::Opening;
            let is_searched = !(is_task && began);
            began |= !is_task;
            is_searched
        })
        .map(|line| &line.message)
}
