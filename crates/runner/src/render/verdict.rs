//! The verdict of one check of `runner doctor` or `runner conformance`.

use runner_host::ops::doctor::CheckVerdict;
use runner_term::{Glyph, Styler, TextRole};

pub(crate) fn verdict_word(verdict: CheckVerdict) -> &'static str {
    match verdict {
        CheckVerdict::Ok => "ok",
        CheckVerdict::Warning => "warning",
        CheckVerdict::Problem => "problem",
    }
}

pub(crate) fn verdict_glyph(verdict: CheckVerdict, styler: &Styler) -> String {
    let (glyph, role) = match verdict {
        CheckVerdict::Ok => (Glyph::Passed, TextRole::Good),
        CheckVerdict::Warning => (Glyph::Open, TextRole::Warn),
        CheckVerdict::Problem => (Glyph::Failed, TextRole::Bad),
    };
    styler.paint(role, styler.glyph(glyph))
}
