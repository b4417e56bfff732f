//! Each line is a number and a key: calls `allow` for the key that many times at once, and prints the answers.

mod recipe;

#[tokio::main]
async fn main() {
    for line in std::io::stdin().lines() {
        let line = line.expect("a line of text");
        let (times, key) = line.split_once(' ').expect("how often, and a key");
        let times = times.parse().expect("how often");
        let calls: Vec<_> = (0..times).map(|_| tokio::spawn(answer(key.to_owned()))).collect();
        let mut answers = Vec::new();
        for call in calls {
            answers.push(call.await.expect("an answer"));
        }
        println!("[{}]", answers.join(", "));
    }
}

async fn answer(key: String) -> String {
    let (allowed, remaining, retry_after_ms) = recipe::allow(&key).await;
    let remaining = remaining.map_or("null".to_owned(), |remaining| remaining.to_string());
    format!("[{allowed}, {remaining}, {retry_after_ms}]")
}
