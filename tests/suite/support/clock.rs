use super::compile;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The wall clock of one server, moved or stopped by the test through a shared file.
pub struct Clock {
    path: PathBuf,
    control: File,
    offset: i64,
    stopped: i64,
}

impl Clock {
    pub(super) fn new(dir: &Path, offset: i64, stopped: i64) -> Self {
        let path = dir.join("clock");
        fs::write(&path, [0; 16]).unwrap();
        let control = OpenOptions::new().write(true).open(&path).unwrap();
        let clock = Self {
            path,
            control,
            offset,
            stopped,
        };
        clock.write();
        clock
    }

    /// Moves the clock by so many microseconds, running or stopped.
    pub fn step(&mut self, micros: i64) {
        if self.stopped == 0 {
            self.offset += micros;
        } else {
            self.stopped += micros;
        }
        self.write();
    }

    /// The time at which the clock stands.
    pub fn now(&self) -> i64 {
        assert_ne!(self.stopped, 0, "the clock runs");
        self.stopped
    }

    pub(super) fn preload(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", shim())
            .env("SLIDEWIN_TEST_CLOCK", &self.path);
    }

    fn write(&self) {
        let words = [self.offset.to_ne_bytes(), self.stopped.to_ne_bytes()];
        self.control.write_all_at(&words.concat(), 0).unwrap();
    }
}

/// The preloaded library, compiled once for each test program.
fn shim() -> &'static Path {
    static SHIM: OnceLock<PathBuf> = OnceLock::new();
    SHIM.get_or_init(|| compile("tests/suite/support/clock.c"))
}
