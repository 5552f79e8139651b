//! The kinds of requests that an assistant makes, to identify a logged request.

use polylogue_core::{Params, ToolSpec, ViewOptions};

use super::object;
use super::turn::OfferedTool;
use crate::agents::assistant::Assistant;

/// How an agent calls its model, without the conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSettings {
    /// The tools in the request.
    pub tools: Vec<ToolSpec>,
    /// The sampling parameters.
    pub params: Params,
    /// How the agent sees the chat.
    pub view: ViewOptions,
}

impl Assistant {
    /// Returns the settings of all kinds of requests that the agent makes: the usual one first, then those of prompted tools and
    /// structured output. The [digest](polylogue_core::View::digest) of a request identifies its kind.
    pub fn request_settings(&self) -> Vec<ModelSettings> {
        let own = self.specs.get(..self.offered_own).unwrap_or_default();
        let mut all =
            vec![self.settings(&self.specs, self.params.clone()), self.settings(own, self.params.clone())];
        let free = Params { schema: None, json: false, ..self.params.clone() };
        let json = Params { json: true, ..free.clone() };
        let held = self.schemas().into_iter().map(|schema| Params { schema: Some(schema), ..free.clone() });
        let params = [self.params.clone(), free.clone(), json].into_iter().chain(held);
        all.extend(params.map(|params| self.settings(&[], params)));
        // Where tools are called by text, earlier native calls are shown as text.
        let worded = all.clone().into_iter().filter(|settings| settings.tools.is_empty());
        let worded: Vec<ModelSettings> = worded
            .map(|settings| ModelSettings {
                view: ViewOptions { calls_as_text: true, ..settings.view },
                ..settings
            })
            .collect();
        all.extend(worded);
        all
    }

    fn settings(&self, tools: &[ToolSpec], params: Params) -> ModelSettings {
        ModelSettings { tools: tools.to_vec(), params, view: self.view.clone() }
    }

    /// The schemas of its requests.
    fn schemas(&self) -> Vec<serde_json::Value> {
        let own = self.offered().map(OfferedTool::own);
        let others = self.advertised.iter().map(|spec| OfferedTool { spec, prompted: None });
        let tools: Vec<OfferedTool<'_>> = own.chain(others).collect();
        let answers = self.output_schema.as_deref();
        let objects = [(tools.as_slice(), true), (tools.as_slice(), false), (&[][..], true)];
        let objects = objects.map(|(at_hand, may_say)| object::schema(at_hand, may_say, answers));
        answers.cloned().into_iter().chain(objects.into_iter().filter(|_| !tools.is_empty())).collect()
    }
}
