//! The turns of typical chats: each participant that can speak has as many as the others.

use std::collections::BTreeMap;

use polylogue::{Name, Result};

use super::paths::{Order, Selects, names};
use super::scene::Scene;
use super::walk::Walk;
use crate::build::AgentBuilder;
use crate::chat::Chat;

impl Walk<'_> {
    /// So many `turns`, each of the one who had the fewest so far among those that are `next`: after so many turns, after whom, and how many each
    /// had. Fewer turns where no one is.
    pub(super) fn evenly<'c>(
        &mut self,
        builder: &AgentBuilder<'_>,
        scene: &mut Scene,
        turns: u128,
        selects: Selects<'_>,
        next: impl Fn(u64, Option<&'c Name>, &BTreeMap<&'c Name, u128>) -> Result<Vec<&'c Name>>,
    ) -> Result<()> {
        let (mut had, mut last) = (BTreeMap::new(), None);
        for turn in 0..u64::try_from(turns).unwrap_or(u64::MAX) {
            let can = next(turn, last, &had)?;
            let fewest = can.iter().copied().min_by_key(|who| had.get(who).copied().unwrap_or_default());
            let Some(who) = fewest else { break };
            if let Some((name, chat, selector)) = selects.filter(|_| can.len() > 1) {
                let sum = self.selection(builder, scene, (name, chat), selector)?;
                self.note_selection(name, sum);
                scene.sum.add(sum);
            }
            self.say(builder, scene, &[who])?;
            *had.entry(who).or_default() += 1;
            last = Some(who);
        }
        Ok(())
    }

    /// So many `turns` of `chat`, one of `first` at first, and then of those that can follow each other.
    pub(super) fn evenly_in_order<'c>(
        &mut self,
        builder: &AgentBuilder<'c>,
        scene: &mut Scene,
        (chat, first, turns): (&'c Chat, Vec<&'c Name>, u128),
        selects: Selects<'_>,
    ) -> Result<()> {
        let (everyone, order) = (names(chat), Order::of(builder.team, chat));
        self.evenly(builder, scene, turns, selects, |turn, last, _| match (last, &order) {
            (None, _) => Ok(first.clone()),
            (Some(who), Some(order)) => Ok(order.after(turn, who)),
            (Some(_), None) => Ok(everyone.clone()),
        })
    }
}
