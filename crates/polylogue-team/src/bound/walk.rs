//! Walks through a team: what its chats and agents take at most.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use polylogue::tasks::RolePlay;
use polylogue::tasks::role_play::AddedTexts;
use polylogue::{Name, Result};
use polylogue_config::At;
use polylogue_core::{Bound, InputTokens, Model as _, Params};

use super::amount::{Effect, Sum};
use super::case::{Case, MESSAGE, Quoting};
use super::model;
use super::scene::{Free, Scene};
use super::speaker::Speaker;
use super::summaries;
use crate::agent::{Agent, ModelKeys};
use crate::build::{AgentBuilder, BuildScope};
use crate::pattern::Media;
use crate::team::Team;

/// Chats within chats that are looked into. The limit on depth of every run is lower.
const DEPTH: usize = 64;

/// How the model of an agent is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Whole,
    /// Without its tools and its output schema.
    WithoutTools,
}

/// Bytes of the texts that a role-play adds to the requests of its agents.
#[derive(Debug, Clone, Copy)]
pub(super) struct Added {
    /// The opening message to the user role.
    pub(super) opening: Quoting,
    /// The rules of both roles and of the critic.
    pub(super) user: Quoting,
    pub(super) assistant: Quoting,
    pub(super) critic: Quoting,
    /// The role and the prompt of the specifier, and of the planner.
    pub(super) specifier: Quoting,
    pub(super) planner: Quoting,
    /// The sentence on the language in prompts of the critic.
    pub(super) language: u128,
}

impl Added {
    pub(super) fn of(role_play: &RolePlay) -> Self {
        let of = |bytes: fn(&AddedTexts) -> usize| Quoting::of(|task| bytes(&role_play.added_texts(task)));
        Self {
            opening: of(|texts| texts.opening.len()),
            user: of(|texts| texts.user.len()),
            assistant: of(|texts| texts.assistant.len()),
            critic: of(|texts| texts.critic.len()),
            specifier: of(|texts| texts.specifier.iter().map(String::len).sum()),
            planner: of(|texts| texts.planner.iter().map(String::len).sum()),
            language: role_play.added_texts("").language.len() as u128,
        }
    }
}

/// What depends on no history, and is computed once: shared by the three cases.
#[derive(Default)]
pub(super) struct Computed {
    /// Agents as they are asked, by team and name.
    pub(super) speakers: BTreeMap<(Name, Name, Kind), Rc<Speaker>>,
    /// The most turns by the stop conditions of chats, by the address of the chat: all are part of one team, which does not move.
    pub(super) stops: BTreeMap<usize, Option<u64>>,
    /// The texts of role-plays, by the address of the role-play.
    pub(super) added: BTreeMap<usize, Added>,
    /// What agents execute for others, by team and name.
    pub(super) executed: BTreeMap<(Name, Name), Executed>,
    /// What is attached to messages, by the address of the list.
    attached: BTreeMap<usize, InputTokens>,
}

/// What an agent executes for others.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Executed {
    /// The most bytes of a result.
    pub(super) longest: u128,
    /// The most picodollars that a call costs.
    pub(super) cost: u128,
    /// The longest reply of a model of the team, in tokens, whose message can suggest calls.
    pub(super) reply: u128,
}

/// A run of a chat within others, which adds the same whenever it has the same task.
pub(super) struct InnerRun {
    pub(super) effect: Effect,
    pub(super) rows: BTreeMap<(String, String), Sum>,
    pub(super) free: Free,
}

/// The address of a chat within others, how deep it runs, the bytes of its task and of what it continues, and in whose turns it runs.
type InnerKey = (usize, usize, u128, u128, Vec<Name>);

