//! The model calls of one turn, in their order.

use super::super::amount::{Amount, Effect, Sum};
use super::super::case::{CALL, Case, MESSAGE, PROMPT, REQUEST, SCHEMA};
use super::{Dialog, Form, REST, STEPS, Speaker, Tools};
use polylogue_core::Window;

impl Speaker {
    /// A turn with `context` bytes of history, in a chat with a task of `task` bytes.
    pub(in crate::bound) fn turn(&self, case: Case, context: u128, task: u128) -> Effect {
        self.turn_after(case, context, task, context)
    }

    /// The same after a message of `last` bytes.
    pub(in crate::bound) fn turn_after(&self, case: Case, context: u128, task: u128, last: u128) -> Effect {
        self.turn_saying(case, (context, task, last), 1 + self.continuations)
    }

    /// The same without a message: a blank reply is not continued.
    pub(in crate::bound) fn silent_turn(&self, case: Case, context: u128, task: u128, last: u128) -> Effect {
        self.turn_saying(case, (context, task, last), 1)
    }

    /// The same about a task, and not a question of a policy, which an agent answers without tools: the message can be the result of one.
    pub(in crate::bound) fn task_turn(&self, case: Case, context: u128, task: u128, last: u128) -> Effect {
        let dialog = self.tools.and_then(|tools| tools.by_text);
        if case.is_typical() || !dialog.is_some_and(|dialog| dialog.says_result) {
            return self.turn_after(case, context, task, last);
        }
        let effect = self.turn_saying(case, (context, task, last), 0);
        let result = self.tools.map_or(0, |tools| tools.result);
        Effect { message: result.saturating_add(PROMPT), ..effect }
    }

    /// A turn whose message takes so many calls.
    fn turn_saying(&self, case: Case, (context, task, last): (u128, u128, u128), pieces: u128) -> Effect {
        let (asked, again) = (pieces.min(1), pieces.saturating_sub(1));
        let mut calls = Calls::begin(self, case, context, task);
        calls.last = last.max(task);
        if let Some(tools) = &self.tools {
            calls.make_tool_rounds(tools);
        }
        match self.schema.filter(|_| !case.is_typical()) {
            None => calls.say(asked, case.times(again, 0)),
            Some(form) => {
                if self.tools.is_some_and(|tools| tools.by_text.is_none_or(|dialog| !dialog.is_certain)) {
                    calls.draft();
                }
                calls.make_form(form);
            }
        }
        calls.end()
    }

    /// A turn of `rounds` rounds of tools, and a summary at the end if it `summarizes`.
    pub(in crate::bound) fn react(
        &self,
        case: Case,
        context: u128,
        task: u128,
        (rounds, sums_up): (u128, bool),
    ) -> Effect {
        let mut calls = Calls::begin(self, case, context, task);
        let results = self.tools.map_or(0, |tools| tools.results(case));
        calls.make_rounds(case.times(rounds, 1), results, self.tools.as_ref());
        let last = 1 + u128::from(sums_up && !case.is_typical());
        calls.say(last, calls.continuations());
        calls.end()
    }
}

/// The calls of one turn.
struct Calls<'s> {
    speaker: &'s Speaker,
    case: Case,
    /// Bytes of the next request.
    context: u128,
    /// Bytes of the task of the chat, and of the message that the turn answers.
    task: u128,
    last: u128,
    begun: u128,
    reply: u128,
    /// The picodollars that tools cost after each call.
    spends: u128,
    sum: Sum,
}

impl<'s> Calls<'s> {
    fn begin(speaker: &'s Speaker, case: Case, context: u128, task: u128) -> Self {
        let quoted = speaker.quotes.saturating_mul(task);
        let base = speaker.fixed.saturating_add(quoted).saturating_add(MESSAGE);
        let context = context.saturating_add(base);
        let reply = speaker.reply(case).saturating_add(MESSAGE);
        let sum = Sum { base, ..Sum::default() };
        Self { speaker, case, context, task, last: task, begun: context, reply, spends: 0, sum }
    }

    fn continuations(&self) -> u128 {
        self.case.times(self.speaker.continuations, 0)
    }

    /// Adds `count` calls, each of which adds `growth` bytes to the view.
    fn make(&mut self, count: u128, growth: u128) {
        self.make_after(Self::add_compaction, count, growth);
    }

    /// The same for the rest of a reply that was cut off: no history is compacted before such a call, and no tool is called after the call
    /// that was cut off.
    fn make_more(&mut self, count: u128, growth: u128) {
        let spends = std::mem::take(&mut self.spends);
        self.make_after(|_, _| {}, count, growth);
        self.spends = spends;
    }

