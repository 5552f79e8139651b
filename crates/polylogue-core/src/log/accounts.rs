//! The accounts of agents and chats that have limits of their own: what they used, as the log has it.

use std::sync::Arc;

use super::turns::is_in;
use crate::limits::{RunUsage, Standing};
use crate::{
    Allowance, AllowanceOwner, Body, ChargeReason, ChatLimits, Event, LimitOverrides, LimitRaise, Limits,
    Name, Path, Question, StopReason, TotalUsage,
};

/// All accounts of a run, besides that of the run itself. Rebuilt from the events of the log alone.
#[derive(Default)]
pub(crate) struct Accounts {
    of: Vec<OwnedAccount>,
    /// The chats in which one agent is called, which can have another name than the agent.
    called: Vec<(Path, Name)>,
    /// Whose limit closed the outermost chat last.
    stopped: Option<AllowanceOwner>,
    /// The limit that a person is asked to raise, and in whose name.
    asked: Option<(Name, Box<LimitRaise>)>,
    /// By how much a person has allowed to raise a limit, until the event that raises it.
    agreed: Option<LimitRaise>,
}

/// The account of one agent or chat.
pub(crate) struct OwnedAccount {
    owner: AllowanceOwner,
    limits: Limits,
    /// What resumptions and people allowed in all, whatever `limits` are.
    raised: LimitOverrides,
    /// How much more was allowed last.
    last: LimitOverrides,
    /// The limits that people did not raise when they were asked.
    declined: Vec<StopReason>,
    usage: TotalUsage,
    unpriced: Option<Arc<str>>,
    /// The running time in which it had a turn or was open, up to the last event.
    time_ms: u64,
    /// Where it has a turn or is open now, with the `seq` of the event with which that began.
    active: Vec<(Path, u64)>,
}

impl OwnedAccount {
    /// An account of which nothing is used.
    fn new(owner: AllowanceOwner, limits: Limits) -> Self {
        let (usage, none) = (TotalUsage::default(), LimitOverrides::default());
        let (raised, last, declined) = (none, none, Vec::new());
        Self { owner, limits, raised, last, declined, usage, unpriced: None, time_ms: 0, active: Vec::new() }
    }

    /// Counts from 0 again.
    fn begin_again(&mut self) {
        let active = std::mem::take(&mut self.active);
        *self = Self { active, ..Self::new(self.owner.clone(), self.limits) };
    }

    /// Its limits, as far as they were raised.
    pub(crate) fn limits(&self) -> Limits {
        self.limits_with(self.raised)
    }

    fn limits_with(&self, raised: LimitOverrides) -> Limits {
        let Limits { calls, tokens, cost, time_ms, .. } = self.limits;
        Limits {
            calls: calls.map(|limit| limit.max(raised.calls.unwrap_or(0))),
            tokens: tokens.map(|limit| limit.max(raised.tokens.unwrap_or(0))),
            cost: cost.map(|limit| limit.max(raised.cost.unwrap_or_default())),
            time_ms: time_ms.map(|limit| limit.max(raised.time_ms.unwrap_or(0))),
            ..self.limits
        }
    }

    /// The totals that allow `more` than the usage so far.
    fn beyond(&self, more: LimitOverrides) -> LimitOverrides {
        more.beyond(&self.usage, (0, self.time_ms))
    }

    /// What is allowed in all if `more` than the usage so far is.
    fn raised_by(&self, more: LimitOverrides) -> LimitOverrides {
        self.beyond(more).or(self.raised)
    }

    /// By how much a person is asked to raise the limit `reached`, up to the totals of `ceiling`. `None` if one was asked before and
    /// did not raise it, or if that would raise nothing.
    pub(super) fn asks_for(&self, reached: &StopReason, ceiling: Allowance) -> Option<LimitOverrides> {
        let now = self.limits();
        let is_it = |declined: &StopReason| declined.code() == reached.code() && now.holds(declined);
        if self.declined.iter().any(is_it) {
            return None;
        }
        now.asked_raise(reached, self.last, self.beyond(reached.next_needs()), ceiling)
    }

