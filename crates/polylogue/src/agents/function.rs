//! An agent that is a function.

use polylogue_core::{Act, Agent, Name, NameError, Result, Turn};

/// An agent that is a pure function of its turn: it reads the transcript and returns an act.
///
/// # An agent that counts
/// ```
/// use polylogue::Function;
/// use polylogue_core::Act;
/// let counter = Function::new("Counter", |turn| Ok(Act::say((turn.transcript().turns() + 1).to_string())))?;
/// # Ok::<(), polylogue_core::NameError>(())
/// ```
pub struct Function<F> {
    name: Name,
    act: F,
}

impl<F: Fn(&Turn<'_>) -> Result<Act> + Send + Sync + 'static> Function<F> {
    /// An agent `name` that runs `act`. When a run is resumed in the middle of its turn, `act` runs again.
    ///
    /// # Errors
    /// When the name is illegal.
    pub fn new(name: &str, act: F) -> Result<Self, NameError> {
        Ok(Self { name: Name::new(name)?, act })
    }
}

impl<F: Fn(&Turn<'_>) -> Result<Act> + Send + Sync + 'static> Agent for Function<F> {
    fn name(&self) -> &Name {
        &self.name
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        (self.act)(turn)
    }
}
