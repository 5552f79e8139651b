//! A person who looks over an agent's shoulder.
