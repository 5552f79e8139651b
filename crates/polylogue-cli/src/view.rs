//! What a person sees of a run: the screen, and what is shown on it.

use std::io;
use std::sync::Arc;

use futures_util::FutureExt;
use polylogue_core::{
    Body, BoundException, BoundSummary, Cancellation, Event, LogId, Name, Path, Question, RunBound,
    Store as _, Subscription, Update,
};
use polylogue_runtime::{Conversation, Runtime};

use crate::error::CliError;
use crate::screen::{Flow, Screen};
use crate::stderr::print_note_wrapped;

/// What is said when the bound of a run does not apply any more.
pub(crate) const NO_BOUND: &str = "the maximum computed before the run no longer applies";

/// What the conversation `id` takes at most, if that is known, and if it begins: it has no `events`.
pub(crate) async fn new_bound(
    runtime: &Runtime,
    id: &LogId,
    events: &[Arc<Event>],
) -> Result<Option<BoundSummary>, CliError> {
    match events.is_empty() {
        true => Ok(runtime.bound_summary(id).await?),
        false => Ok(None),
    }
}

/// What the person sees, and where it comes from.
pub(crate) struct View {
    screen: Screen<io::Stdout>,
    feed: Option<Feed>,
    /// Whether messages of the user are not shown, because the person has just typed them.
    hides_user: bool,
    /// The bound of the run, until the person knows that it does not apply any more.
    bound: Option<RunBound>,
    /// Why the output cannot be written.
    broken: Option<io::Error>,
}

/// Updates of a conversation that this process runs, and its store, in which missed ones are read.
pub(crate) struct Feed {
    pub(crate) watch: Subscription,
    pub(crate) runtime: Runtime,
    pub(crate) id: LogId,
}

impl View {
    /// A view on `screen`. Without a feed, the caller gives every event in order.
    pub(crate) const fn new(screen: Screen<io::Stdout>, feed: Option<Feed>) -> Self {
        Self { screen, feed, hides_user: false, bound: None, broken: None }
    }

    /// The next update of the feed.
    pub(crate) async fn next_update(&mut self) -> Option<Update> {
        self.feed.as_mut()?.watch.next().await
    }

    /// Shows that the conversation `id` of the team `team` begins; to programs, what it takes at most, too.
    pub(crate) fn begin(&mut self, id: &LogId, team: &Name, bound: Option<&BoundSummary>) {
        self.apply(|screen| screen.begin(id, team, bound), &Cancellation::default());
    }

    /// Takes note that the person has typed `text` here as the answer to a question.
    pub(crate) fn typed(&mut self, at: &Path, question: &Question, text: &str) {
        self.screen.typed(at, question, text);
    }

    /// Shows the person a note until the run ends. `false` if the caller must print it.
    pub(crate) fn notice(&mut self, text: &str) -> bool {
        self.screen.notice(text).unwrap_or(false)
    }

    /// From now on, the person learns when the `bound` of the run ends to apply. After `events` of an earlier process it was said there, but
    /// not which prices it has here.
    pub(crate) fn watch_bound(&mut self, bound: Option<RunBound>, events: &[Arc<Event>]) {
        let ended = |bound: &RunBound| bound.exception_after(events.iter().map(|event| &**event));
        let applies = |bound: &RunBound| matches!(ended(bound), None | Some(BoundException::Prices));
        self.bound = bound.filter(applies);
    }

    /// Tells the person once why the bound of `conversation` does not apply any more. Never waits: the run, which goes no further meanwhile,
    /// may hold what tells it, and it is said after the next event.
    pub(crate) fn tell_of_bound(&mut self, conversation: &Conversation) {
        if self.bound.is_none() {
            return;
        }
        let Some(why) = conversation.bound_exception().now_or_never().flatten() else { return };
        self.bound = None;
        // A person in a chat expects that their next message takes more.
        let is_expected = self.hides_user && why == BoundException::Continued;
        self.bound_ended(conversation.id(), &why.to_string(), is_expected);
    }

