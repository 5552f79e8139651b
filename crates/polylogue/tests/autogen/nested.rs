//! Nested chats: items 97 to 99.
