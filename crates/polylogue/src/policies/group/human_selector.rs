//! A person who selects the next speaker.

use polylogue_core::{Act, Agent, Name, NameError, Result, StopReason, Turn, text};

use super::answer::Answer;
use super::candidates::Candidates;
use super::mention::{Mention, mention};
use super::method::next_in_order;

/// A person who selects the next speaker, asked in private turns by a [`Group`](super::Group).
///
/// The person sees a numbered list and answers with a number or a name. Enter, or `q`, selects the next in order;
/// `exit` ends the conversation. After an invalid answer the person sees the error and is asked once more; then the
/// order decides, and the log says why. As with every person, the run does not block: it ends with a question and
/// continues with the answer.
#[derive(Debug, Clone)]
pub struct HumanSelector {
    name: Name,
}

/// The person's answer.
enum PersonReply {
    Answer(Answer),
    Exit,
    Nonsense,
}

impl HumanSelector {
    /// Creates a person named `name` who selects the next speaker.
    ///
    /// # Errors
    /// When the name is illegal.
    pub fn new(name: &str) -> Result<Self, NameError> {
        Ok(Self { name: Name::new(name)? })
    }

    /// Returns the end of its question, which says what can be answered at a terminal, if `next` is the next in order. Where
    /// answers come from elsewhere, show other words.
    ///
    /// ```
    /// use polylogue::policies::group::HumanSelector;
    ///
    /// assert!(HumanSelector::keys("Ann").contains("Enter takes the next in order (Ann)"));
    /// ```
    #[must_use]
    pub fn keys(next: &str) -> String {
        format!(
            "Type a number or a name. Enter takes the next in order ({next}), `exit` ends the conversation."
        )
    }

    fn read(answer: &str, of: &[Name], participants: &[Name]) -> PersonReply {
        let answer = answer.trim();
        let is = |word: &str| answer.eq_ignore_ascii_case(word);
        let nth = answer
            .trim_end_matches(['.', ')'])
            .parse::<usize>()
            .ok()
            .and_then(|number| of.get(number.checked_sub(1)?));
        if let Some(name) = nth {
            return PersonReply::Answer(Answer::Picked(name.clone()));
        }
        if let Mention::One(name) = mention(answer, of, participants) {
            return PersonReply::Answer(Answer::Picked(name));
        }
        match answer {
            _ if answer.is_empty() || is("q") => PersonReply::Answer(Answer::NextInOrder),
            _ if is("exit") => PersonReply::Exit,
            _ => PersonReply::Nonsense,
        }
    }
}

/// The list, and what to type.
fn question(turn: &Turn<'_>, candidates: &Candidates) -> String {
    let lines = candidates.roles().lines().zip(1..).map(|(role, number)| format!("  {number}  {role}\n"));
    let next = next_in_order(turn.transcript(), candidates.names()).map(Name::as_str).unwrap_or_default();
    format!("Who speaks next?\n{}{}", lines.collect::<String>(), HumanSelector::keys(next))
}

impl Agent for HumanSelector {
    fn name(&self) -> &Name {
        &self.name
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let candidates = Candidates::in_turn(turn);
        let of = candidates.names();
        let question = question(turn, &candidates);
        let Some(mut answer) = turn.answer() else { return Ok(Act::Ask(question.into())) };
        let mut again = true;
        loop {
            match Self::read(&answer, of, turn.transcript().participants()) {
                PersonReply::Answer(picked) => return Ok(picked.said(&answer)),
                PersonReply::Exit => {
                    let (who, why) = (self.name.clone(), "said `exit`".into());
                    return Ok(Act::Stop(StopReason::Left { who, why }));
                }
                PersonReply::Nonsense if again => {}
                PersonReply::Nonsense => {
                    let why = format!("`{}` selected no participant who may speak, twice", self.name);
                    return Ok(Answer::Failed(why).said(&answer));
                }
            }
            again = false;
            let Some(second) = turn.answer() else {
                let answer = text::excerpt(&answer, 80);
                return Ok(Act::Ask(format!("`{answer}` is none of them. {question}").into()));
            };
            answer = second;
        }
    }
}