/// One walk through a team, in one case.
pub(super) struct Walk<'s> {
    /// The outermost team.
    pub(super) root: &'s Team,
    pub(super) case: Case,
    /// The most model calls of the run.
    pub(super) max_calls: u128,
    /// The most turns of the run, if they are limited.
    pub(super) max_turns: Option<u64>,
    pub(super) computed: &'s mut Computed,
    /// What each agent takes, by chat and agent.
    pub(super) rows: BTreeMap<(String, String), Sum>,
    /// Models without a known price, and without a known length of replies.
    pub(super) unpriced: BTreeSet<String>,
    pub(super) unlimited: BTreeSet<String>,
    /// Agents whose replies have no known length, by team.
    pub(super) unlimited_agents: BTreeMap<Name, BTreeSet<Name>>,
    /// Models whose replies can have seals.
    pub(super) sealing: BTreeSet<String>,
    /// Bytes of the task and of the messages with which the outermost chat begins.
    pub(super) opening: Option<u128>,
    /// The pages of documents in these.
    pub(super) opening_pages: u64,
    /// What the caller attaches to the messages with which the outermost chat begins.
    pub(super) by_caller: InputTokens,
    /// The most tokens of a page of a document for any model of the team.
    page_tokens: u64,
    /// Bytes that were added to histories without a model call in the chat that ended last.
    pub(super) free: Free,
    /// Whether people write messages.
    pub(super) has_people: bool,
    /// Chats within others that ran already.
    pub(super) inner_runs: BTreeMap<InnerKey, Rc<InnerRun>>,
    pub(super) depth: usize,
}

/// The most bytes before a message of `who` in views: its name, or the longest prefix that an agent of `team` has for it.
pub(super) fn introduction(team: &Team, who: &Name) -> usize {
    longest_prefix(team, |author| author == who).max(who.as_str().len())
}

/// The bytes of the longest prefix, with the line after it, that an agent of `team` has for an author such as `is_meant`.
pub(super) fn longest_prefix(team: &Team, is_meant: impl Fn(&Name) -> bool) -> usize {
    let prefixes = team.agents.iter().filter_map(Agent::model).flat_map(|keys| &keys.view.prefix);
    let meant = prefixes.filter(|(author, _)| is_meant(author)).map(|(_, text)| text.len() + 2);
    meant.max().unwrap_or_default()
}

impl<'s> Walk<'s> {
    pub(super) fn new(
        root: &'s Team,
        case: Case,
        (max_calls, max_turns): (u64, Option<u64>),
        page_tokens: u64,
        computed: &'s mut Computed,
    ) -> Self {
        Self {
            root,
            case,
            max_calls: max_calls.into(),
            max_turns,
            page_tokens,
            computed,
            rows: BTreeMap::new(),
            unpriced: BTreeSet::new(),
            unlimited: BTreeSet::new(),
            unlimited_agents: BTreeMap::new(),
            sealing: BTreeSet::new(),
            opening: None,
            opening_pages: 0,
            by_caller: InputTokens::default(),
            free: Free::default(),
            has_people: false,
            inner_runs: BTreeMap::new(),
            depth: 0,
        }
    }

    /// What `media` adds to a request, as calls are reserved. Pages are counted once.
    pub(super) fn attached(&mut self, media: &[At<Media>]) -> InputTokens {
        let found = self.computed.attached.entry(media.as_ptr().addr()).or_insert_with(|| {
            let each = media.iter().filter_map(|media| media.part()).map(|media| media.input_tokens());
            each.fold(InputTokens::default(), InputTokens::and)
        });
        let usual = Bound::MEDIA_TOKENS.saturating_mul(media.len() as u64);
        if self.case.is_typical() { InputTokens { all: found.all.min(usual), ..*found } } else { *found }
    }

    /// As how many bytes of a request these count.
    pub(super) fn bytes_of(&self, attached: InputTokens) -> u128 {
        attached.with_pages(self.page_tokens).into()
    }

    /// How often a request of an agent with these `keys` is sent at most.
    pub(super) fn attempts_of(&self, builder: &AgentBuilder<'_>, keys: &ModelKeys) -> u128 {
        builder.attempts_of(self.root, keys.model.as_ref().map(|model| model.as_str()))
    }

