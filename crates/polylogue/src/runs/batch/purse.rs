//! Money that many conversations share.

use std::sync::{Arc, Mutex, PoisonError};

use polylogue_core::{
    AnyModel, Deltas, Error, Halt, Model, ModelError, ModelErrorKind, Money, Reply, Request, Skills, Usage,
};

/// Money that many conversations share. Cloning shares it.
///
/// It is the models that pay: [`pays`](Self::pays). When it is empty, whoever is to be [halted](super::Batch::purse) is, and
/// no further model call is made; calls in flight are not broken off, because they are paid for. So at most those that were
/// in flight together are spent above it.
///
/// ```
/// use polylogue::{Money, batch::Purse};
/// let purse = Purse::new(Money::dollars(20.0));
/// purse.take(Money::dollars(0.25));
/// assert_eq!(purse.spent(), Money::dollars(0.25));
/// assert!(!purse.is_empty());
/// ```
#[derive(Debug, Clone)]
pub struct Purse {
    size: Money,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    spent: Money,
    halts: Vec<Halt>,
}

impl Purse {
    /// A purse with `money` in it.
    #[must_use]
    pub fn new(money: Money) -> Self {
        Self { size: money, state: Arc::default() }
    }

    /// `model`, paid from this purse. What a call costs is what the model says; a call of unknown cost takes nothing, so
    /// refuse models without a price.
    #[must_use]
    pub fn pays(&self, model: AnyModel) -> AnyModel {
        AnyModel::new(Paid { purse: self.clone(), model })
    }

    /// Takes money out for what was bought before.
    pub fn take(&self, money: Money) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.spent += money;
        if state.spent >= self.size {
            state.halts.iter().for_each(Halt::after_step);
        }
    }

    /// How much was in it.
    #[must_use]
    pub const fn size(&self) -> Money {
        self.size
    }

    /// What was taken out.
    #[must_use]
    pub fn spent(&self) -> Money {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).spent
    }

    /// Whether nothing is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spent() >= self.size
    }

    fn refusal(&self) -> String {
        format!("the {} for all conversations together are spent", self.size)
    }

    /// Whether a turn could not go on because there was nothing left.
    pub(super) fn refused(&self, error: &Error) -> bool {
        matches!(error, Error::Model(error) if error.message == self.refusal())
    }

    pub(super) fn halts(&self, halt: Halt) {
        if self.is_empty() {
            halt.after_step();
        }
        self.state.lock().unwrap_or_else(PoisonError::into_inner).halts.push(halt);
    }
}

/// A model that a purse pays for.
struct Paid {
    purse: Purse,
    model: AnyModel,
}

impl Model for Paid {
    fn name(&self) -> &str {
        self.model.name()
    }

    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn Deltas) -> Result<Reply, ModelError> {
        if self.purse.is_empty() {
            let error = ModelError::new(ModelErrorKind::Config, self.name(), self.purse.refusal());
            return Err(error.hint("run the batch again with more: what is over is not run again"));
        }
        let reply = self.model.complete(request, deltas).await?;
        // What a cache gives costs nothing.
        let cost = if reply.cached { None } else { self.model.cost(&reply.usage) };
        self.purse.take(cost.unwrap_or_default());
        Ok(reply)
    }

    fn cost(&self, usage: &Usage) -> Option<Money> {
        self.model.cost(usage)
    }

    fn skills(&self) -> Skills {
        self.model.skills()
    }
}