    /// How much the limits that are raised to `totals`, which lower none, allow beyond the usage `since_ms` milliseconds after the last event.
    pub(super) fn left_of(&self, totals: LimitOverrides, since_ms: u64) -> LimitOverrides {
        totals.not_below(&self.limits()).less(&self.usage, (0, self.used(since_ms).time_ms))
    }

    /// Why allowing `more` than was used, `since_ms` milliseconds after the last event, raises no limit; `None` if it raises one.
    pub(crate) fn refuses(&self, more: LimitOverrides, since_ms: u64) -> Option<String> {
        let totals = more.beyond(&self.usage, (0, self.used(since_ms).time_ms));
        self.limits().lowered_of(&self.owner.to_string(), totals, &ChatLimits::default())
    }

    /// What allowing `more` than was used by then raises, in words.
    pub(super) fn changes_by(&self, more: LimitOverrides, since_ms: u64) -> Vec<Arc<str>> {
        let totals = more.beyond(&self.usage, (0, self.used(since_ms).time_ms));
        self.limits().changes_to(&self.limits_with(totals.or(self.raised)))
    }

    /// What counts toward its limits, `since_ms` milliseconds after the last event.
    pub(crate) fn used(&self, since_ms: u64) -> RunUsage<'_> {
        let since_ms = if self.active.is_empty() { 0 } else { since_ms };
        let time_ms = self.time_ms.saturating_add(since_ms);
        RunUsage { counted: self.usage.counted(), time_ms, unpriced: self.unpriced.as_ref() }
    }

    /// Notes where a turn or a chat of its owner begins or ends.
    fn follow(&mut self, event: &Event) {
        let (at, body) = (&event.chat, &event.body);
        let begins = match (&self.owner, body) {
            (AllowanceOwner::Chat { path: chat, .. }, Body::Opened(_) | Body::Reopened { .. }) => at == chat,
            (AllowanceOwner::Agent(name), Body::TurnStarted { turns }) => {
                turns.iter().any(|turn| turn.who == *name)
            }
            _ => false,
        };
        let ended = match body {
            Body::Message(message) => Some(&message.from),
            Body::Passed { who } | Body::Left { who, .. } | Body::Stopped { who, .. } => Some(who),
            _ => None,
        };
        if let Some(who) = ended {
            let is_own = matches!(&self.owner, AllowanceOwner::Agent(name) if name == who);
            // A turn can be given up in the middle of a chat that it runs, or of a call.
            self.active.retain(|(path, _)| !(path.is_run_by(at, who) || is_own && path == at));
        }
        match body {
            Body::BackgroundEnded(result) => {
                let task = at.background(&result.who, result.number);
                self.active.retain(|(path, _)| !is_in(path, &task));
            }
            // Background tasks are in none of its turns: those that the turns started are rolled back as well.
            Body::RolledBack { since } => self.active.retain(|(path, begun)| {
                begun < since || !is_in(path, at) || path.as_background_of(at).is_some()
            }),
            // Turns that are open when the outermost chat ends, and the chats in them, continue when it is reopened.
            Body::Closed { .. } if !at.is_root() || self.is_of_chat(at) => {
                self.active.retain(|(path, _)| !is_in(path, at));
            }
            _ => {}
        }
        if begins && !self.active.iter().any(|(path, _)| path == at) {
            self.active.push((at.clone(), event.seq));
        }
    }

    /// What is left of its limits.
    pub(crate) fn left(&self) -> Allowance {
        self.limits().left(self.usage.counted(), 0)
    }

    /// Counts what an event used. Calls in flight at the same time fitted into its limits together: they count no more than is left.
    fn count(&mut self, event: &Event) {
        match &event.body {
            Body::Charged(charge) if charge.why == ChargeReason::Crashed => {
                let Allowance { calls, tokens, cost, .. } = self.left();
                self.usage.charge(&charge.clone().within(calls, tokens, cost));
            }
            _ => self.usage.add_event(event),
        }
    }

    /// Whose it is.
    pub(crate) const fn owner(&self) -> &AllowanceOwner {
        &self.owner
    }

    /// Whether it is that of a chat whose limits can count again: one that is open, or the outermost.
    pub(crate) fn is_of_open_chat(&self) -> bool {
        matches!(&self.owner, AllowanceOwner::Chat { path: at, .. } if at.is_root() || !self.active.is_empty())
    }

    /// Whether it is that of `owner`.
    pub(crate) fn is_of(&self, owner: &AllowanceOwner) -> bool {
        self.owner == *owner
    }

    /// Its limits, with what of them is used. Those that a person can be asked to raise, up to the totals of `ceiling`, lower nothing.
    pub(crate) fn standing(&self, ceiling: Option<Allowance>) -> Standing<'_> {
        let limits = self.limits();
        let limits = ceiling.map_or(limits, |ceiling| limits.at_ceiling(ceiling));
        Standing { of: Some(&self.owner), limits, used: self.usage.counted() }
    }

    fn is_of_chat(&self, path: &Path) -> bool {
        matches!(&self.owner, AllowanceOwner::Chat { path: at, .. } if at == path)
    }

    /// `reason`, with whose limit it is.
    pub(crate) fn refusal(&self, reason: StopReason) -> StopReason {
        StopReason::Allowance { of: self.owner.clone(), limit: Box::new(reason) }
    }
}

