//! Runs calls of several tools in order.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use polylogue_core::{AnyTool, Tool, ToolCx, ToolError, ToolResult, ToolSpec};
use serde_json::Value;
use tokio::sync::Mutex as Lock;

/// A queue for tools that work on the same resources, such as the files of one directory. Cloning shares it.
///
/// The calls of one reply run in parallel, which is wrong for a call that writes a file and one that runs it. Calls of tools that share
/// a queue run one after the other, in the order of the reply; other agents do not wait for them.
///
/// ```
/// use polylogue_tools::code::{Sandbox, python, shell};
/// use polylogue_tools::Queue;
///
/// let (sandbox, queue) = (Sandbox::enclosed("work/session-1"), Queue::default());
/// let tools = [queue.joined_by(python(sandbox.clone())), queue.joined_by(shell(sandbox))];
/// ```
#[derive(Debug, Clone, Default)]
pub struct Queue(Arc<Mutex<BTreeMap<String, Weak<Lock<()>>>>>);

impl Queue {
    /// Wraps `tool`: its calls wait for those before them in this queue.
    pub fn joined_by(&self, tool: impl Tool) -> AnyTool {
        AnyTool::new(InOrder { tool: AnyTool::new(tool), queue: self.clone() })
    }

    /// The queue of the calling agent.
    fn of(&self, cx: &ToolCx<'_>) -> Arc<Lock<()>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, lock| lock.strong_count() > 0);
        let key = format!("{} {} {}", cx.log, cx.chat, cx.who);
        if let Some(lock) = all.get(&key).and_then(Weak::upgrade) {
            return lock;
        }
        let lock = Arc::new(Lock::new(()));
        all.insert(key, Arc::downgrade(&lock));
        lock
    }
}

#[derive(derive_more::Debug)]
#[debug("InOrder {{ tool: {:?}, .. }}", self.tool.spec().name)]
struct InOrder {
    tool: AnyTool,
    queue: Queue,
}

impl Tool for InOrder {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    async fn call(&self, args: Value, cx: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        // First come, first served; calls of one message ask in its order.
        let lock = self.queue.of(cx);
        let _turn = lock.lock().await;
        self.tool.call(args, cx).await
    }
}
