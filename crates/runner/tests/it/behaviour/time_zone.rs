//! The time zone of the user, which the variable TZ can name.

use std::path::Path;

use testkit::test_repo::run;

use crate::RUNNER;
use crate::ready;

const ZONE: &str = "Europe/Berlin";

/// Whether the machine has a database of zones. Elsewhere the test prints what it left out.
#[expect(clippy::print_stderr, reason = "a test that leaves something out reports it")]
fn has_zones() -> bool {
    let has_zones = Path::new("/usr/share/zoneinfo").join(ZONE).exists();
    if !has_zones {
        eprintln!("SKIPPED: times in {ZONE}, because /usr/share/zoneinfo lacks it (apt-get install tzdata)");
    }
    has_zones
}

#[test]
fn times_are_in_the_zone_that_tz_names() {
    if !has_zones() {
        return;
    }
    let sandbox = ready();
    run(sandbox.runner_command(&["start"]).env("TZ", ZONE)).ok();
    let date = |format: &str| {
        let date = run(sandbox.command("date").arg(format).env("TZ", ZONE)).ok().stdout;
        date.trim().to_owned()
    };
    let committed = sandbox.git(&["log", "-1", "--format=%ci"]);
    assert!(committed.ends_with(&date("+%z")) && !committed.ends_with("+0000"), "{committed}");
    let mut terminal = sandbox.command("script");
    terminal.args(["-qec", &format!("stty cols 120 rows 24; {RUNNER} runs"), "/dev/null"]);
    let shown = run(terminal.env("TERM", "xterm-256color").env("TZ", ZONE)).ok().stdout;
    assert!(shown.contains(&date("+%Z")) && !shown.contains("UTC"), "{shown}");
}
