//! Debates: rounds of arguments, then a vote.
//!
//! Participants argue for some rounds, in parallel or one by one; then each voter votes in a private turn, so that no
//! vote influences another. The votes are in the log, in the words of the voters, and [`Debate::tallies`] counts them
//! at any time.
//!
//! # Three agents decide what to build
//! ```
//! use polylogue::policies::debate::{Debate, Tie};
//! use polylogue::{AnyModel, Assistant, Chat};
//! # fn example(model: AnyModel) -> polylogue::Result<Chat> {
//! let debate = Debate::between(["a bench", "twenty apple trees", "a playground"])?.rounds(2).tie(Tie::Again(1));
//! let council = ["Ann", "Bob", "Cem"].into_iter().try_fold(Chat::builder("council"), |council, who| {
//!     Ok::<_, polylogue::kernel::data::NameError>(council.participant(Assistant::new(who, model.clone())?))
//! })?;
//! let council = council.policy(debate).build()?;
//! # Ok(council)
//! # }
//! ```

mod ballot;

use std::sync::Arc;

use crate::stop::LibraryStopReason;
use polylogue_core::{
    MessageSource, Name, PatternError, Policy, Result, Step, StopReason, Transcript, TranscriptMessage,
    TurnRequest, text,
};

use crate::policies::replay::{Kind, Replay, is_present, joined};

/// The tie-breaking rule when several options have the most votes. Without votes all options are tied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Tie {
    /// The first of them, in the order of the options; without votes, undecided.
    #[default]
    First,
    /// This participant or private agent breaks the tie, in a private turn. Without a clear answer, undecided.
    Chair(Name),
    /// Holds this number of further rounds, each with a vote. If the last ends in a tie, undecided.
    Again(u32),
    /// The debate ends undecided.
    Undecided,
}

/// Rounds of arguments, then a vote: a [`Policy`].
///
/// The summary of the chat is the winning option, verbatim. When nothing is decided, the stop reason is
/// [`LibraryStopReason::Undecided`], and the summary lists the votes; without any vote, also each participant's last argument.
#[derive(Clone, derive_more::Debug)]
#[must_use]
pub struct Debate {
    options: Vec<String>,
    rounds: u32,
    in_turn: bool,
    debaters: Vec<Name>,
    voters: Vec<Name>,
    tie: Tie,
    #[debug(skip)]
    ask: AskFn,
}

/// Makes the question to voters from the options.
type AskFn = Arc<dyn Fn(&[String]) -> String + Send + Sync>;

/// The result of one vote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoteResult {
    /// The option that each voter chose, in the order of the voters; `None` is an abstention.
    pub votes: Vec<(Name, Option<usize>)>,
    /// The number of votes of each option.
    pub counts: Vec<u64>,
}

impl VoteResult {
    fn of(votes: Vec<(Name, Option<usize>)>, options: usize) -> Self {
        let count = |option| votes.iter().filter(|(_, vote)| *vote == Some(option)).count() as u64;
        Self { counts: (0..options).map(count).collect(), votes }
    }

    /// Returns the options with the most votes; all when there are no votes.
    pub fn first(&self) -> Vec<usize> {
        let most = self.counts.iter().max().copied().unwrap_or_default();
        (0..).zip(&self.counts).filter(|(_, count)| **count == most).map(|(option, _)| option).collect()
    }
}

/// The next step of the debate, or its result.
enum Stage {
    Turns(Vec<TurnRequest>),
    /// The option, and the chair if it decided.
    Decided(usize, Option<Name>),
    Undecided,
}

impl Debate {
    /// Creates a debate between `options`: one parallel round in which all participants argue and vote.
    ///
    /// # Errors
    /// When there are fewer than two options, or two are too similar.
    pub fn between<O: Into<String>>(options: impl IntoIterator<Item = O>) -> Result<Self> {
        let options: Vec<String> =
            options.into_iter().map(|option| option.into().trim().to_owned()).collect();
        if options.len() < 2 {
            return Err(PatternError::TooFew { of: "a vote", what: "option", least: 2 }.into());
        }
        for (index, option) in options.iter().enumerate() {
            if option.is_empty() {
                return Err(PatternError::Blank { what: "an option of a vote".into() }.into());
            }
            let same = |other: &String| ballot::bare(other) == ballot::bare(option);
            if options.iter().take(index).any(same) {
                return Err(PatternError::ListedTwice { kind: "option", name: option.clone() }.into());
            }
        }
        let (debaters, voters) = (Vec::new(), Vec::new());
        let ask: AskFn = Arc::new(ballot_paper);
        Ok(Self { options, rounds: 1, in_turn: false, debaters, voters, tie: Tie::default(), ask })
    }

    /// Sets the number of rounds of arguments; with 0 there is only a vote.
    pub fn rounds(self, rounds: u32) -> Self {
        Self { rounds, ..self }
    }

    /// Makes participants argue one after the other, so that each sees the arguments before.
    pub fn one_by_one(self) -> Self {
        Self { in_turn: true, ..self }
    }

