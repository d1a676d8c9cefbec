//! Tests of redaction: every form of key, cut at every byte.

use super::*;

/// One of each form, as a provider would issue it. They are put together here, so that no scanner takes this file for a leak.
fn keys() -> Vec<String> {
    let letters = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6";
    let token = |prefix: &str, length: usize| format!("{prefix}{}", letters.get(..length).unwrap());
    vec![
        format!("AK{}", "IAQWERTYUIOPASDFGH"),
        token("AIza", 35),
        token("ghp_", 36),
        token("ghs_", 36),
        token("github_pat_", 40),
        token("glpat-", 20),
        token("npm_", 36),
        token("sk-ant-api03-", 40),
        token("sk-proj-", 48),
        token("sk-", 48),
        token("hf_", 34),
        token("gsk_", 50),
        token("xoxb-1234-5678-", 24),
        token("sk_live_", 24),
        format!("ey{}.ey{}.{}", "JhbGciOiJIUzI1NiJ9", "JzdWIiOiIxMjM0In0", letters.get(..43).unwrap()),
        format!(
            "-----BEGIN RSA PRIV{}\nMIIE{letters}\nabcd\n-----END RSA PRIV{}",
            "ATE KEY-----", "ATE KEY-----"
        ),
    ]
}

fn forms() -> Redactor {
    Redactor::new([("PATH", "/usr/bin:/usr/local/bin")])
}

fn redacted(redactor: &Redactor, text: &str) -> String {
    redactor.redact_text(text)
}

/// What a stream gives for a text that arrives in pieces of these sizes, one after the other.
fn streamed(redactor: &Redactor, text: &[u8], sizes: &[usize]) -> Vec<u8> {
    let mut stream = redactor.stream();
    let mut out = Vec::new();
    let mut rest = text;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, later) = rest.split_at((*size).max(1).min(rest.len()));
        stream.push(piece, &mut out);
        rest = later;
    }
    stream.finish(&mut out);
    out
}

#[test]
fn every_form_is_replaced_wherever_it_stands() {
    let redactor = forms();
    for key in keys() {
        for (before, after) in [
            ("", ""),
            ("key: ", " end"),
            ("K=\"", "\"\n"),
            ("\u{1b}[31m", "\u{1b}[0m"),
            ("{\"text\":\"line\\n", "\"}"),
            ("é", "é"),
            ("\\u001b", ","),
        ] {
            let text = format!("{before}{key}{after}");
            assert_eq!(redacted(&redactor, &text), format!("{before}[redacted]{after}"), "{text}");
        }
    }
}

#[test]
fn a_key_that_is_cut_anywhere_is_found() {
    let value = "pass-wörd \"quoted\" 123";
    let redactor = Redactor::new([("DB_PASSWORD", value)]);
    let mut texts: Vec<String> = keys().iter().map(|key| format!("aé {key} bé\n")).collect();
    texts.push(format!("x {value} y {value}"));
    for text in texts {
        let whole = redactor.redact(text.as_bytes()).into_owned();
        assert!(whole.windows(10).any(|part| part == REDACTED.as_bytes()), "{text}");
        for first in 1..text.len() {
            let twice = streamed(&redactor, text.as_bytes(), &[first, text.len()]);
            assert_eq!(String::from_utf8_lossy(&twice), String::from_utf8_lossy(&whole), "{first}: {text}");
        }
        assert_eq!(streamed(&redactor, text.as_bytes(), &[1]), whole, "{text}");
    }
}

#[test]
fn a_key_in_pieces_is_found_wherever_it_is_cut() {
    let redactor = Redactor::new([("DB_PASSWORD", "pass-word \"quoted\" 123")]);
    let mut all = keys();
    all.push("pass-word \"quoted\" 123".to_owned());
    for key in all {
        let text = format!("a {key} b");
        for (first, second) in
            (1..text.len()).flat_map(|first| [(first, first), (first, (first + 3).min(text.len()))])
        {
            let cuts = [text.get(..first), text.get(first..second), text.get(second..)];
            let mut pieces = cuts.map(|piece| piece.unwrap().to_owned());
            redactor.redact_pieces(&mut pieces.each_mut());
            assert_eq!(pieces.concat(), "a [redacted] b", "{first} {second}: {text}");
            let delta =
                |text: &String| serde_json::json!({ "type": "delta", "index": 1, "delta": { "text": text } });
            let other = serde_json::json!({ "type": "delta", "index": 2, "delta": { "text": "between" } });
            let cuts = [text.get(..first), text.get(first..)].map(|piece| piece.unwrap().to_owned());
            let mut events = [delta(&cuts[0]), other, delta(&cuts[1])];
            redactor.redact_events(&mut events);
            let sent = format!("{}{}", events[0]["delta"]["text"], events[2]["delta"]["text"]);
            assert_eq!(sent.replace('"', ""), "a [redacted] b", "{first}: {text}");
        }
    }
    let mut whole = ["no key ".to_owned(), "here".to_owned()];
    redactor.redact_pieces(&mut whole.each_mut());
    assert_eq!(whole.concat(), "no key here");
}

