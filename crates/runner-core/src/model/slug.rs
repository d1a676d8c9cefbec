//! Generated ids, for nodes that come without one.

use crate::model::id::NodeId;

/// The most bytes of a generated id, without a number at its end.
const BYTES_MAX: usize = 48;

/// A new id from a title: `log-in`, `log-in-2`.
pub fn fresh_id(title: &str, is_taken: impl Fn(&NodeId) -> bool) -> NodeId {
    first_free(&words(title, LetterCase::Lower), is_taken)
}

/// The same from the id that an item has elsewhere, if that has any valid characters, or else from its title.
pub(crate) fn fresh_id_of(name: Option<&str>, title: &str, is_taken: impl Fn(&NodeId) -> bool) -> NodeId {
    let named = name.map(|name| words(name, LetterCase::Kept)).filter(|name| !name.is_empty());
    first_free(&named.unwrap_or_else(|| words(title, LetterCase::Lower)), is_taken)
}

/// The words of a title in lower case, joined by dashes; empty if none of them can be used.
pub(crate) fn slug(title: &str) -> String {
    words(title, LetterCase::Lower)
}

fn first_free(base: &str, is_taken: impl Fn(&NodeId) -> bool) -> NodeId {
    let base = if base.is_empty() { "node" } else { base };
    let ids = (1_u32..).map(|nth| if nth == 1 { base.to_owned() } else { format!("{base}-{nth}") });
    let mut ids = ids.filter_map(|id| NodeId::new(id).ok());
    ids.find(|id| !is_taken(id)).unwrap_or_else(NodeId::root)
}

/// What happens to the letters of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LetterCase {
    /// For titles: all are lower case.
    Lower,
    /// For ids: they are kept, and so are dots and underscores.
    Kept,
}

/// The valid characters of a text, its words joined by dashes. Other letters of a word are left out.
fn words(text: &str, letters: LetterCase) -> String {
    let mut id = String::new();
    for letter in text.chars() {
        let is_kept = letters == LetterCase::Kept && matches!(letter, '.' | '_');
        if letter.is_ascii_alphanumeric() || is_kept {
            id.push(letter);
        } else if let Some(latin) = basic_latin(letter) {
            id.push_str(latin);
        } else if !id.is_empty() && !id.ends_with('-') && !is_in_word(letter) {
            id.push('-');
        }
    }
    if letters == LetterCase::Lower {
        id.make_ascii_lowercase();
    }
    if let Some(head) = id.get(..=BYTES_MAX) {
        let cut = head.rfind('-').filter(|at| *at > BYTES_MAX / 2);
        id.truncate(cut.unwrap_or(BYTES_MAX));
    }
    id.trim_matches(['-', '.']).to_owned()
}

/// Whether a character without a place in an id does not end a word: other scripts, apostrophes and combining accents.
fn is_in_word(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '\'' | '’' | '\u{300}'..='\u{36f}')
}

