//! Few-shot examples that a model receives before every conversation: it answers in their format.
#![expect(clippy::print_stdout, reason = "it is a program")]

use polylogue::layers::aggregate::few_shot;
use polylogue::layers::hook::HookedModel;
use polylogue::{Assistant, Session};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = polylogue::models::scripted(r#"[{"forecaster": "【雨】"}, {"forecaster": "【阴】"}]"#)?;
    // It prints its request; the examples are in no log and in no agent's memory.
    let model = HookedModel::new(model).on_view(few_shot([("今天天气", "【晴】")])).on_view(|entries, _| {
        let sent = entries.iter().map(|entry| polylogue::kernel::data::text_of(entry.parts()));
        println!("sent: {}", sent.collect::<Vec<_>>().join(" / "));
        entries
    });
    let forecaster = Assistant::new("forecaster", model)?;
    let session = Session::in_memory();
    for question in ["昨天天气", "明天天气"] {
        println!("{}", session.call(&forecaster, question).await?.text());
    }
    let state = session.state(&forecaster).await?;
    println!("remembered: {} messages", state.get("memory").unwrap_or_default().len());
    Ok(())
}