#[test]
fn ordinary_output_stays_as_it_is() {
    let redactor = Redactor::new([
        ("API_KEY", "1"),
        ("POSTGRES_PASSWORD", "postgres"),
        ("HOME", "/home/someone"),
        ("KEYBOARD", "a-long-keyboard-layout"),
    ]);
    for text in [
        "task-implement-the-whole-feature-for-all-users-2026",
        "connected to postgres at /home/someone with a-long-keyboard-layout (1)",
        "https://example.com:8080/a@b and http://localhost:3000",
        "-----BEGIN PRIVATE KEY----- is how such a file begins, and nothing follows here",
        "-----BEGIN CERTIFICATE-----\nMIIEa1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6\n-----END CERTIFICATE-----",
        "AKIAIOSFODNN7EXAMPLE",
        "0123456789abcdef0123456789abcdef01234567 commit",
        "sk- ghp_ eyJ xoxb- Bearer token",
        "",
    ] {
        assert_eq!(redacted(&redactor, text), text);
        assert_eq!(streamed(&redactor, text.as_bytes(), &[3]), text.as_bytes());
    }
}

#[test]
fn output_passes_at_once_unless_it_could_be_a_key() {
    let mut stream = Redactor::new([("MY_TOKEN", "abcdefgh-12345678")]).stream();
    let mut out = Vec::new();
    stream.push(b"progress: 10%", &mut out);
    assert_eq!(out, b"progress: 10%");
    stream.push(b" abcdefgh-", &mut out);
    assert_eq!(out, b"progress: 10% ");
    stream.push(b"!", &mut out);
    assert_eq!(out, b"progress: 10% abcdefgh-!");
}

#[test]
fn a_text_that_could_forever_be_a_key_does_not_fill_the_memory() {
    let mut stream = forms().stream();
    let mut out = Vec::new();
    stream.push(b"-----BEGIN PRIVATE KEY-----\n", &mut out);
    for _ in 0..100 {
        stream.push(&[b'A'; 8 << 10], &mut out);
        assert!(stream.waiting_bytes() <= 200 << 10);
    }
    stream.finish(&mut out);
    assert!(out.starts_with(REDACTED.as_bytes()));
}

