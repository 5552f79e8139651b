//! Resources that the tools of a team share.

use std::sync::Arc;

use polylogue::{Result, Tool as _};
use polylogue_core::AnyTool;
use polylogue_tools::Queue;
use polylogue_tools::code::Sandbox;
use polylogue_tools::web::{AnySearch, Fetcher, Pages};

use crate::build_context::BuildContext;
use crate::built_in::{WorkFiles, is_reading_tool};
use crate::sandbox::SandboxSettings;
use crate::web::Web;

/// Where the programs of a team run.
pub(super) struct ToolFactory {
    pub(super) sandbox: Sandbox,
    pub(super) files: WorkFiles,
    /// What one call leaves in the work directory is there for the next of the same message.
    pub(super) queue: Queue,
    kept: Kept,
}

impl ToolFactory {
    pub(super) fn of(context: &BuildContext, settings: &SandboxSettings) -> Result<Self> {
        let sandbox = context.sandbox(settings)?;
        let kept = Kept::of(context);
        Ok(Self { files: WorkFiles::of(&sandbox), sandbox, queue: Queue::default(), kept })
    }

    /// `tool`, after whose calls the files of the work directory are stored if they follow the conversation.
    pub(super) fn keeping(&self, tool: AnyTool) -> AnyTool {
        self.kept.around(tool)
    }
}

/// The files that follow a conversation, if they do.
#[cfg(unix)]
struct Kept(Option<polylogue_tools::files::KeptFiles>);

#[cfg(not(unix))]
struct Kept;

#[cfg(unix)]
impl Kept {
    fn of(context: &BuildContext) -> Self {
        Self(context.kept_dir().map(polylogue_tools::files::KeptFiles::at))
    }

    fn around(&self, tool: AnyTool) -> AnyTool {
        match &self.0 {
            Some(files) if !is_reading_tool(&tool.spec().name) => files.around(tool),
            _ => tool,
        }
    }
}

#[cfg(not(unix))]
impl Kept {
    const fn of(_: &BuildContext) -> Self {
        Self
    }

    fn around(&self, tool: AnyTool) -> AnyTool {
        tool
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
        // Where the user's rules can decide otherwise about the host that a redirect leads to, they decide about another call.
        let rules = context.rules().clone();
        let fetcher = fetcher.map(|fetcher| fetcher.redirects(move |from, to| !rules.tell_apart(from, to)));
        Ok(Self { search, fetcher: fetcher.map(Arc::new), pages })
    }
}