    /// Sets who argues. Default: all participants.
    pub fn debaters(self, names: impl IntoIterator<Item = Name>) -> Self {
        Self { debaters: names.into_iter().collect(), ..self }
    }

    /// Sets who votes: participants, or a jury of private agents. Default: all participants.
    pub fn voters(self, names: impl IntoIterator<Item = Name>) -> Self {
        Self { voters: names.into_iter().collect(), ..self }
    }

    /// Sets the tie-breaking rule.
    pub fn tie(self, tie: Tie) -> Self {
        Self { tie, ..self }
    }

    /// Sets the question to voters, made from the options. The answer must be an option, its number from 1, or a text
    /// that mentions only one of them.
    pub fn ask(self, text: impl Fn(&[String]) -> String + Send + Sync + 'static) -> Self {
        Self { ask: Arc::new(text), ..self }
    }

    /// Returns the finished votes of `chat`, in order: several after ties.
    pub fn tallies(&self, chat: &Transcript) -> Vec<VoteResult> {
        let mut tallies = Vec::new();
        self.stage(chat, &mut tallies);
        tallies
    }

    /// Replays the debate from its start to the first step that is not in the log.
    fn stage(&self, chat: &Transcript, tallies: &mut Vec<VoteResult>) -> Stage {
        let mut past = Replay::of(chat);
        let again = if let Tie::Again(rounds) = self.tie { rounds } else { 0 };
        for nth in 0..=again {
            for round in 0..if nth == 0 { self.rounds } else { 1 } {
                let news = tallies.last().filter(|_| round == 0).map(|tally| self.tied(tally));
                if let Some(requests) = self.round(chat, &mut past, news.as_deref()) {
                    return Stage::Turns(requests);
                }
            }
            match self.vote(chat, &mut past) {
                Err(requests) => return Stage::Turns(requests),
                Ok(tally) => tallies.push(tally),
            }
            if let Some([only]) = tallies.last().map(VoteResult::first).as_deref() {
                return Stage::Decided(*only, None);
            }
        }
        let tied = tallies.last().map(VoteResult::first).unwrap_or_default();
        let voted = tallies.last().is_some_and(|tally| tally.counts.iter().any(|count| *count > 0));
        match (&self.tie, tied.first()) {
            (Tie::First, Some(first)) if voted => Stage::Decided(*first, None),
            (Tie::Chair(chair), _) => self.chaired(&mut past, chair, &tied),
            _ => Stage::Undecided,
        }
    }

    /// The missing turns of a round; `None` when it is complete.
    fn round(
        &self,
        chat: &Transcript,
        past: &mut Replay<'_>,
        news: Option<&str>,
    ) -> Option<Vec<TurnRequest>> {
        let debaters = if self.debaters.is_empty() { chat.participants() } else { &self.debaters };
        let debaters = in_time(chat, past, Kind::Chat, debaters);
        let missing = debaters.into_iter().filter(|who| past.take(Kind::Chat, who).is_none());
        let request =
            |who: &Name| TurnRequest { prompt: news.map(Into::into), ..TurnRequest::to_all(who.clone()) };
        let mut requests: Vec<TurnRequest> =
            missing.filter(|who| !has_left(chat, who)).map(request).collect();
        if self.in_turn {
            requests.truncate(1);
        }
        (!requests.is_empty()).then_some(requests)
    }

    /// The tally, or the voters to ask next. A voter with an unclear answer is asked once more, and then abstains.
    fn vote(
        &self,
        chat: &Transcript,
        past: &mut Replay<'_>,
    ) -> std::result::Result<VoteResult, Vec<TurnRequest>> {
        let voters = if self.voters.is_empty() { chat.participants() } else { &self.voters };
        let voters = in_time(chat, past, Kind::Private, voters);
        let mut votes: Vec<(Name, Option<usize>)> = Vec::new();
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for who in voters.iter().copied() {
            match past.take(Kind::Private, who).map(|step| step.text().into_owned()) {
                None if has_left(chat, who) => {}
                None => first.push(TurnRequest::private(who.clone(), (self.ask)(&self.options))),
                Some(text) => match ballot::choice(&text, &self.options) {
                    None => second.push((who.clone(), text)),
                    vote => votes.push((who.clone(), vote)),
                },
            }
        }
        if !first.is_empty() {
            return Err(first);
        }
        let mut unclear = Vec::new();
        for (who, text) in second {
            match past.take(Kind::Private, &who).map(|step| step.text().into_owned()) {
                None if has_left(chat, &who) => votes.push((who, None)),
                None => unclear.push(TurnRequest::private(who, self.again(&text))),
                Some(text) => votes.push((who, ballot::choice(&text, &self.options))),
            }
        }
        if !unclear.is_empty() {
            return Err(unclear);
        }
        votes.sort_by_key(|(who, _)| voters.iter().position(|voter| *voter == who));
        Ok(VoteResult::of(votes, self.options.len()))
    }