#[test]
fn values_are_found_in_json_and_in_addresses() {
    let redactor = Redactor::new([("SIGNING_SECRET", "a\"b/c+d\n12345")]);
    let line = serde_json::json!({ "text": "see a\"b/c+d\n12345!" }).to_string();
    assert_eq!(redacted(&redactor, &line), r#"{"text":"see [redacted]!"}"#);
    assert_eq!(redacted(&redactor, "?k=a%22b%2Fc%2Bd%0A12345&x"), "?k=[redacted]&x");
    let login = "git clone https://me:s3cret-pass@git.example/x";
    assert_eq!(redacted(&redactor, login), "git clone https://me:[redacted]@git.example/x");
}

#[test]
fn values_are_found_in_every_common_encoding() {
    let value = "CAN\"ARY/p+a ss\\w&rd1~é";
    let redactor = Redactor::new([("ODD_PASSWORD", value)]);
    let json = serde_json::Value::from(value).to_string();
    let texts = [
        json.clone(),
        json.replace('/', "\\/"),
        format!("'{}'", value.replace('\\', "\\\\")),
        serde_json::Value::from(json.clone()).to_string(),
        "CAN%22ARY%2Fp%2Ba%20ss%5Cw%26rd1~%C3%A9".to_owned(),
        "CAN%22ARY%2fp%2ba%20ss%5cw%26rd1~%c3%a9".to_owned(),
        "CAN%22ARY/p%2Ba%20ss%5Cw%26rd1~%C3%A9".to_owned(),
        "CAN%22ARY%2Fp%2Ba+ss%5Cw%26rd1~%C3%A9".to_owned(),
        "43414e224152592f702b612073735c7726726431 7ec3a9".replace(' ', ""),
        "43414E224152592F702B612073735C77267264317EC3A9".to_owned(),
    ];
    for text in texts {
        let redacted = redacted(&redactor, &format!("see {text} end"));
        assert!(redacted.contains("[redacted]") && !redacted.contains("rd1"), "{text}: {redacted}");
    }
}

#[test]
fn values_are_found_in_base64_whatever_is_around_them() {
    let redactor = Redactor::new([("DEPLOY_SECRET", "CANARY1wJalrXUtnFEMI")]);
    for (text, rest) in [
        ("Q0FOQVJZMXdKYWxyWFV0bkZFTUk=", "[redacted]k="),
        // `u:`, `us:`, `use:` and more behind.
        ("dTpDQU5BUlkxd0phbHJYVXRuRkVNSQ==", "dTp[redacted]Q=="),
        ("dXM6Q0FOQVJZMXdKYWxyWFV0bkZFTUlhYmM=", "dXM6[redacted]lhYmM="),
        ("dXNlOkNBTkFSWTF3SmFsclhVdG5GRU1JYQ==", "dXNlOk[redacted]YQ=="),
    ] {
        assert_eq!(redacted(&redactor, text), rest, "{text}");
    }
}

#[test]
fn a_key_in_utf_16_is_found_in_a_file() {
    let key = "CANARY1wJalrXUtnFEMIK7MDENGbPxRfiCYzzzzz";
    let redactor = Redactor::new([("DEPLOY_SECRET", key)]);
    let text = format!("key={key}\r\n");
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for content in [little, big] {
        let found = redactor.key_in_file(&content, Vec::new);
        assert_eq!(found, Some(FileKey::OfEnvironment { variable: "DEPLOY_SECRET".to_owned() }));
        assert_eq!(redactor.key_in_file(&content, || content.clone()), None);
    }
}

#[test]
fn json_stays_json() {
    let redactor = forms();
    let aws = "wJalrXUtnFEMIK7MDENGbPxRfiCYzzzzzzzzzzzz";
    let value = serde_json::json!({ "aws_secret_access_key": aws, "keys": keys() });
    for line in [value.to_string(), serde_json::json!({ "nested": value.to_string() }).to_string()] {
        let text = redacted(&redactor, &line);
        serde_json::from_str::<serde_json::Value>(&text).unwrap();
        assert!(!text.contains(aws) && !text.contains("a1B2c3D4"), "{text}");
    }
}

#[test]
fn the_names_of_keys_are_known() {
    for name in [
        "ANTHROPIC_API_KEY",
        "GITHUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "DB_PASSWORD",
        "apikey",
        "NPM_CONFIG_PASS",
        "DB_PWD",
        "MYSQL_PWD",
        "DBPWD",
        "NPM_AUTH",
        "AUTH_HEADER",
    ] {
        assert!(is_key_name(name), "{name}");
    }
    for name in [
        "PATH",
        "PWD",
        "OLDPWD",
        "KEYBOARD",
        "TOKENIZERS_PARALLELISM",
        "SSH_AUTH_SOCK",
        "AUTH_TYPE",
        "XAUTHORITY",
        "COMPASS",
    ] {
        assert!(!is_key_name(name), "{name}");
    }
}

#[test]
fn the_keys_of_a_login_file_are_known_by_their_members() {
    let codex = r#"{"OPENAI_API_KEY":null,"tokens":{"id_token":"a","access_token":"b","account_id":"me"},"last_refresh":"now"}"#;
    assert_eq!(keys_in_login_file(codex), ["a", "b"]);
    let claude =
        r#"{"claudeAiOauth":{"accessToken":"a","refreshToken":"b","expiresAt":1,"scopes":["user:x"]}}"#;
    assert_eq!(keys_in_login_file(claude), ["a", "b"]);
    assert_eq!(keys_in_login_file(r#"{"x":{"type":"oauth","refresh":"a","access":"b"}}"#), ["a", "b"]);
    assert_eq!(
        keys_in_login_file(r#"{"env":{"Q_API_KEY":"a"},"security":{"auth":{"apiKey":"b"}}}"#),
        ["a", "b"]
    );
    assert_eq!(keys_in_login_file("# x\nexport GEMINI_API_KEY=\"a\"\nMODEL=m\n"), ["a"]);
}

#[test]
fn what_is_known_already_stays() {
    let redactor = Redactor::new([("MY_TOKEN", "abcdefgh-12345678")]);
    let text = b"abcdefgh-12345678 and more";
    assert_eq!(redactor.redact_new(text, b"before: abcdefgh-12345678").as_ref(), text);
    assert_eq!(redactor.redact_new(text, b"before").as_ref(), b"[redacted] and more");
}

#[test]
fn a_file_with_a_key_is_told_by_how_sure_it_is() {
    let redactor = Redactor::new([
        ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMIK7MDENGbPxRfiCYzzzzzzzzzzzz"),
        ("DEV_SECRET", "dev-secret"),
    ]);
    let of_environment = FileKey::OfEnvironment { variable: "AWS_SECRET_ACCESS_KEY".to_owned() };
    let found = |text: &str| redactor.key_in_file(text.as_bytes(), Vec::new);
    assert_eq!(found("s = dev-secret\nk = wJalrXUtnFEMIK7MDENGbPxRfiCYzzzzzzzzzzzz"), Some(of_environment));
    assert_eq!(found("s = dev-secret"), Some(FileKey::Likely));
    assert_eq!(found(&keys().join(" ")), Some(FileKey::Likely));
    assert_eq!(found("postgres://me:s3cret-pass@localhost and eyJabcdefgh.eyJabcdefgh.abcdefgh"), None);
    let earlier = || b"DEV = dev-secret".to_vec();
    assert_eq!(redactor.key_in_file(b"s = dev-secret", earlier), None);
}

#[test]
fn redacted_text_stays_when_it_is_redacted_again() {
    let redactor = Redactor::new([("MY_SECRET", "redacted]-9"), ("OTHER_KEY", "abcdefgh-12345678")]);
    let once = redacted(&redactor, &format!("{} abcdefgh-12345678", keys().join(" ")));
    assert_eq!(redacted(&redactor, &once), once);
}
