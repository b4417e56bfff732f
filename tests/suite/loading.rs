//! Loading and unloading, and what a server must have.

use crate::support::{is_redis_6, module, wait_until, Server, Settings, Stop};
use rstest::rstest;

fn load(arguments: &str) -> String {
    format!("MODULE LOAD {}{arguments}", module().display())
}

/// Cases 13, 52, 56, 57 and 58: on every server of the matrix.
#[test]
fn the_module_loads_from_the_configuration() {
    let server = Server::start();
    assert!(server.log().contains("Module 'slidewin' loaded"));
    assert_eq!(server.connect().int("SLIDEWIN.CHECK k 3 60"), 1);
}

#[test]
fn the_version_is_a_number_that_sorts() {
    let server = Server::start();
    let modules: redis::Value = server.connect().run("MODULE LIST");
    let modules = format!("{modules:?}");
    let part = |text: &str| text.parse::<i64>().unwrap();
    let version = part(env!("CARGO_PKG_VERSION_MAJOR")) * 10_000
        + part(env!("CARGO_PKG_VERSION_MINOR")) * 100
        + part(env!("CARGO_PKG_VERSION_PATCH"));
    assert!(
        modules.contains(&format!(
            "bulk-string('\"slidewin\"'), bulk-string('\"ver\"'), int({version})"
        )),
        "{modules}"
    );
}

/// Case 59: the module takes no arguments, and says so; `%` in one is data.
#[rstest]
#[case("bogus", "'bogus'")]
#[case("%n%s", "'%n%s'")]
fn an_argument_is_refused_by_name(#[case] argument: &str, #[case] name: &str) {
    let server = Settings::bare().start();
    let mut redis = server.connect();
    let error = redis.error(&load(&format!(" {argument} other")));
    assert!(
        error.starts_with("ERR Error loading the extension"),
        "{error}"
    );
    let line = format!("slidewin does not load: it takes no arguments, but was given {name}");
    assert!(server.log().contains(&line), "{}", server.log());
    assert!(redis.is_alive());
    assert_eq!(redis.run::<String>(&load("")), "OK");
}

/// Case 59.
#[test]
fn loading_twice_is_an_error() {
    let server = Server::start();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 3 60");
    let error = redis.error(&load(""));
    assert!(
        error.starts_with("ERR Error loading the extension"),
        "{error}"
    );
    assert_eq!(redis.ints("SLIDEWIN.CHECK k 3 60 WITHINFO")[2], 1);
}

/// Case 59.
#[test]
fn an_unknown_configuration_is_an_error() {
    if is_redis_6() {
        return; // MODULE LOADEX came with 7.0
    }
    let server = Settings::bare().start();
    let mut redis = server.connect();
    let error = redis.error(&format!(
        "MODULE LOADEX {} CONFIG nosuch 1",
        module().display()
    ));
    assert!(
        error.starts_with("ERR Error loading the extension"),
        "{error}"
    );
    assert!(redis.is_alive());
}

/// Case 39: a server that cannot replay an effect is told so when it starts, before any call could do
/// half of its work.
#[rstest]
fn a_server_without_a_needed_command_is_refused(
    #[values(
        "ZADD",
        "ZREMRANGEBYRANK",
        "ZREMRANGEBYSCORE",
        "PEXPIREAT",
        "UNLINK",
        "ZCOUNT",
        "ZRANGE"
    )]
    command: &str,
) {
    let settings = Settings::new().options(&format!("--rename-command {command} hidden"));
    let (code, log) = settings.start_and_fail();
    assert_eq!(code, Some(1));
    let line = format!(
        "slidewin does not load: it needs the command {command}, which this server has renamed or \
         disabled"
    );
    assert!(log.contains(&line), "{log}");
}

