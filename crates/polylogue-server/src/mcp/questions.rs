//! What conversations ask people: as forms, and their answers.

use std::sync::Arc;

use polylogue_core::{Instruction, LogId, OpenQuestion, Store as _};
use polylogue_mcp::serve::{FormAnswer, FormQuestion};
use polylogue_runtime::question_text::{LastMessages, asks, has_last_message};
use polylogue_wire::conversation::PendingQuestion;

use super::visitor::Visitor;
use crate::api::steering::instruct;
use crate::conversation::listing;
use crate::problem::Problem;
use crate::tenants::Tenant;

pub(super) fn answer_to(visitor: &Visitor, question: u64, text: String) -> Instruction {
    Instruction::Answer { question, text: text.into(), by: Some(visitor.token.name.as_str().into()) }
}

/// The key of a question in forms.
fn question_key(seq: u64) -> String {
    format!("q{seq}")
}

/// Gives the answers that were accepted to the questions that are open.
pub(super) async fn answer_all(visitor: &Visitor, id: &LogId, answers: &[FormAnswer]) -> Result<(), Problem> {
    let accepted = answers.iter().filter_map(|answer| Some((answer.key.as_str(), answer.text.as_ref()?)));
    let accepted: Vec<_> = accepted.collect();
    if accepted.is_empty() {
        return Ok(());
    }
    if !visitor.answers() {
        return Err(Problem::may_not_answer());
    }
    for open in visitor.tenant.runtime.open_questions(id).await? {
        let key = question_key(open.seq);
        if let Some((_, text)) = accepted.iter().find(|(of, _)| *of == key) {
            answer(visitor, id, open.seq, (*text).clone()).await?;
        }
    }
    Ok(())
}

/// Answers a question. Another answer that came first counts.
pub(super) async fn answer(
    visitor: &Visitor,
    id: &LogId,
    question: u64,
    text: String,
) -> Result<(), Problem> {
    let Visitor { app, tenant, token, .. } = visitor;
    let (app, tenant, token, id) = (Arc::clone(app), Arc::clone(tenant), Arc::clone(token), id.clone());
    let instruction = answer_to(visitor, question, text);
    // Not given up half-way when the client goes away.
    let answering = tokio::spawn(async move {
        let about = listing(&tenant, &id).await?;
        match instruct(&app, &tenant, (&token, &about), instruction, None).await {
            Err(problem) if problem.is_answered() => Ok(()),
            answered => answered.map(drop),
        }
    });
    answering.await.map_err(|_| Problem::internal("a mistake in the server ended this call"))?
}

/// What is asked in a conversation, as forms.
pub(super) async fn open_questions(visitor: &Visitor, id: &LogId) -> Result<Vec<FormQuestion>, Problem> {
    let open = visitor.tenant.runtime.open_questions(id).await?;
    forms(&visitor.tenant, id, &open).await
}

/// The questions `open` in a conversation as forms, with texts for clients that do not show it with them.
pub(super) async fn forms(
    tenant: &Tenant,
    id: &LogId,
    open: &[OpenQuestion],
) -> Result<Vec<FormQuestion>, Problem> {
    let events = match open.iter().any(|open| has_last_message(open.question.kind)) {
        true => tenant.runtime.store().read(id, 0).await?,
        false => Vec::new(),
    };
    let form = |open: &OpenQuestion| {
        let mut received = LastMessages::default();
        events.iter().take_while(|event| event.seq < open.seq).for_each(|event| received.add(event));
        let text = received.text(&open.chat, &open.question);
        FormQuestion {
            key: question_key(open.seq),
            text: format!("{}{} {text}", open.question.who, asks(&open.question)),
            data: serde_json::to_value(PendingQuestion::from(open)).ok(),
        }
    };
    Ok(open.iter().map(form).collect())
}
