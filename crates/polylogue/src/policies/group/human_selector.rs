//! A person who selects the next speaker.

use polylogue_core::{
    Act, Agent, AnswerChoice, AnswerEffect, InputRequest, Name, NameError, QuestionKind, Result, StopReason,
    Turn, text,
};

use super::answer::Answer;
use super::candidates::Candidates;
use super::mention::{Mention, mention};
use super::method::next_in_order;

/// A person who selects the next speaker, asked in private turns by a [`Group`](super::Group).
///
/// The person answers with a number or a name. An empty answer, or `q`, selects the next in order;
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
    pub fn new(name: impl AsRef<str>) -> Result<Self, NameError> {
        Ok(Self { name: Name::new(name)? })
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

/// The question, with the candidates by their numbers.
fn question(turn: &Turn<'_>, candidates: &Candidates) -> InputRequest {
    let select = |(number, role): (usize, &str)| {
        AnswerChoice::new(number.to_string(), AnswerEffect::Select).label(role)
    };
    let next = next_in_order(turn.transcript(), candidates.names()).map(|name| name.as_str().into());
    let next = AnswerChoice { label: next, ..AnswerChoice::new("", AnswerEffect::Next) };
    let choices = (1..).zip(candidates.roles().lines()).map(select);
    let choices: Vec<_> = choices.chain([next, AnswerChoice::new("exit", AnswerEffect::End)]).collect();
    InputRequest::new("Who speaks next?", QuestionKind::Speaker, choices)
}

impl Agent for HumanSelector {
    fn name(&self) -> &Name {
        &self.name
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let candidates = Candidates::in_turn(turn);
        let of = candidates.names();
        let question = question(turn, &candidates);
        let Some(mut answer) = turn.answer() else { return Ok(Act::Ask(question)) };
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
                let text = format!("`{answer}` is none of them. {}", question.text).into();
                return Ok(Act::Ask(InputRequest { text, ..question }));
            };
            answer = second;
        }
    }
}