    /// Adds `count` calls, each of them after what `prepare` adds.
    fn make_after(&mut self, prepare: fn(&mut Self, u128), count: u128, growth: u128) {
        self.sum.growth = self.sum.growth.max(growth);
        for _ in 0..count.min(STEPS) {
            self.add(1);
            prepare(self, 1);
            self.context = self.context.saturating_add(growth);
        }
        let more = count.saturating_sub(STEPS);
        if more > 0 {
            self.context = self.context.saturating_add(growth.saturating_mul(more));
            self.add(more);
            prepare(self, more);
        }
    }

    /// Adds `rounds` rounds of calls of `tools`, each with `results` of so many bytes. In each, a text that is cut off can be continued, and
    /// end with calls.
    fn make_rounds(&mut self, rounds: u128, results: u128, tools: Option<&Tools>) {
        let (again, said) = (self.continuations(), self.reply.saturating_add(REST));
        let growth = said.saturating_add(results);
        // A request after rounds can have a prompt of the program.
        self.sum.growth = self.sum.growth.max(growth.saturating_add(PROMPT));
        self.spends = tools.map_or(0, |tools| tools.spends(self.case));
        if rounds > STEPS {
            self.make(rounds.saturating_mul(1 + again), growth);
        } else {
            for _ in 0..rounds {
                self.make_more(again, said);
                self.make(1, growth);
            }
        }
        self.spends = 0;
    }

    fn add(&mut self, count: u128) {
        let limit = self.speaker.compaction_limit(self.case);
        let is_larger = !self.case.is_typical() && self.may_be_compacted(limit);
        let summaries = self.speaker.summaries.as_ref().filter(|_| is_larger);
        let context = summaries.map_or(self.context, |of| of.context(self.context));
        let call = self.speaker.call(self.case, context);
        let attempts = match self.case {
            // Each attempt fails once without a reply, and a call that a provider cannot parse is asked for again.
            Case::Worst => self.speaker.attempts.saturating_mul(2),
            Case::WithoutFailures | Case::Typical => 1,
        };
        self.sum.add_calls(Amount { tools: self.spends, ..call }, count);
        // An attempt that fails calls no tools.
        self.sum.add_calls(call, count.saturating_mul(attempts.saturating_sub(1)));
    }

    /// Adds the calls that summarize a history that nearly fills the window, or exceeds what the team sets.
    fn add_compaction(&mut self, count: u128) {
        let limit = self.speaker.compaction_limit(self.case);
        let Some(summaries) = self.speaker.summaries.as_ref().filter(|_| self.may_be_compacted(limit)) else {
            return;
        };
        let (call, calls) = summaries.calls(self.case, (summaries.context(self.context), self.task));
        if self.case.is_typical() {
            // A summary halves the history.
            self.sum.add_calls(call, 1);
            let whole = limit.saturating_mul(self.case.bytes_per_token());
            self.context = if whole == 0 { self.context } else { whole } / 2;
            return;
        }
        self.sum.add_calls(call, count.saturating_mul(calls));
    }

    fn may_be_compacted(&self, limit: u128) -> bool {
        self.speaker.window == Window::All && self.case.tokens(self.context) > limit
    }

    fn make_tool_rounds(&mut self, tools: &Tools) {
        let rounds = self.case.times(tools.rounds, 1);
        match tools.by_text.filter(|_| !self.case.is_typical()) {
            None if self.speaker.calls_functions(self.case) => {
                self.make_rounds(rounds, tools.results_without_agents(self.case), Some(tools));
            }
            None => self.make_rounds(rounds, tools.results(self.case), Some(tools)),
            Some(dialog) => {
                // The tools are described in each prompt. The message that is answered is quoted for each call, before it and at the end.
                let prompt = PROMPT.saturating_add(tools.bytes).saturating_add(dialog.examples);
                let quote = self.last.saturating_add(MESSAGE);
                let quoted = quote.saturating_mul(dialog.quotes);
                self.context = self.context.saturating_add(quoted);
                self.sum.base =
                    self.sum.base.saturating_add(prompt).saturating_add(quoted).saturating_add(quote);
                let (again, growth) = (1 + self.continuations(), self.reply.saturating_add(REST + prompt));
                let objects = dialog.objects.saturating_mul(if dialog.is_continued { again } else { 1 });
                // The longer prompts first: that is the most.
                self.spends = tools.spends(self.case);
                self.make(objects, growth.saturating_add(tools.results(self.case)));
                // Only where it is not certain, functions can be called in text, too.
                self.spends = if dialog.is_certain { 0 } else { self.spends };
                self.make(dialog.replies.saturating_mul(again), growth);
                self.spends = 0;
                self.context = self.context.saturating_add(quote);
            }
        }
    }

