//! Every outcome of every command under valgrind: `make leaks`.

use crate::soak::OUTCOMES;
use crate::support::Settings;

/// The server must use the C library's allocator, so that valgrind sees each of the module's
/// allocations: that of Redis 6.2 in the matrix does.
#[test]
#[ignore = "needs valgrind and takes minutes; run by make leaks"]
fn leaks() {
    let valgrind =
        "valgrind --trace-children=yes --leak-check=full --num-callers=30 --log-file=report-%p";
    let server = Settings::new().under(valgrind).start();
    let mut redis = server.connect();
    redis.run::<()>("SET string v");
    redis.run::<i64>("ZADD board 1 alice");
    for _ in 0..300 {
        for outcome in OUTCOMES {
            let words: Vec<&[u8]> = outcome.split(' ').map(str::as_bytes).collect();
            let _: Result<redis::Value, _> = redis.try_send(&words);
        }
    }
    // What the keys hold is not lost, but looks so: the server points into the middle of it.
    redis.run::<()>("FLUSHALL");
    let reports = server.shut_down();
    let report = reports
        .iter()
        .find(|(_, text)| text.contains("LEAK SUMMARY"));
    let (_, report) = report.expect("a report of valgrind");
    let summary = report.lines().filter(|line| line.contains("lost:"));
    summary.for_each(|line| println!("{line}"));
    // What was allocated while the module was loaded stays, as the module does.
    let ours =
        |record: &&str| record.contains("slidewin::") && !record.contains("RedisModule_OnLoad");
    let records: Vec<&str> = report.split("== \n").filter(ours).collect();
    println!("records of slidewin in the report: {}", records.len());
    assert!(report.contains("definitely lost: 0 bytes"), "{report}");
    assert_eq!(records, [""; 0]);
}
