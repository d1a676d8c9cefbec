//! What reading, selecting and writing cost, against serde_json on plain structs of the same shape.
//!
//! Both sides begin with the bytes of the file, as a program that opens one does. From there the reference takes the
//! fastest way that serde_json has: one check that the bytes are text, then `from_str` (`from_slice` is slower).
//!
//! `cargo bench -p runner-core --bench tree`. Ratios are of minima over interleaved rounds, so that a noisy
//! machine disturbs both sides alike.
#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]
#![expect(clippy::disallowed_types, reason = "a benchmark looks at the clock")]
#![expect(clippy::expect_used, reason = "a benchmark on a bad tree has nothing to say")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use runner_core::model::tree::{Tree, select};
use serde::{Deserialize, Serialize};

/// The reference: what serde derives for a document of this shape.
#[derive(Serialize, Deserialize)]
struct PlainDocument {
    version: i64,
    root: PlainNode,
}

#[derive(Serialize, Deserialize)]
struct PlainNode {
    id: String,
    order: i64,
    title: String,
    goal: String,
    acceptance: Vec<String>,
    passes: bool,
    attempts: u32,
    max_attempts: u32,
    children: Vec<PlainNode>,
}

/// The least time of each piece of work.
struct Times {
    plain_read: Duration,
    decode: Duration,
    select: Duration,
    plain_write: Duration,
    bytes: Duration,
}

fn main() {
    println!("   nodes      bytes  serde read    decode  ratio     select  serde write     bytes  ratio");
    let mut per_node = Vec::new();
    for (nodes, rounds) in [(1_000, 60), (10_000, 30), (100_000, 12)] {
        let bytes = testkit::trees::good_tree(nodes);
        let times = measure(&bytes, rounds);
        println!(
            "{nodes:>8} {:>10} {:>8.3} ms {:>6.3} ms {:>6.2} {:>7.3} µs {:>9.3} ms {:>6.3} ms {:>6.2}",
            bytes.len(),
            ms(times.plain_read),
            ms(times.decode),
            times.decode.as_secs_f64() / times.plain_read.as_secs_f64(),
            ms(times.select) * 1e3,
            ms(times.plain_write),
            ms(times.bytes),
            times.bytes.as_secs_f64() / times.plain_write.as_secs_f64(),
        );
        per_node.push((ms(times.decode) / nodes as f64, ms(times.plain_read) / nodes as f64));
    }
    if let (Some(small), Some(large)) = (per_node.first(), per_node.last()) {
        println!(
            "time per node, 100,000 nodes against 1,000: decode {:.2}, serde {:.2} (1.00 is linear)",
            large.0 / small.0,
            large.1 / small.1,
        );
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn measure(bytes: &[u8], rounds: usize) -> Times {
    let mut least = Times {
        plain_read: Duration::MAX,
        decode: Duration::MAX,
        select: Duration::MAX,
        plain_write: Duration::MAX,
        bytes: Duration::MAX,
    };
    for round in 0..rounds {
        // Who reads second finds the memory that the first left behind, so they take turns.
        for turn in [round % 2, (round + 1) % 2] {
            settle_memory();
            if turn == 0 { measure_plain(bytes, &mut least) } else { measure_ours(bytes, &mut least) }
        }
    }
    least
}

/// What was freed before is put in order at the next large request: here, outside the account.
fn settle_memory() {
    for size in [100_000, 5_000_000, 60_000_000] {
        drop(black_box(Vec::<u8>::with_capacity(size)));
    }
}

fn measure_plain(bytes: &[u8], least: &mut Times) {
    let read = || {
        let text = std::str::from_utf8(black_box(bytes)).expect("a tree is text");
        serde_json::from_str(text).expect("it is JSON")
    };
    let plain: PlainDocument = timed(&mut least.plain_read, read);
    let written = timed(&mut least.plain_write, || serde_json::to_vec_pretty(&plain).expect("it is JSON"));
    assert!(written == bytes.trim_ascii_end(), "the reference is not what was read");
}

fn measure_ours(bytes: &[u8], least: &mut Times) {
    let tree = timed(&mut least.decode, || Tree::decode(black_box(bytes)).expect("the tree is good"));
    timed(&mut least.select, || {
        black_box(select(&tree));
    });
    timed(&mut least.bytes, || {
        black_box(tree.bytes());
    });
    assert!(tree.bytes() == bytes, "the canonical form is not what was read");
}

fn timed<T>(least: &mut Duration, work: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let value = work();
    *least = (*least).min(begin.elapsed());
    value
}
