//! A run while it is watched: the screen, Ctrl-C, and people who are asked at the terminal.

mod step;

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::Either;
use polylogue::tools::memory::{self, Recalled};
use polylogue::{Agent as _, Status};
use polylogue_core::text::{self, enumerated};
use polylogue_core::{Body, Cancellation, Event, FinishReason, Path, Question, Responder, RunOutcome};
use polylogue_mcp::Progress;
use polylogue_runtime::question_text::{asks, in_words};
use polylogue_runtime::{Conversation, Runtime};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::args::piped::Input;
use crate::error::{CliError, Exit};
use crate::place::{NamedStore, PlaceOption};
use crate::prompt::question::{is_far_above, meant, prompt as prompt_for, typed};
use crate::prompt::{self, Asked, print_verbatim};
use crate::screen::{Output, RunEnd, Screen, Settings, Size, addresses, at_terminal};
use crate::signals::Signals;
use crate::stderr::{print_note, print_note_wrapped};
use crate::steering::{self, SteeringKey};
use crate::trust::rules::Always;
use crate::view::{Feed, View, new_bound};
use crate::{limit, work_dir};

/// How many characters are shown of why facts were looked for by words only.
const LONGEST_REASON: usize = 300;

/// A conversation to be run, and how it is shown.
pub(crate) struct Runner {
    pub(crate) conversation: Conversation,
    pub(crate) runtime: Runtime,
    pub(crate) settings: Settings,
    /// Answers the first question instead of asking at the terminal.
    pub(crate) answer: Option<String>,
    /// Which questions lines of a standard input that is not a terminal answer.
    pub(crate) input: Input,
    /// The store, as the command line names it: the work directory is next to it.
    pub(crate) work: NamedStore,
    /// What the answer `always` to a question for approval does.
    pub(crate) always: Always,
    /// What MCP servers say of calls that take long.
    pub(crate) progress: Option<UnboundedReceiver<Progress>>,
    /// Whether the person learns when the bound of the run ends to apply: not where a script speaks, of which none is shown.
    pub(crate) says_bound: bool,
    /// Whether a text that the person gives during a run is the next message, sent when the run has ended: in a chat that ends
    /// [with its only turn](steering::has_one_turn).
    pub(crate) keeps_texts: bool,
}

impl Runner {
    /// Runs until the chat ends, needs input that no one here can give, or is stopped; shows it, and says how it ended.
    pub(crate) async fn run(mut self) -> Result<Exit, CliError> {
        let begun = Instant::now();
        let mut view = self.view(begun).await;
        let events = self.conversation.events().await;
        let bound = new_bound(&self.runtime, self.conversation.id(), &events).await?;
        view.begin(self.conversation.id(), self.conversation.chat().name(), bound.as_ref());
        let output = self.settings.output;
        let (before, since) =
            events.split_at(first_shown(output, &events, self.conversation.inherited_events()));
        before.iter().for_each(|event| view.recall(event));
        if self.says_bound {
            view.watch_bound(self.conversation.bound(), before);
        }
        for (at, question) in self.conversation.questions().await {
            view.remind(before, &at, &question, &self.conversation.cancellation());
        }
        // Showing what follows a message sets it apart from the message, which recalling does not.
        let mut is_shown = output == Output::Json;
        for event in since {
            is_shown |= matches!(event.body, Body::Sent(_) | Body::Reopened { message: Some(_), .. });
            if is_shown { view.show_again(event) } else { view.recall(event) }
        }
        let status = self.advance(&mut view, &mut Signals::new()?).await?;
        self.finish(view, status, begun.elapsed()).await
    }

    /// Runs until the chat ends, needs input that no one here can give, or is stopped.
    pub(crate) async fn advance(
        &mut self,
        view: &mut View,
        signals: &mut Signals,
    ) -> Result<polylogue_runtime::Result<Status>, CliError> {
        loop {
            let status = self.step(view, signals).await;
            let Ok(Status::Waiting(questions)) = &status else { return Ok(status) };
            let Some((at, question)) = questions.first().filter(|_| !signals.stopped()) else {
                return Ok(status);
            };
            view.rest();
            match self.answered(view, at, question, signals).await? {
                InputOutcome::Answered => {}
                InputOutcome::Unanswered => return Ok(status),
            }
        }
    }

