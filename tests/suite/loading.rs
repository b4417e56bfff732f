//! Loading, what a server must have for it, and that the module then stays.

use crate::support::{is_redis_6, module, wait_until, Server, Settings, Stop};
use rstest::rstest;
use std::io::Write;

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
    assert_eq!(redis.numbers("SLIDEWIN.CHECK k 3 60 WITHINFO")[2], 1);
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
        "ZRANGE",
        "SET",
        "APPEND",
        "SETRANGE"
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

const STAYS: &str = "slidewin does not unload: the server keeps pointers to a module's commands";

/// Asserts that an unload is refused, that the log says why in one line, and that all goes on.
fn assert_stays(server: &Server) {
    let lines = server.log().matches(STAYS).count();
    let mut operator = server.connect();
    let error = operator.error("MODULE UNLOAD slidewin");
    assert!(error.starts_with("ERR Error unloading module"), "{error}");
    if !error.contains("ACL users reference") {
        // Valkey 9.1 looks at the rules itself, before it asks the module.
        assert_eq!(server.log().matches(STAYS).count(), lines + 1);
    }
    operator.run::<redis::Value>("ACL LIST");
    operator.run::<redis::Value>("CLIENT LIST");
    assert_eq!(operator.int("SLIDEWIN.PEEK k 9000000 60"), 1);
}

/// Cases 60 and 91: the servers keep pointers to the commands of a module, in users' rules among
/// other places, and would crash.
#[rstest]
#[case("ACL SETUSER app on >secret ~limit:* -@all +slidewin.check")]
#[case("ACL SETUSER app on >secret ~* +@all -slidewin.refund")]
#[case("PING")]
fn the_module_stays_loaded(#[case] line: &str) {
    let server = Server::start();
    server.connect().run::<redis::Value>(line);
    assert_stays(&server);
}

/// Case 91: a transaction keeps pointers to all of its commands.
#[test]
fn the_module_stays_beside_an_open_transaction() {
    let server = Server::start();
    let mut redis = server.connect();
    redis.run::<()>("MULTI");
    redis.run::<()>("SLIDEWIN.CHECK k 3 60");
    assert_stays(&server);
    assert_eq!(redis.ints("EXEC"), [1]);
}

/// Case 91: a command that was read ahead waits behind a blocked one.
#[rstest]
#[case("*3\r\n$5\r\nBLPOP\r\n$1\r\nx\r\n$1\r\n0\r\n", "RPUSH x v")]
#[case("", "CLIENT UNPAUSE")]
fn the_module_stays_beside_a_blocked_client(#[case] before: &str, #[case] release: &str) {
    let server = Server::start();
    let mut operator = server.connect();
    if before.is_empty() {
        let pause: [&[u8]; 4] = [b"CLIENT", b"PAUSE", b"10000", b"WRITE"];
        if is_redis_6() {
            return; // neither a pause of writes only nor its end
        }
        operator.send::<()>(&pause);
    }
    let mut client = server.connect_raw();
    let check = "*4\r\n$14\r\nSLIDEWIN.CHECK\r\n$1\r\nk\r\n$1\r\n3\r\n$2\r\n60\r\n";
    client
        .write_all(format!("{before}{check}").as_bytes())
        .unwrap();
    wait_until("the client is blocked", || {
        let clients: String = operator.run("CLIENT LIST");
        let blocked = |line: &str| line.contains("flags=b") || line.contains("cmd=slidewin.check");
        clients.lines().any(blocked)
    });
    assert_stays(&server);
    operator.run::<redis::Value>(release);
    wait_until("the call is counted", || operator.int("ZCARD k") == 1);
}

/// Case 91: under traffic, with threads that read and write for the server.
#[test]
fn the_module_stays_under_traffic() {
    let server = Settings::new().options("--io-threads 3").start();
    let stop = Stop::default();
    let allowed: i64 = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..3)
            .map(|_| {
                let (mut redis, stop) = (server.connect(), &stop);
                scope.spawn(move || {
                    let calls = std::iter::repeat_with(|| redis.int("SLIDEWIN.CHECK k 9000000 60"));
                    calls.take_while(|_| !stop.is_set()).sum::<i64>()
                })
            })
            .collect();
        stop.after(|| (0..50).for_each(|_| assert_stays(&server)));
        callers
            .into_iter()
            .map(|caller| caller.join().unwrap())
            .sum()
    });
    assert!(allowed > 0);
    assert!(server.connect().int("ZCARD k") >= allowed);
}
