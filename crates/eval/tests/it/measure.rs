//! What results say: reports, comparisons, the gate.

use crate::Suite;

/// A case that always ends well, one that never does, and one that cannot be tried here.
fn mixed() -> Suite {
    let suite = Suite::of(&["good"]);
    suite.add("bad", "", "");
    suite.add("nowhere", "requires = [\"no-such-program\"]\n", "");
    suite
}

#[test]
fn a_report_tells_rates_with_intervals_and_leaves_out_what_says_nothing() {
    let suite = mixed();
    suite.eval(&["run", "--run", "r", "--trials", "2"]).ok();
    let told = suite.json(&["report"]);
    let agent = &told["agents"][0];
    assert_eq!(
        (&told["k"], &agent["n"], &agent["successes"], &agent["left_out"]),
        (&2.into(), &4.into(), &2.into(), &2.into())
    );
    assert_eq!(
        (&agent["rate"], &agent["cases"], &agent["pass_all_k"]),
        (&0.5.into(), &2.into(), &0.5.into())
    );
    let cases = told["cases"].as_array().unwrap();
    assert_eq!((&cases[0]["case"], &cases[0]["rate"]), (&"bad".into(), &0.0.into()));
    assert_eq!((&cases[1]["case"], &cases[1]["rate"]), (&"good".into(), &1.0.into()));
    assert!(cases[1]["interval"]["low"].as_f64().unwrap() < 0.4, "two of two is not certainty");
    assert_eq!(
        (&cases[2]["case"], &cases[2]["rate"], &cases[2]["interval"]),
        (&"nowhere".into(), &().into(), &().into())
    );
    let more = suite.eval(&["report", "table", "r@case", "--k", "3"]).ok();
    assert!(more.stdout.contains("case=good n=2 successes=2 left_out=0 rate=1.0000"), "{}", more.stdout);
    assert!(more.stdout.contains("k=3 pass_at_k=n/a pass_all_k=n/a"), "{}", more.stdout);
    assert!(suite.eval(&["report", "table", "other"]).refused(2).contains("there are no results `other`"));
}