    /// Runs `inner` one level deeper; nothing below the deepest level.
    pub(super) fn deeper<T: Default>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= DEPTH {
            return Ok(T::default());
        }
        self.depth += 1;
        let done = inner(self);
        self.depth -= 1;
        done
    }

    /// Counts what `who` took in a chat.
    pub(super) fn note(&mut self, chat: &str, who: &str, sum: Sum) {
        self.rows.entry((chat.to_owned(), who.to_owned())).or_default().add(sum);
    }

    /// Notes what is unknown of the models of `who` in `team`, their price or the length of replies, and whether they
    /// return seals.
    pub(super) fn note_model(&mut self, speaker: &Speaker, (team, who): (&Name, &Name)) {
        if speaker.can_seal() {
            self.sealing.insert(speaker.model.name().to_owned());
        }
        for (of, params) in speaker.models() {
            if model::is_unpriced(of, params) {
                self.unpriced.insert(of.name().to_owned());
            }
            if model::is_unlimited(of, params) {
                self.unlimited.insert(of.name().to_owned());
                self.unlimited_agents.entry(team.clone()).or_default().insert(who.clone());
            }
        }
    }

    /// The speaker of `who` in `team`, made once.
    fn speaker(
        &mut self,
        team: &Name,
        (who, kind): (&Name, Kind),
        make: impl FnOnce() -> Result<Speaker>,
    ) -> Result<Rc<Speaker>> {
        let key = (team.clone(), who.clone(), kind);
        let found = match self.computed.speakers.get(&key) {
            Some(found) => Rc::clone(found),
            None => {
                let made = Rc::new(make()?);
                self.computed.speakers.insert(key, Rc::clone(&made));
                made
            }
        };
        self.note_model(&found, (team, who));
        Ok(found)
    }

    /// `agent` as its model is asked, with its tools.
    pub(super) fn assistant<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        agent: &'a Agent,
        keys: &'a ModelKeys,
    ) -> Result<Rc<Speaker>> {
        let (attempts, root) = (self.attempts_of(builder, keys), self.root);
        self.speaker(builder.name, (&agent.name, Kind::Whole), || {
            let assistant = builder.assistant(agent, keys, &BuildScope::default())?;
            let model = builder.model_of(&agent.name, keys.model.as_ref().map(|model| model.as_str()))?;
            let speaker = Speaker::of(agent, keys, &assistant, model)?.with_attempts(attempts);
            let summaries = summaries::of_agent(root, builder, (agent, keys), speaker.default_summaries())?;
            Ok(speaker.compacted(summaries))
        })
    }

    /// `agent` without its tools and its output schema.
    pub(super) fn without_tools<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        agent: &'a Agent,
        keys: &'a ModelKeys,
    ) -> Result<Rc<Speaker>> {
        let (attempts, root) = (self.attempts_of(builder, keys), self.root);
        self.speaker(builder.name, (&agent.name, Kind::WithoutTools), || {
            let assistant = builder.assistant_without_tools(agent, keys)?;
            let model = builder.model_of(&agent.name, keys.model.as_ref().map(|model| model.as_str()))?;
            let plain = Speaker::of(agent, keys, &assistant, model)?;
            let speaker = plain.without_form().with_attempts(attempts);
            let summaries = summaries::of_agent(root, builder, (agent, keys), speaker.default_summaries())?;
            Ok(speaker.compacted(summaries))
        })
    }

    /// A private agent of the pattern or of the summary, with a system message of `system` bytes.
    pub(super) fn private(
        &mut self,
        builder: &AgentBuilder<'_>,
        who: &Name,
        (model, params): (Option<&str>, Params),
        (system, continuations): (u128, u128),
    ) -> Result<Rc<Speaker>> {
        let attempts = builder.attempts_of(self.root, model);
        self.speaker(builder.name, (who, Kind::Whole), || {
            let speaker = Speaker::plain(builder.model_of(who, model)?, params, system, continuations);
            Ok(speaker.with_attempts(attempts))
        })
    }

    /// Adds a turn of one of `names` that all participants see.
    pub(super) fn say<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        names: &[&Name],
    ) -> Result<()> {
        let (mut most, mut longest) = (Effect::default(), 0);
        scene.is_silent = scene.messages.is_over();
        for who in names {
            let effect = self.participant(builder, scene, who)?;
            scene.keep(who.as_str(), effect.kept);
            longest = longest.max(introduction(builder.team, who));
            most = most.max(effect);
        }
        scene.is_silent = false;
        scene.take(longest, most);
        scene.post_of_turn(longest, most.message);
        Ok(())
    }

    /// Adds a turn of each of `names`, none of which sees the messages of the others.
    pub(super) fn say_at_once<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        names: &[&Name],
    ) -> Result<()> {
        let mut messages = Vec::new();
        for who in names {
            let effect = self.participant(builder, scene, who)?;
            scene.keep(who.as_str(), effect.kept);
            let introduction = introduction(builder.team, who);
            scene.take(introduction, effect);
            messages.push((introduction, effect.message));
        }
        messages.into_iter().for_each(|(introduction, bytes)| scene.post(introduction, bytes));
        Ok(())
    }

    /// Adds a private turn of `who`, with a prompt of `prompt` bytes. Returns the bytes of its answer.
    pub(super) fn ask<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        who: &Name,
        prompt: u128,
    ) -> Result<u128> {
        scene.keep(who.as_str(), prompt.saturating_add(MESSAGE));
        let effect = self.prompted(builder, scene, who, prompt)?;
        scene.sum.add(effect.sum);
        let free = effect.free.saturating_add(prompt).saturating_add(2 * MESSAGE);
        scene.free.prompts = scene.free.prompts.saturating_add(free);
        let said = effect.message.saturating_add(effect.kept);
        scene.keep(who.as_str(), said.saturating_add(MESSAGE));
        Ok(effect.message)
    }

    /// A turn of `who`, which answers a prompt of `prompt` bytes.
    pub(super) fn prompted<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        who: &Name,
        prompt: u128,
    ) -> Result<Effect> {
        let longest = scene.longest;
        scene.longest = longest.max(prompt);
        let effect = self.participant(builder, scene, who);
        scene.longest = longest;
        effect
    }

    /// Does `act`, and returns what it took apart from what `scene` took before.
    pub(super) fn apart<T>(
        &mut self,
        scene: &mut Scene,
        act: impl FnOnce(&mut Self, &mut Scene) -> Result<T>,
    ) -> Result<(T, Sum)> {
        let before = std::mem::take(&mut scene.sum);
        let done = act(self, scene)?;
        Ok((done, std::mem::replace(&mut scene.sum, before)))
    }

    /// Repeats `step` `count` times: it is done `cycle` times until it is the same again. What exceeds the limit on model
    /// calls is not walked through: only the largest calls matter there.
    pub(super) fn repeat(
        &mut self,
        scene: &mut Scene,
        (count, cycle): (u128, u128),
        mut step: impl FnMut(&mut Self, &mut Scene, u128) -> Result<()>,
    ) -> Result<()> {
        const STEPS: u128 = 500;
        let cycle = cycle.max(1);
        let mut done = 0;
        while done < count {
            let is_far = done >= cycle && (done >= STEPS || scene.sum.total.calls >= self.max_calls);
            if is_far && count - done > cycle {
                return self.jump(scene, (count - done, cycle), step);
            }
            step(self, scene, done)?;
            done += 1;
        }
        Ok(())
    }

    /// Adds `left` more steps as if each was the last one.
    fn jump(
        &mut self,
        scene: &mut Scene,
        (left, cycle): (u128, u128),
        mut step: impl FnMut(&mut Self, &mut Scene, u128) -> Result<()>,
    ) -> Result<()> {
        let before = scene.clone();
        let mut steps =
            |walk: &mut Self, scene: &mut Scene| (0..cycle).try_for_each(|nth| step(walk, scene, nth));
        steps(self, scene)?;
        let cycles = left.div_ceil(cycle).saturating_sub(1);
        scene.grow(&before, cycles);
        let (sum, rows) = (std::mem::take(&mut scene.sum), self.rows.clone());
        steps(self, scene)?;
        let each = std::mem::replace(&mut scene.sum, sum);
        scene.sum.add_times(each, cycles);
        for (key, row) in &mut self.rows {
            let then = rows.get(key).copied().unwrap_or_default();
            let total = row.total.less(then.total);
            row.add_times(Sum { total, ..*row }, cycles.saturating_sub(1));
        }
        Ok(())
    }
}
