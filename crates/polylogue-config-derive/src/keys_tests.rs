use syn::parse_quote;

use super::*;

fn derived(input: &DeriveInput) -> Result<TokenStream> {
    let syn::Data::Struct(data) = &input.data else { panic!("a struct") };
    derive(input, data)
}

#[test]
fn keys_that_the_reference_could_not_describe_are_refused() {
    let inputs: [(DeriveInput, &str); 6] = [
        (
            parse_quote!(
                struct S {
                    a: u32,
                }
            ),
            "a key needs a documentation comment",
        ),
        (
            parse_quote!(
                struct S {
                    /// The first.
                    a: Option<u32>,
                }
            ),
            "say what happens without this key",
        ),
        (
            parse_quote!(
                struct S {
                    /// The first.
                    #[key(default = Some(1))]
                    a: Option<u32>,
                }
            ),
            "a key with a default cannot be unset",
        ),
        (
            parse_quote!(
                #[config(alone = "b")]
                struct S {
                    /// The first.
                    a: u32,
                }
            ),
            "there is no key `b`",
        ),
        (
            parse_quote!(
                struct S {
                    /// The first.
                    #[key(range = 1..9)]
                    a: u32,
                }
            ),
            "write a range such as",
        ),
        (
            parse_quote!(
                struct S {
                    /// The first.
                    #[key(standard = 1)]
                    a: u32,
                }
            ),
            "expected `name`, `default`",
        ),
    ];
    for (input, expected) in inputs {
        let error = derived(&input).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn keys_with_a_description_are_accepted() {
    let inputs: [DeriveInput; 2] = [
        parse_quote!(
            #[config(alone = "b")]
            struct S {
                /// The first.
                #[key(default = 1, range = 1..=9)]
                a: u32,
                /// The second.
                #[key(none = "no limit")]
                b: Option<u32>,
            }
        ),
        parse_quote!(
            struct S {
                #[key(flatten)]
                a: T,
                #[key(skip)]
                b: u32,
            }
        ),
    ];
    for input in inputs {
        derived(&input).unwrap();
    }
}