    /// Where commands that are shown find the conversation.
    pub(crate) fn place(&self) -> PlaceOption {
        PlaceOption::of_store(&self.work)
    }

    /// What the person sees, from now on; times are counted from `begun`.
    pub(crate) async fn view(&self, begun: Instant) -> View {
        let (runtime, id) = (self.runtime.clone(), self.conversation.id().clone());
        let watch = self.conversation.subscribe().await;
        View::new(self.screen(begun), Some(Feed { watch, runtime, id }))
    }

    fn screen(&self, begun: Instant) -> Screen<io::Stdout> {
        let pictures = work_dir::pictures(&self.work, self.conversation.id(), self.settings.looks);
        let screen = Screen::new(
            io::stdout(),
            self.conversation.chat().name().as_str(),
            self.settings,
            Box::new(Size::of_terminal),
            Box::new(move || begun.elapsed()),
        );
        let screen = screen.with(pictures);
        if prompt::is_possible() { screen.with_keys(steering::KEYS) } else { screen }
    }

    /// Asks the person, if there is one.
    async fn answered(
        &mut self,
        view: &mut View,
        at: &Path,
        question: &Question,
        signals: &mut Signals,
    ) -> Result<InputOutcome, CliError> {
        let is_typed = self.answer.is_none() && prompt::is_possible() && is_seen(self.settings.output);
        let text = match self.answer.take() {
            Some(text) => Some(text),
            None if prompt::is_possible() => {
                self.pose(&self.conversation.events().await, at, question);
                match self.asked(question, signals).await? {
                    Either::Left(answer) => answer.map(|answer| typed(question, answer)),
                    Either::Right(outcome) => return Ok(outcome),
                }
            }
            None => {
                let again = self.place().command(&format!("resume {}", self.conversation.id()));
                read_answer(question, self.input, &again, signals).await?
            }
        };
        let Some(text) = text else { return Ok(InputOutcome::Unanswered) };
        let text = self.always.answer(question, meant(question, text))?;
        if is_typed {
            view.typed(at, question, &text);
        }
        let by = Responder::person(prompt::user_name());
        self.conversation.answer(at, &question.who, text, by).await?;
        Ok(InputOutcome::Answered)
    }

    /// Shows what the person is asked, unless it stands right above the prompt.
    fn pose(&self, events: &[Arc<Event>], at: &Path, question: &Question) {
        let inherited = self.conversation.inherited_events();
        if !is_seen(self.settings.output) || is_far_above(events, inherited, at, question) {
            print_verbatim(&at_terminal(question));
        }
        if question.is_approval() {
            self.always.hint().into_iter().for_each(print_note_wrapped);
        }
    }

    /// Asks the person at the terminal, who can steer the conversation before an answer is begun. The answer, or the outcome of a
    /// question that was answered elsewhere, or whose conversation was cancelled.
    async fn asked(
        &self,
        question: &Question,
        signals: &mut Signals,
    ) -> Result<Either<Option<String>, InputOutcome>, CliError> {
        let mut key = SteeringKey::at_terminal(true);
        loop {
            let given = answers(&self.conversation.events().await);
            let elsewhere = self.conversation.answered_elsewhere();
            let steers = key.pressed();
            match prompt::ask_unless(&prompt_for(question), given, signals, steers, elsewhere).await? {
                Asked::Answer(answer) => return Ok(Either::Left(answer)),
                Asked::Steer => {
                    let never = std::pin::pin!(std::future::pending::<()>());
                    let (instruction, _) = steering::ask(never, signals).await;
                    instruction.into_iter().for_each(|given| drop(self.conversation.instruct(given)));
                }
                Asked::Withdrawn(answered) => {
                    answered?;
                    return Ok(Either::Right(match self.conversation.cancellation().is_requested() {
                        true => InputOutcome::Unanswered,
                        false => InputOutcome::Answered,
                    }));
                }
            }
        }
    }

    /// Whether the person sees why the run failed.
    pub(crate) fn is_failure_shown(&self, events: &[Arc<Event>]) -> bool {
        is_failure_shown(self.settings.output, events)
    }

