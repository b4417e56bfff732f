//! Calls per second on one server and on a cluster of three masters, all of them and the load on
//! this machine.

use crate::support::{Cluster, Settings};
use std::process::Command;

/// Calls per second of redis-benchmark, with 50 connections and 16 calls in flight on each.
fn calls(port: u16, options: &[&str]) -> f64 {
    let output = Command::new("redis-benchmark")
        .args(["-p", &port.to_string(), "-q", "--csv", "-n", "300000"])
        .args(["-c", "50", "-P", "16", "-r", "100000"])
        .args(options)
        .args(["SLIDEWIN.CHECK", "user:{tag}:__rand_int__", "100", "60"])
        .output()
        .expect("redis-benchmark");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let row = text.lines().rfind(|line| line.contains("CHECK"));
    let figure = row.and_then(|row| row.split('"').nth(3)?.parse().ok());
    figure.unwrap_or_else(|| panic!("no figure in {text}"))
}

/// `make bench-cluster`: about half a minute.
#[test]
#[ignore = "needs redis-benchmark and a quiet machine; run by make bench-cluster"]
fn bench_cluster() {
    let server = Settings::new().tcp().start();
    let cluster = Cluster::start();
    let (mut one, mut three) = (Vec::new(), Vec::new());
    for round in 1..=3 {
        eprintln!("bench: round {round} of 3");
        one.push(calls(server.port(), &[]));
        three.push(calls(
            cluster.nodes[0].port(),
            &["--cluster", "--threads", "2"],
        ));
    }
    let (one, three) = (super::median(one).0, super::median(three).0);
    println!("| masters | calls per second |\n| --- | --- |\n| 1 | {one:.0} |\n| 3 | {three:.0} |");
    println!("three masters: {:.1} times one", three / one);
}
