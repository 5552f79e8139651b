//! The protocol: requests of clients to the calls of a host.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelledNotificationParam,
    CompleteRequestMethod, CompleteRequestParams, CompleteResult, CustomRequest, CustomResult, ErrorCode,
    ErrorData, GetTaskParams, GetTaskResult, Implementation, InputRequiredResult, ListPromptsRequestMethod,
    ListPromptsResult, ListResourceTemplatesRequestMethod, ListResourceTemplatesResult,
    ListResourcesRequestMethod, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, RequestId, ServerCapabilities, ServerConfig, Tool, ToolAnnotations, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{RoleServer, ServerHandler};
use tokio::sync::{oneshot, watch};

use super::answer::result;
use super::caller::Caller;
use super::form::{FormAnswer, requests};
use super::host::{InvalidParams, Reply, ServedTool, ToolHost};

/// The methods of requests with parameters.
const METHODS: [&str; 2] = ["tools/call", "tools/list"];
/// The methods of tasks.
const TASK_METHODS: [&str; 3] = ["tasks/get", "tasks/update", "tasks/cancel"];

type Result<T> = std::result::Result<T, ErrorData>;

/// The calls in flight that wait for a cancellation and its reason.
type Waiting = Arc<Mutex<HashMap<RequestId, oneshot::Sender<Option<String>>>>>;

/// Serves one client, or one request of a client without a session.
pub(super) struct Handler<H> {
    host: Arc<H>,
    about: Arc<str>,
    versions: &'static [ProtocolVersion],
    waiting: Waiting,
    in_flight: Arc<watch::Sender<usize>>,
}

impl<H: ToolHost> Handler<H> {
    /// Over pipes: the versions in which a server can ask the user during a call.
    pub(super) fn of_pipes(host: Arc<H>, about: &str, in_flight: Arc<watch::Sender<usize>>) -> Self {
        let versions = ProtocolVersion::known_up_to(&ProtocolVersion::LATEST_WITH_INITIALIZE);
        Self { host, about: about.into(), versions, waiting: Arc::default(), in_flight }
    }

    /// Over HTTP: all versions.
    pub(super) fn of_http(host: Arc<H>, about: Arc<str>) -> Self {
        let in_flight = Arc::new(watch::Sender::new(0));
        Self { host, about, versions: ProtocolVersion::KNOWN_VERSIONS, waiting: Arc::default(), in_flight }
    }
}

impl From<InvalidParams> for ErrorData {
    fn from(invalid: InvalidParams) -> Self {
        Self::invalid_params(invalid.0, None)
    }
}

fn listed(tool: ServedTool) -> Tool {
    let ServedTool { spec, output } = tool;
    let schema = spec.parameters.as_object().cloned().unwrap_or_default();
    let mut tool = Tool::new(spec.name, spec.description, Arc::new(schema));
    tool.output_schema = output.as_ref().and_then(|schema| schema.as_object()).cloned().map(Arc::new);
    let hints = ToolAnnotations::new().read_only(spec.repeatable);
    tool.with_annotations(hints)
}

impl<H: ToolHost> ServerHandler for Handler<H> {
    fn get_info(&self) -> ServerConfig {
        let who = Implementation::new("polylogue", env!("CARGO_PKG_VERSION"));
        let mut capabilities = ServerCapabilities::builder().enable_tools().build();
        if H::HAS_TASKS {
            capabilities.extensions = ServerCapabilities::builder().enable_tasks().build().extensions;
        }
        ServerConfig::new(capabilities).with_server_info(who).with_instructions(self.about.to_string())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(self.versions)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult> {
        let tools = self.host.tools(&Caller::of(context)).await;
        Ok(ListToolsResult::with_all_items(tools.into_iter().map(listed).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse> {
        let (sender, cancelled) = oneshot::channel();
        let id = context.id.clone();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), sender);
        let _place = InFlightGuard { waiting: &self.waiting, in_flight: &self.in_flight, id };
        self.in_flight.send_modify(|count| *count += 1);
        let CallToolRequestParams { name, arguments, input_responses, request_state, .. } = request;
        let answers = FormAnswer::all(input_responses.unwrap_or_default());
        let mut caller = Caller::of_call(context, cancelled, request_state, answers);
        Ok(match self.host.call(&name, arguments.unwrap_or_default(), &mut caller).await? {
            Reply::Answer(answer) => CallToolResponse::Complete(result(answer)),
            Reply::Questions { questions, state } => {
                InputRequiredResult::new(Some(requests(&questions)), Some(state)).into()
            }
            Reply::Task(task) => task.created().into(),
        })
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult> {
        let task = self.host.task(&request.task_id, &Caller::of(context)).await?;
        Ok(GetTaskResult::new(task.detailed()))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<()> {
        let answers = FormAnswer::all(request.input_responses);
        Ok(self.host.answer_task(&request.task_id, answers, &Caller::of(context)).await?)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<()> {
        Ok(self.host.cancel_task(&request.task_id, &Caller::of(context)).await?)
    }

    /// A request that `rmcp` does not read as one of its own: it has another method, or parameters that do not fit the method.
    async fn on_custom_request(
        &self,
        CustomRequest { method, .. }: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult> {
        let is_known =
            METHODS.contains(&method.as_str()) || (H::HAS_TASKS && TASK_METHODS.contains(&method.as_str()));
        Err(match is_known {
            true => ErrorData::invalid_params(format!("the parameters do not fit `{method}`"), None),
            false => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None),
        })
    }

    // What is not declared as a capability does not exist.

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult> {
        Err(ErrorData::method_not_found::<ListResourceTemplatesRequestMethod>())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    async fn on_cancelled(&self, cancelled: CancelledNotificationParam, _: NotificationContext<RoleServer>) {
        let Some(id) = cancelled.request_id else { return };
        let sender = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        // A receiver that is dropped no longer waits.
        sender.into_iter().for_each(|sender| drop(sender.send(cancelled.reason.clone())));
    }
}

/// The entry of a call in flight.
struct InFlightGuard<'a> {
    waiting: &'a Waiting,
    in_flight: &'a watch::Sender<usize>,
    id: RequestId,
}

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
        self.in_flight.send_modify(|count| *count -= 1);
    }
}
