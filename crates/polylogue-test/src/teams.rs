//! Team files that tests of several crates run, each with its script.

/// A person and a bot, in a chat within a chat.
pub const OFFICE: &str = r#"
name: office
task: Decide.
agents:
  - {name: Kim, human: true, description: The boss.}
  - {name: Bot, system: You are Bot.}
chat: {pattern: sequential, participants: [meeting], summary: last}
chats:
  - {name: meeting, participants: [Bot, Kim], stop: {max_turns: 4, says: {text: agreed, by: Kim}}}
script:
  - Bot: Shall we?
  - Bot: Then not.
  - Bot: As you wish.
"#;

/// Two agents with private turns, who talk about their tasks until the keeper says that its own is complete. The keeper remembers its
/// judgment, the guesser does not.
pub const WHISPER: &str = r#"
name: whisper
task: Guess.
agents:
  - {name: Keeper, system: You keep a secret.}
  - {name: Guesser}
chat:
  participants: [Keeper, Guesser]
  pattern:
    group_solve:
      before: [{who: Keeper, prompt: Choose a number from 1 to 3.}]
      tasks:
        - {who: Keeper, prompt: You receive guesses., self_terminating: true, keeps_reflections: true}
        - {who: Guesser, prompt: Find a number from 1 to 3., self_terminating: true}
      end: one_last_chat
      shift: {says: What is your guess?}
script:
  - Keeper: It is 2.
  - Keeper: I wait.
  - Guesser: I am ready.
  - Guesser: 1?
  - Guesser: To find it.
  - Guesser: "yes"
  - Keeper: You won!
  - Keeper: Nothing is left.
  - Keeper: "no"
  - Guesser: What a game!
"#;
