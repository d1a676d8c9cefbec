//! The forms of keys: how each begins, and what follows.

use super::{KeyMatch, TextEnd};

/// One form of a key.
pub(super) struct KeyForm {
    pub(super) prefix: &'static str,
    body: Body,
    /// Whether a text of this form in a file is a key, and not an example or a part of a test.
    pub(super) is_certain: bool,
}

/// What follows the prefix.
enum Body {
    /// At least so many characters of a set.
    Run {
        set: CharSet,
        min: usize,
        begins: Begin,
    },
    /// Exactly so many characters, and then none of the set.
    Exactly {
        set: CharSet,
        count: usize,
    },
    JsonWebToken,
    PrivateKey,
    /// A name, then a sign, then a value: `aws_secret_access_key = …`.
    Assigned {
        min: usize,
    },
    /// A name and a password before the host of an address.
    UrlLogin,
}

/// Where a form may begin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begin {
    Anywhere,
    /// Not in the middle of a word.
    Word,
}

/// The characters that a part of a key has.
#[derive(Clone, Copy)]
enum CharSet {
    Alphanumeric,
    /// The same, `_` and `-`.
    Word,
    Base64,
    CapitalsAndDigits,
    /// What the value of a header can have.
    Header,
}

/// The longest key of the simple forms.
const RUN_BYTES_MAX: usize = 4 << 10;
const TOKEN_BYTES_MAX: usize = 32 << 10;
const PRIVATE_KEY_BYTES_MAX: usize = 64 << 10;
/// The beginning of a private key that is enough to know it, if its end is missing.
const PRIVATE_KEY_LINE_MIN: usize = 40;

const fn anywhere(prefix: &'static str, set: CharSet, min: usize) -> KeyForm {
    KeyForm { prefix, body: Body::Run { set, min, begins: Begin::Anywhere }, is_certain: true }
}

const fn word(prefix: &'static str, set: CharSet, min: usize) -> KeyForm {
    KeyForm { prefix, body: Body::Run { set, min, begins: Begin::Word }, is_certain: true }
}

const fn other(prefix: &'static str, body: Body, is_certain: bool) -> KeyForm {
    KeyForm { prefix, body, is_certain }
}

const AWS_ID: Body = Body::Exactly { set: CharSet::CapitalsAndDigits, count: 16 };

/// All forms. A prefix may begin another one.
pub(super) const FORMS: &[KeyForm] = &[
    // Clouds.
    other("AKIA", AWS_ID, true),
    other("ASIA", AWS_ID, true),
    other("aws_secret_access_key", Body::Assigned { min: 40 }, true),
    other("AWS_SECRET_ACCESS_KEY", Body::Assigned { min: 40 }, true),
    other("AccountKey", Body::Assigned { min: 80 }, true),
    anywhere("AIza", CharSet::Word, 35),
    anywhere("GOCSPX-", CharSet::Word, 24),
    anywhere("ya29.", CharSet::Word, 24),
    anywhere("dop_v1_", CharSet::Alphanumeric, 60),
    anywhere("hvs.", CharSet::Word, 24),
    // Git hosts and registries.
    anywhere("ghp_", CharSet::Alphanumeric, 30),
    anywhere("gho_", CharSet::Alphanumeric, 30),
    anywhere("ghu_", CharSet::Alphanumeric, 30),
    anywhere("ghs_", CharSet::Alphanumeric, 30),
    anywhere("ghr_", CharSet::Alphanumeric, 30),
    anywhere("github_pat_", CharSet::Word, 22),
    anywhere("glpat-", CharSet::Word, 20),
    anywhere("gldt-", CharSet::Word, 20),
    anywhere("glrt-", CharSet::Word, 20),
    anywhere("ATATT3", CharSet::Word, 40),
    anywhere("dckr_pat_", CharSet::Word, 20),
    word("npm_", CharSet::Alphanumeric, 36),
    anywhere("pypi-AgE", CharSet::Word, 40),
    // Model providers.
    word("sk-ant-", CharSet::Word, 20),
    word("sk-proj-", CharSet::Word, 20),
    word("sk-svcacct-", CharSet::Word, 20),
    word("sk-admin-", CharSet::Word, 20),
    word("sk-or-v1-", CharSet::Word, 20),
    word("sk-", CharSet::Alphanumeric, 32),
    word("xai-", CharSet::Alphanumeric, 40),
    word("gsk_", CharSet::Alphanumeric, 40),
    word("hf_", CharSet::Alphanumeric, 30),
    word("r8_", CharSet::Alphanumeric, 30),
    word("nvapi-", CharSet::Word, 40),
    word("pplx-", CharSet::Alphanumeric, 40),
    // Others.
    anywhere("xoxb-", CharSet::Word, 20),
    anywhere("xoxp-", CharSet::Word, 20),
    anywhere("xoxa-", CharSet::Word, 20),
    anywhere("xoxs-", CharSet::Word, 20),
    anywhere("xapp-", CharSet::Word, 20),
    anywhere("sk_live_", CharSet::Alphanumeric, 20),
    anywhere("rk_live_", CharSet::Alphanumeric, 20),
    anywhere("AGE-SECRET-KEY-1", CharSet::CapitalsAndDigits, 50),
    other("-----BEGIN ", Body::PrivateKey, true),
    other("eyJ", Body::JsonWebToken, false),
    KeyForm {
        prefix: "Bearer ",
        body: Body::Run { set: CharSet::Header, min: 20, begins: Begin::Word },
        is_certain: false,
    },
    other("://", Body::UrlLogin, false),
];

