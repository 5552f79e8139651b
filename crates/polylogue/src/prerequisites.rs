//! Chats that wait for others.
