//! Tasks: calls whose result a client reads later.

use chrono::{DateTime, SecondsFormat};
use rmcp::model::{CreateTaskResult, DetailedTask, Task, TaskPayload, TaskStatus};
use serde_json::{Map, Value};

use super::answer::{Answer, result};
use super::form::{FormQuestion, requests};

/// How often clients should read the state of a task, in milliseconds.
const POLL_MS: u64 = 1000;

/// A task and its state.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskReport {
    /// Identifies the task.
    pub id: String,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: u64,
    /// When its state changed last, in milliseconds since 1970.
    pub updated_ms: u64,
    /// The latest status message.
    pub message: Option<String>,
    /// The progress of the task.
    pub progress: TaskProgress,
}

/// The progress of a task.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskProgress {
    /// It runs.
    Working,
    /// It waits for answers.
    Asks(Vec<FormQuestion>),
    /// It has a result, perhaps of a call that failed.
    Ended(Answer),
    /// It was cancelled.
    Cancelled,
}

impl TaskReport {
    fn base(&self) -> Task {
        let (created, updated) = (time(self.created_ms), time(self.updated_ms));
        let mut task = Task::new(self.id.clone(), TaskStatus::Working, created, updated);
        task.status_message.clone_from(&self.message);
        task.with_poll_interval_ms(POLL_MS)
    }

    /// The reply to the call that created it.
    pub(super) fn created(&self) -> CreateTaskResult {
        CreateTaskResult::new(self.base())
    }

    pub(super) fn detailed(self) -> DetailedTask {
        let base = self.base();
        let payload = match self.progress {
            TaskProgress::Working => TaskPayload::Working,
            TaskProgress::Asks(questions) => {
                TaskPayload::InputRequired { input_requests: requests(&questions) }
            }
            TaskProgress::Ended(answer) => TaskPayload::Completed { result: object(answer) },
            TaskProgress::Cancelled => TaskPayload::Cancelled,
        };
        DetailedTask::new(base, payload)
    }
}

/// The result of the call as it would have been without a task.
fn object(answer: Answer) -> Map<String, Value> {
    match serde_json::to_value(result(answer)) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// A time in the format of ISO 8601.
fn time(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(DateTime::from_timestamp_millis).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(progress: TaskProgress) -> Value {
        let (id, message) = ("log1.0".to_owned(), Some("Ann: one".to_owned()));
        let report = TaskReport { id, created_ms: 0, updated_ms: 1_234, message, progress };
        serde_json::to_value(report.detailed()).unwrap()
    }

    #[test]
    fn s78_golden_states_of_a_task() {
        let base = json!({
            "taskId": "log1.0", "createdAt": "1970-01-01T00:00:00.000Z", "lastUpdatedAt": "1970-01-01T00:00:01.234Z",
            "statusMessage": "Ann: one", "ttlMs": null, "pollIntervalMs": 1000,
        });
        let with = |more: Value| {
            let mut all = base.clone();
            all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            all
        };
        assert_eq!(report(TaskProgress::Working), with(json!({"status": "working"})));
        assert_eq!(report(TaskProgress::Cancelled), with(json!({"status": "cancelled"})));
        let answer =
            Answer { texts: vec!["four".into()], value: Some(json!({"state": "done"})), is_error: false };
        let result = json!({"content": [{"type": "text", "text": "four"}], "structuredContent": {"state": "done"}, "isError": false});
        let mut ended = report(TaskProgress::Ended(answer));
        // Of the newer protocol only.
        ended["result"].as_object_mut().unwrap().retain(|name, _| name != "resultType");
        assert_eq!(ended, with(json!({"status": "completed", "result": result})));
        let asks =
            TaskProgress::Asks(vec![FormQuestion { key: "q5".into(), text: "Which?".into(), data: None }]);
        let asked = report(asks);
        assert_eq!(
            (&asked["status"], asked["inputRequests"]["q5"]["method"].as_str()),
            (&json!("input_required"), Some("elicitation/create"))
        );
    }
}