impl KeyForm {
    /// Looks at the position at which the prefix begins.
    pub(super) fn look(&self, text: &[u8], start: usize, end: TextEnd) -> KeyMatch {
        let body = start + self.prefix.len();
        let rest = text.get(body..).unwrap_or_default();
        let is_bound = matches!(
            self.body,
            Body::Run { begins: Begin::Word, .. } | Body::JsonWebToken | Body::Exactly { .. }
        );
        if is_bound && !is_word_start(text, start) {
            return KeyMatch::No;
        }
        match self.body {
            Body::Run { set, min, .. } => run(rest, set, min, end).after(start, body),
            Body::Exactly { set, count } => exactly(rest, set, count, end).after(start, body),
            Body::JsonWebToken => json_web_token(rest, end).after(start, body),
            Body::PrivateKey => private_key(rest, end).after(start, body),
            Body::Assigned { min } => assigned(rest, min, end).after(body, body),
            Body::UrlLogin => url_login(rest, end).after(body, body),
        }
    }
}

/// The part of the text after a prefix that belongs to a key.
enum BodyMatch {
    No,
    NeedsMore,
    Key { from: usize, to: usize },
}

impl BodyMatch {
    fn whole(length: usize) -> Self {
        Self::Key { from: 0, to: length }
    }

    /// The key in the whole text. `start` is where a key begins whose part begins at 0, and `body` where the part begins.
    fn after(self, start: usize, body: usize) -> KeyMatch {
        match self {
            Self::No => KeyMatch::No,
            Self::NeedsMore => KeyMatch::NeedsMore,
            Self::Key { from: 0, to } => KeyMatch::Key { start, end: body + to },
            Self::Key { from, to } => KeyMatch::Key { start: body + from, end: body + to },
        }
    }
}

impl CharSet {
    fn has(self, byte: u8) -> bool {
        match self {
            Self::Alphanumeric => byte.is_ascii_alphanumeric(),
            Self::CapitalsAndDigits => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Word => byte.is_ascii_alphanumeric() || b"_-".contains(&byte),
            Self::Base64 => byte.is_ascii_alphanumeric() || b"+/=".contains(&byte),
            Self::Header => byte.is_ascii_alphanumeric() || b"_-.~+/=".contains(&byte),
        }
    }

    /// How many characters of the set a text begins with.
    fn run(self, text: &[u8], max: usize) -> usize {
        run_of(text, max, |byte| self.has(byte))
    }
}

fn run_of(text: &[u8], max: usize, is_part: impl Fn(u8) -> bool) -> usize {
    text.iter().take(max).take_while(|byte| is_part(**byte)).count()
}

/// Whether what was read up to a position may go on in text that is still to come.
fn is_cut(text: &[u8], read: usize, max: usize, end: TextEnd) -> bool {
    end == TextEnd::More && read >= text.len() && read < max
}