impl Accounts {
    /// Sets the limits of `owner`. Returns whether its account is new, or has other limits than before: then the usage so far must be
    /// counted, as calls in flight at a death count no more than is left of the limits.
    pub(crate) fn open(&mut self, owner: &AllowanceOwner, limits: Limits) -> bool {
        if let Some(known) = self.of.iter_mut().find(|account| account.owner == *owner) {
            return std::mem::replace(&mut known.limits, limits) != limits;
        }
        self.of.push(OwnedAccount::new(owner.clone(), limits));
        true
    }

    /// The limits of `owner` if its conversation is reopened for `more`; `None` if it has no account.
    pub(crate) fn limits_for(&self, owner: &AllowanceOwner, more: LimitOverrides) -> Option<Limits> {
        let account = self.of.iter().find(|account| account.owner == *owner)?;
        Some(account.limits_with(account.raised_by(more)))
    }

    /// The same accounts, without usage.
    pub(crate) fn emptied(self) -> Self {
        let empty = |account: OwnedAccount| OwnedAccount::new(account.owner, account.limits);
        Self { of: self.of.into_iter().map(empty).collect(), ..Self::default() }
    }

    /// Counts an event, `ran_ms` of running time after the one before, and the model that it used at an unknown price.
    pub(crate) fn add(&mut self, event: &Event, unpriced: Option<&Arc<str>>, ran_ms: u64) {
        if let Body::Opened(opening) = &event.body
            && let [only] = opening.participants.as_slice()
            && !event.chat.is_root()
            && (event.chat.owner().is_none() || event.chat.is_background())
        {
            self.called.push((event.chat.clone(), only.clone()));
        }
        for account in &mut self.of {
            if !account.active.is_empty() {
                account.time_ms = account.time_ms.saturating_add(ran_ms);
            }
            account.follow(event);
        }
        self.raise(event);
        if self.of.is_empty() {
            return;
        }
        let who = match &event.body {
            Body::ModelReplied(reply) => &reply.who,
            Body::Charged(charge) => &charge.who,
            Body::ToolReturned { who, .. } => who,
            _ => return,
        };
        let Self { of, called, .. } = self;
        for account in of.iter_mut().filter(|account| pays(&account.owner, called, &event.chat, who)) {
            account.count(event);
            account.unpriced = unpriced.cloned().or_else(|| account.unpriced.take());
        }
    }