    /// What continues the conversation after `polylogue resume ID`, unless that alone does or it has reached its goal.
    async fn command_to_continue(
        &self,
        status: &polylogue_runtime::Result<Status>,
    ) -> Result<Option<String>, CliError> {
        match status {
            Ok(Status::Closed { reason, .. }) => limit::past_limit(&self.conversation, reason).await,
            // Of several, each is asked at the terminal.
            Ok(Status::Waiting(questions)) => Ok((questions.len() == 1).then(|| "--answer TEXT".to_owned())),
            _ => Ok(None),
        }
    }

    async fn finish(
        self,
        mut view: View,
        status: polylogue_runtime::Result<Status>,
        elapsed: Duration,
    ) -> Result<Exit, CliError> {
        let cut = self.end(&mut view, &status, elapsed).await?;
        let conversation = &self.conversation;
        let is_shown = self.is_failure_shown(&conversation.events().await);
        // What was appended is kept, whatever the store says now.
        let released = conversation.release().await;
        if status.is_err() && is_shown {
            return Ok(Exit::Failed);
        }
        let exit = Exit::from(&status?).or_cut(cut.is_some());
        released?;
        view.finished().map(|()| exit)
    }

    /// Shows how it ended. Returns why its result is cut off, if it is.
    pub(crate) async fn end(
        &self,
        view: &mut View,
        status: &polylogue_runtime::Result<Status>,
        elapsed: Duration,
    ) -> Result<Option<FinishReason>, CliError> {
        let conversation = &self.conversation;
        let (usage, turns) = (conversation.usage().await, conversation.turns().await);
        let (id, events) = (conversation.id().clone(), conversation.events().await);
        let cut = match status {
            Ok(Status::Closed { .. }) => polylogue::runs::Report::of_last_run(&events).cut,
            _ => None,
        };
        let end_status = match status {
            Ok(Status::Closed { reason, .. }) => RunEnd::why_cut(reason, cut.clone()),
            Ok(Status::Waiting(questions)) => waiting(questions),
            Ok(_) => "stopped: it can be resumed".into(),
            Err(_) => "failed: it can be resumed".into(),
        };
        let option = self.command_to_continue(status).await?;
        let resumable = match status {
            Ok(Status::Closed { reason, .. }) if reason.outcome() == RunOutcome::Stopped => {
                option.is_some() || conversation.continues().await?
            }
            Ok(Status::Closed { .. }) => option.is_some(),
            _ => true,
        };
        let files = work_dir::summary(&self.work, &id);
        let (state, place) = (RunEnd::state(status), self.place());
        let end = RunEnd {
            state,
            status: end_status,
            usage,
            turns,
            elapsed,
            id,
            resumable,
            option,
            files,
            place,
            overlong: overlong(&events),
            words_only: words_only(&events),
        };
        let asked = match status {
            Ok(Status::Waiting(questions)) => questions.as_slice(),
            _ => &[],
        };
        show_end(view, self.settings.output, asked, &end);
        Ok(cut)
    }
}

/// Reads the answer from a standard input that is not a terminal, if that may answer the question. The command `again` asks it again.
pub(crate) async fn read_answer(
    question: &Question,
    input: Input,
    again: &str,
    signals: &mut Signals,
) -> Result<Option<String>, CliError> {
    if input == Input::None || prompt::is_typed() {
        return Ok(None);
    }
    let allows = if question.is_about_limit() { "a higher limit" } else { "approval" };
    if (question.is_approval() || question.is_about_limit()) && input != Input::Approvals {
        print_note_wrapped(&format!(
            "`{}` waits for {allows}. Answers from standard input are not used for {allows}; allow them with `--input approvals`.",
            question.who
        ));
        return Ok(None);
    }
    let hint = || format!("nothing is lost: `{again}` asks again");
    prompt::read_piped(signals).await.map_err(|error| error.hint(hint()))
}

/// Shows how a run has ended, and the questions for which it waits.
pub(crate) fn show_end(view: &mut View, output: Output, questions: &[(Path, Question)], end: &RunEnd) {
    print_questions(output, questions, end);
    view.apply(|screen| screen.end(end), &Cancellation::default());
}