fn run(body: &[u8], set: CharSet, min: usize, end: TextEnd) -> BodyMatch {
    let length = set.run(body, RUN_BYTES_MAX);
    if is_cut(body, length, RUN_BYTES_MAX, end) {
        return BodyMatch::NeedsMore;
    }
    if length >= min { BodyMatch::whole(length) } else { BodyMatch::No }
}

fn exactly(body: &[u8], set: CharSet, count: usize, end: TextEnd) -> BodyMatch {
    let length = set.run(body, count);
    if is_cut(body, length, count + 1, end) {
        return BodyMatch::NeedsMore;
    }
    let is_longer = body.get(length).is_some_and(u8::is_ascii_alphanumeric);
    // The example in the documentation of AWS.
    let is_example = body.get(..length).is_some_and(|key| key.ends_with(b"EXAMPLE"));
    if length == count && !is_longer && !is_example { BodyMatch::whole(length) } else { BodyMatch::No }
}

/// Three parts with dots between them; the first two begin as a JSON object does.
fn json_web_token(body: &[u8], end: TextEnd) -> BodyMatch {
    const PART_BYTES_MIN: usize = 8;
    let mut at = 0;
    for part in 0..3 {
        let rest = body.get(at..).unwrap_or_default();
        let length = CharSet::Word.run(rest, TOKEN_BYTES_MAX);
        if is_cut(rest, length, TOKEN_BYTES_MAX, end) {
            return BodyMatch::NeedsMore;
        }
        let begins_well = part != 1 || rest.starts_with(b"eyJ");
        let has_dot = part == 2 || rest.get(length) == Some(&b'.');
        if length < PART_BYTES_MIN || !begins_well || !has_dot {
            return BodyMatch::No;
        }
        at += length + usize::from(part < 2);
    }
    BodyMatch::whole(at)
}

/// A block from `-----BEGIN … PRIVATE KEY-----` to its end, also inside of a JSON string; or the beginning of one that is cut.
fn private_key(body: &[u8], end: TextEnd) -> BodyMatch {
    const LABEL_BYTES_MAX: usize = 40;
    const DASHES: &[u8] = b"-----";
    let is_label = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ';
    let length = run_of(body, LABEL_BYTES_MAX, is_label);
    if is_cut(body, length, LABEL_BYTES_MAX, end) {
        return BodyMatch::NeedsMore;
    }
    let (label, rest) = body.split_at(length);
    if !label.ends_with(b"PRIVATE KEY") && !label.ends_with(b"PRIVATE KEY BLOCK") {
        return BodyMatch::No;
    }
    if rest.len() < DASHES.len() && DASHES.starts_with(rest) && end == TextEnd::More {
        return BodyMatch::NeedsMore;
    }
    if rest.starts_with(DASHES) { key_lines(body, length + DASHES.len(), end) } else { BodyMatch::No }
}

/// The lines of a private key from a position on, to the end of its last one.
fn key_lines(body: &[u8], from: usize, end: TextEnd) -> BodyMatch {
    const END: &[u8] = b"-----END ";
    /// Without a line of a key so far, the text is about keys and has none.
    const HEADERS_BYTES_MAX: usize = 512;
    let mut at = from;
    let mut longest = 0;
    while at < PRIVATE_KEY_BYTES_MAX && (longest >= PRIVATE_KEY_LINE_MIN || at < HEADERS_BYTES_MAX) {
        at += separators(body.get(at..).unwrap_or_default());
        let rest = body.get(at..).unwrap_or_default();
        if rest.starts_with(END) {
            let label = run_of(rest.get(END.len()..).unwrap_or_default(), 40, |byte| byte != b'-');
            let closing = rest.get(END.len() + label..).unwrap_or_default();
            let dashes = run_of(closing, 5, |byte| byte == b'-');
            let is_unfinished = dashes < 5 && dashes == closing.len() && label < 40;
            let to = at + END.len() + label + dashes;
            return if is_unfinished && end == TextEnd::More {
                BodyMatch::NeedsMore
            } else {
                BodyMatch::whole(to)
            };
        }
        let length = CharSet::Base64.run(rest, PRIVATE_KEY_BYTES_MAX);
        if end == TextEnd::More && (length == rest.len() || END.starts_with(rest)) {
            return BodyMatch::NeedsMore;
        }
        if length == 0 {
            break;
        }
        longest = longest.max(length);
        at += length;
    }
    if longest >= PRIVATE_KEY_LINE_MIN { BodyMatch::whole(at.min(body.len())) } else { BodyMatch::No }
}

