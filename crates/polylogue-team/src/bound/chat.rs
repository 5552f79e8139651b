//! What a run of a chat takes: its opening, its pattern, its summary.

use polylogue::{Name, Result};
use polylogue_core::{InputTokens, Params};

use super::amount::Effect;
use super::case::{MESSAGE, PROMPT, filled};
use super::scene::{Messages, Scene, overhead};
use super::walk::{Walk, introduction};
use crate::build::AgentBuilder;
use crate::chat::{Chat, Introductions, Summary};
use crate::condition::{Condition, Verdict};
use crate::pattern::Pattern;
use crate::private_agents::PrivateRole;
use crate::stop::Stop;

/// Conditions are looked at for so many turns.
const CONDITION: u64 = 200;

impl Walk<'_> {
    /// A run of `chat`, called `name`, with a task of `task` bytes after an `earlier` conversation. What it keeps is the
    /// whole conversation.
    pub(super) fn chat<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        (name, chat): (&Name, &'a Chat),
        (task, earlier): (u128, u128),
        owners: &[Name],
    ) -> Result<Effect> {
        let mut scene = Scene::new(name, task, owners);
        scene.begin_after(earlier);
        scene.shared = earlier.saturating_add(introductions(builder, chat));
        let own = match &chat.pattern {
            Pattern::RolePlay(role_play) => self.added(builder, role_play)?.opening.with(task),
            _ => 0,
        };
        let pages = self.open(builder, &mut scene, chat, own);
        scene.pin();
        scene.background.extend(crate::text::values(&chat.background.participants));
        // Neither the task nor the opening is a result.
        scene.said = 0;
        // Not before the opening, which may not count.
        scene.messages = turns_with_messages(chat);
        if self.opening.is_none() {
            self.opening = Some(scene.shared.saturating_add(task).saturating_add(own));
            self.opening_pages = pages;
        }
        self.pattern(builder, &mut scene, (name, chat))?;
        let mut said = self.summary(builder, &mut scene, (name, chat))?;
        // A chat that waits for turns in the background would end again after each of their results.
        let results = self.most_results(chat);
        for _ in 0..self.case.times(results, 0) {
            said = self.summary(builder, &mut scene, (name, chat))?;
        }
        if chat.takes_follow_ups() {
            let everyone: Vec<&Name> = chat.everyone().map(|who| &who.value).collect();
            for _ in 0..self.case.times(chat.background.max_follow_ups.into(), 1) {
                let before = scene.sum.total.calls;
                self.follow_ups(builder, &mut scene, &everyone, 1)?;
                // The chat would end again after each of them.
                for _ in everyone.iter().take(if scene.sum.total.calls > before { usize::MAX } else { 0 }) {
                    said = self.summary(builder, &mut scene, (name, chat))?;
                }
            }
        }
        let kept = scene.said_again();
        self.free = scene.free;
        let result = if chat.pattern.part().has_own_result() { scene.longest } else { scene.said };
        Ok(Effect { sum: scene.sum, message: said.unwrap_or(result), kept, free: 0 })
    }

    /// Posts the messages with which `chat` begins, besides its `own` of so many bytes, and returns the pages of documents in them. What the
    /// caller attaches to one of those of the outermost chat counts as another message, which is as long as both.
    fn open(&mut self, builder: &AgentBuilder<'_>, scene: &mut Scene, chat: &Chat, own: u128) -> u64 {
        let (mut pages, mut longest) = (0_u64, own);
        for line in &chat.opening.0 {
            let attached = self.attached(&line.media);
            pages = pages.saturating_add(attached.pages);
            let bytes = filled(&line.text, scene.task).saturating_add(self.bytes_of(attached));
            longest = longest.max(bytes);
            scene.post(introduction(builder.team, &line.from), bytes);
        }
        let by_caller = self.by_caller;
        if self.opening.is_none() && by_caller != InputTokens::default() {
            pages = pages.saturating_add(by_caller.pages);
            let bytes = self.bytes_of(by_caller).saturating_add(longest);
            scene.post(introduction(builder.team, &Name::user()), bytes);
        }
        pages
    }

    /// The most results of turns in the background for which `chat` waits before its summary.
    fn most_results(&mut self, chat: &Chat) -> u128 {
        let participants = chat.background.participants.len() as u128;
        if participants == 0 || !matches!(chat.summary, Summary::Reflect(_)) {
            return 0;
        }
        // Each of them is two turns.
        let turns = self.turns(chat).div_ceil(2);
        if chat.pattern.part().has_one_turn_each() { participants.min(turns) } else { turns }
    }

    /// The most turns of `chat`.
    pub(super) fn turns(&mut self, chat: &Chat) -> u128 {
        let own = self.turns_by_stop(chat);
        let limits = own.into_iter().chain(self.max_turns);
        let most = limits.fold(*chat.max_turns, u64::min);
        self.case.turns(most.into(), chat.everyone().count())
    }

    /// The most turns by the stop condition of `chat`. A nested chat runs often, and its conditions are texts.
    fn turns_by_stop(&mut self, chat: &Chat) -> Option<u64> {
        let stop = chat.stop.as_ref()?;
        let key = std::ptr::from_ref(chat).addr();
        *self.computed.stops.entry(key).or_insert_with(|| most_turns(stop, chat))
    }

    /// The summary of a chat, if a model writes it.
    fn summary<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        (name, chat): (&Name, &'a Chat),
    ) -> Result<Option<u128>> {
        let Summary::Reflect(reflect) = &chat.summary else { return Ok(None) };
        let prompt = filled(&reflect.prompt, scene.task);
        if let Some(by) = &reflect.by {
            return self.ask(builder, scene, by, prompt).map(Some);
        }
        let Some(author) = PrivateRole::Summary.of(name) else { return Ok(None) };
        let params = Params::from(reflect.parameters.value.clone());
        let default =
            if params.max_tokens.is_some() { 0 } else { polylogue::Assistant::DEFAULT_MAX_CONTINUATIONS };
        let continuations = reflect.parameters.max_continuations.unwrap_or(default).into();
        let model = reflect.model.as_deref().map(String::as_str);
        let speaker = self.private(builder, &author, (model, params), (0, continuations))?;
        let mut effect = speaker.turn(self.case, scene.shared.saturating_add(prompt), 0);
        effect.sum.base = effect.sum.base.saturating_add(prompt);
        self.note(&scene.chat, author.as_str(), effect.sum);
        scene.sum.add(effect.sum);
        Ok(Some(effect.message))
    }
}