    /// Says that the bound of the conversation `id` does not apply any more, and `why`; to programs only, if the person expects it.
    pub(crate) fn bound_ended(&mut self, id: &LogId, why: &str, is_expected: bool) {
        let note = (!is_expected).then(|| format!("{NO_BOUND}: {why}"));
        let is_shown = self.screen.bound_ended(id, why, note.as_deref()).unwrap_or(false);
        if let Some(note) = note.filter(|_| !is_shown) {
            print_note_wrapped(&note);
        }
    }

    /// Takes note of an event without showing it.
    pub(crate) fn recall(&mut self, event: &Event) {
        self.screen.recall(event);
    }

    /// Shows an event of an earlier process.
    pub(crate) fn show_again(&mut self, event: &Event) {
        self.apply(|screen| screen.reread(event), &Cancellation::default());
    }

    /// From now on, messages of the user in the outermost chat are not shown.
    pub(crate) const fn hide_user(&mut self) {
        self.hides_user = true;
    }

    /// Nothing changes in place until the run continues.
    pub(crate) fn rest(&mut self) {
        self.apply(Screen::rest, &Cancellation::default());
    }

    /// Nothing changes in place until something is shown again: the person types meanwhile.
    pub(crate) fn make_room(&mut self) {
        self.apply(Screen::make_room, &Cancellation::default());
    }

    /// Whether the output is closed or cannot be written.
    pub(crate) fn is_gone(&mut self) -> bool {
        self.broken.is_some() || self.apply(|_| Ok(Flow::Go), &Cancellation::default()) == Flow::Gone
    }

    /// Why the output could not be written, if it could not.
    pub(crate) fn finished(self) -> Result<(), CliError> {
        self.broken
            .map_or(Ok(()), |why| Err(CliError::failed(format!("the output cannot be written: {why}"))))
    }

    /// Shows an update.
    pub(crate) async fn show(&mut self, update: &Update, cancellation: &Cancellation) {
        if let Update::Event(event) = update
            && self.hides_user
            && event.chat.is_root()
            && matches!(event.body, Body::Opened(_) | Body::Reopened { .. })
        {
            return self.screen.recall(event);
        }
        if let Some(note) = self.screen.unshown(update) {
            print_note_wrapped(&note);
        }
        let Flow::Reread(from) = self.apply(|screen| screen.update(update), cancellation) else { return };
        let Some(Feed { runtime, id, .. }) = &self.feed else { return };
        // The screen fell behind. Whatever cannot be read now is read when the next event comes.
        for event in runtime.store().read(id, from).await.unwrap_or_default() {
            self.apply(|screen| screen.reread(&event), cancellation);
        }
    }

    /// Shows a question that was asked in an earlier process, and what was said before it.
    pub(crate) fn remind(
        &mut self,
        events: &[Arc<Event>],
        at: &Path,
        question: &Question,
        cancellation: &Cancellation,
    ) {
        let here = || events.iter().rev().filter(|event| event.chat == *at);
        let asked = |body: &Body| matches!(body, Body::InputRequired(asked) if asked == question);
        let said = |body: &Body| matches!(body, Body::Message(_) | Body::Posted(_));
        for event in
            here().find(|event| said(&event.body)).into_iter().chain(here().find(|event| asked(&event.body)))
        {
            self.apply(|screen| screen.remind(event), cancellation);
        }
    }

    /// When the output is closed or cannot be written, the run ends after its step.
    pub(crate) fn apply(
        &mut self,
        show: impl FnOnce(&mut Screen<io::Stdout>) -> io::Result<Flow>,
        cancellation: &Cancellation,
    ) -> Flow {
        let flow = show(&mut self.screen).unwrap_or_else(|error| {
            self.broken.get_or_insert(error);
            Flow::Gone
        });
        if flow == Flow::Gone {
            cancellation.cancel_after_step();
        }
        flow
    }
}
