//! Shared state of a team: one agent sets values, another reads them, and one value ends the chat.
#![expect(clippy::print_stdout, reason = "it is a program")]

use polylogue::policies::with_termination;
use polylogue::stop::max_turns;
use polylogue::tools::state::{self, GetState, SetState};
use polylogue::{Assistant, Chat, Message, Name, round_robin};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = polylogue::models::scripted(
        r#"[{"Buyer": {"calls": [{"tool": "set_state", "args": {"key": "offer", "value": 80}}]}}, {"Buyer": "I offer 80"},
            {"Seller": {"calls": [{"tool": "get_state"}]}}, {"Seller": "Your offer is too low"},
            {"Buyer": {"calls": [{"tool": "set_state", "args": {"key": "offer", "value": 95}}]}}, {"Buyer": "Well, 95"},
            {"Seller": {"calls": [{"tool": "set_state", "args": {"key": "sold", "value": true}}]}}, {"Seller": "Sold"}]"#,
    )?;
    let seller = Assistant::new("Seller", &model)?.tool(GetState::new());
    let chat = Chat::builder("market")
        .participant(Assistant::new("Buyer", &model)?.tool(SetState::new().only(["offer"])))
        .participant(seller.tool(SetState::new().only(["sold"])))
        .opening(|task| vec![state::given([("least", 90)]), Message::new(Name::user(), task)])
        .policy(with_termination(round_robin(), state::reaches("sold", true) | max_turns(10)))
        .build()?;
    println!("{}", chat.run("A used bicycle").await?);
    Ok(())
}
