//! Group chats: who may speak next, and who of them does.
