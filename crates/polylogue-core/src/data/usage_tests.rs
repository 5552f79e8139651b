use super::*;

#[test]
fn money_is_shown_with_the_digits_that_matter() {
    assert_eq!(Money::dollars(12.345).to_string(), "$12.35");
    assert_eq!(Money::dollars(0.00123).to_string(), "$0.0012");
    assert_eq!(Money::dollars(0.5).to_string(), "$0.50");
    assert_eq!(Money::dollars(0.4987).to_string(), "$0.4987");
    assert_eq!(Money::dollars(-1.0), Money::default());
    for (picodollars, shown) in [
        (0, "$0.00"),
        (1, "$0.000000000001"),
        (4_500_000, "$0.0000045"),
        (30_000_000, "$0.00003"),
        (99_999_999, "$0.0001"),
        (100_000_000, "$0.0001"),
    ] {
        assert_eq!(Money { picodollars }.to_string(), shown);
    }
}

#[test]
fn a_charge_without_a_bound_in_money_is_unpriced_unless_the_server_refused_the_call() {
    let unpriced = |why, tokens, cost| {
        let who = Name::new("Ann").unwrap();
        let mut total = TotalUsage::default();
        total.charge(&Charge {
            who,
            model: "m:a".into(),
            why,
            calls: 1,
            tokens,
            cost,
            call: None,
            bound: None,
        });
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
