//! Real servers, one for each test, and a client that speaks in command lines.

mod client;
mod clock;
mod cluster;
mod oracle;

pub use client::{Client, Reply, WithInfo};
pub use clock::Clock;
pub use cluster::{slot, Cluster};
pub use oracle::{Oracle, Rule};

use std::fs;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A moment for stopped clocks: 2023-11-14 22:13:20 UTC, in microseconds.
pub const NOW: i64 = 1_700_000_000_000_000;

/// A second in microseconds.
pub const SECOND: i64 = 1_000_000;

/// Ages in seconds as entries of a log at `NOW`.
pub fn ages(seconds: &[i64]) -> Vec<i64> {
    seconds.iter().map(|age| NOW - age * SECOND).collect()
}

/// A server process with a folder of its own, killed when dropped.
pub struct Server {
    child: Child,
    dir: TempDir,
    clock: Option<Clock>,
    settings: Settings,
}

/// How to start a server.
#[derive(Clone)]
pub struct Settings {
    module: bool,
    clock: Option<(i64, i64)>,
    port: Option<u16>,
    options: Vec<String>,
    under: Vec<String>,
}

impl Settings {
    /// With the module, the machine's clock, no persistence and a unix socket only.
    pub fn new() -> Self {
        Self {
            module: true,
            clock: None,
            port: None,
            options: Vec::new(),
            under: Vec::new(),
        }
    }

    /// Started by another program, given with its options.
    pub fn under(mut self, words: &str) -> Self {
        self.under = words.split_whitespace().map(str::to_owned).collect();
        self
    }

    /// Without the module.
    pub fn bare() -> Self {
        Self {
            module: false,
            ..Self::new()
        }
    }

    /// With more words of configuration, separated by spaces.
    pub fn options(mut self, words: &str) -> Self {
        self.options
            .extend(words.split_whitespace().map(str::to_owned));
        self
    }

    /// With a clock that stands still.
    pub fn stopped_at(mut self, micros: i64) -> Self {
        self.clock = Some((0, micros));
        self
    }

    /// With a clock that runs this far ahead of the machine's.
    pub fn ahead_by(mut self, micros: i64) -> Self {
        self.clock = Some((micros, 0));
        self
    }

    /// With a free port of 127.0.0.1 beside the unix socket.
    pub fn tcp(mut self) -> Self {
        self.port = Some(free_port());
        self
    }

    /// As a node of a cluster, whose bus takes the port 10,000 higher.
    pub fn cluster(mut self) -> Self {
        self.port = std::iter::repeat_with(free_port)
            .find(|port| *port < 50_000 && TcpListener::bind(("127.0.0.1", port + 10_000)).is_ok());
        self.options("--cluster-enabled yes --cluster-node-timeout 5000")
    }

    /// Starts the server and waits until it answers.
    pub fn start(self) -> Server {
        self.spawn().wait_for_answer()
    }

    /// Starts the server on a copy of the files that another one wrote.
    pub fn start_from(self, other: &Server) -> Server {
        let dir = tempfile::tempdir().unwrap();
        for name in ["dump.rdb", "appendonly.aof", "appendonlydir"] {
            let source = other.dir.path().join(name);
            if source.exists() {
                let status = Command::new("cp")
                    .arg("-r")
                    .arg(&source)
                    .arg(dir.path())
                    .status();
                assert!(status.unwrap().success());
            }
        }
        self.spawn_in(dir).wait_for_answer()
    }

