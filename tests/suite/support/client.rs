use redis::{Connection, ConnectionLike, FromRedisValue, RedisError};
use std::path::Path;
use std::time::Duration;

/// A reply as the client library has it.
pub type Reply = redis::Value;

/// A WITHINFO reply, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithInfo {
    /// Allowed, limit, remaining, `retry_after_ms`, `reset_after_ms`, `full_after_ms`, used.
    pub numbers: [i64; 7],
    /// The id of what was granted, or 0.
    pub id: i64,
    /// With two rules or more, the numbers of each.
    pub rules: Vec<Vec<i64>>,
}

impl WithInfo {
    /// Takes the reply to a line apart.
    fn of(line: &str, reply: Reply) -> Self {
        let number = |field: &Reply| match field {
            Reply::Int(number) => *number,
            other => panic!("{line}: not an integer but {other:?}"),
        };
        let Reply::Array(fields) = reply else {
            panic!("{line}: not an array");
        };
        let rules = match &fields[8..] {
            [] => Vec::new(),
            [Reply::Array(rules)] => rules
                .iter()
                .map(|rule| match rule {
                    Reply::Array(fields) => fields.iter().map(number).collect(),
                    other => panic!("{line}: not a rule but {other:?}"),
                })
                .collect(),
            other => panic!("{line}: not the rules but {other:?}"),
        };
        let numbers: Vec<i64> = fields[..7].iter().map(number).collect();
        Self {
            numbers: numbers.try_into().expect("seven"),
            id: number(&fields[7]),
            rules,
        }
    }
}

/// A connection that takes command lines and panics on what a test does not expect.
pub struct Client(pub Connection);

impl Client {
    pub(super) fn open(socket: &Path) -> Option<Self> {
        Self::open_url(&format!("unix://{}", socket.display()))
    }

    pub(super) fn open_resp3(socket: &Path) -> Self {
        let url = format!("unix://{}?protocol=resp3", socket.display());
        Self::open_url(&url).expect("a RESP3 connection")
    }

    fn open_url(url: &str) -> Option<Self> {
        let client = redis::Client::open(url).expect("a well-formed address");
        let connection = client.get_connection().ok()?;
        let patience = Some(Duration::from_secs(60));
        connection.set_read_timeout(patience).expect("a timeout");
        Some(Self(connection))
    }

