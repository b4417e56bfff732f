//! The counters of `INFO slidewin`.

use crate::support::{Server, NOW};

#[test]
fn info_counts_what_happened() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.pipeline(&vec!["SLIDEWIN.CHECK k 2 60".to_owned(); 5]);
    redis.int("SLIDEWIN.CHECK k 9 60 COST 4");
    redis.int("SLIDEWIN.CHECK k 1 60 SKIPDENIED");
    redis.int("SLIDEWIN.PEEK k 1 60");
    redis.int(&format!("SLIDEWIN.REFUND k {} COST 4 KEEP 1", NOW + 3));
    server.clock().step(10);
    redis.int("SLIDEWIN.CHECK k 2 60");
    redis.run::<()>("SET s v");
    redis.error("SLIDEWIN.CHECK s 1 60");
    redis.run::<i64>("ZADD z 1 a");
    redis.error("SLIDEWIN.PEEK z 1 60");
    redis.error("SLIDEWIN.CHECK k x 60");

    let info: String = redis.run("INFO slidewin");
    let lines: Vec<&str> = info.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(
        lines,
        [
            "# slidewin",
            "slidewin_checks:8",
            "slidewin_allowed:3",
            "slidewin_denied:5",
            "slidewin_reservations:0",
            "slidewin_turned_away:0",
            "slidewin_peeks:1",
            "slidewin_refunded:3",
            "slidewin_recorded:8",
            "slidewin_trimmed:3",
            "slidewin_refused_keys:2",
        ]
    );
    let everything: String = redis.run("INFO everything");
    assert!(everything.contains("slidewin_checks:8"));
}
