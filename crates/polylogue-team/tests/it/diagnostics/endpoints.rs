//! Endpoints that cannot be, and secrets that stand where none may.

use std::fs;

use expect_test::expect;
use polylogue_team::{Overrides, load};

use super::check_with;

#[test]
fn everything_that_is_wrong_with_endpoints_is_said_at_once() {
    check_with(
        r#"
model: huose:big
endpoints:
  house:
    base_url: ftp://house
    key: HOUSE-KEY
    headers: {"X Team": a, Host: b, x-a: c, X-A: d, X-B: 2, X-C: {var: C}}
    in_flight: 0
    per_minute: many
    timeouts: {connect: 10, first_token: ten s, idle: 0 s, totel: 1 min}
    retries: -1
    merge: maybe
    basurl: http://x
  opneai: {in_flight: 2}
  openai: {}
  OpenAI: {}
  "my house": {base_url: http://x}
"#,
        &expect![[r#"
            warning[unknown-model]: there is no provider `huose`
             --> t.yaml:5:8
              |
            5 | model: huose:big
              |        ^^^^^^^^^
            hint: did you mean `house:big`?

            error: the base URL does not begin with `http://` or `https://`
             --> t.yaml:8:15
              |
            8 |     base_url: ftp://house
              |               ^^^^^^^^^^^
            hint: it looks like `http://127.0.0.1:8000/v1`

            error: this is not the name of an environment variable
             --> t.yaml:9:10
              |
            9 |     key: *********
              |          ^^^^^^^^^
            hint: keys are not allowed in team files: put it into an environment variable or into `.env`, and the variable's name here, such as `HOUSE_API_KEY`

            error: `X Team` is not a valid header name
              --> t.yaml:10:15
               |
            10 |     headers: {"X Team": a, Host: b, x-a: c, X-A: d, X-B: 2, X-C: {var: C}}
               |               ^^^^^^^^

            error: the header `Host` cannot be set: it says how a request is sent
              --> t.yaml:10:28
               |
            10 |     headers: {"X Team": a, Host: b, x-a: c, X-A: d, X-B: 2, X-C: {var: C}}
               |                            ^^^^

            error: a header `X-A` already exists
              --> t.yaml:10:45
               |
            10 |     headers: {"X Team": a, Host: b, x-a: c, X-A: d, X-B: 2, X-C: {var: C}}
               |                                             ^^^

            error: `X-B` must be a text or a mapping, not a number
              --> t.yaml:10:58
               |
            10 |     headers: {"X Team": a, Host: b, x-a: c, X-A: d, X-B: 2, X-C: {var: C}}
               |                                                          ^
            hint: put it in quotes: "2"

            error: unknown key `var`
              --> t.yaml:10:67
               |
            10 |     headers: {"X Team": a, Host: b, x-a: c, X-A: d, X-B: 2, X-C: {var: C}}
               |                                                                   ^^^
            hint: there is `env`

            error: `X-C` needs the key `env`
              --> t.yaml:10:67
               |
            10 |     headers: {"X Team": a, Host: b, x-a: c, X-A: d, X-B: 2, X-C: {var: C}}
               |                                                                   ^^^

            error: `in_flight` must be at least 1
              --> t.yaml:11:16
               |
            11 |     in_flight: 0
               |                ^

            error: `per_minute` must be a whole number, not a text
              --> t.yaml:12:17
               |
            12 |     per_minute: many
               |                 ^^^^

            error: `connect` must be a text, not a number
              --> t.yaml:13:25
               |
            13 |     timeouts: {connect: 10, first_token: ten s, idle: 0 s, totel: 1 min}
               |                         ^^
            hint: add the unit, such as `10 s`

            error: `ten s` is not a time
              --> t.yaml:13:42
               |
            13 |     timeouts: {connect: 10, first_token: ten s, idle: 0 s, totel: 1 min}
               |                                          ^^^^^
            hint: write a number and its unit: `500 ms`, `10 s`, `2 min` or `1 h`

            error: `0 s` is not a usable limit: it is less than 1 ms or more than 24 h
              --> t.yaml:13:55
               |
            13 |     timeouts: {connect: 10, first_token: ten s, idle: 0 s, totel: 1 min}
               |                                                       ^^^

            error: unknown key `totel`
              --> t.yaml:13:60
               |
            13 |     timeouts: {connect: 10, first_token: ten s, idle: 0 s, totel: 1 min}
               |                                                            ^^^^^
            hint: did you mean `total`?

            error: `retries` must be at least 0
              --> t.yaml:14:14
               |
            14 |     retries: -1
               |              ^^

            error: `merge` must be `true` or `false`, not a text
              --> t.yaml:15:12
               |
            15 |     merge: maybe
               |            ^^^^^

            error: unknown key `basurl`
              --> t.yaml:16:5
               |
            16 |     basurl: http://x
               |     ^^^^^^
            hint: did you mean `base_url`?

            error: the endpoint `opneai` needs the key `base_url`
              --> t.yaml:17:3
               |
            17 |   opneai: {in_flight: 2}
               |   ^^^^^^
            hint: did you mean `openai`? Further endpoints need an address

            error: an endpoint `openai` is already defined in line 18
              --> t.yaml:19:3
               |
            19 |   OpenAI: {}
               |   ^^^^^^

            error: no endpoint can be called `my house`
              --> t.yaml:20:3
               |
            20 |   "my house": {base_url: http://x}
               |   ^^^^^^^^^^
            hint: a name begins with a letter, followed by letters, digits, `_` and `-`
        "#]],
    );
}

#[test]
fn keys_are_refused_and_not_shown() {
    check_with(
        r#"
vars: {secret: sk-of-a-variable}
endpoints:
  house: {base_url: "http://me:pa55word@house/v1", key: sk-house-abc, headers: {X-A: sk-abcdefgh, Authorization: hush, X-B: "{{secret}}"}, tmeout: 1}
  other:
    base_url: https://other/v1?api_key=abcdef
    api_key: sk-other-abcdefgh
    headers:
      X-C: {env: gsk_abcdefgh}
      X-D: Bearer 1234567890
      Cookie: {env: no name}
"#,
        &expect![[r#"
            error: the address holds a user or a password
             --> t.yaml:7:21
              |
            7 |   house: {base_url: *****************************, key: ************, headers: {X-A: ***********, Au
              |                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
            hint: remove it from the address; `key` and `headers` take secrets from environment variables

            error: this is not the name of an environment variable
             --> t.yaml:7:57
              |
            7 | **************************, key: ************, headers: {X-A: ***********, Authorization: ****, X-B:
              |                                  ^^^^^^^^^^^^
            hint: keys are not allowed in team files: put it into an environment variable or into `.env`, and the variable's name here, such as `HOUSE_API_KEY`

            error: keys are not allowed in team files, and the value of this header looks like one
             --> t.yaml:7:86
              |
            7 | ey: ************, headers: {X-A: ***********, Authorization: ****, X-B: "{{secret}}"}, tmeout: 1}
              |                                  ^^^^^^^^^^^
            hint: put it into an environment variable or into `.env`, and the variable's name here: `{env: NAME}`

            error: keys are not allowed in team files, and the value of `Authorization` looks like one
             --> t.yaml:7:114
              |
            7 | X-A: ***********, Authorization: ****, X-B: "{{secret}}"}, tmeout: 1}
              |                                  ^^^^
            hint: put it into an environment variable or into `.env`, and the variable's name here: `{env: NAME}`

            error: keys are not allowed in team files, and the value of this header looks like one
             --> t.yaml:7:125
              |
            7 | *****, Authorization: ****, X-B: "{{secret}}"}, tmeout: 1}
              |                                  ^^^^^^^^^^^^
            hint: put it into an environment variable or into `.env`, and the variable's name here: `{env: NAME}`

            error: unknown key `tmeout`
             --> t.yaml:7:140
              |
            7 | ation: ****, X-B: "{{secret}}"}, tmeout: 1}
              |                                  ^^^^^^
            hint: did you mean `timeouts`?

            error: the address holds a key
             --> t.yaml:9:15
              |
            9 |     base_url: *******************************
              |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
            hint: remove it from the address; `key` and `headers` take secrets from environment variables

            error: unknown key `api_key`
              --> t.yaml:10:5
               |
            10 |     api_key: *****************
               |     ^^^^^^^
            hint: there are `api`, `base_url`, `api_version`, `deployments`, `key`, `headers`, `in_flight`, `per_minute`, `timeouts`, `retries`, `max_wait`, `merge`, `prompt_cache`, `capabilities`, `send_reasoning`, `drop_parameters`

            error: this is not the name of an environment variable
              --> t.yaml:12:18
               |
            12 |       X-C: {env: ************}
               |                  ^^^^^^^^^^^^
            hint: keys are not allowed in team files: put it into an environment variable or into `.env`, and the variable's name here, such as `HOUSE_API_KEY`

            error: keys are not allowed in team files, and the value of this header looks like one
              --> t.yaml:13:12
               |
            13 |       X-D: *****************
               |            ^^^^^^^^^^^^^^^^^
            hint: put it into an environment variable or into `.env`, and the variable's name here: `{env: NAME}`

            error: this is not the name of an environment variable
              --> t.yaml:14:21
               |
            14 |       Cookie: {env: *******}
               |                     ^^^^^^^
            hint: keys are not allowed in team files: put it into an environment variable or into `.env`, and the variable's name here, such as `HOUSE_API_KEY`
        "#]],
    );
}

#[test]
fn teams_that_mean_different_endpoints_by_one_name_need_a_word_of_the_file_around_them() {
    let folder = tempfile::tempdir().unwrap();
    let inner = |name: &str, port: u16| {
        let endpoints = format!("endpoints: {{house: {{base_url: 'http://127.0.0.1:{port}/v1'}}}}");
        let text = format!(
            "{{name: {name}, {endpoints}, agents: [{{name: Ann}}], chat: {{participants: [Ann], pattern: sequential}}}}"
        );
        fs::write(folder.path().join(format!("{name}.yaml")), text).unwrap();
    };
    inner("one", 1);
    inner("two", 2);
    let outer = "name: outer\nchat: {pattern: sequential, participants: [one, two]}\nteams: [{name: one, file: one.yaml}, {name: two, file: two.yaml}]\n";
    let path = folder.path().join("outer.yaml");
    fs::write(&path, outer).unwrap();
    let errors = load(&path, &Overrides::default()).unwrap_err();
    let said = errors.to_string().replace(&folder.path().display().to_string(), "FOLDER");
    expect![[r#"
        error: this team has another endpoint `house` than the team `one`
         --> FOLDER/outer.yaml:3:56
          |
        3 | teams: [{name: one, file: one.yaml}, {name: two, file: two.yaml}]
          |                                                        ^^^^^^^^
        hint: say in this file which it is: `endpoints: {house: ...}`
    "#]]
    .assert_eq(&said);
    fs::write(&path, format!("{outer}endpoints: {{house: {{base_url: http://127.0.0.1:3/v1}}}}\n")).unwrap();
    let team = load(&path, &Overrides::default()).unwrap_or_else(|e| panic!("{e}")).team;
    let (name, house) = team.endpoint_of("house:big").unwrap();
    assert_eq!((name, house.base_url.as_deref()), ("house", Some("http://127.0.0.1:3/v1")));
    let kept = serde_json::to_value(&team).unwrap();
    assert_eq!(serde_json::from_value::<polylogue_team::Team>(kept).unwrap(), team);
}
