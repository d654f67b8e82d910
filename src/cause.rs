//! What the system says of a failure.

/// The system's words for an error, as a part of a sentence.
pub fn cause(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
