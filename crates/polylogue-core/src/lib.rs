//! The kernel of Polylogue: multi-agent conversations.
//!
//! A conversation is a [`Log`] of [`Event`]s. An [`Agent`], on its turn, reads the transcript and acts. A [`Policy`]
//! reads the transcript and selects the next step. A [`Chat`] is agents and a policy, and is itself an agent. Agents
//! speak by a [`Model`] and act by a [`Tool`]. They say [`Message`]s, each with an author and an audience. Every
//! pattern - two agents, a group, a sequence, a nested chat - is made of these eight.
//!
//! # The log is the program counter
//!
//! Agents and policies hold no state. Everything that is not a pure function of the log - model replies, tool
//! results, answers of people - is appended to it before anything else happens. So persisting is appending, resuming
//! is running again, replaying is reading, and forking is copying a prefix: a log can be cut after any event, and a
//! new process that runs it reaches the same end without repeating a finished model call.
//!
//! # No message has a role
//!
//! `user` and `assistant` are computed for each agent by its [`View`]: its own messages are `assistant`, those of all
//! others are `user`. A view is derived from the log and never stored. It only grows at its end, so that prompt
//! caches keep hitting and a step costs only what is new.
//!
//! # The kernel does no IO
//!
//! It names no provider and needs no particular async runtime. Models, stores and tools are traits, implemented in
//! other crates.
//!
//! # Layers
//!
//! Each module is a layer, which uses only those before it in this table. The root has all of their names, for the other
//! crates of the workspace.
//!
//! | module | contents | begin with |
//! |---|---|---|
//! | [`data`] | plain data | [`Message`], [`Part`], [`Name`], [`Error`] |
//! | [`limits`] | limits and budgets | [`Limits`], [`Budget`] |
//! | [`log`] | events, the log, stores and queues | [`Event`], [`Log`], [`Store`] |
//! | [`transcript`] | one chat, folded from its events | [`Transcript`] |
//! | [`view`] | what one agent's model receives | [`View`] |
//! | [`model`] | the trait of models | [`Model`], [`Request`] |
//! | [`tool`] | the trait of tools | [`Tool`], [`ToolCx`] |
//! | [`turn`] | what an agent can do in its turn | [`Turn`], [`Act`] |
//! | [`agent`] | the trait of agents | [`Agent`] |
//! | [`policy`] | the trait of policies | [`Policy`], [`Step`] |
//! | [`chat`] | participants and a policy together | [`Chat`] |
//! | [`run`] | results and streams of runs | [`RunResult`] |

pub mod agent;
pub mod chat;
pub mod data;
pub mod limits;
pub mod log;
pub mod model;
pub mod policy;
pub mod run;
pub mod tool;
pub mod transcript;
pub mod turn;
pub mod view;

pub use agent::{Agent, AnyAgent, SubAgent};
pub use chat::{Chat, ChatBuilder, OpenBackground, OpeningContext, Status, TaskFrom};
pub use data::schema;
pub use data::text;
pub use data::{
    AllowanceOwner, AnsweredBy, Audience, BackgroundResult, BackgroundStatus, BackgroundTask, BlobId,
    CacheLifetime, CacheSavings, CallCost, CallPurpose, Capabilities, Capability, Charge, ChargeBound,
    ChargeReason, Compacted, ConfigError, CutReply, Delta, DeltaRef, DeltaSink, Digest, Effort, Error,
    ExecutedCall, Failure, Fault, FileEntry, FileKind, FilePath, FileTree, FinishReason, HistorySummary,
    ImpossibleStep, Interrupt, LabelError, LogId, Media, MediaUrl, Message, ModelError, ModelErrorKind,
    ModelReply, Money, Name, NameError, OtherReason, OutputLimit, Params, Part, Path, PatternError,
    PrefixChange, PrefixChanges, Price, PriceTier, PromptCache, RawArguments, Reply, RequestPrefix, Result,
    RunOutcome, Seal, Seals, SkipReason, SkippedEntry, StopReason, StoreError, StoredFiles, StoredResult,
    Thinking, ToolCall, ToolChoice, ToolResult, ToolSpec, ToolStatus, ToolUsage, TotalUsage, UncertainUsage,
    UnknownName, Usage, Verbatim, cut, push_parts, text_of,
};
pub use limits::{
    Allowance, Bound, BoundException, BoundSummary, Budget, BudgetDemand, BudgetStanding, BudgetWants,
    Cancellation, ChatLimits, CountedUsage, InputTokens, LearnedRate, LearnedRates, LimitOverrides,
    LimitRaise, LimitScope, Limits, LimitsFuture, OnLimit, RaiseTerms, Rate, RateDemand, RateGrant,
    RateTimes, RunBound, SharedLimits, Slot, Timer,
};
pub use log::chain;
pub use log::{
    AnswerChoice, AnswerEffect, AnyQueue, AnyStore, Blobs, Body, BoundFacts, Choice, Chooser, Claim, Clock,
    Confirmation, Cursor, DefaultAnswer, Due, DynQueue, Event, FailedAttempt, FeatureError, Features,
    FoundDue, GivenApproval, Heartbeat, HistoryEntry, InboxMessage, Instruction, InstructionError,
    JoinHistory, KEY_RESERVATION, LEASE, Lease, LeaseNumber, ListQuery, Listing, Log, LogHandle, LogState,
    MAX_TRIES, Meta, Meter, NotStored, OpenQuestion, OpenState, Opening, Page, Parent, ParkedLog, PauseHold,
    Progress, Question, QuestionKind, Queue, QueueFigures, QueueOverview, QueueState, QueueWrapper,
    QueuedLog, RecoveredEvents, Reservation, ResourceKey, Resources, Responder, SeenWorker, Store,
    StoreWrapper, StoredResults, StoredText, Subscription, Summary, TeamChanged, Timestamp, TurnRequest,
    Update, WorkerInfo,
};
pub use model::{AnyModel, EarlierReplies, Model, ModelWrapper, Origin, Request, SealsSent};
pub use policy::{Condition, Policy, Step, steerable, with_follow_ups, with_termination, wrap_policy};
pub use run::{AgentCall, RunResult, RunStream};
pub use tool::{AnyTool, StateScope, Tool, ToolCx, ToolError, no_such_tool};
pub use transcript::{
    BackgroundEntry, EarlierTranscript, EndedTurn, MessageSource, RaisedLimits, Transcript, TranscriptMessage,
};
pub use turn::{Act, BackgroundStart, BackgroundTaskState, InputRequest, ModelAttempt, ModelCall, Turn};
pub use view::{
    BEGIN, CONTINUE, Compactable, EncodeCache, Entry, KeptSize, PromptRole, ShowNames, View, ViewOptions,
    Window,
};
