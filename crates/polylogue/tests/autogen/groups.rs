//! Group chats: items 74 to 96.
