//! Waits between sessions: why, for which agent, and how long. The committed state holds all of that; the clock only decides
//! how much of a wait is left.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::outcome::Outcome;
use crate::config::{Seconds, SecondsOrOff};
use crate::model::cost::{Amount, number};
use crate::strict::word;

/// The wait before the next session. The later one of its two ends counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    pub agent: String,
    /// How the agent failed.
    #[serde(deserialize_with = "word")]
    pub outcome: Outcome,
    /// The shortest wait after the failure was committed.
    pub secs: SecondsOrOff,
    /// The moment, in seconds since 1970, before which no session starts, if the agent reported one.
    #[serde(deserialize_with = "Option::deserialize")]
    pub until_unix_secs: Option<Amount>,
    /// The longest wait after the failure was committed, whatever agent or clock report.
    pub secs_max: SecondsOrOff,
}

/// The longest wait that a provider can request without naming a moment.
const RETRY_AFTER_SECS_MAX: u32 = 3600;

/// What decides how long a wait after a failure is that passes by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backoff {
    pub agent: String,
    pub outcome: Outcome,
    /// How many such failures there were in a row, this one included.
    pub failures_in_row: u32,
    /// The delay that the provider requested.
    pub retry_after_secs: Option<u32>,
    /// The moment at which a usage limit ends, as the agent reported it.
    pub resets_unix_secs: Option<Amount>,
    /// `usage_wait_max_secs`
    pub wait_max_secs: Seconds,
}

impl Backoff {
    /// The delay doubles with each failure in a row: from 5 seconds to 300, or from a minute to an hour after a usage limit
    /// without a known end. A known end needs no delay of its own the first time; when it did not help, the delays grow
    /// as well, so that an agent that keeps reporting useless moments is started less and less often.
    pub fn into_wait(self) -> Wait {
        let own = match (self.outcome, self.resets_unix_secs) {
            (Outcome::UsageLimit, None) => self.doubled(60, 3600),
            (_, Some(_)) if self.failures_in_row <= 1 => 0,
            (_, _) => self.doubled(5, 300),
        };
        let requested = self.retry_after_secs.unwrap_or_default().min(RETRY_AFTER_SECS_MAX);
        let secs = SecondsOrOff::new(i64::from(own.max(requested))).unwrap_or(SecondsOrOff::fixed::<3600>());
        Wait {
            agent: self.agent,
            outcome: self.outcome,
            secs,
            until_unix_secs: self.resets_unix_secs,
            secs_max: SecondsOrOff::new(self.wait_max_secs.get()).unwrap_or(secs),
        }
    }

    fn doubled(&self, min: u32, max: u32) -> u32 {
        let factor = 2_u32.saturating_pow(self.failures_in_row.saturating_sub(1));
        min.saturating_mul(factor).min(max)
    }
}

impl Wait {
    /// The wait after further failures: doubled with each, within the bounds of [`Backoff::into_wait`].
    pub fn grown(self, failures: u32) -> Self {
        let has_unknown_end = self.outcome == Outcome::UsageLimit && self.until_unix_secs.is_none();
        let most: i64 = if has_unknown_end { 3600 } else { 300 };
        let doubled = self.secs.get().saturating_mul(2_i64.saturating_pow(failures));
        let secs = SecondsOrOff::new(doubled.min(most).max(self.secs.get())).unwrap_or(self.secs);
        Self { secs, ..self }
    }

    /// The end of a wait that began at `since_ms`, in milliseconds since 1970.
    pub fn end_ms(&self, since_ms: u64) -> u64 {
        let ms = |secs: SecondsOrOff| secs.as_u64().saturating_mul(1000);
        let until = self.until_unix_secs.map_or(0, |until| number(until).saturating_mul(1000));
        let end = since_ms.saturating_add(ms(self.secs)).max(until);
        end.min(since_ms.saturating_add(ms(self.secs_max)))
    }

    /// How much of the wait is left. A clock that is before the beginning was turned back: then the whole wait is left, and
    /// never more.
    pub fn left_ms(&self, since_ms: u64, now_ms: u64) -> u64 {
        self.end_ms(since_ms).saturating_sub(now_ms.max(since_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::cost::amount;

    fn wait(outcome: Outcome, nth: u32, retry_after: Option<u32>, until: Option<u64>) -> Wait {
        let backoff = Backoff {
            agent: "codex".to_owned(),
            outcome,
            failures_in_row: nth,
            retry_after_secs: retry_after,
            resets_unix_secs: until.map(amount),
            wait_max_secs: Seconds::fixed::<604_800>(),
        };
        backoff.into_wait()
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
    fn a_wait_grows_with_sessions_that_no_commit_records() {
        let second = wait(Outcome::Overloaded, 2, None, None);
        let secs: Vec<i64> = (0..7).map(|failures| second.clone().grown(failures).secs.get()).collect();
        assert_eq!(secs, [10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(wait(Outcome::UsageLimit, 2, None, None).grown(u32::MAX).secs.get(), 3600);
        let requested = wait(Outcome::RateLimited, 2, Some(3000), None);
        assert_eq!(requested.grown(3).secs.get(), 3000, "never shorter than the provider requested");
    }

    #[test]
    fn a_wait_continues_where_it_was_whatever_the_clock_does() {
        let reset = wait(Outcome::UsageLimit, 1, None, Some(2000));
        let since = 1_000_000;
        assert_eq!(reset.end_ms(since), 2_000_000);
        assert_eq!(reset.left_ms(since, 1_400_000), 600_000, "the rest");
        assert_eq!(reset.left_ms(since, 2_000_001), 0, "already over");
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
