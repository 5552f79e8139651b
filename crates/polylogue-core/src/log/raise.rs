//! Changing limits of the run, such as one that a person was asked about.

use crate::{Body, LimitOverrides, Log, OpenQuestion, Path, Responder, Result};

/// The answer that is logged for a person who raised the limit in another way.
const RAISED: &str = "raised";

impl Log {
    /// Allows `more` than was used, up to the ceiling, and no less than before.
    pub(crate) async fn raise_limits(&self, more: LimitOverrides) -> Result<()> {
        let now = self.limits_now();
        let raised = self.limits_beyond(more).await.at_most(now.raise.ceiling).not_below(&now);
        self.override_limits(raised).await
    }

    /// Logs that the totals `limits` apply from now on, in this process and in those that continue the conversation later. Limits that
    /// they do not name stay as they are.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn override_limits(&self, limits: LimitOverrides) -> Result<()> {
        let limits = limits.or(self.look(LimitOverrides::last_of).await.unwrap_or_default());
        let body = Body::LimitsChanged { limits, more: LimitOverrides::default() };
        self.append(&Path::root(), [body]).await?;
        self.set_limits(limits);
        Ok(())
    }

    /// Answers the question about a limit that was raised since it was asked.
    pub(crate) async fn answer_raised(&self) -> Result<()> {
        let limits = self.limits_now();
        let open = self.look(OpenQuestion::of).await;
        let raised = open.into_iter().find_map(|open| {
            let is_raised = open.question.limit.as_ref().is_some_and(|limit| !limits.holds(&limit.reached));
            is_raised.then_some((open.at, open.question.who))
        });
        if let Some((at, to)) = raised {
            let body = Body::InputProvided { to, text: RAISED.into(), by: Responder::Unnamed };
            self.append(&at, [body]).await?;
        }
        Ok(())
    }
}