    /// Raises the limit that closed the conversation, if `event` reopens it for more, or those of the agent or the chat that it names. Notes
    /// what a person is asked to raise. With a message, the outermost chat counts from 0 again.
    fn raise(&mut self, event: &Event) {
        match &event.body {
            Body::Closed { reason, .. } if event.chat.is_root() => {
                self.agreed = None;
                self.stopped = match reason {
                    StopReason::Allowance { of, .. } => Some(of.clone()),
                    _ => None,
                };
            }
            Body::Reopened { message: Some(_), .. } | Body::Reopened { sent: true, .. }
                if event.chat.is_root() =>
            {
                self.stopped = None;
                let of_chat = self.of.iter_mut().filter(|account| account.is_of_chat(&event.chat));
                of_chat.for_each(OwnedAccount::begin_again);
            }
            Body::Reopened { more, .. } if event.chat.is_root() => {
                let stopped = self.stopped.take();
                stopped.into_iter().for_each(|owner| self.allow(&owner, *more, None));
            }
            Body::OwnLimitsRaised { of, more, .. } => {
                let agreed = self.agreed.take_if(|raise| raise.reached.owned().0 == Some(of));
                // What is raised from outside is raised by that, whatever was answered before.
                self.allow(of, *more, agreed.as_ref().filter(|_| event.inbox.is_none()));
            }
            Body::LimitsChanged { .. } => {
                self.agreed.take_if(|raise| raise.reached.owned().0.is_none());
            }
            Body::InputRequired(Question { who, limit: Some(raise), .. }) => {
                self.asked = Some((who.clone(), raise.clone()));
            }
            Body::InputProvided { to, text, .. } if event.chat.is_root() => self.answered(to, text),
            Body::RolledBack { .. } if event.chat.is_root() => (self.asked, self.agreed) = (None, None),
            _ => {}
        }
    }

    /// Allows `owner` `more` than the usage so far, and no more than what a person has `agreed` to, if one was asked.
    fn allow(&mut self, owner: &AllowanceOwner, more: LimitOverrides, agreed: Option<&LimitRaise>) {
        for account in self.of.iter_mut().filter(|account| account.is_of(owner)) {
            let (mut totals, mut last) = (account.beyond(more), more);
            if let Some(agreed) = agreed {
                let limit = agreed.reached.owned().1.limit();
                // Running time may have passed since the answer.
                totals = totals.at_most(limit.plus(agreed.more));
                last = totals.above(limit);
            }
            (account.raised, account.last) = (totals.or(account.raised), last);
        }
    }

    /// Notes the limit that a person raises when asked, or does not.
    fn answered(&mut self, to: &Name, text: &str) {
        let Some((_, raise)) = self.asked.take_if(|(who, _)| *who == *to) else { return };
        if let Some(more) = raise.allowed_by(text) {
            self.agreed = Some(LimitRaise { reached: raise.reached, more });
        } else if let (Some(owner), limit) = raise.reached.owned() {
            let asked = self.of.iter_mut().filter(|account| account.is_of(owner));
            asked.for_each(|account| account.declined.push(limit.clone()));
        }
    }

    /// The limit of the run that a person has allowed to be raised, if no later event raises one.
    pub(crate) fn agreed_of_run(&self) -> Option<&StopReason> {
        self.agreed.as_ref().map(|raise| &raise.reached).filter(|reached| reached.owned().0.is_none())
    }

    /// The account of `owner`.
    pub(crate) fn of(&self, owner: &AllowanceOwner) -> Option<&OwnedAccount> {
        self.of.iter().find(|account| account.owner == *owner)
    }

    /// The accounts of chats whose limits can be raised.
    pub(crate) fn of_open_chats(&self) -> impl Iterator<Item = &OwnedAccount> {
        self.of.iter().filter(|account| account.is_of_open_chat())
    }

    /// The accounts of the chat `at` and of those around it.
    pub(crate) fn around(&self, at: &Path) -> impl Iterator<Item = &OwnedAccount> {
        self.of.iter().filter(move |account| match &account.owner {
            AllowanceOwner::Chat { path: chat, .. } => at == chat || at.is_within(chat),
            AllowanceOwner::Agent(_) | AllowanceOwner::Shared(_) => false,
        })
    }

