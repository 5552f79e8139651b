//! The kinds of requests that an assistant makes: to tell which of them one was.

use polylogue_core::{Params, Tool, ToolSpec, ViewOptions};

use super::object;
use super::work::Offer;
use crate::Assistant;

/// How an agent asks its model, apart from what it was told.
#[derive(Debug, Clone, PartialEq)]
pub struct Asks {
    /// The tools that are offered.
    pub tools: Vec<ToolSpec>,
    /// How the model is to write.
    pub params: Params,
    /// How the agent sees the room.
    pub lens: ViewOptions,
}

impl Assistant {
    /// The kinds of requests that it makes: first the usual one, then what it asks when tools are called or answers are formed
    /// in another way than by the provider's own. The [digest](polylogue_core::View::digest) of a request tells which it was.
    #[must_use]
    pub fn asks(&self) -> Vec<Asks> {
        let own = self.specs.get(..self.taught.len()).unwrap_or_default();
        let mut all =
            vec![self.asking(&self.specs, self.params.clone()), self.asking(own, self.params.clone())];
        let free = Params { schema: None, json: false, ..self.params.clone() };
        let json = Params { json: true, ..free.clone() };
        let held = self.schemas().into_iter().map(|schema| Params { schema: Some(schema), ..free.clone() });
        let params = [self.params.clone(), free.clone(), json].into_iter().chain(held);
        all.extend(params.map(|params| self.asking(&[], params)));
        // Where tools are called in words, what was called natively before is read in words.
        let worded = all.clone().into_iter().filter(|asks| asks.tools.is_empty());
        let worded: Vec<Asks> = worded
            .map(|asks| Asks { lens: ViewOptions { calls_as_text: true, ..asks.lens }, ..asks })
            .collect();
        all.extend(worded);
        all
    }

    fn asking(&self, tools: &[ToolSpec], params: Params) -> Asks {
        Asks { tools: tools.to_vec(), params, lens: self.lens.clone() }
    }

    /// The schemas that its replies are held to.
    fn schemas(&self) -> Vec<serde_json::Value> {
        let own = self.taught.iter().map(|taught| Offer { spec: taught.tool().spec(), taught: Some(taught) });
        let others = self.advertised.iter().map(|spec| Offer { spec, taught: None });
        let offers: Vec<Offer<'_>> = own.chain(others).collect();
        let answers = self.answers.as_deref();
        let objects = [(offers.as_slice(), true), (offers.as_slice(), false), (&[][..], true)];
        let objects = objects.map(|(at_hand, may_say)| object::schema(at_hand, may_say, answers));
        answers.cloned().into_iter().chain(objects.into_iter().filter(|_| !offers.is_empty())).collect()
    }
}
