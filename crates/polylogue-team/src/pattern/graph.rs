//! What a team file says of a graph.

use std::collections::BTreeMap;

use polylogue_core::Name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{ConditionText, NameText, Names, OptionText};

/// A graph: who speaks after whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Who begins; those to whom no edge leads when left out.
    #[serde(default, skip_serializing_if = "Names::is_empty")]
    pub start: Names,
    /// To whom the way leads from each: a name, or a list of names and of edges with conditions. All that are due speak at
    /// the same time.
    #[schemars(with = "BTreeMap<String, Ways>", extend("minProperties" = 1))]
    pub edges: BTreeMap<Name, Ways>,
    /// When somebody speaks to whom several edges lead: when reached by `all` of them, which it is when left out, or by
    /// `any`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, Join>")]
    pub join: BTreeMap<Name, Join>,
}

/// When somebody speaks to whom several edges lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "FlowJoin")]
pub enum Join {
    /// When all of them led there.
    All,
    /// When any of them did, each time.
    Any,
}

/// To whom the way leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "WaysForm")]
#[schemars(inline)]
pub struct Ways(pub Vec<Way>);

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum WaysForm {
    One(#[schemars(with = "NameText")] Name),
    Many(#[schemars(length(min = 1))] Vec<WayForm>),
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum WayForm {
    Name(#[schemars(with = "NameText")] Name),
    Way(Way),
}

impl From<WaysForm> for Ways {
    fn from(form: WaysForm) -> Self {
        let plain = |to| Way { to, says: None, when: None, otherwise: false, at_most: None };
        Self(match form {
            WaysForm::One(to) => vec![plain(to)],
            WaysForm::Many(ways) => ways
                .into_iter()
                .map(|way| match way {
                    WayForm::Name(to) => plain(to),
                    WayForm::Way(way) => way,
                })
                .collect(),
        })
    }
}

/// An edge of a graph. At most one of `says`, `when` and `otherwise` is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Way {
    /// To whom.
    #[schemars(with = "NameText")]
    pub to: Name,
    /// Only when what was said holds this text, in upper or lower case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OptionText>")]
    pub says: Option<String>,
    /// Only when this condition holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ConditionText>")]
    pub when: Option<String>,
    /// Only when no other edge of the same leads on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub otherwise: bool,
    /// At most so many times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub at_most: Option<u64>,
}
