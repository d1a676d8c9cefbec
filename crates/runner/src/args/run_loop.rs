//! Arguments of `runner loop`, and those that it shares with `runner run`.

use clap::Args;

/// Run until the goal is reached or something stops it
///
/// Checks agent, login, guard and limits first, and refuses to start a night that cannot work. Ctrl-C stops gracefully
/// and commits the work so far; press it again to quit at once. On a terminal, q stops after the current iteration and
/// t prints a snapshot of the progress.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner loop
  runner loop --max-iterations 10
  runner loop --until 07:00      # no new iteration after seven in the morning
  runner loop > night.log &      # the log may be in the repository
  runner loop --json | jq -c 'select(.event == \"committed\")'")]
pub(crate) struct LoopArgs {
    #[command(flatten)]
    pub(crate) options: LoopOptions,
}

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct LoopOptions {
    /// Stop after N iterations
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_iterations: Option<u32>,
    /// Start no iteration after this local time, such as 07:00
    #[arg(long, value_name = "HH:MM", value_parser = wall_time)]
    pub(crate) until: Option<WallTime>,
    /// Start although the guard already fails
    #[arg(long)]
    pub(crate) allow_red: bool,
    /// Whether the user has answered every question in advance.
    #[arg(skip)]
    pub(crate) no_questions: bool,
}

/// A time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WallTime {
    pub(crate) hour: i8,
    pub(crate) minute: i8,
}

fn wall_time(text: &str) -> Result<WallTime, String> {
    let parsed = text.split_once(':').and_then(|(hour, minute)| {
        let number =
            |text: &str| text.parse::<i8>().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
        Some(WallTime { hour: number(hour)?, minute: number(minute)? })
    });
    let is_time = |time: &WallTime| time.hour < 24 && time.minute < 60;
    parsed.filter(is_time).ok_or_else(|| "expected a time of day, such as 07:00 or 23:30".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_day_have_hours_and_minutes() {
        assert_eq!(wall_time("07:05"), Ok(WallTime { hour: 7, minute: 5 }));
        assert_eq!(wall_time("23:59"), Ok(WallTime { hour: 23, minute: 59 }));
        for bad in ["7", "24:00", "07:60", "-1:00", "a:b", "+7:00", ":"] {
            assert!(wall_time(bad).is_err(), "{bad}");
        }
    }
}
