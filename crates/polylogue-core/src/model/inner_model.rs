//! What wrappers of models share.

/// What a model has of the one in it: all but [`Model::complete`] and [`Model::is_cached`].
macro_rules! inner_model {
    ($self:ident => $inner:expr) => {
        fn name(&$self) -> &str {
            $inner.name()
        }
        fn cost(&$self, usage: &Usage) -> Option<Money> {
            $inner.cost(usage)
        }
        fn has_price(&$self, params: &Params) -> bool {
            $inner.has_price(params)
        }
        fn max_output(&$self, params: &Params) -> Option<u64> {
            $inner.max_output(params)
        }
        fn min_useful_output(&$self, params: &Params) -> u64 {
            $inner.min_useful_output(params)
        }
        fn context_window(&$self) -> Option<u64> {
            $inner.context_window()
        }
        fn max_input(&$self) -> Option<u64> {
            $inner.max_input()
        }
        fn page_tokens(&$self) -> u64 {
            $inner.page_tokens()
        }
        fn ignored(&$self, params: &Params) -> Vec<&'static str> {
            $inner.ignored(params)
        }
        fn least_to_reason(&$self, params: &Params) -> Option<u64> {
            $inner.least_to_reason(params)
        }
        fn check_params(&$self, params: &Params) -> Result<(), ModelError> {
            $inner.check_params(params)
        }
        fn alternatives(&$self) -> &[AnyModel] {
            $inner.alternatives()
        }
        fn unavailable_for(&$self) -> Option<Duration> {
            $inner.unavailable_for()
        }
        fn capabilities(&$self) -> Capabilities {
            $inner.capabilities()
        }
        fn expected_capabilities(&$self, params: &Params) -> Capabilities {
            $inner.expected_capabilities(params)
        }
        fn returns_seals(&$self, params: &Params) -> bool {
            $inner.returns_seals(params)
        }
    };
}

pub(super) use inner_model;