    /// Sends the words of a line, separated by single spaces.
    pub fn run<T: FromRedisValue>(&mut self, line: &str) -> T {
        let words: Vec<_> = line.split(' ').map(str::as_bytes).collect();
        self.try_send(&words)
            .unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    /// An integer reply.
    pub fn int(&mut self, line: &str) -> i64 {
        match self.run(line) {
            Reply::Int(number) => number,
            other => panic!("{line}: not an integer but {other:?}"),
        }
    }

    /// A reply that is an array of integers.
    pub fn ints(&mut self, line: &str) -> Vec<i64> {
        match self.run(line) {
            Reply::Array(items) => items
                .iter()
                .map(|item| match item {
                    Reply::Int(number) => *number,
                    other => panic!("{line}: not an integer but {other:?}"),
                })
                .collect(),
            other => panic!("{line}: not an array but {other:?}"),
        }
    }

    /// A WITHINFO reply: the seven numbers before the id.
    pub fn numbers(&mut self, line: &str) -> Vec<i64> {
        self.with_info(line).numbers.to_vec()
    }

    /// A WITHINFO reply.
    pub fn with_info(&mut self, line: &str) -> WithInfo {
        WithInfo::of(line, self.run(line))
    }

    /// Sends many lines at once and returns their WITHINFO replies.
    pub fn infos(&mut self, lines: &[String]) -> Vec<WithInfo> {
        let replies: Vec<Reply> = pipeline(lines).query(&mut self.0).expect("replies");
        let replies = lines.iter().zip(replies);
        replies
            .map(|(line, reply)| WithInfo::of(line, reply))
            .collect()
    }

    /// The whole text of an error reply.
    pub fn error(&mut self, line: &str) -> String {
        let words: Vec<_> = line.split(' ').map(str::as_bytes).collect();
        self.error_of(&words)
    }

    /// The whole text of an error reply to words of any bytes.
    pub fn error_of(&mut self, words: &[&[u8]]) -> String {
        match self.try_send::<Reply>(words) {
            Err(error) => text(&error),
            Ok(reply) => panic!("{words:?}: not an error but {reply:?}"),
        }
    }

    /// Sends words of any bytes.
    pub fn send<T: FromRedisValue>(&mut self, words: &[&[u8]]) -> T {
        self.try_send(words)
            .unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// Sends words of any bytes; the error may be the server's or the connection's.
    pub fn try_send<T: FromRedisValue>(&mut self, words: &[&[u8]]) -> Result<T, RedisError> {
        let mut command = redis::Cmd::new();
        for word in words {
            command.arg(*word);
        }
        command.query(&mut self.0)
    }

    /// Sends many lines at once and returns their integer replies.
    pub fn pipeline(&mut self, lines: &[String]) -> Vec<i64> {
        pipeline(lines).query(&mut self.0).expect("integers")
    }

    /// Runs lines in MULTI and returns their replies.
    pub fn transaction(&mut self, lines: &[&str]) -> Vec<i64> {
        self.run::<()>("MULTI");
        for line in lines {
            assert_eq!(self.run::<String>(line), "QUEUED");
        }
        self.ints("EXEC")
    }

    /// Adds entries of the stored form to a log.
    pub fn seed(&mut self, key: &str, stamps: impl IntoIterator<Item = i64>) {
        let stamps: Vec<i64> = stamps.into_iter().collect();
        for stamps in stamps.chunks(10_000) {
            let mut command = redis::cmd("ZADD");
            command.arg(key);
            for stamp in stamps {
                command.arg(stamp).arg(stamp);
            }
            command.query::<i64>(&mut self.0).expect("ZADD");
        }
    }

    /// The times of a log's entries, each of which is of the stored form.
    pub fn entries(&mut self, key: &str) -> Vec<i64> {
        let pairs: Vec<(String, f64)> = redis::cmd("ZRANGE")
            .arg(key)
            .arg("0 -1 WITHSCORES".split(' ').collect::<Vec<_>>())
            .query(&mut self.0)
            .expect("ZRANGE");
        pairs
            .iter()
            .map(|(member, score)| {
                assert_eq!(*member, format!("{score}"), "not of the stored form");
                member.parse().expect("digits")
            })
            .collect()
    }

    /// When a key expires, in Unix milliseconds; of Redis 6, which does not tell, only whether.
    pub fn expires_at(&mut self, key: &str) -> i64 {
        if super::is_redis_6() {
            return i64::from(self.int(&format!("PTTL {key}")) > 0);
        }
        self.int(&format!("PEXPIRETIME {key}"))
    }

    /// A field of INFO.
    pub fn info(&mut self, section: &str, field: &str) -> String {
        let info: String = self.run(&format!("INFO {section}"));
        info.lines()
            .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))
            .unwrap_or_else(|| panic!("no {field} in INFO {section}"))
            .to_owned()
    }

    /// A number of INFO.
    pub fn info_number(&mut self, section: &str, field: &str) -> i64 {
        self.info(section, field).parse().expect("a number")
    }

    /// The server's time in microseconds.
    pub fn time(&mut self) -> i64 {
        let (seconds, micros): (i64, i64) = self.run("TIME");
        seconds * super::SECOND + micros
    }

    /// Whether the server still answers.
    pub fn is_alive(&mut self) -> bool {
        self.0.check_connection()
    }
}

fn pipeline(lines: &[String]) -> redis::Pipeline {
    let mut pipeline = redis::pipe();
    for line in lines {
        let mut words = line.split(' ');
        pipeline.cmd(words.next().unwrap_or_default());
        for word in words {
            pipeline.arg(word);
        }
    }
    pipeline
}

/// An error reply as the server sent it.
fn text(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        _ => error.to_string(),
    }
}
