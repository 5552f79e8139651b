//! Sequential chats: items 48 to 57.
