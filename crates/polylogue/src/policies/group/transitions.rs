//! Allowed and disallowed transitions between speakers.

use std::collections::BTreeMap;
use std::fmt;

use polylogue_core::Name;

/// The allowed transitions from speaker to speaker: a constraint on every method of selection.
///
/// ```
/// use polylogue::policies::group::Transitions;
/// # use polylogue::Name;
/// # let name = |text: &str| Name::new(text).unwrap();
/// let (planner, coder, tester) = (name("Planner"), name("Coder"), name("Tester"));
/// let transitions = Transitions::allowed([
///     (planner.clone(), vec![coder.clone()]),
///     (coder.clone(), vec![tester.clone()]),
///     (tester, vec![planner, coder]),
/// ]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transitions {
    kind: Kind,
    after: BTreeMap<Name, Vec<Name>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Allowed,
    Disallowed,
}

impl Transitions {
    /// Allows only these transitions. After a speaker with an empty list, or without a list, the chat ends.
    pub fn allowed(after: impl IntoIterator<Item = (Name, Vec<Name>)>) -> Self {
        Self { kind: Kind::Allowed, after: merged(after) }
    }

    /// Allows all transitions but these, repeats included.
    pub fn disallowed(after: impl IntoIterator<Item = (Name, Vec<Name>)>) -> Self {
        Self { kind: Kind::Disallowed, after: merged(after) }
    }

    /// Returns whether `next` may speak after `last`.
    pub fn allow(&self, last: &Name, next: &Name) -> bool {
        let is_listed = self.after.get(last).is_some_and(|names| names.contains(next));
        is_listed == (self.kind == Kind::Allowed)
    }

    /// All names in the transitions, unordered.
    pub(super) fn names(&self) -> impl Iterator<Item = &Name> {
        self.after.keys().chain(self.after.values().flatten())
    }

    /// Legal but suspicious transitions among `participants`.
    pub(super) fn warnings(&self, participants: &[Name]) -> Vec<Warning> {
        let apart = |who: &&Name| {
            participants.len() > 1
                && participants
                    .iter()
                    .all(|other| other == *who || !self.allow(who, other) && !self.allow(other, who))
        };
        let isolated = participants.iter().filter(apart).map(|who| Warning::Isolated { who: who.clone() });
        let twice = self.after.iter().flat_map(|(after, names)| {
            let again = |(index, name): &(usize, &Name)| {
                names.iter().take(*index).filter(|other| other == name).count() == 1
            };
            let warning =
                |(_, next): (usize, &Name)| Warning::Twice { after: after.clone(), next: next.clone() };
            names.iter().enumerate().filter(again).map(warning)
        });
        isolated.chain(twice).collect()
    }
}

/// Merges lists of the same name.
fn merged(after: impl IntoIterator<Item = (Name, Vec<Name>)>) -> BTreeMap<Name, Vec<Name>> {
    let mut map: BTreeMap<Name, Vec<Name>> = BTreeMap::new();
    for (name, names) in after {
        map.entry(name).or_default().extend(names);
    }
    map
}

/// The participants that may speak twice in a row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Repeat {
    /// All participants.
    #[default]
    Yes,
    /// No participant.
    No,
    /// Only these participants.
    Only(Vec<Name>),
}

impl Repeat {
    /// Whether `who`, the last speaker, may speak again.
    pub(super) fn allows(&self, who: &Name) -> bool {
        match self {
            Self::Yes => true,
            Self::No => false,
            Self::Only(names) => names.contains(who),
        }
    }

    pub(super) fn names(&self) -> &[Name] {
        match self {
            Self::Yes | Self::No => &[],
            Self::Only(names) => names,
        }
    }
}

/// A legal but suspicious rule of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// A participant that may speak after no other, and no other after it.
    Isolated {
        /// The participant.
        who: Name,
    },
    /// A transition that is listed more than once.
    Twice {
        /// The speaker.
        after: Name,
        /// The next speaker in the transition.
        next: Name,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Isolated { who } => {
                write!(f, "the transitions lead no participant to `{who}`, and `{who}` to none")
            }
            Self::Twice { after, next } => {
                write!(f, "the transition from `{after}` to `{next}` is listed twice")
            }
        }
    }
}
