//! A conversation that another program requested, and the messages it receives about it.

use futures_util::FutureExt;
use polylogue::{Status, Update};
use polylogue_client::wire::conversation::PendingQuestion;
use polylogue_core::{OpenQuestion, Responder, RunOutcome as Kind, Subscription};
use polylogue_mcp::serve::{Answer, Caller, FormQuestion, UserAnswer, progress_line};
use polylogue_runtime::Conversation;
use polylogue_runtime::question_text::{LastMessages, asks};
use polylogue_server::asked_schema;
use serde_json::{Value, json};

use crate::place::PlaceOption;
use crate::runner::awaited;
use crate::screen::RunEnd;

/// The schema of structured results.
pub(super) fn output_schema() -> Value {
    json!({
        "type": "object",
        "required": ["conversation", "ended"],
        "properties": {
            "conversation": {"type": "string", "description": "Its id"},
            "ended": {"type": "string", "description": "Why it has ended, or for whom it waits"},
            "result": {"type": "string", "description": "The result of a conversation that has ended"},
            "questions": {"type": "array", "items": asked_schema(), "description": "The open questions, the oldest first"},
        },
    })
}

/// A conversation that begins.
pub(super) struct CallConversation {
    pub(super) conversation: Conversation,
    /// Where commands that are shown find it.
    pub(super) place: PlaceOption,
}

/// How a step ended.
enum Step {
    Ended(polylogue_runtime::Result<Status>),
    /// Its caller gave it up, and perhaps said why.
    Cancelled(Option<String>),
}

impl CallConversation {
    /// Runs it until it ends, needs input that no one can give, or its caller cancels it.
    pub(super) async fn run(self, caller: &mut Caller) -> Answer {
        let mut watch = self.conversation.subscribe().await;
        loop {
            let status = match self.step(caller, &mut watch).await {
                Step::Ended(status) => status,
                Step::Cancelled(why) => return self.cancelled(why).await,
            };
            if !matches!(status, Ok(Status::Waiting(_))) {
                return self.answer(status).await;
            }
            let questions = OpenQuestion::of(&self.conversation.events().await);
            let Some(open) = questions.first() else { return self.answer(status).await };
            let form = self.form(open).await;
            match caller.ask(&form).await {
                UserAnswer::With(text) => {
                    let (at, who) = (&open.chat, &open.question.who);
                    if let Err(error) = self.conversation.answer(at, who, text, Responder::Unnamed).await {
                        return self.answer(Err(error)).await;
                    }
                }
                UserAnswer::Declined => return self.waits(open, &form, "no one wanted to answer").await,
                UserAnswer::Unable => return self.waits(open, &form, "this host cannot ask its user").await,
                UserAnswer::Cancelled => {
                    let why = caller.cancelled().await;
                    return self.cancelled(why).await;
                }
            }
        }
    }

    /// Runs the chat as far as it goes, and tells what is said.
    async fn step(&self, caller: &mut Caller, watch: &mut Subscription) -> Step {
        let cancellation = self.conversation.cancellation();
        let mut run = std::pin::pin!(self.conversation.run());
        let ended = loop {
            tokio::select! {
                biased;
                why = caller.cancelled() => {
                    cancellation.cancel_now();
                    // What was appended is whole, however it ended.
                    let _ = run.as_mut().await;
                    return Step::Cancelled(why);
                }
                Some(update) = watch.next() => report(caller, &update).await,
                status = &mut run => break status,
            }
        };
        while let Some(Some(update)) = watch.next().now_or_never() {
            report(caller, &update).await;
        }
        Step::Ended(ended)
    }

    /// Ends the conversation permanently, with the reason in its log.
    async fn cancelled(self, why: Option<String>) -> Answer {
        let why = match why {
            Some(why) => format!("the host, which says: {why}"),
            None => "the host".to_owned(),
        };
        self.conversation.cancellation().clear();
        let closed = self.conversation.close(&why).await;
        let _ = self.conversation.release().await;
        // It is not reported.
        Answer::failed(closed.map_or_else(|error| error.to_string(), |()| format!("stopped by {why}")))
    }

    /// The result of a conversation that is over, or failed.
    async fn answer(self, status: polylogue_runtime::Result<Status>) -> Answer {
        let (turns, id) = (self.conversation.turns().await, self.conversation.id().to_string());
        let cut = polylogue::runs::Report::of_last_run(&self.conversation.events().await).cut;
        let released = self.conversation.release().await;
        let status = match released {
            Err(error) if status.is_ok() => Err(error),
            _ => status,
        };
        let (result, ended, is_error) = match &status {
            Ok(Status::Closed { reason, summary }) => {
                let is_error = matches!(reason.outcome(), Kind::Stopped | Kind::NoOutput);
                (summary.to_string(), RunEnd::why_cut(reason, cut), is_error)
            }
            Ok(_) => (String::new(), "stopped: it can be resumed".to_owned(), true),
            Err(error) => {
                let hint = error.hint().map(|hint| format!("; hint: {hint}")).unwrap_or_default();
                (String::new(), format!("failed: {error}{hint}"), true)
            }
        };
        let turns = format!("{turns} {}", if turns == 1 { "turn" } else { "turns" });
        let show = self.place.command(&format!("show {id}"));
        let footer = format!("(conversation `{id}`, {turns}; {ended}; `{show}` shows it)");
        let value = json!({"conversation": id, "result": result, "ended": ended});
        Answer { texts: texts(result, footer), value: Some(value), is_error }
    }

    /// A question, with the last message that the person received: the host does not show the conversation.
    async fn form(&self, open: &OpenQuestion) -> FormQuestion {
        let mut received = LastMessages::default();
        self.conversation.events().await.iter().for_each(|event| received.add(event));
        let text = received.text(&open.chat, &open.question);
        FormQuestion {
            key: open.seq.to_string(),
            text: format!("{}{} {text}", open.question.who, asks(&open.question)),
            data: serde_json::to_value(PendingQuestion::from(open)).ok(),
        }
    }

    /// The text about a conversation that waits for a person, and what is open in it.
    async fn waits(self, open: &OpenQuestion, form: &FormQuestion, why: &str) -> Answer {
        let (id, awaited) = (self.conversation.id().clone(), awaited(&open.question));
        let questions = OpenQuestion::of(&self.conversation.events().await);
        // A person who can answer resumes it. What was appended is kept, whatever the store says now.
        let _ = self.conversation.release().await;
        let continues = match questions.len() {
            0 | 1 => {
                format!(
                    "`{}` answers it and continues",
                    self.place.command(&format!("resume {id} --answer TEXT"))
                )
            }
            _ => {
                let answer = self.place.command(&format!("answer {id} {} TEXT", open.seq));
                format!(
                    "`{answer}` answers it, and `{}` continues",
                    self.place.command(&format!("resume {id}"))
                )
            }
        };
        let status =
            format!("The conversation `{id}` waits for {awaited}, and {why}. {}\n{continues}.", form.text);
        let asked: Vec<PendingQuestion> = questions.iter().map(PendingQuestion::from).collect();
        let value = json!({"conversation": id.to_string(), "ended": format!("waiting for {awaited}"), "questions": asked});
        Answer { texts: vec![status], value: Some(value), is_error: true }
    }
}

/// The result, if there is one, and its text.
fn texts(result: String, footer: String) -> Vec<String> {
    [result, footer].into_iter().filter(|text| !text.trim().is_empty()).collect()
}

/// Sends messages as progress while they are said.
async fn report(caller: &mut Caller, update: &Update) {
    if let Update::Event(event) = update
        && let Some(said) = progress_line(event)
    {
        caller.report_progress(said).await;
    }
}