    /// What stays of a turn in which tools were called by text, besides its message: calls and results, if anything.
    fn kept_of(&self, tools: &Tools, dialog: Dialog) -> u128 {
        let whole = 1 + self.continuations();
        let args = if dialog.is_continued { whole } else { 1 };
        let said = self.reply.saturating_mul(args + if dialog.explains { whole } else { 0 });
        let call = said.saturating_add(tools.results(self.case)).saturating_add(4 * (PROMPT + MESSAGE));
        let calls = if dialog.keeps_calls { dialog.calls } else { 0 };
        calls.saturating_mul(call).saturating_add(PROMPT)
    }

    /// The calls of a text after tools that does not satisfy a schema.
    fn draft(&mut self) {
        let growth = self.reply.saturating_add(REST);
        self.make(1, growth);
        self.make_more(self.continuations(), growth);
    }

    /// How often a reply by a schema can be continued.
    fn form_continuations(&self, form: Form) -> u128 {
        if form.is_native { 0 } else { self.continuations() }
    }

    /// The calls for a reply that satisfies a schema.
    fn make_form(&mut self, form: Form) {
        let (prompt, again) = (form.bytes.saturating_add(PROMPT), self.form_continuations(form));
        let more =
            form.bytes.saturating_mul(4).saturating_add(2 * PROMPT + REQUEST + 2 * SCHEMA + 3 * MESSAGE);
        self.sum.base = self.sum.base.saturating_add(more);
        // A value is in the turn, and in the message as text and as JSON.
        self.sum.growth = self.sum.growth.max(self.reply.saturating_mul(3).saturating_add(prompt));
        self.context = self.context.saturating_add(form.bytes).saturating_add(SCHEMA).saturating_add(prompt);
        self.make(1, self.reply.saturating_add(prompt));
        self.make_more(again, self.reply.saturating_add(prompt));
        // A repair is asked for alone: the schema, the reply and its errors.
        let context = form.bytes.saturating_mul(2).saturating_add(self.reply.saturating_mul(3));
        let view = std::mem::replace(
            &mut self.context,
            context.saturating_add(PROMPT + REQUEST + SCHEMA + 3 * MESSAGE),
        );
        self.make(form.retries, 0);
        self.make_more(form.retries.saturating_mul(again), 0);
        self.context = view;
    }

    /// Adds the calls of the message, which is asked for `asked` times, each of which is continued `again` times. Its pieces are one entry in
    /// later requests, and requests for the rest are gone.
    fn say(&mut self, asked: u128, again: u128) {
        let (before, growth) = (self.context, self.reply.saturating_add(REST));
        for _ in 0..asked {
            self.make(1, growth);
            self.make_more(again, growth);
        }
        self.context = before;
    }

    fn end(mut self) -> Effect {
        let again = match self.speaker.schema {
            // A draft can satisfy the schema, too.
            Some(form) if self.speaker.tools.is_none() => self.form_continuations(form),
            _ => self.continuations(),
        };
        let whole = self.reply.saturating_mul(1 + again);
        // A value is in the message twice, as text and as JSON.
        let said = if self.speaker.schema.is_some() { whole.saturating_mul(2) } else { whole };
        let result = self.speaker.tools.filter(|tools| tools.ends_turn);
        // What a handoff says is written by the model.
        let end =
            |tools: Tools| self.case.text(tools.result).max(self.reply).max(said).saturating_add(PROMPT);
        let message = result.map_or(said, end);
        let suggesting = self.speaker.tools.filter(|tools| tools.suggests);
        let calls = suggesting.map_or(0, |tools| self.case.times(tools.calls, 1).saturating_mul(CALL));
        // One call can be a piece of the text, have the result that is the message, and suggest all calls.
        let piece = message.min(said.saturating_div(1 + again)).max(result.map_or(0, |_| message));
        self.sum.growth = self.sum.growth.max(piece.saturating_add(calls));
        let message = message.saturating_add(calls);
        let tools = self.speaker.tools.as_ref().filter(|tools| !tools.suggests && !self.case.is_typical());
        let dialog = tools.and_then(|tools| Some((tools, tools.by_text.filter(|dialog| dialog.is_certain)?)));
        let whole = self.context.saturating_sub(self.begun);
        let forgets_form =
            self.speaker.tools.is_none() && self.speaker.schema.is_some_and(|form| form.is_prompted);
        let kept = match dialog {
            Some((tools, dialog)) => whole.min(self.kept_of(tools, dialog)),
            None if forgets_form && !self.case.is_typical() => whole.min(PROMPT),
            None => whole,
        };
        Effect { sum: self.sum, message, kept, free: 0 }
    }
}