/// Case 60: unloading loses nothing.
#[test]
fn a_count_continues_after_unload_and_load() {
    let server = Server::start();
    let mut redis = server.connect();
    let mut memory = Vec::new();
    for call in 1..=100 {
        let reply = redis.ints("SLIDEWIN.CHECK k 1000 3600 WITHINFO");
        assert_eq!(reply[..3], [1, 1_000, 1_000 - call]);
        assert_eq!(redis.run::<String>("MODULE UNLOAD slidewin"), "OK");
        assert!(redis
            .error("SLIDEWIN.CHECK k 1000 3600")
            .starts_with("ERR unknown command"));
        assert_eq!(redis.run::<String>(&load("")), "OK");
        memory.push(redis.info_number("memory", "used_memory"));
    }
    let growth = memory[99] - memory[49];
    assert!(
        growth < 64 * 1024,
        "used_memory grew by {growth} in 50 rounds"
    );
}

/// Case 60: with clients calling all the while, which are disconnected each time.
#[test]
fn unloading_and_loading_under_traffic_loses_no_entry() {
    let server = Server::start();
    let mut operator = server.connect();
    let stop = Stop::default();
    let (allowed, failed) = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..3)
            .map(|_| {
                let (server, stop) = (&server, &stop);
                scope.spawn(move || {
                    let check: [&[u8]; 4] = [b"SLIDEWIN.CHECK", b"k", b"10000000", b"3600"];
                    let mut redis = server.connect();
                    let (mut allowed, mut failed) = (0, 0);
                    while !stop.is_set() {
                        if let Ok(answer) = redis.try_send::<i64>(&check) {
                            allowed += answer;
                        } else {
                            failed += 1;
                            redis = server.connect();
                        }
                    }
                    (allowed, failed)
                })
            })
            .collect();
        stop.after(|| {
            for _ in 0..100 {
                assert_eq!(operator.run::<String>("MODULE UNLOAD slidewin"), "OK");
                operator.run::<String>("CLIENT LIST");
                assert_eq!(operator.run::<String>(&load("")), "OK");
                let entries = operator.int("ZCARD k");
                wait_until("calls come through", || operator.int("ZCARD k") > entries);
            }
        });
        let counts = callers.into_iter().map(|caller| caller.join().unwrap());
        counts.fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1))
    });
    let entries = operator.int("ZCARD k");
    assert!(allowed > 0);
    assert!(
        (allowed..=allowed + failed).contains(&entries),
        "{allowed} allowed, {failed} failed, {entries} entries"
    );
}

/// Case 60: a client keeps a pointer to its last command, which the server frees, so it must go.
#[test]
fn unloading_disconnects_who_last_called_the_module() {
    let server = Server::start();
    let mut caller = server.connect();
    let mut other = server.connect();
    let mut operator = server.connect();
    caller.int("SLIDEWIN.CHECK k 3 60");
    other.int("SLIDEWIN.CHECK k 3 60");
    other.run::<String>("PING");
    operator.int("SLIDEWIN.CHECK k 3 60");
    operator.run::<String>("MODULE UNLOAD slidewin");
    assert!(!caller.is_alive());
    assert!(other.is_alive());
    for n in 0..1_000 {
        operator.run::<()>(&format!("SET k{n} {}", "x".repeat(n % 300)));
    }
    let list: String = operator.run("CLIENT LIST");
    assert_eq!(list.lines().count(), 2);
}

/// Case 60: a server that unloads a module crashes when a transaction then runs its command, so the
/// module stays while any client is in one.
#[test]
fn an_open_transaction_keeps_the_module() {
    let server = Server::start();
    let mut redis = server.connect();
    let mut operator = server.connect();
    redis.run::<()>("MULTI");
    redis.run::<()>("SLIDEWIN.CHECK k 3 60");
    let error = operator.error("MODULE UNLOAD slidewin");
    assert!(error.starts_with("ERR Error unloading module"), "{error}");
    let line = "slidewin does not unload: a client has commands queued in MULTI";
    assert!(server.log().contains(line), "{}", server.log());
    assert_eq!(redis.ints("EXEC"), [1]);
    assert_eq!(operator.run::<String>("MODULE UNLOAD slidewin"), "OK");
}
