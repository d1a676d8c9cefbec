//! The verdict of one check of `runner doctor` or `runner conformance`.

use runner_host::ops::doctor::CheckVerdict;
use runner_term::{Glyph, Styler, TextRole};

pub(crate) fn verdict_word(verdict: CheckVerdict) -> &'static str {
    match verdict {
        CheckVerdict::Good => "ok",
        CheckVerdict::Doubtful => "warning",
        CheckVerdict::Bad => "problem",
    }
}

pub(crate) fn verdict_glyph(verdict: CheckVerdict, styler: &Styler) -> String {
    let (glyph, role) = match verdict {
        CheckVerdict::Good => (Glyph::Passed, TextRole::Good),
        CheckVerdict::Doubtful => (Glyph::Open, TextRole::Warn),
        CheckVerdict::Bad => (Glyph::Failed, TextRole::Bad),
    };
    styler.paint(role, styler.glyph(glyph))
}