/// What is between the lines of a key, and in its headers: white space, escapes, line numbers.
fn separators(text: &[u8]) -> usize {
    let is_separator = |byte: u8| byte.is_ascii_whitespace() || b"|>\\:,.".contains(&byte);
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let is_hyphen = *byte == b'-' && text.get(at + 1).is_some_and(|next| *next != b'-');
        if !is_separator(*byte) && !is_hyphen {
            break;
        }
        at += 1;
    }
    at
}

/// A sign and a value, with quotes, after a name. Only the value is the key.
fn assigned(body: &[u8], min: usize, end: TextEnd) -> BodyMatch {
    const SIGN_BYTES_MAX: usize = 12;
    let sign = run_of(body, SIGN_BYTES_MAX, |byte| b" \t=:\"'\\".contains(&byte));
    if is_cut(body, sign, SIGN_BYTES_MAX, end) {
        return BodyMatch::NeedsMore;
    }
    let (signs, rest) = body.split_at(sign);
    if !signs.iter().any(|byte| b"=:".contains(byte)) {
        return BodyMatch::No;
    }
    match run(rest, CharSet::Base64, min, end) {
        BodyMatch::Key { to, .. } => BodyMatch::Key { from: sign, to: sign + to },
        part @ (BodyMatch::No | BodyMatch::NeedsMore) => part,
    }
}

/// `user:password@` after `://`. Only the password is the key.
fn url_login(body: &[u8], end: TextEnd) -> BodyMatch {
    const BYTES_MAX: usize = 512;
    const PASSWORD_BYTES_MIN: usize = 8;
    let is_name = |byte: u8| byte.is_ascii_graphic() && !b"/@:\"'<>\\?#".contains(&byte);
    let is_password = |byte: u8| byte.is_ascii_graphic() && !b"/@\"'<>\\?#".contains(&byte);
    let name = run_of(body, BYTES_MAX, is_name);
    if is_cut(body, name, BYTES_MAX, end) {
        return BodyMatch::NeedsMore;
    }
    if body.get(name) != Some(&b':') {
        return BodyMatch::No;
    }
    let from = name + 1;
    let rest = body.get(from..).unwrap_or_default();
    let password = run_of(rest, BYTES_MAX, is_password);
    if is_cut(rest, password, BYTES_MAX, end) {
        return BodyMatch::NeedsMore;
    }
    let is_placeholder = rest.first().is_some_and(|byte| b"$*{[%".contains(byte));
    if password >= PASSWORD_BYTES_MIN && rest.get(password) == Some(&b'@') && !is_placeholder {
        return BodyMatch::Key { from, to: from + password };
    }
    BodyMatch::No
}

/// Whether no word goes on at a position. An escape of JSON or of a URL, and a code for a colour, end before it.
fn is_word_start(text: &[u8], at: usize) -> bool {
    let before = text.get(at.saturating_sub(12)..at).unwrap_or_default();
    let Some((last, head)) = before.split_last() else { return true };
    if !last.is_ascii_alphanumeric() && !b"_-".contains(last) {
        return true;
    }
    let is_hex = |count: usize, mark: &[u8]| {
        let digits = before.len().checked_sub(count).and_then(|from| before.get(from..));
        let rest = before.len().checked_sub(count).and_then(|to| before.get(..to)).unwrap_or_default();
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) && rest.ends_with(mark)
    };
    let is_colour = || {
        let digits = head.iter().rev().take_while(|byte| byte.is_ascii_digit() || **byte == b';').count();
        *last == b'm' && head.len() > digits && head.iter().rev().nth(digits) == Some(&b'[')
    };
    (b"nrtbf".contains(last) && head.ends_with(b"\\")) || is_hex(4, b"\\u") || is_hex(2, b"%") || is_colour()
}
