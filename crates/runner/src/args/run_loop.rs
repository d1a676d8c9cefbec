//! Arguments of `runner loop`, and those that it shares with `runner run`.

use std::fmt;

use clap::Args;
use runner_core::config::{Budget, TokenLimit, Usd};

/// Run until the goal is reached or something stops it
///
/// Checks agent, login, guard and limits first, and refuses to start a loop that cannot work. Ctrl-C stops gracefully
/// and commits the work so far; press it again to quit at once. On a terminal, q stops after the current iteration and
/// t prints a snapshot of the progress.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner loop
  runner loop --max-iterations 10
  runner loop --detach           # in the background: 'runner watch'
  runner loop --until 07:00      # no new iteration after seven in the morning
  runner loop --max-usd 5        # spend at most $5 in this loop
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
    /// Start no iteration after this loop has cost N US dollars
    #[arg(long, value_name = "N", value_parser = usd)]
    pub(crate) max_usd: Option<Usd>,
    /// Start no iteration after this loop has used N tokens
    #[arg(long, value_name = "N", value_parser = tokens)]
    pub(crate) max_tokens: Option<TokenLimit>,
    /// Continue in the background, independent of this terminal
    #[arg(long)]
    pub(crate) detach: bool,
    /// Start even if the guard already fails
    #[arg(long)]
    pub(crate) allow_red: bool,
    /// Whether this process is the loop that `--detach` started.
    #[arg(long = "detached", hide = true, conflicts_with = "detach")]
    pub(crate) is_detached: bool,
    /// Whether the user has answered every question in advance.
    #[arg(skip)]
    pub(crate) no_questions: bool,
}

impl LoopOptions {
    /// The limits on dollars and tokens.
    pub(crate) fn budget(&self) -> Budget {
        Budget { run_usd: self.max_usd, run_tokens: self.max_tokens, ..Budget::default() }
    }

    /// The options as arguments of another `runner loop`, which runs in the background.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        let mut push = |option: &str, value: Option<String>| {
            if let Some(value) = value {
                arguments.extend([option.to_owned(), value]);
            }
        };
        push("--max-iterations", self.max_iterations.map(|max| max.to_string()));
        push("--until", self.until.map(|time| time.to_string()));
        push("--max-usd", self.max_usd.map(|usd| microdollars_text(usd.microdollars())));
        push("--max-tokens", self.max_tokens.map(|max| max.get().to_string()));
        if self.allow_red {
            arguments.push("--allow-red".to_owned());
        }
        arguments
    }
}

fn microdollars_text(microdollars: u64) -> String {
    format!("{}.{:06}", microdollars / 1_000_000, microdollars % 1_000_000)
}

fn usd(text: &str) -> Result<Usd, String> {
    let usd = text
        .trim_start_matches('$')
        .parse::<f64>()
        .ok()
        .and_then(|dollars| serde_json::from_value::<Usd>(serde_json::Value::from(dollars)).ok());
    usd.filter(|usd| usd.microdollars() > 0)
        .ok_or_else(|| "expected an amount of dollars, such as 5 or 2.50".to_owned())
}

fn tokens(text: &str) -> Result<TokenLimit, String> {
    let limit = text.replace('_', "").parse().ok().and_then(TokenLimit::new);
    limit.ok_or_else(|| "expected a number of tokens, such as 2000000".to_owned())
}

/// A time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WallTime {
    pub(crate) hour: i8,
    pub(crate) minute: i8,
}

impl fmt::Display for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.hour, self.minute)
    }
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
    fn limits_of_a_loop_survive_the_way_into_the_background() {
        #[derive(clap::Parser)]
        struct Cli {
            #[command(flatten)]
            options: LoopOptions,
        }
        let words = ["x", "--max-usd", "$2.5", "--max-tokens", "2_000", "--until", "7:05", "--allow-red"];
        let Cli { options } = clap::Parser::parse_from(words);
        let again = options.arguments();
        assert_eq!(again.join(" "), "--until 07:05 --max-usd 2.500000 --max-tokens 2000 --allow-red");
        let words = std::iter::once("x".to_owned()).chain(again.clone());
        let Cli { options } = clap::Parser::parse_from(words);
        assert_eq!(options.arguments(), again);
        for bad in ["0", "-1", "x", "nan", "inf", "1e9"] {
            assert!(usd(bad).is_err(), "{bad}");
        }
        assert!(tokens("0").is_err() && tokens("1.5").is_err());
    }

    #[test]
    fn times_of_day_have_hours_and_minutes() {
        assert_eq!(wall_time("07:05"), Ok(WallTime { hour: 7, minute: 5 }));
        assert_eq!(wall_time("23:59"), Ok(WallTime { hour: 23, minute: 59 }));
        for bad in ["7", "24:00", "07:60", "-1:00", "a:b", "+7:00", ":"] {
            assert!(wall_time(bad).is_err(), "{bad}");
        }
    }
}