/// Bytes of the introduction that every participant receives.
fn introductions(builder: &AgentBuilder<'_>, chat: &Chat) -> u128 {
    match &*chat.introductions {
        Introductions::Others(false) => 0,
        Introductions::Others(true) => {
            let each =
                |who: &Name| builder.team.description_of(who).len() as u128 + overhead(who.as_str().len());
            chat.everyone().map(|who| each(who)).fold(PROMPT, u128::saturating_add)
        }
        Introductions::Text(text) => text.len() as u128 + MESSAGE,
    }
}

/// The turns with messages, in a chat whose number of messages is limited. Where any participant can speak in each turn, the other turns are
/// as late as they can be: between two messages there are only so many until the chat is a loop.
fn turns_with_messages(chat: &Chat) -> Messages {
    use crate::pattern::SelectSpeaker;
    let Some(most) = chat.stop.as_ref().and_then(most_messages) else { return Messages::All };
    let is_any = match &chat.pattern {
        Pattern::Group(group) => !matches!(group.select, SelectSpeaker::RoundRobin),
        _ => false,
    };
    match chat.loop_detection.silence as u128 {
        silence if is_any && silence > 0 => Messages::Every(silence, 0),
        _ => Messages::First(most.into()),
    }
}

/// The messages after which a chat ends at the latest, if `stop` limits them.
fn most_messages(stop: &Stop) -> Option<u64> {
    stop.max_messages.into_iter().chain(stop.any.iter().filter_map(most_messages)).min()
}

/// The turns after which a chat ends at the latest, if `stop` limits them.
pub(super) fn most_turns(stop: &Stop, chat: &Chat) -> Option<u64> {
    let each = |stop: &Stop| most_turns(stop, chat);
    let all: Option<Vec<u64>> = stop.all.iter().map(each).collect();
    let all = all.filter(|turns| !turns.is_empty()).and_then(|turns| turns.into_iter().max());
    let any = stop.any.iter().filter_map(each).min();
    // Between two messages, so many turns can be without one until the chat is a loop.
    let silence = u64::try_from(chat.loop_detection.silence).ok().filter(|turns| *turns > 0);
    let messages = stop.max_messages.zip(silence).map(|(count, silence)| count.saturating_mul(silence));
    stop.max_turns.into_iter().chain(messages).chain(when(stop, chat)).chain(all).chain(any).min()
}

/// The turns after which the condition of `stop` holds from then on, if it depends on the number of turns.
fn when(stop: &Stop, chat: &Chat) -> Option<u64> {
    let condition = Condition::compile(stop.when.as_ref()?).ok()?;
    let holds =
        |turns: &u64| chat.everyone().all(|who| condition.after(*turns, who.as_str()) == Verdict::Holds);
    let most = (*chat.max_turns).min(CONDITION);
    let fails = |turns: &u64| !holds(turns);
    let first = (1..=most).rev().find(fails).map_or(1, |last| last + 1);
    (first <= most).then_some(first)
}
