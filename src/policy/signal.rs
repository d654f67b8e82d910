//! Signals as data: number, name, and what retryx takes them for.

use std::fmt;

/// A signal by its number, named as the shell's `kill -l` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Signal(pub i32);

/// Linux's numbers, which the x86 and ARM families share.
const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM",
    "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO",
    "PWR", "SYS",
];

impl Signal {
    /// Terminal hang-up.
    pub const HUP: Self = Self(1);
    /// Interrupt, Ctrl-C.
    pub const INT: Self = Self(2);
    /// Quit, Ctrl-\\.
    pub const QUIT: Self = Self(3);
    /// Kill; cannot be caught.
    pub const KILL: Self = Self(9);
    /// User signal 1.
    pub const USR1: Self = Self(10);
    /// User signal 2.
    pub const USR2: Self = Self(12);
    /// Write to a pipe without readers.
    pub const PIPE: Self = Self(13);
    /// Termination request.
    pub const TERM: Self = Self(15);
    /// A child changed state.
    pub const CHLD: Self = Self(17);
    /// Continue after a stop.
    pub const CONT: Self = Self(18);
    /// Stop; cannot be caught.
    pub const STOP: Self = Self(19);
    /// Stop from the terminal, Ctrl-Z.
    pub const TSTP: Self = Self(20);
    /// Terminal input for a background process.
    pub const TTIN: Self = Self(21);
    /// Terminal output of a background process.
    pub const TTOU: Self = Self(22);
    /// A file grew past its limit.
    pub const XFSZ: Self = Self(25);
    /// The terminal's size changed.
    pub const WINCH: Self = Self(28);
    /// Highest signal number on Linux.
    pub const MAX: i32 = 64;
    /// The first real-time signal that the C library leaves to programs.
    const RTMIN: i32 = 34;

    /// Whether this signal asks a run to end: no attempt follows TERM, INT, HUP or QUIT.
    pub fn ends_the_run(self) -> bool {
        matches!(self, Self::TERM | Self::INT | Self::HUP | Self::QUIT)
    }

    /// Reads `KILL`, `SIGKILL`, `kill` or `9`; `None` for what is no signal.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(number) = text.parse::<i32>() {
            let plain = text.bytes().all(|b| b.is_ascii_digit());
            return (plain && (1..=Self::MAX).contains(&number)).then_some(Self(number));
        }
        let upper = text.to_ascii_uppercase();
        let name = upper.strip_prefix("SIG").unwrap_or(&upper);
        for (end, sign, from) in [("RTMIN", '+', Self::RTMIN), ("RTMAX", '-', Self::MAX)] {
            let Some(rest) = name.strip_prefix(end) else { continue };
            let offset = match rest.strip_prefix(sign) {
                _ if rest.is_empty() => 0,
                Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok()?,
                _ => return None,
            };
            let offset = Some(offset).filter(|offset| (0..=Self::MAX - Self::RTMIN).contains(offset))?;
            return Some(Self(if sign == '+' { from + offset } else { from - offset }));
        }
        NAMES.iter().zip(1..).find_map(|(known, number)| (*known == name).then_some(Self(number)))
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let index = usize::try_from(self.0 - 1).unwrap_or(usize::MAX);
        match NAMES.get(index) {
            Some(name) => write!(f, "SIG{name}"),
            None if self.0 == Self::RTMIN => f.write_str("SIGRTMIN"),
            None if self.0 > Self::RTMIN => write!(f, "SIGRTMIN+{}", self.0 - Self::RTMIN),
            None => write!(f, "signal {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_read_by_name_and_number() {
        for (text, number) in [
            ("KILL", 9),
            ("SIGKILL", 9),
            ("term", 15),
            ("sigusr1", 10),
            ("15", 15),
            ("RTMIN+1", 35),
            ("64", 64),
            ("RTMIN", 34),
            ("sigrtmin+0", 34),
            ("RTMAX", 64),
            ("RTMAX-30", 34),
        ] {
            assert_eq!(Signal::parse(text), Some(Signal(number)), "{text}");
        }
        for text in [
            "", "SIG", "0", "65", "-9", "+9", "NOPE", "RTMIN+31", "RTMIN-1", "RTMIN+", "RTMIN++1", "RTMINX", "RTMAX+1",
            "RTMAX-31", "9 ",
        ] {
            assert_eq!(Signal::parse(text), None, "{text}");
        }
    }

    #[test]
    fn every_signal_name_reads_back() {
        for number in (1..=31).chain(34..=64) {
            let signal = Signal(number);
            assert_eq!(Signal::parse(&signal.to_string()), Some(signal));
        }
    }
}
