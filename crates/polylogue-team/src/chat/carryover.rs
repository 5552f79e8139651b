//! Results of earlier chats that are added to the task of a chat.

use polylogue::policies::carryover::Carryover;
use polylogue_config::{As, At, Config, OneOrMany};
use polylogue_core::{Name, TaskFrom};

use crate::set::Set as _;
use crate::text::{NeighborRef, Template, values};

/// Results of earlier chats that are added to the task of a chat.
#[derive(Config)]
#[config(name = "CarryoverValue", by_shape)]
pub(super) enum CarryoverKey {
    /// All or nothing.
    AllOrNone(AllOrNone),
    /// Some, or further texts.
    Some(CarryoverSettings),
}

/// Whether the results of earlier chats are added to the task.
#[derive(Config)]
pub(super) enum AllOrNone {
    /// The results of all finished chats.
    All,
    /// No results.
    None,
}

/// Texts and results of earlier chats that are added to the task of a chat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Config)]
#[config(name = "Carryover", nonempty)]
pub struct CarryoverSettings {
    /// Custom texts, which come first.
    #[key(nonempty)]
    pub context: Vec<Template>,
    /// Chats whose results are added.
    #[key(as = Option<OneOrMany<NeighborRef>>, none = "all finished chats")]
    pub include: Option<Vec<At<Name>>>,
    /// Chats whose results are not added.
    #[key(as = OneOrMany<NeighborRef>)]
    pub exclude: Vec<At<Name>>,
}

impl As<CarryoverSettings> for CarryoverKey {
    fn into_value(self) -> CarryoverSettings {
        match self {
            Self::AllOrNone(AllOrNone::All) => CarryoverSettings::default(),
            Self::AllOrNone(AllOrNone::None) => CarryoverSettings::nothing(),
            Self::Some(carried) => carried,
        }
    }

    fn from_value(carried: &CarryoverSettings) -> Self {
        match carried {
            carried if *carried == CarryoverSettings::default() => Self::AllOrNone(AllOrNone::All),
            carried if carried.is_nothing() => Self::AllOrNone(AllOrNone::None),
            carried => Self::Some(carried.clone()),
        }
    }
}

impl CarryoverSettings {
    fn nothing() -> Self {
        Self { include: Some(Vec::new()), ..Self::default() }
    }

    /// Whether nothing is added.
    pub(crate) fn is_nothing(&self) -> bool {
        *self == Self::nothing()
    }

    /// The task with what is added to it: `task`, or what `from` selects.
    pub(super) fn task_from(&self, task: Option<&Template>, from: &TaskFrom) -> TaskFrom {
        match (task, from) {
            (Some(task), _) => {
                let (carried, task) = (self.clone(), task.clone());
                TaskFrom::custom(move |around, me| {
                    let carryover = Carryover::message(task.fill(around.task()));
                    carried.added_to(carryover, around.task()).text(around, me)
                })
            }
            (None, TaskFrom::Task) => self.added_to(Carryover::task(), "").task_from(),
            // `task_from: all` already includes all results; the checks refuse the two together.
            (None, _) => self.added_to(Carryover::last(), "").task_from(),
        }
    }

    fn added_to(&self, carryover: Carryover, task: &str) -> Carryover {
        let carryover =
            self.context.iter().fold(carryover, |carryover, text| carryover.context(text.fill(task)));
        let carryover = carryover.exclude(values(&self.exclude));
        carryover.set(self.include.as_ref(), |carryover, include| carryover.include(values(include)))
    }
}
