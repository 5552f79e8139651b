//! Handoffs: a front desk hands a customer over to another agent, with a note.

use polylogue::policies::handoff::AfterHandoff;
use polylogue::policies::{Handoff, handoffs};
use polylogue::{Assistant, Chat, Human, Name};
use polylogue_examples::{Result, play};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result {
    let model = polylogue::models::scripted(
        r#"[{"Front": {"calls": [{"tool": "transfer_to_Billing", "args": {"note": "Invoice 7 was paid twice."}}]}},
            {"Billing": "I see both payments. Shall I send one back?"}, {"Billing": "It is on its way."}]"#,
    )?;
    let chat = Chat::named("support")
        .participant(Assistant::new("Front", model.clone())?.tool(Handoff::to("Billing", "For invoices.")?))
        .participant(Assistant::new("Billing", model)?.tool(Handoff::to("Front", "For all but money.")?))
        .participant(Human::new("Customer")?)
        .policy(handoffs(Name::new("Front")?, AfterHandoff::To(Name::new("Customer")?)))
        .build()?;
    play(&chat, "I paid an invoice twice", &["Yes, please", "exit"]).await
}
