//! Optional settings of builders.

/// Applies settings that a file gives; without them, the defaults of the library remain.
pub(crate) trait Set: Sized {
    /// Applies `set` to the value, if there is one.
    fn set<T>(self, value: Option<T>, set: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            Some(value) => set(self, value),
            None => self,
        }
    }

    /// Applies `set` if `on`.
    fn set_if(self, on: bool, set: impl FnOnce(Self) -> Self) -> Self {
        if on { set(self) } else { self }
    }
}

impl<T> Set for T {}
