//! Prices: keys that are not models, and those of misspelled providers.

use polylogue_models::Provider;

use crate::codes;
use crate::diagnostic::Report;
use crate::price::check_names;
use crate::suggest;
use crate::team::Team;
use crate::yaml::Node;

pub(super) fn check(root: &Node, team: &Team, report: &mut Report<'_>) {
    let prices = root.get("prices");
    check_names(prices, report);
    // A team within this one can have endpoints of other names.
    if !team.teams.is_empty() {
        return;
    }
    let own = team.endpoints.keys().map(String::as_str);
    let known: Vec<&str> =
        own.chain(Provider::all().iter().map(|provider| provider.name())).chain(["local"]).collect();
    for entry in prices.entries() {
        let Some((provider, model)) = entry.key.split_once(':') else { continue };
        if Provider::find(provider).is_some() || known.contains(&provider) {
            continue;
        }
        // The table has models of providers that are not known otherwise.
        if let Some(meant) = suggest::closest(provider, known.iter().copied()) {
            let message = format!("the price has no effect: there is no provider `{provider}`");
            let hint = format!("did you mean `{meant}:{model}`?");
            report.warning(codes::NO_EFFECT, &entry.key_span, message, hint);
        }
    }
}
