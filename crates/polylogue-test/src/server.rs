//! A chat-completions server that plays a script and misbehaves on demand.