/// A letter of Latin-1 or Latin Extended-A without its diacritic.
fn basic_latin(letter: char) -> Option<&'static str> {
    Some(match letter {
        'À'..='Å' | 'Ā' | 'Ă' | 'Ą' => "A",
        'à'..='å' | 'ā' | 'ă' | 'ą' => "a",
        'Æ' => "AE",
        'æ' => "ae",
        'Ç' | 'Ć' | 'Ĉ' | 'Ċ' | 'Č' => "C",
        'ç' | 'ć' | 'ĉ' | 'ċ' | 'č' => "c",
        'Ð' | 'Ď' | 'Đ' => "D",
        'ð' | 'ď' | 'đ' => "d",
        'È'..='Ë' | 'Ē' | 'Ĕ' | 'Ė' | 'Ę' | 'Ě' => "E",
        'è'..='ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' => "e",
        'Ĝ' | 'Ğ' | 'Ġ' | 'Ģ' => "G",
        'ĝ' | 'ğ' | 'ġ' | 'ģ' => "g",
        'Ĥ' | 'Ħ' => "H",
        'ĥ' | 'ħ' => "h",
        'Ì'..='Ï' | 'Ĩ' | 'Ī' | 'Ĭ' | 'Į' | 'İ' => "I",
        'ì'..='ï' | 'ĩ' | 'ī' | 'ĭ' | 'į' | 'ı' => "i",
        'Ĳ' => "IJ",
        'ĳ' => "ij",
        'Ĵ' => "J",
        'ĵ' => "j",
        'Ķ' => "K",
        'ķ' | 'ĸ' => "k",
        'Ĺ' | 'Ļ' | 'Ľ' | 'Ŀ' | 'Ł' => "L",
        'ĺ' | 'ļ' | 'ľ' | 'ŀ' | 'ł' => "l",
        'Ñ' | 'Ń' | 'Ņ' | 'Ň' | 'Ŋ' => "N",
        'ñ' | 'ń' | 'ņ' | 'ň' | 'ŉ' | 'ŋ' => "n",
        'Ò'..='Ö' | 'Ø' | 'Ō' | 'Ŏ' | 'Ő' => "O",
        'ò'..='ö' | 'ø' | 'ō' | 'ŏ' | 'ő' => "o",
        'Œ' => "OE",
        'œ' => "oe",
        'Ŕ' | 'Ŗ' | 'Ř' => "R",
        'ŕ' | 'ŗ' | 'ř' => "r",
        'Ś' | 'Ŝ' | 'Ş' | 'Š' => "S",
        'ś' | 'ŝ' | 'ş' | 'š' | 'ſ' => "s",
        'ß' => "ss",
        'Ţ' | 'Ť' | 'Ŧ' => "T",
        'ţ' | 'ť' | 'ŧ' => "t",
        'Þ' => "TH",
        'þ' => "th",
        'Ù'..='Ü' | 'Ũ' | 'Ū' | 'Ŭ' | 'Ů' | 'Ű' | 'Ų' => "U",
        'ù'..='ü' | 'ũ' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' => "u",
        'Ŵ' => "W",
        'ŵ' => "w",
        'Ý' | 'Ŷ' | 'Ÿ' => "Y",
        'ý' | 'ÿ' | 'ŷ' => "y",
        'Ź' | 'Ż' | 'Ž' => "Z",
        'ź' | 'ż' | 'ž' => "z",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_from_titles_are_new() {
        let id =
            |title: &str| fresh_id(title, |id| ["log-in", "log-in-2"].contains(&id.as_str())).to_string();
        assert_eq!(id("Read  the File!"), "read-the-file");
        assert_eq!(id("Log in"), "log-in-3");
        assert_eq!(id("Don't stop: **now**"), "dont-stop-now");
        assert_eq!(id("日本語"), "node");
        assert_eq!(id(".."), "node");
        assert_eq!(id(&"word ".repeat(30)).len(), 44, "cut between two words");
        assert_eq!(id(&"w".repeat(60)).len(), 48);
        assert_eq!(id(&format!("{} {}", "w".repeat(24), "v".repeat(60))).len(), 48, "too early for a cut");
        assert_eq!(id(&format!("{} {}", "w".repeat(25), "v".repeat(60))).len(), 25);
        assert_eq!(id(&format!("{} v", "w".repeat(48))).len(), 48);
    }

    #[test]
    fn letters_with_diacritics_become_plain_ones() {
        let id = |title: &str| fresh_id(title, |_| false).to_string();
        assert_eq!(id("Füge einen Login hinzu"), "fuge-einen-login-hinzu");
        assert_eq!(id("Größe: łódź, smørrebrød, Ærø, œuvre"), "grosse-lodz-smorrebrod-aero-oeuvre");
        assert_eq!(id("Cafe\u{301} ouvert"), "cafe-ouvert", "a combining accent");
        assert_eq!(id("L’école"), "lecole");
        assert_eq!(id("Read日本File as UTF-8"), "readfile-as-utf-8", "no dash in a word");
        assert_eq!(id("Добавь login"), "login");
        let letters = ('\u{c0}'..='\u{17f}').filter(|letter| !matches!(letter, '×' | '÷'));
        for letter in letters {
            let plain = basic_latin(letter).unwrap_or_else(|| panic!("{letter} has no plain form"));
            assert!(plain.bytes().all(|byte| byte.is_ascii_alphabetic()), "{letter}");
            assert_eq!(plain.to_lowercase() == plain, !letter.is_uppercase(), "{letter} keeps its case");
        }
    }

    #[test]
    fn ids_from_names_keep_what_is_valid() {
        let id = |name: &str| fresh_id_of(Some(name), "The title", |id| id.as_str() == "1.2").to_string();
        assert_eq!(id("US-001/a_b"), "US-001-a_b");
        assert_eq!(id("1.2"), "1.2-2");
        assert_eq!(id("/"), "the-title");
        assert_eq!(fresh_id_of(None, "The title", |_| false).as_str(), "the-title");
    }
}
