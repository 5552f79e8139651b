use syn::parse_quote;

use super::*;

fn derived(input: &DeriveInput) -> Result<TokenStream> {
    let syn::Data::Enum(data) = &input.data else { panic!("an enum") };
    derive(input, data)
}

#[test]
fn wrong_options_of_variants_are_refused() {
    let inputs: [(DeriveInput, &str); 6] = [
        (
            parse_quote!(
                enum E {
                    #[key(name = "b")]
                    A,
                }
            ),
            "`#[config(name = \"...\")]`",
        ),
        (
            parse_quote!(
                enum E {
                    #[key(default = 1)]
                    A(u32),
                }
            ),
            "a variant takes only",
        ),
        (
            parse_quote!(
                enum E {
                    #[key(nonempty)]
                    A,
                }
            ),
            "a word has no value",
        ),
        (
            parse_quote!(
                #[config(by_shape)]
                enum E {
                    #[key(range = 1..)]
                    A(u32),
                    B(String),
                }
            ),
            "no limits",
        ),
        (
            parse_quote!(
                enum E {
                    #[config(shorthand = "b")]
                    A(u32),
                }
            ),
            "a variant takes only",
        ),
        (
            parse_quote!(
                enum E {
                    #[config(name = "b")]
                    A,
                    B,
                }
            ),
            "two variants have the same name",
        ),
    ];
    for (input, expected) in inputs {
        let error = derived(&input).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn options_of_variants_that_have_an_effect_are_accepted() {
    let inputs: [DeriveInput; 3] = [
        parse_quote!(
            enum E {
                #[config(name = "b")]
                A,
                #[key(range = 1.., nonempty, unique)]
                C(u32),
            }
        ),
        parse_quote!(
            #[config(by_shape)]
            enum E {
                #[key(as = Text)]
                A(u32),
                B(String),
            }
        ),
        parse_quote!(
            enum E {
                #[key(as = Text)]
                A(u32),
                #[key(nonempty)]
                B(String),
            }
        ),
    ];
    for input in inputs {
        derived(&input).unwrap();
    }
}
