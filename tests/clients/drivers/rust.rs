//! Calls the recipe's `allow` with each line of the input as the key, and prints what it says.

mod recipe;

#[tokio::main]
async fn main() {
    for key in std::io::stdin().lines() {
        let key = key.expect("a line of text");
        let (allowed, remaining, retry_after_ms) = recipe::allow(&key).await;
        let remaining = remaining.map_or("null".to_owned(), |remaining| remaining.to_string());
        println!("[{allowed}, {remaining}, {retry_after_ms}]");
    }
}
