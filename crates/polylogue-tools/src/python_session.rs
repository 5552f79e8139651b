//! A Python interpreter that keeps its variables between calls.
//!
//! The tool [`PythonSession`] starts an interpreter in its [`Sandbox`] on the first call, and runs the code of each call in it. A call
//! returns the output, the value of the last expression, pictures (plots of matplotlib, and values with a PNG representation; each is
//! also a file in the work directory), or the traceback. A call that exceeds the time limit of the sandbox is interrupted; if that
//! fails, the interpreter is killed, and the next call starts a new one with a note. So is one that is not ready within a minute.
//!
//! Each conversation and each tool has a separate interpreter. Conversations share only the work directory of the tool's sandbox;
//! give each its own sandbox to share nothing. An interpreter is killed when the [`Log`](polylogue_core::Log) of its conversation is
//! dropped. Its state is not in the log: when a conversation is resumed in another process, variables are lost, and the model receives
//! a note.
//!
//! ```
//! use polylogue_tools::code::{Limits, Sandbox};
//! use polylogue_tools::PythonSession;
//! use std::time::Duration;
//!
//! let limits = Limits { time: Duration::from_secs(20), ..Limits::default() };
//! let session = PythonSession::new(Sandbox::enclosed("work/session-1").limited(limits));
//! ```

mod kernel;
mod pictures;
mod reply;

use std::sync::Arc;

use polylogue_core::{Body, ResourceKey, Resources, Tool, ToolCx, ToolError, ToolResult, ToolSpec};
use polylogue_sandbox::Sandbox;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use self::kernel::Kernel;
use crate::code::{unfenced, with_packages};
use crate::files::Folder;

/// The tool's name.
const NAME: &str = "python_session";

/// A tool that runs code in one interpreter for each conversation, which keeps its variables. See the [module](self).
#[derive(Debug)]
pub struct PythonSession {
    spec: ToolSpec,
    sandbox: Sandbox,
    interpreter: String,
    holder: ResourceKey,
}

impl PythonSession {
    /// Creates a session in `sandbox`. Its limits on time and output apply to each call, the others to the whole session.
    pub fn new(sandbox: Sandbox) -> Self {
        let about = "Runs Python in a session that keeps variables, imports and functions from call to call. Returns what is \
            printed, the value of the last expression, and what is plotted.";
        let parameters = json!({
            "type": "object",
            "properties": {
                "code": {"type": "string", "description": "The code to run next"},
                "restart": {"type": "boolean", "description": "Whether to start a new session before, without any variables"},
            },
            "additionalProperties": false,
        });
        let spec = ToolSpec::new(NAME, with_packages(about, &sandbox), parameters);
        Self { spec, sandbox, interpreter: "python3".into(), holder: ResourceKey::new() }
    }

    /// Sets the interpreter: a path, or a name that is looked up in the system's directories. Paths outside of `/usr` must be
    /// [readable](Sandbox::readable).
    #[must_use]
    pub fn interpreter(self, program: impl Into<String>) -> Self {
        Self { interpreter: program.into(), ..self }
    }

    /// Returns the sandbox in which it runs.
    pub const fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Ends the interpreter of the conversation whose [`Log`](polylogue_core::Log) has these
    /// [resources](polylogue_core::Log::resources), and waits for a call in progress. The next call starts a new one.
    pub async fn restart(&self, of: &Resources) {
        *self.kernel(of).lock().await = None;
    }

    fn kernel(&self, of: &Resources) -> Arc<Mutex<Option<Kernel>>> {
        of.of(&self.holder, || Mutex::new(None))
    }
}

impl Tool for PythonSession {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: Value, cx: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let restart = args.get("restart").and_then(Value::as_bool).unwrap_or_default();
        let code = match args.get("code") {
            None | Some(Value::Null) if restart => "",
            Some(Value::String(code)) => unfenced(code),
            _ => return Err("`code` must be a text: what to run next".into()),
        };
        let own = self.kernel(cx.resources);
        let mut held = own.lock().await;
        if restart {
            *held = None;
        }
        // One that died meanwhile is of no use to anyone.
        let kernel = held.take().filter(Kernel::lives);
        let is_surprising = kernel.is_none() && !restart && was_called_before(cx);
        let kernel = match kernel {
            Some(kernel) => kernel,
            None => Kernel::start(&self.sandbox, &self.interpreter).await.map_err(ToolError::new)?,
        };
        // Put where the next call finds it before anything is awaited: this call may be given up.
        let kernel = held.insert(kernel);
        let reply = kernel.run(code, self.sandbox.limits()).await.map_err(ToolError::new)?;
        if reply.is_over {
            *held = None;
        }
        Ok(pictures::kept(reply.into_outcome(is_surprising), Folder::of(&self.sandbox)).await)
    }
}

/// Whether the conversation has an earlier call, whose variables the model may expect.
fn was_called_before(cx: &ToolCx<'_>) -> bool {
    let events = cx.transcript.events().iter().chain(cx.turn);
    events.into_iter().any(|event| match &event.body {
        Body::ToolCalled { call, .. } => call.tool == NAME && call.id != cx.id,
        _ => false,
    })
}