/// Says in addition to an output that shows no conversation which questions wait, and how to answer them.
fn print_questions(output: Output, questions: &[(Path, Question)], end: &RunEnd) {
    if output != Output::Result || questions.is_empty() {
        return;
    }
    for (_, question) in questions {
        if !addresses(question) {
            print_note(&format!("{}{}", question.who, asks(question)));
        }
        print_verbatim(&in_words(question));
    }
    let answer = match questions {
        [_] => end.resume(),
        _ => end.place.command(&format!("answer {} NUMBER TEXT", end.id)),
    };
    let numbers = end.place.command("waiting");
    let which = if questions.len() > 1 { format!("; `{numbers}` lists the numbers") } else { String::new() };
    print_note_wrapped(&format!("{}: answer with `{answer}`{which}", end.status));
}

/// Whether the person at the terminal sees what happens.
pub(crate) fn is_seen(output: Output) -> bool {
    output.is_conversation() && io::stdout().is_terminal()
}

/// Whether the person sees why the run failed.
pub(crate) fn is_failure_shown(output: Output, events: &[Arc<Event>]) -> bool {
    is_seen(output) && events.last().is_some_and(|event| matches!(event.body, Body::Failed { .. }))
}

/// What became of a question that a person was asked.
enum InputOutcome {
    /// It is answered, here or elsewhere, and the run continues.
    Answered,
    /// It stays open, and the run rests.
    Unanswered,
}

/// Which is the first event that is shown of a conversation that had `inherited` events when it was opened. In JSON, those follow that
/// no earlier output has, as far as the log says it: what came since it was opened, and what commands added before, while no process
/// ran it.
pub(crate) fn first_shown(output: Output, events: &[Arc<Event>], inherited: u64) -> usize {
    if output != Output::Json {
        return events.len() - sent_since(events);
    }
    let inherited = usize::try_from(inherited).unwrap_or(usize::MAX).min(events.len());
    let is_added = |event: &&Arc<Event>| match event.body {
        // By `move`, by `resume --detach`, and by an answer. A run that adds them continues with other events.
        Body::TeamChanged(_)
        | Body::LimitsChanged { .. }
        | Body::Reopened { .. }
        | Body::Resumed
        | Body::InputProvided { .. } => true,
        _ => event.inbox.is_some(),
    };
    inherited - events.iter().take(inherited).rev().take_while(is_added).count()
}

/// How many of the last events came after the last process that ran the conversation: messages that were sent to it, and what
/// `resume` changes.
fn sent_since(events: &[Arc<Event>]) -> usize {
    let is_since = |body: &Body| {
        let is_sent = matches!(
            body,
            Body::Sent(_) | Body::Reopened { .. } | Body::Charged(_) | Body::NextSpeaker { .. }
        );
        is_sent || body.is_of_run()
    };
    events.iter().rev().take_while(|event| is_since(&event.body)).count()
}

/// How many replies have more tokens than their requests allowed.
pub(crate) fn overlong(events: &[Arc<Event>]) -> u64 {
    let is_overlong = |event: &&Arc<Event>| matches!(&event.body, Body::ModelReplied(reply) if reply.output_limit.is_some());
    events.iter().filter(is_overlong).count() as u64
}

/// Why facts were looked for by words only, in one line.
pub(crate) fn words_only(events: &[Arc<Event>]) -> Option<String> {
    let why = memory::words_only(events.iter().map(|event| &**event))?;
    let which = if why.starts_with(Recalled::WORDS_ONLY) { "facts were " } else { "" };
    Some(text::excerpt(&format!("{which}{why}"), LONGEST_REASON))
}

/// What people answered in this conversation, oldest first.
pub(crate) fn answers(events: &[Arc<Event>]) -> Vec<String> {
    let answer = |event: &Arc<Event>| match &event.body {
        Body::InputProvided { text, .. } => Some(text.to_string()),
        _ => None,
    };
    events.iter().filter_map(answer).filter(|answer| !answer.trim().is_empty()).collect()
}

pub(crate) fn waiting(questions: &[(Path, Question)]) -> String {
    format!("waiting for {}", enumerated(questions.iter().map(|(_, question)| awaited(question))))
}

/// What a conversation waits for that asks `question`.
pub(crate) fn awaited(question: &Question) -> String {
    match question {
        _ if question.is_approval() => format!("approval for {}", question.who),
        _ if question.is_about_limit() => format!("a higher limit for {}", question.who),
        _ => question.who.to_string(),
    }
}
