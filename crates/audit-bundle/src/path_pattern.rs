//! Patterns of protected files, matched as git matches `:(top,glob)PATTERN`.

/// Whether a pattern matches a path: as a whole, or as a folder that contains it.
pub(crate) fn matches(pattern: &str, path: &[u8]) -> bool {
    let literal = pattern.as_bytes();
    let folder = literal.strip_suffix(b"/").unwrap_or(literal);
    let is_inside = path.strip_prefix(folder).is_some_and(|rest| rest.starts_with(b"/"));
    let is_same = path == literal;
    is_same || is_inside || wild_match(literal, path)
}

/// Whether a folder can contain a path that one of the patterns matches.
pub(crate) fn may_contain_match(patterns: &[String], folder: &[u8]) -> bool {
    patterns.iter().any(|pattern| {
        let pattern = pattern.as_bytes();
        let wild = pattern.iter().position(|byte| matches!(byte, b'*' | b'?' | b'[' | b'\\'));
        let literal = pattern.get(..wild.unwrap_or(pattern.len())).unwrap_or_default();
        let common = literal.iter().zip(folder).take_while(|(a, b)| a == b).count();
        common == literal.len() || common == folder.len()
    })
}

/// `*` and `?` match no slash; `**/`, `/**` and `/**/` match any folders.
fn wild_match(pattern: &[u8], text: &[u8]) -> bool {
    wild_match_at(pattern, text, None)
}

fn wild_match_at(mut pattern: &[u8], mut text: &[u8], mut previous: Option<u8>) -> bool {
    while let Some((first, rest)) = pattern.split_first() {
        match first {
            b'*' => return star_match(rest, text, previous),
            b'?' => match text.split_first() {
                Some((byte, after)) if *byte != b'/' => text = after,
                Some(_) | None => return false,
            },
            b'[' => {
                let Some((byte, after)) = text.split_first().filter(|(byte, _)| **byte != b'/') else {
                    return false;
                };
                let Some((is_in, after_class)) = class_match(rest, *byte) else { return false };
                if !is_in {
                    return false;
                }
                (text, pattern, previous) = (after, after_class, Some(b']'));
                continue;
            }
            other => {
                let (wanted, after_pattern) = match (other, rest.split_first()) {
                    (b'\\', Some((escaped, after))) => (escaped, after),
                    (b'\\', None) => return false,
                    _ => (other, rest),
                };
                let Some((_, after)) = text.split_first().filter(|(byte, _)| *byte == wanted) else {
                    return false;
                };
                (text, pattern, previous) = (after, after_pattern, Some(*wanted));
                continue;
            }
        }
        (pattern, previous) = (rest, Some(*first));
    }
    text.is_empty()
}

/// Matches what follows a star. Two stars between slashes match folders; any others match within a name.
fn star_match(after_star: &[u8], text: &[u8], previous: Option<u8>) -> bool {
    let stars = after_star.iter().take_while(|byte| **byte == b'*').count();
    let rest = after_star.get(stars..).unwrap_or_default();
    let is_bounded = matches!(previous, None | Some(b'/')) && matches!(rest.first(), None | Some(b'/'));
    if stars > 0 && is_bounded {
        let Some(below) = rest.strip_prefix(b"/") else { return true };
        // `**/x` also matches `x`.
        if wild_match_at(below, text, Some(b'/')) {
            return true;
        }
        let slashes = text.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        return slashes
            .map(|(at, _)| text.get(at + 1..).unwrap_or_default())
            .any(|below_text| wild_match_at(below, below_text, Some(b'/')));
    }
    let name_end = text.iter().position(|byte| *byte == b'/').unwrap_or(text.len());
    (0..=name_end).any(|at| wild_match_at(rest, text.get(at..).unwrap_or_default(), Some(b'*')))
}

/// Whether a byte is in the class whose text follows the bracket, and the pattern behind the class.
fn class_match(class: &[u8], byte: u8) -> Option<(bool, &[u8])> {
    let (is_negated, mut rest) = match class.split_first()? {
        (b'!' | b'^', after) => (true, after),
        _ => (false, class),
    };
    let mut is_in = false;
    let mut is_first = true;
    loop {
        let (first, after) = rest.split_first()?;
        if *first == b']' && !is_first {
            return Some((is_in != is_negated, after));
        }
        is_first = false;
        if *first == b'[' && after.starts_with(b":") {
            let end = after.windows(2).position(|pair| pair == b":]").filter(|end| *end > 0)?;
            is_in |= named_class(after.get(1..end)?, byte)?;
            rest = after.get(end + 2..)?;
            continue;
        }
        let (low, after) = class_byte(rest)?;
        rest = after;
        match rest {
            [b'-', next, ..] if *next != b']' => {
                let (high, after) = class_byte(rest.get(1..)?)?;
                is_in |= (low..=high).contains(&byte);
                rest = after;
            }
            _ => is_in |= low == byte,
        }
    }
}

/// One byte of a class, which may be escaped.
fn class_byte(class: &[u8]) -> Option<(u8, &[u8])> {
    match class.split_first()? {
        (b'\\', after) => after.split_first().map(|(byte, rest)| (*byte, rest)),
        (byte, rest) => Some((*byte, rest)),
    }
}

fn named_class(name: &[u8], byte: u8) -> Option<bool> {
    Some(match name {
        b"alnum" => byte.is_ascii_alphanumeric(),
        b"alpha" => byte.is_ascii_alphabetic(),
        b"blank" => matches!(byte, b' ' | b'\t'),
        b"cntrl" => byte.is_ascii_control(),
        b"digit" => byte.is_ascii_digit(),
        b"graph" => byte.is_ascii_graphic(),
        b"lower" => byte.is_ascii_lowercase(),
        b"print" => byte.is_ascii_graphic() || byte == b' ',
        b"punct" => byte.is_ascii_punctuation(),
        b"space" => byte.is_ascii_whitespace() || byte == 0x0b,
        b"upper" => byte.is_ascii_uppercase(),
        b"xdigit" => byte.is_ascii_hexdigit(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_git() {
        for (pattern, path, expected) in [
            ("justfile", "justfile", true),
            ("justfile", "a/justfile", false),
            ("scripts", "scripts/ci", true),
            ("scripts/", "scripts/ci", true),
            ("script", "scripts/ci", false),
            ("*.sh", "guard.sh", true),
            ("*.sh", "a/guard.sh", false),
            ("**/*.sh", "guard.sh", true),
            ("**/*.sh", "a/b/guard.sh", true),
            ("tests/**", "tests/a/b", true),
            ("tests/**", "tests", false),
            ("a/**/b", "a/b", true),
            ("a/**/b", "a/x/y/b", true),
            ("a/**/b", "a/x/y/c", false),
            ("a**b", "a/b", false),
            ("a?c", "abc", true),
            ("a?c", "a/c", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]x]", "]", true),
            ("[[:digit:]]", "7", true),
            ("[[:nonsense:]]", "7", false),
            ("[a", "[a", true),
            ("a\\*b", "a*b", true),
            ("a\\*b", "axb", false),
            ("f*", "foo/bar", false),
        ] {
            assert_eq!(matches(pattern, path.as_bytes()), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn only_folders_on_the_way_to_a_match_are_searched() {
        let patterns = ["scripts/ci".to_owned(), "tests/*.rs".to_owned()];
        for (folder, expected) in [("scripts/", true), ("tests/", true), ("src/", false), ("tests/it/", true)]
        {
            assert_eq!(may_contain_match(&patterns, folder.as_bytes()), expected, "{folder}");
        }
        assert!(may_contain_match(&["**/x".to_owned()], b"any/"));
    }
}