    /// The decision of the chair between the tied options.
    fn chaired(&self, past: &mut Replay<'_>, chair: &Name, tied: &[usize]) -> Stage {
        let options: Vec<String> =
            tied.iter().filter_map(|option| self.options.get(*option).cloned()).collect();
        let mut ask = (self.ask)(&options);
        for _ in 0..2 {
            let Some(answer) = past.take(Kind::Private, chair) else {
                return Stage::Turns(vec![TurnRequest::private(chair.clone(), ask)]);
            };
            if let Some(option) = ballot::choice(&answer.text(), &options).and_then(|nth| tied.get(nth)) {
                return Stage::Decided(*option, Some(chair.clone()));
            }
            ask = self.again(&answer.text());
        }
        Stage::Undecided
    }

    fn again(&self, answer: &str) -> String {
        let excerpt = text::excerpt(answer, 80);
        format!(
            "It is not clear which option `{excerpt}` is. Answer with one option, or its number, and nothing else."
        )
    }

    /// The tally as text.
    fn counts_text(&self, tally: &VoteResult) -> String {
        let counts_text = |(option, count): (&String, &u64)| format!("{option}: {count}");
        self.options.iter().zip(&tally.counts).map(counts_text).collect::<Vec<_>>().join("; ")
    }

    fn tied(&self, tally: &VoteResult) -> String {
        format!(
            "The vote is tied ({}). Argue once more; then there is another vote.",
            self.counts_text(tally)
        )
    }
}

/// Those of `names` who take part in the next round or vote: not those who joined after the last turn in it of the others.
fn in_time<'n>(chat: &Transcript, past: &Replay<'_>, kind: Kind, names: &'n [Name]) -> Vec<&'n Name> {
    let joined = joined(chat);
    let joined_at = |who: &Name| joined.iter().find(|(_, name)| *name == who).map(|(at, _)| *at);
    let turns = names.iter().filter(|who| joined_at(who).is_none() && !has_left(chat, who));
    let ends: Vec<Option<usize>> = turns.map(|who| past.peek(kind, who).map(|step| step.end)).collect();
    // Until all of them had their turns, it is not over.
    let last = ends.iter().copied().collect::<Option<Vec<usize>>>().and_then(|ends| ends.into_iter().max());
    let is_in_time = |at: usize| last.is_none_or(|last| at < last);
    names.iter().filter(|who| joined_at(who).is_none_or(is_in_time)).collect()
}

/// Whether `who` was a participant and left. Private agents never leave.
fn has_left(chat: &Transcript, who: &Name) -> bool {
    chat.participants().contains(who) && !is_present(chat, who)
}

/// The default question to voters.
fn ballot_paper(options: &[String]) -> String {
    let options = options.iter().enumerate().map(|(nth, option)| format!("{}. {option}", nth + 1));
    let options = options.collect::<Vec<_>>().join("\n");
    format!(
        "Vote for one of these options:\n{options}\nAnswer with the option, or its number, and nothing else."
    )
}

impl Policy for Debate {
    fn next(&self, chat: &Transcript) -> Step {
        if let Some((_, reason)) = chat.ended_by() {
            return Step::close(reason.clone(), chat);
        }
        if chat.present().next().is_none() {
            return Step::close(
                StopReason::from(LibraryStopReason::NoParticipants { last: chat.left().last().cloned() }),
                chat,
            );
        }
        let mut tallies = Vec::new();
        match self.stage(chat, &mut tallies) {
            Stage::Turns(turns) => {
                Step::turns(turns).unwrap_or_else(|| LibraryStopReason::Undecided.close(chat))
            }
            Stage::Decided(option, chair) => {
                let option = self.options.get(option).cloned().unwrap_or_default();
                let summary = option.as_str().into();
                let reason = match chair {
                    Some(by) => LibraryStopReason::ChairDecided { option, by },
                    None => LibraryStopReason::Voted { option },
                };
                Step::Close { reason: reason.into(), summary }
            }
            Stage::Undecided => {
                let votes = tallies.last().map(|tally| self.counts_text(tally)).unwrap_or_default();
                let reason = StopReason::from(LibraryStopReason::Undecided);
                // Without any message there is no result.
                if chat.all_messages().iter().all(|line| line.source != MessageSource::Turn || is_blank(line))
                {
                    return Step::Close { reason, summary: "".into() };
                }
                let voted = tallies.iter().flat_map(|tally| &tally.counts).any(|count| *count > 0);
                let arguments = if voted { String::new() } else { arguments(chat) };
                Step::Close { reason, summary: format!("Undecided ({votes}){arguments}").into() }
            }
        }
    }
}

fn is_blank(line: &TranscriptMessage) -> bool {
    line.message.to_text().trim().is_empty()
}

/// The last argument of each participant, in their order.
fn arguments(chat: &Transcript) -> String {
    let last = |who: &Name| chat.replies().rev().find(|line| line.message.from == *who && !is_blank(line));
    let said = chat.participants().iter().filter_map(|who| Some((who, last(who)?)));
    said.map(|(who, line)| format!("\n\n{who}: {}", line.message.to_text().trim())).collect()
}
