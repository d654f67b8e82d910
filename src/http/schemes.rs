//! Which schemes are asked: curl's `--proto` and `--proto-redir`. Pure.

/// The schemes that are allowed of those that are spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schemes {
    http: bool,
    https: bool,
}

impl Schemes {
    /// All of them.
    pub const ALL: Self = Self { http: true, https: true };

    /// What a list makes of these: `name` and `+name` allow one more, `-name` takes one away,
    /// `=name` is the only one so far. Of several signs the last counts, as curl has it. Schemes
    /// that are not spoken may be named too.
    pub fn changed(mut self, list: &str) -> Result<Self, String> {
        for word in list.split(',').filter(|word| !word.is_empty()) {
            let bare = word.trim_start_matches(['=', '+', '-']);
            let sign = word[..word.len() - bare.len()].chars().last().unwrap_or('+');
            let name = bare.to_ascii_lowercase();
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                return Err(format!("'{list}' is no list of schemes; valid is one such as =https or -all,https"));
            }
            if sign == '=' {
                self = Self { http: false, https: false };
            }
            let allowed = sign != '-';
            let all = name == "all";
            if all || name == "http" {
                self.http = allowed;
            }
            if all || name == "https" {
                self.https = allowed;
            }
        }
        Ok(self)
    }

    /// Those that others allow, too.
    pub fn and(self, others: Self) -> Self {
        Self { http: self.http && others.http, https: self.https && others.https }
    }

    /// Whether this one is allowed.
    pub fn allow(self, scheme: &str) -> bool {
        match scheme {
            "http" => self.http,
            "https" => self.https,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_curl_reads_them() {
        for (list, http, https) in [
            ("", true, true),
            ("=https", false, true),
            ("=HTTP", true, false),
            ("https", true, true),
            ("-http", false, true),
            ("-all,https", false, true),
            ("=ftp,+http", true, false),
            ("=ftp", false, false),
            ("=https,http", true, true),
            ("=http,=https", false, true),
            ("=all", true, true),
            ("=-http", false, true),
            ("+-http", false, true),
            ("=https,=-http", false, true),
            ("-=http", true, false),
            ("-all,-+http", true, false),
            ("=-https,http", true, false),
            ("=http,", true, false),
            ("-http,,https", false, true),
            (",", true, true),
        ] {
            let schemes = Schemes::ALL.changed(list).unwrap();
            assert_eq!((schemes.allow("http"), schemes.allow("https")), (http, https), "{list}");
        }
        for wrong in ["=", "-", "=-", "-http,+", "http, https", "ht tp"] {
            assert!(Schemes::ALL.changed(wrong).is_err(), "{wrong}");
        }
    }
}