    /// Starts the server and waits until it ends by itself; returns its exit code and log.
    pub fn start_and_fail(self) -> (Option<i32>, String) {
        let mut server = self.spawn();
        let started = Instant::now();
        loop {
            if let Some(status) = server.child.try_wait().unwrap() {
                return (status.code(), server.log());
            }
            assert!(
                started.elapsed() < Duration::from_secs(20),
                "the server runs:\n{}",
                server.log()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn spawn(self) -> Server {
        self.spawn_in(tempfile::tempdir().unwrap())
    }

    fn spawn_in(self, dir: TempDir) -> Server {
        let clock = self
            .clock
            .map(|(offset, stopped)| Clock::new(dir.path(), offset, stopped));
        let child = spawn(&self, dir.path(), clock.as_ref());
        Server {
            child,
            dir,
            clock,
            settings: self,
        }
    }
}

fn spawn(settings: &Settings, dir: &Path, clock: Option<&Clock>) -> Child {
    let mut words = settings.under.iter().cloned().chain([server_binary()]);
    let mut command = Command::new(words.next().expect("a program"));
    command
        .args(words)
        .args(["--port", &settings.port.unwrap_or(0).to_string()])
        .args(["--bind", "127.0.0.1"])
        .args([
            "--unixsocket",
            "redis.sock",
            "--save",
            "",
            "--logfile",
            "log",
        ]);
    command.args(["--repl-diskless-sync-delay", "0"]);
    if !is_redis_6() {
        command
            .args(["--enable-module-command", "yes"])
            .args(["--enable-debug-command", "yes"]);
    }
    command.args(&settings.options);
    if settings.module {
        command.arg("--loadmodule").arg(module());
    }
    if let Some(clock) = clock {
        clock.preload(&mut command);
    }
    command
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start {}: {error}", server_binary()))
}

impl Server {
    /// A server with the module and the machine's clock.
    pub fn start() -> Self {
        Settings::new().start()
    }

    /// A server with the module whose clock stands still at `NOW`.
    pub fn with_stopped_clock() -> Self {
        Settings::new().stopped_at(NOW).start()
    }

    /// A new connection.
    pub fn connect(&self) -> Client {
        Client::open(&self.socket()).unwrap_or_else(|| panic!("no connection:\n{}", self.log()))
    }

    /// A new connection that speaks RESP3.
    pub fn connect_resp3(&self) -> Client {
        Client::open_resp3(&self.socket())
    }

    /// A connection that speaks only bytes.
    pub fn connect_raw(&self) -> UnixStream {
        UnixStream::connect(self.socket()).unwrap()
    }

    /// The server's clock.
    pub fn clock(&mut self) -> &mut Clock {
        self.clock.as_mut().expect("a server with a clock")
    }

    /// The TCP port.
    pub fn port(&self) -> u16 {
        self.settings.port.expect("a server with a port")
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets the server end by itself, and returns the names and texts of the files it leaves.
    pub fn shut_down(mut self) -> Vec<(PathBuf, String)> {
        let _: Result<(), _> = self.connect().try_send(&[b"SHUTDOWN", b"NOSAVE"]);
        self.child.wait().unwrap();
        let files = fs::read_dir(self.dir.path()).unwrap();
        let paths = files
            .map(|file| file.unwrap().path())
            .filter(|path| path.is_file());
        let text = |path: &PathBuf| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
        paths.map(|path| (path.clone(), text(&path))).collect()
    }

    /// Kills the process and starts a new one with the same folder and settings.
    pub fn kill_and_restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = spawn(&self.settings, self.dir.path(), self.clock.as_ref());
        self.await_answer();
    }

    fn wait_for_answer(mut self) -> Self {
        self.await_answer();
        self
    }

    fn await_answer(&mut self) {
        let started = Instant::now();
        while Client::open(&self.socket())
            .and_then(|mut client| client.try_send::<String>(&[b"PING"]).ok())
            .is_none()
        {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("the server ended with {status}:\n{}", self.log());
            }
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "the server does not answer:\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// What the server has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// The commands in the append-only file, without the choice of the database.
    pub fn append_only_file(&self) -> Vec<String> {
        let bytes = fs::read(self.append_only_path()).unwrap();
        let mut rest = bytes.as_slice();
        let mut commands = Vec::new();
        while !rest.is_empty() {
            let words = length(&mut rest, b'*');
            let command: Vec<String> = (0..words)
                .map(|_| {
                    let len = length(&mut rest, b'$');
                    let word = String::from_utf8_lossy(&rest[..len]).into_owned();
                    rest = &rest[len + 2..];
                    word
                })
                .collect();
            if command[0] != "SELECT" {
                commands.push(command.join(" "));
            }
        }
        commands
    }

    /// The file that commands are appended to.
    pub fn append_only_path(&self) -> PathBuf {
        let folder = self.dir.path().join("appendonlydir");
        let Ok(files) = fs::read_dir(&folder) else {
            return self.dir.path().join("appendonly.aof");
        };
        let mut names: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
        names.retain(|path| path.to_string_lossy().ends_with(".incr.aof"));
        names.sort();
        names.pop().unwrap()
    }

    /// The path of the unix socket.
    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("redis.sock")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- the server's log\n{}", self.log());
        }
    }
}

/// The module's library: the one that `SLIDEWIN_MODULE` names, or the one that cargo has just built,
/// beside this test program.
pub fn module() -> PathBuf {
    if let Some(path) = std::env::var_os("SLIDEWIN_MODULE") {
        return path.into();
    }
    let program = std::env::current_exe().unwrap();
    program.with_file_name("libslidewin.so")
}

/// Compiles a C file of the project into a library that a server can load, with the compiler that
/// `SLIDEWIN_CC` names for a server of another architecture.
pub fn compile(source: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let library = target.join(source.with_extension("so").file_name().unwrap());
    // Another test program may be using the one that is there.
    let fresh = library.with_extension(format!("{}.so", std::process::id()));
    let compiler = std::env::var("SLIDEWIN_CC").unwrap_or_else(|_| "cc".to_owned());
    let status = Command::new(compiler)
        .args(["-shared", "-fPIC", "-O2", "-o"])
        .args([&fresh, &source])
        .status()
        .expect("a C compiler");
    assert!(status.success(), "{} does not compile", source.display());
    fs::rename(&fresh, &library).unwrap();
    library
}

/// The server's own word for its version.
pub fn server_version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let output = Command::new(server_binary())
            .arg("--version")
            .output()
            .unwrap_or_else(|error| panic!("cannot run {}: {error}", server_binary()));
        String::from_utf8_lossy(&output.stdout).into_owned()
    })
}

/// Whether the server is Redis 6, which lacks what Redis 7.0 brought to modules.
pub fn is_redis_6() -> bool {
    server_version().contains("v=6.")
}

/// Whether the server is Valkey.
pub fn is_valkey() -> bool {
    server_version().to_lowercase().contains("valkey")
}

fn server_binary() -> String {
    std::env::var("SLIDEWIN_SERVER").unwrap_or_else(|_| "redis-server".to_owned())
}

/// Tells threads of load to stop, whatever way the test goes on.
#[derive(Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// Whether threads shall stop.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Runs something while threads do their load, then lets them stop, also when it panics.
    pub fn after(&self, work: impl FnOnce()) {
        struct Guard<'a>(&'a Stop);
        impl Drop for Guard<'_> {
            fn drop(&mut self) {
                self.0 .0.store(true, Ordering::Relaxed);
            }
        }
        let _guard = Guard(self);
        work();
    }
}

/// Waits until something holds.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "still not so after 30 seconds: {what}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The number in a line of the protocol that begins with `mark`.
fn length(rest: &mut &[u8], mark: u8) -> usize {
    let end = rest.iter().position(|byte| *byte == b'\r').unwrap();
    assert_eq!(rest[0], mark);
    let number = std::str::from_utf8(&rest[1..end]).unwrap().parse().unwrap();
    *rest = &rest[end + 2..];
    number
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
