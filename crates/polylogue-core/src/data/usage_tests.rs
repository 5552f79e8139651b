use super::*;

#[test]
fn a_charge_without_a_bound_in_money_is_unpriced_unless_the_server_refused_the_call() {
    let unpriced = |why, tokens, cost| {
        let charge = Charge::of(Name::new("Ann").unwrap(), "m:a".into(), why);
        let mut total = TotalUsage::default();
        total.charge(&Charge { calls: 1, tokens, cost, ..charge });
        total.uncertain.unpriced
    };
    let free = Some(Money::default());
    assert_eq!(unpriced(ChargeReason::Cancelled, None, None), 1);
    assert_eq!(unpriced(ChargeReason::Failed, Some(9), None), 1);
    assert_eq!(unpriced(ChargeReason::Failed, None, None), 0, "refused");
    assert_eq!(unpriced(ChargeReason::Cancelled, Some(9), free), 0);
    assert_eq!(unpriced(ChargeReason::Repeated, Some(9), None), 0, "nothing counts");
}

#[test]
fn the_usage_of_a_discarded_reply_is_known() {
    let charge = Charge::of(Name::new("Ann").unwrap(), "m:a".into(), ChargeReason::Discarded);
    let charge = Charge { calls: 1, tokens: Some(15), output: Some(5), ..charge };
    let mut total = TotalUsage::default();
    total.charge(&Charge { cost: Some(Money::dollars(0.5)), ..charge.clone() });
    total.charge(&charge);
    let known =
        TotalUsage { calls: 2, input: 20, output: 10, cost: Money::dollars(0.5), ..TotalUsage::default() };
    assert_eq!(total, TotalUsage { unpriced: 1, ..known });
}

#[test]
fn usage_beyond_all_numbers_is_counted_as_the_highest() {
    let most = Some(u64::MAX);
    let usage = Usage {
        input: most,
        cached: most,
        written: most,
        written_long: most,
        audio: most,
        output: most,
        reasoning: most,
    };
    let (mut total, cost) = (TotalUsage::default(), Some(Money { picodollars: u64::MAX }));
    for cached in [false, true, false, true] {
        total.add_call(&usage, cost, cached);
        total.prompt_cache.add(&usage, cost, cost);
    }
    total.merge(&total.clone());
    let all = [total.input, total.output, total.reasoning, total.saved.tokens, total.prompt_cache.read];
    assert_eq!(all, [u64::MAX; 5]);
    assert_eq!((total.calls, total.saved.calls, total.cost.picodollars), (4, 4, u64::MAX));
}
