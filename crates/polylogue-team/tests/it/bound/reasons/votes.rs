//! Votes, counted again.

use polylogue::policies::debate::Tie;
use polylogue_core::Name;
use polylogue_team::{Debate, Pattern};

use super::{Case, Check, ensure};

impl<'a> Case<'a> {
    fn debate(&self) -> Result<&'a Debate, String> {
        match self.spec.map(|chat| &chat.pattern) {
            Some(Pattern::Debate(debate)) => Ok(debate),
            _ => Err("it has no debate".into()),
        }
    }

    /// The options with the most votes in the last ballot, and their votes.
    fn first(&self, debate: &Debate) -> (Vec<String>, usize) {
        let options: Vec<String> = debate.options.iter().map(|option| option.trim().to_owned()).collect();
        let participants = self.talk.participants();
        let voters: Vec<&Name> =
            if debate.voters.is_empty() { participants } else { debate.voters.iter().collect() };
        let argued = self.talk.public().last().map_or(0, |turn| turn.end.seq);
        let ballots = || self.talk.turns.iter().filter(|turn| turn.is_private && turn.begin > argued);
        // One that was unclear is asked for once more.
        let vote = |voter: &&Name| {
            let mut own = ballots().filter(|turn| turn.who == *voter).take(2);
            own.find_map(|turn| choice(&turn.text(), &options))
        };
        let votes: Vec<usize> = voters.iter().filter_map(vote).collect();
        let count = |option: usize| votes.iter().filter(|vote| **vote == option).count();
        let most = (0..options.len()).map(count).max().unwrap_or_default();
        let first = (0..options.len()).filter(|option| count(*option) == most);
        (first.map(|option| options[option].clone()).collect(), most)
    }

    pub(super) fn voted(&self, option: &str) -> Check {
        let debate = self.debate()?;
        let (first, votes) = self.first(debate);
        let is_decided = first.len() == 1 || debate.tie == Tie::First;
        ensure(votes > 0 && is_decided, format!("the vote is tied: {first:?} with {votes} each"))?;
        ensure(first.first().is_some_and(|first| first == option), format!("{first:?} have {votes} votes"))
    }

    pub(super) fn chair_decided(&self, option: &str, by: &Name) -> Check {
        let debate = self.debate()?;
        ensure(debate.tie == Tie::Chair(by.clone()), "it is not the chair")?;
        let (first, votes) = self.first(debate);
        ensure(first.len() > 1, format!("there is no tie: {first:?} have {votes} votes"))?;
        let last = self.talk.turns.last().filter(|turn| turn.is_private && turn.who == by);
        let chosen = last.and_then(|turn| choice(&turn.text(), &first)).map(|chosen| first[chosen].as_str());
        ensure(chosen == Some(option), format!("the chair said {chosen:?}"))
    }

    pub(super) fn undecided(&self) -> Check {
        let debate = self.debate()?;
        let (first, votes) = self.first(debate);
        ensure(first.len() > 1, format!("{first:?} have {votes} votes"))?;
        match &debate.tie {
            Tie::First => ensure(votes == 0, "the first of them wins"),
            Tie::Chair(chair) => {
                let own = self.talk.turns.iter().rev().take_while(|turn| turn.who == chair);
                let own: Vec<_> = own.filter(|turn| turn.is_private).take(2).collect();
                let is_clear = own.iter().any(|turn| choice(&turn.text(), &first).is_some());
                ensure(own.len() == 2 && !is_clear, "the chair decided, or was not asked twice")
            }
            Tie::Again(_) | Tie::Undecided => Ok(()),
        }
    }
}

/// The option that is the text, whose number is the text, or which is the only one in it.
fn choice(text: &str, options: &[String]) -> Option<usize> {
    let folded = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let bare = |text: &str| folded(text.trim_matches(|c: char| !c.is_alphanumeric() && c != '#'));
    let answer = bare(text);
    if answer.is_empty() {
        return None;
    }
    if let Some(exact) = options.iter().position(|option| bare(option) == answer) {
        return Some(exact);
    }
    let number = answer.strip_prefix("option ").unwrap_or(&answer).trim_start_matches('#').parse::<usize>();
    if let Some(number) = number.ok().filter(|number| (1..=options.len()).contains(number)) {
        return Some(number - 1);
    }
    let words = |text: &str| {
        let text: String = folded(text).chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
        format!(" {} ", text.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let said = words(text);
    let mut found = (0..options.len()).filter(|option| said.contains(&words(&options[*option])));
    found.next().filter(|_| found.next().is_none())
}