    /// The accounts that pay for a call of `who` in the chat `at`, with their indices.
    pub(crate) fn paying(&self, at: &Path, who: &Name) -> impl Iterator<Item = (usize, &OwnedAccount)> {
        self.of.iter().enumerate().filter(move |(_, account)| pays(&account.owner, &self.called, at, who))
    }
}

/// Whether `owner` pays for a call of `who` in the chat `at`: an agent for its own calls and for all within its turns,
/// a chat for all within it.
fn pays(owner: &AllowanceOwner, called: &[(Path, Name)], at: &Path, who: &Name) -> bool {
    match owner {
        AllowanceOwner::Chat { path: chat, .. } => at == chat || at.is_within(chat),
        AllowanceOwner::Agent(name) => {
            let runs = |path: &Path| {
                let agent = called.iter().find(|(of, _)| of == path).map(|(_, agent)| agent);
                // A background task has two owners: the agent that started it, and the one that works.
                let is_named = || path.is_named(name);
                agent.is_some_and(|agent| agent == name)
                    || (agent.is_none() || path.is_background()) && is_named()
            };
            who == name || runs(at) || at.ancestors().any(|path| runs(&path))
        }
        // Accounts of several runs are no part of a log.
        AllowanceOwner::Shared(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Opening, Timestamp, TurnRequest};

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    /// Whether time counts for `owner` after these events.
    fn is_active(owner: AllowanceOwner, bodies: &[(Path, Body)]) -> bool {
        let mut account = OwnedAccount::new(owner, Limits::default());
        for (seq, (at, body)) in (0..).zip(bodies.iter().cloned()) {
            account.follow(&Event { seq, chat: at, time: Timestamp(0), ran_ms: 0, inbox: None, body });
        }
        account.used(5).time_ms == 5
    }

    #[test]
    fn no_time_counts_for_an_agent_after_its_turn_is_given_up() {
        let (root, host) = (Path::root(), name("Host"));
        let (nested, task) = (root.child(&host, 1), root.background(&host, 1));
        let called = root.agent("Host").unwrap().agent("Ann").unwrap();
        let begin =
            |at: &Path| (at.clone(), Body::TurnStarted { turns: vec![TurnRequest::to_all(name("Ann"))] });
        let undone = |at: &Path, since| (at.clone(), Body::RolledBack { since });
        let passed = (root.clone(), Body::Passed { who: host });
        for (bodies, counts) in [
            ([begin(&root), undone(&root, 0)], false),
            ([begin(&nested), undone(&root, 0)], false),
            ([begin(&nested), passed.clone()], false),
            ([begin(&called), passed.clone()], false),
            ([begin(&task), undone(&task, 0)], false),
            // It began before, or in a task that is not rolled back.
            ([begin(&root), undone(&root, 1)], true),
            ([begin(&task), undone(&root, 0)], true),
            ([begin(&task), passed.clone()], true),
            ([begin(&root), passed], true),
        ] {
            assert_eq!(is_active(AllowanceOwner::Agent(name("Ann")), &bodies), counts, "{bodies:?}");
        }
    }

    /// Others can have calls there, such as the planner of an orchestrator. The one who is called pays for all.
    #[test]
    fn the_only_participant_of_the_outermost_chat_pays_for_its_own_calls_alone() {
        let (root, ann) = (Path::root(), name("Ann"));
        for (at, who, is_paid) in [
            (root.clone(), "Ann", true),
            (root.clone(), "Planner", false),
            (root.agent("helper").unwrap(), "Ann", true),
            (root.agent("helper").unwrap(), "Planner", true),
        ] {
            let mut accounts = Accounts::default();
            accounts.open(&AllowanceOwner::Agent(ann.clone()), Limits::default());
            let body = Body::Opened(Opening { participants: vec![ann.clone()], ..Opening::default() });
            let event = Event { seq: 0, time: Timestamp(0), ran_ms: 0, chat: at.clone(), inbox: None, body };
            accounts.add(&event, None, 0);
            assert_eq!(accounts.paying(&at, &name(who)).count(), usize::from(is_paid), "{who} in `{at}`");
        }
    }

    #[test]
    fn the_time_of_a_nested_chat_still_counts_after_the_outermost_one_ends_at_a_limit_and_is_reopened() {
        let (root, desk) = (Path::root(), name("desk"));
        let at = root.child(&desk, 1);
        let opened = |at: &Path| (at.clone(), Body::Opened(Opening::default()));
        let closed = || Body::Closed { reason: StopReason::Calls { limit: 1 }, summary: Arc::from("") };
        for (path, counts) in [(at.clone(), true), (root.clone(), false)] {
            let owner = AllowanceOwner::Chat { name: desk.clone(), path };
            let bodies = [opened(&root), opened(&at), (root.clone(), closed())];
            assert_eq!(is_active(owner, &bodies), counts);
        }
        let owner = AllowanceOwner::Chat { name: desk, path: at.clone() };
        assert!(!is_active(owner, &[opened(&root), opened(&at), (at, closed())]));
    }

    #[test]
    fn usage_is_counted_again_when_limits_are_others() {
        let (mut accounts, owner) = (Accounts::default(), AllowanceOwner::Agent(name("Ann")));
        let limits = |calls| Limits { calls: Some(calls), ..Limits::default() };
        let counted = [1, 1, 2, 2].map(|calls| accounts.open(&owner, limits(calls)));
        assert_eq!(counted, [true, false, true, false]);
    }

    #[test]
    fn what_is_raised_from_outside_is_not_held_to_an_earlier_answer() {
        let (at, owner) = (Path::root(), AllowanceOwner::Agent(name("Ann")));
        let calls = |calls| LimitOverrides { calls: Some(calls), ..LimitOverrides::default() };
        let limit = Box::new(StopReason::Calls { limit: 2 });
        let raise =
            LimitRaise { reached: StopReason::Allowance { of: owner.clone(), limit }, more: calls(2) };
        let to = name("main");
        let asked = Body::InputRequired(Question::about_limit(to.clone(), raise));
        let yes = Body::InputProvided { to, text: "yes".into(), by: Default::default() };
        let closed = Body::Closed { reason: StopReason::Finished, summary: Arc::from("") };
        let undone = Body::RolledBack { since: 0 };
        for (between, inbox, limit) in
            [(None, None, 4), (None, Some(1), 20), (Some(closed), None, 20), (Some(undone), None, 20)]
        {
            let mut accounts = Accounts::default();
            accounts.open(&owner, Limits { calls: Some(2), ..Limits::default() });
            let (of, more) = (owner.clone(), calls(20));
            let raised = Body::OwnLimitsRaised { of, more, changes: Vec::new(), by: None };
            let bodies = [asked.clone(), yes.clone()].into_iter().chain(between.clone()).chain([raised]);
            for (seq, body) in (0..).zip(bodies) {
                let (at, time) = (at.clone(), Timestamp(0));
                accounts.add(&Event { seq, chat: at, time, ran_ms: 0, inbox, body }, None, 0);
            }
            let limits = accounts.of(&owner).map(OwnedAccount::limits);
            assert_eq!(limits.and_then(|limits| limits.calls), Some(limit), "{between:?}, {inbox:?}");
        }
    }

    #[test]
    fn the_time_of_a_chat_still_counts_after_turns_in_it_are_rolled_back() {
        let root = Path::root();
        let opened = (root.clone(), Body::Opened(Opening::default()));
        for since in [0, 1] {
            let owner = AllowanceOwner::Chat { name: name("main"), path: root.clone() };
            let bodies = [opened.clone(), (root.clone(), Body::RolledBack { since })];
            assert_eq!(is_active(owner, &bodies), since == 1, "since {since}");
        }
    }
}
