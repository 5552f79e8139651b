//! Handoffs: a front desk hands a customer over to another agent, with a note.
#![expect(clippy::print_stdout, reason = "it is a program")]

use polylogue::policies::handoff::AfterHandoff;
use polylogue::policies::{Handoff, handoffs};
use polylogue::{Assistant, Chat, Human, Log, Name};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = polylogue::models::scripted(
        r#"[{"Front": {"calls": [{"tool": "transfer_to_Billing", "args": {"note": "Invoice 7 was paid twice."}}]}},
            {"Billing": "I see both payments. Shall I send one back?"}, {"Billing": "It is on its way."}]"#,
    )?;
    let chat = Chat::builder("support")
        .participant(Assistant::new("Front", &model)?.tool(Handoff::to("Billing", "For invoices.")?))
        .participant(Assistant::new("Billing", &model)?.tool(Handoff::to("Front", "For all but money.")?))
        .participant(Human::new("Customer")?)
        .policy(handoffs(Name::new("Front")?, AfterHandoff::To(Name::new("Customer")?)))
        .build()?;
    let mut log = Log::in_memory();
    let mut result = chat.run_in(&mut log, "I paid an invoice twice").await?;
    for answer in ["Yes, please", "exit"] {
        for (at, question) in result.questions() {
            log.answer(at, &question.who, answer).await?;
        }
        result = chat.resume(&mut log).await?;
    }
    println!("{result}");
    Ok(())
}
