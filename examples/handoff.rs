//! Who speaks decides who speaks next: a front desk hands a customer over, with a note.

use polylogue::handoff::After;
use polylogue::{Assistant, Chat, Human, Name, Transfer, handoffs};
use polylogue_examples::{Result, play, scripted};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result {
    let model = scripted(
        r#"[{"Front": {"calls": [{"tool": "transfer_to_Billing", "args": {"note": "Invoice 7 was paid twice."}}]}},
            {"Billing": "I see both payments. Shall I send one back?"}, {"Billing": "It is on its way."}]"#,
    )?;
    let chat = Chat::named("support")
        .with(Assistant::new("Front", model.clone())?.tool(Transfer::to("Billing", "For invoices.")?))
        .with(Assistant::new("Billing", model)?.tool(Transfer::to("Front", "For all but money.")?))
        .with(Human::new("Customer")?)
        .policy(handoffs(Name::new("Front")?, After::To(Name::new("Customer")?)))
        .build()?;
    play(&chat, "I paid an invoice twice", &["Yes, please", "exit"]).await
}
