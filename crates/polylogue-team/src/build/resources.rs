//! Resources that the tools of a team share.

use std::sync::Arc;

use polylogue::Result;
use polylogue_tools::Queue;
use polylogue_tools::code::Sandbox;
use polylogue_tools::web::{AnySearch, Fetcher, Pages};

use crate::build_context::BuildContext;
use crate::built_in::WorkFiles;
use crate::sandbox::SandboxSettings;
use crate::web::Web;

/// Where the programs of a team run.
pub(super) struct ToolFactory {
    pub(super) sandbox: Sandbox,
    pub(super) files: WorkFiles,
    /// What one call leaves in the work directory is there for the next of the same message.
    pub(super) queue: Queue,
}

impl ToolFactory {
    pub(super) fn of(context: &BuildContext, settings: &SandboxSettings) -> Result<Self> {
        let sandbox = context.sandbox(settings)?;
        Ok(Self { files: WorkFiles::of(&sandbox), sandbox, queue: Queue::default() })
    }
}

/// The web of a team: one for all agents, so that pages are read and sites asked once.
pub(super) struct WebTools {
    pub(super) search: Option<AnySearch>,
    pub(super) fetcher: Option<Arc<Fetcher>>,
    pub(super) pages: Option<Arc<Pages>>,
}

impl WebTools {
    pub(super) fn of(web: &Web, context: &BuildContext) -> Result<Self> {
        let env = context.env();
        let pages = web.pages.as_ref().map(|folder| {
            let files = folder.pages.iter().map(|page| (page.file.as_str(), page.content.as_str()));
            Arc::new(Pages::of(files))
        });
        let engine = match &web.search {
            Some(search) if !context.is_unused() => Some(search.engine().build(&env)?),
            // To be looked at, a tool that finds nothing is as good.
            Some(_) => Some(AnySearch::new(Pages::default())),
            None => None,
        };
        let search = engine.or_else(|| pages.as_ref().map(|pages| AnySearch::new(Pages::clone(pages))));
        let fetcher = web.fetch.on().map(|settings| settings.build(&env)).transpose()?;
        Ok(Self { search, fetcher: fetcher.map(Arc::new), pages })
    }
}
