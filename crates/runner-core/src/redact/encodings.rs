//! How programs encode a value that they print: for JSON, in single quotes, for addresses, in base64 and in hexadecimal digits.

/// The encodings of a value. Some may be the same.
pub(super) fn of(value: &[u8]) -> Vec<Vec<u8>> {
    let mut encodings = Vec::new();
    let once = in_json(value);
    let twice = once.as_deref().and_then(in_json);
    for json in [once, twice].into_iter().flatten() {
        encodings.push(replaced(&json, b'/', b"\\/"));
        encodings.push(json);
    }
    // In single quotes, as Python and a shell print it.
    encodings.push(replaced(value, b'\\', b"\\\\"));
    encodings.push(replaced(value, b'\'', b"'\\''"));
    for hex in [HexCase::Upper, HexCase::Lower] {
        encodings.push(in_address(value, b"-._~", hex));
        // A path keeps its slashes, and a form writes a space as `+`.
        encodings.push(in_address(value, b"-._~/", hex));
        encodings.push(replaced(&in_address(value, b"-._~ ", hex), b' ', b"+"));
        encodings.push(in_hex(value, hex));
    }
    for before in 0..3 {
        let standard = in_base64(value, before);
        encodings.push(replaced(&replaced(&standard, b'+', b"-"), b'/', b"_"));
        encodings.push(replaced(&standard, b'/', b"\\/"));
        encodings.push(standard);
    }
    encodings
}

#[derive(Clone, Copy)]
enum HexCase {
    Upper,
    Lower,
}

impl HexCase {
    fn digits(self, byte: u8) -> String {
        match self {
            Self::Upper => format!("{byte:02X}"),
            Self::Lower => format!("{byte:02x}"),
        }
    }
}

fn replaced(text: &[u8], byte: u8, by: &[u8]) -> Vec<u8> {
    let part = |each: &u8| if *each == byte { by.to_vec() } else { vec![*each] };
    text.iter().flat_map(part).collect()
}

fn in_json(value: &[u8]) -> Option<Vec<u8>> {
    let quoted = serde_json::to_vec(std::str::from_utf8(value).ok()?).ok()?;
    Some(quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?.to_vec())
}

/// With `%` and two digits for every byte that is no letter, no digit and not among these.
fn in_address(value: &[u8], plain: &[u8], hex: HexCase) -> Vec<u8> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || plain.contains(&byte);
    let part = |byte: &u8| {
        if is_plain(*byte) { char::from(*byte).to_string() } else { format!("%{}", hex.digits(*byte)) }
    };
    value.iter().map(part).collect::<String>().into_bytes()
}

fn in_hex(value: &[u8], hex: HexCase) -> Vec<u8> {
    value.iter().map(|byte| hex.digits(*byte)).collect::<String>().into_bytes()
}

/// The part of a base64 text that is the same whatever is around the value, if so many bytes come before it, modulo 3. `user:` is
/// before the password of a basic login.
fn in_base64(value: &[u8], before: usize) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits: Vec<u8> = value.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
    // The first digit that has no bit of what is before.
    let skipped = (6 - before * 8 % 6) % 6;
    let digits = bits.get(skipped..).unwrap_or_default().chunks_exact(6);
    let number = |digit: &[u8]| digit.iter().fold(0, |number, bit| number << 1 | usize::from(*bit));
    digits.filter_map(|digit| DIGITS.get(number(digit)).copied()).collect()
}
