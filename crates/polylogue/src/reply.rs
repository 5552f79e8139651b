//! Layers that may reply: the stack that a conversable agent is.
