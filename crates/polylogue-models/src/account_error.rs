//! Refusals of keys, accounts, places and models, which providers report with several statuses: what their bodies say counts.

use crate::error_body::ErrorBody;
use crate::retry::RetryAdvice;

/// What a provider refuses, whatever status it has for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccountError {
    /// The account, or the key, may spend no more.
    Spent,
    /// The quota of a day is used up.
    QuotaOfDay,
    /// A quota of the service for the account is used up.
    ServiceQuota,
    /// The key is wrong, or its account is closed.
    Key,
    /// No model has this name, or no longer.
    Model,
    /// The account may not use the model.
    NoAccess,
    /// The provider does not serve the place of the caller.
    Place,
    /// The API is not enabled for the project.
    Disabled,
    /// A signature or an assertion has a wrong time.
    Clock,
}

use AccountError::{Clock, Disabled, Key, Model, NoAccess, Place, QuotaOfDay, ServiceQuota, Spent};

/// The statuses of refusals whose cause is in their words.
const STATUSES: [u16; 5] = [400, 401, 403, 404, 429];

/// What messages and codes contain, in lower case; the first match counts.
const WORDS: &[(AccountError, &[&str])] = &[
    (
        Spent,
        &[
            "spend_limit_reached",
            "credit balance is too low",
            "billing_disabled",
            "used all available credits",
            "key limit exceeded",
            "openrouter_key_limit",
            "openrouter_guardrail_budget",
            "openrouter_workspace_budget",
            "budget_exceeded",
            "arrearage",
        ],
    ),
    (ServiceQuota, &["servicequotaexceeded"]),
    (
        Clock,
        &[
            "signature expired",
            "signature not yet current",
            "requestexpired",
            "requesttimetooskewed",
            // Google's, of the assertion of a service account.
            "in a reasonable timeframe",
        ],
    ),
    (Disabled, &["service_disabled"]),
    (Place, &["unsupported_country_region_territory", "user location is not supported"]),
    (NoAccess, &["don't have access to the model", "does not have access to model"]),
    (
        Model,
        &[
            "invalid_model",
            "invalid model name",
            "is not a valid model id",
            "model not exist",
            "model_decommissioned",
        ],
    ),
    // Google's code for a key that it does not know, and the text of xAI, which has status 400 for that.
    (Key, &["api_key_invalid", "incorrect api key", "organization has been disabled"]),
];

/// What Amazon says of limits of a day, without a wait.
const OF_DAY: [&str; 2] = ["tokens per day", "requests per day"];

impl AccountError {
    /// The error of a refusal with `status` that `says` so and, if `waits`, names the time to wait.
    pub(crate) fn of(status: u16, says: &ErrorBody, waits: bool) -> Option<Self> {
        if !STATUSES.contains(&status) {
            return None;
        }
        let is_day = status == 429 && (says.is_quota_of_day() || !waits && says.mentions(&OF_DAY));
        let named = || WORDS.iter().find(|(_, words)| says.mentions(words)).map(|(error, _)| *error);
        if is_day { Some(QuotaOfDay) } else { named() }
    }

    /// Whether another key of the endpoint may be accepted.
    pub(crate) const fn again(self) -> RetryAdvice {
        match self {
            Spent | QuotaOfDay | ServiceQuota => RetryAdvice::Spent,
            Key => RetryAdvice::KeyRefused,
            Model | NoAccess | Place | Disabled | Clock => RetryAdvice::No,
        }
    }

    /// What to do; `None` for [`Key`] and [`Model`], whose hints name the key's variable and the address.
    pub(crate) const fn hint(self) -> Option<&'static str> {
        Some(match self {
            Spent => QUOTA,
            QuotaOfDay => {
                "the quota of the day is used up: wait until tomorrow, or raise it in the provider's console"
            }
            ServiceQuota => "a quota of the service is used up: raise it in the provider's console",
            NoAccess => {
                "the account of the key has no access to the model: request it in the provider's console, in the \
                 same region, or take another model"
            }
            Place => {
                "the provider does not serve the country or region of this machine: take another provider"
            }
            Disabled => "enable the API for the project in the provider's console, or name another project",
            Clock => {
                "the signature's time differs from that of the provider: set the clock of this machine, \
                 or leave its date in the replies if a proxy removes it"
            }
            Key | Model => return None,
        })
    }
}

/// The hint when the account has no credit.
pub(crate) const QUOTA: &str =
    "the account has no credit left, or met its budget: see the provider's billing page";
