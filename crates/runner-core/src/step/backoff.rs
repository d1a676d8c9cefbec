//! Waits: what is waited for, and how long. What is on record says why and for what; the clock only says how much of
//! it is left.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::outcome::Outcome;
use crate::config::{Seconds, SecondsOrOff};
use crate::model::cost::{Amount, number};
use crate::strict::word;

/// What the next session waits for. Both bounds hold: the later one decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// The agent that is waited for, by its name.
    pub agent: String,
    /// What it failed with.
    #[serde(deserialize_with = "word")]
    pub outcome: Outcome,
    /// At least this long after the failure was committed.
    pub secs: SecondsOrOff,
    /// Not before this moment, in seconds since 1970, if the agent named one.
    #[serde(deserialize_with = "Option::deserialize")]
    pub until_unix_secs: Option<Amount>,
    /// Never longer than this after the failure was committed, whatever the agent or the clock says.
    pub secs_max: SecondsOrOff,
}

/// The longest wait that a provider can ask for without naming a moment.
const ASKED_SECS_MAX: u32 = 3600;

impl Wait {
    /// The wait after the `nth` failure in a row that passes by itself. It doubles each time: from 5 seconds to 300,
    /// or from a minute to an hour where an allowance is used up and nobody knows until when. A moment that is known
    /// is enough the first time; whoever names moments that change nothing is asked less and less often.
    pub fn after(
        (agent, outcome): (String, Outcome),
        nth: u32,
        asked_secs: Option<u32>,
        (until_unix_secs, secs_max): (Option<Amount>, Seconds),
    ) -> Self {
        let doubled =
            |min: u32, max: u32| min.saturating_mul(2_u32.saturating_pow(nth.saturating_sub(1))).min(max);
        let own = match (outcome, until_unix_secs) {
            (Outcome::UsageLimit, None) => doubled(60, 3600),
            (_, Some(_)) if nth <= 1 => 0,
            (_, _) => doubled(5, 300),
        };
        let secs = own.max(asked_secs.unwrap_or_default().min(ASKED_SECS_MAX));
        let secs = SecondsOrOff::new(i64::from(secs)).unwrap_or(SecondsOrOff::fixed::<3600>());
        let secs_max = SecondsOrOff::new(secs_max.get()).unwrap_or(secs);
        Self { agent, outcome, secs, until_unix_secs, secs_max }
    }

    /// When it is over, in milliseconds since 1970, if it began at `since_ms`.
    pub fn end_ms(&self, since_ms: u64) -> u64 {
        let ms = |secs: SecondsOrOff| secs.as_u64().saturating_mul(1000);
        let until = self.until_unix_secs.map_or(0, |until| number(until).saturating_mul(1000));
        let end = since_ms.saturating_add(ms(self.secs)).max(until);
        end.min(since_ms.saturating_add(ms(self.secs_max)))
    }

    /// How much of it is left. A clock that stands before the beginning was turned back: then it is the whole wait,
    /// and never more.
    pub fn left_ms(&self, since_ms: u64, now_ms: u64) -> u64 {
        self.end_ms(since_ms).saturating_sub(now_ms.max(since_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::cost::amount;

    fn wait(outcome: Outcome, nth: u32, asked: Option<u32>, until: Option<u64>) -> Wait {
        Wait::after(
            ("codex".to_owned(), outcome),
            nth,
            asked,
            (until.map(amount), Seconds::fixed::<604_800>()),
        )
    }

    #[test]
    fn waits_grow_and_stay_bounded() {
        let secs = |outcome, nth| wait(outcome, nth, None, None).secs.get();
        let of = |outcome| (1..9).map(|nth| secs(outcome, nth)).collect::<Vec<_>>();
        assert_eq!(of(Outcome::Overloaded), [5, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(of(Outcome::UsageLimit), [60, 120, 240, 480, 960, 1920, 3600, 3600]);
        assert_eq!(secs(Outcome::Disconnected, u32::MAX), 300);
        assert_eq!(wait(Outcome::RateLimited, 1, Some(60), None).secs.get(), 60);
        assert_eq!(wait(Outcome::RateLimited, 1, Some(u32::MAX), None).secs.get(), 3600);
        let known = |nth| wait(Outcome::UsageLimit, nth, None, Some(7)).secs.get();
        assert_eq!((known(1), known(2), known(3)), (0, 10, 20));
    }

    #[test]
    fn a_wait_goes_on_where_it_was_whatever_the_clock_does() {
        let reset = wait(Outcome::UsageLimit, 1, None, Some(2000));
        let since = 1_000_000;
        assert_eq!(reset.end_ms(since), 2_000_000);
        assert_eq!(reset.left_ms(since, 1_400_000), 600_000, "the rest");
        assert_eq!(reset.left_ms(since, 2_000_001), 0, "over while nobody looked");
        assert_eq!(reset.left_ms(since, 5), 1_000_000, "a clock turned back adds nothing");
        let short = Wait { secs_max: SecondsOrOff::fixed::<60>(), ..reset.clone() };
        assert_eq!(short.left_ms(since, since), 60_000, "never longer than configured");
        let grown = wait(Outcome::Overloaded, 2, None, None);
        assert_eq!((grown.left_ms(since, since + 4_000), grown.left_ms(since, 0)), (6_000, 10_000));
        let past = wait(Outcome::UsageLimit, 1, None, Some(3));
        assert_eq!(past.left_ms(since, since), 0);
        let mad = wait(Outcome::UsageLimit, 1, None, Some(u64::MAX));
        assert_eq!(mad.left_ms(since, since), 604_800_000);
    }
}
