//! What the system says of a failure.

/// The system's words for an error, as a part of a sentence.
pub fn cause(error: &std::io::Error) -> String {
    let text = error.to_string();
    // What somebody else made of it is in words of its own.
    if error.get_ref().is_some() {
        return text;
    }
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use super::*;

    #[test]
    fn only_the_systems_words_are_made_small() {
        for (error, text) in [
            (Error::from_raw_os_error(2), "no such file or directory"),
            (ErrorKind::IsADirectory.into(), "is a directory"),
            (Error::other("it has more than 1 GiB"), "it has more than 1 GiB"),
        ] {
            assert_eq!(cause(&error), text);
        }
    }
}
