//! Where an answer sends the request on to, and what goes with it. Pure.

use url::Url;

use super::schemes::Schemes;
use crate::net::{Failure, Fault};

/// What `-L` and its like ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedirectPlan {
    /// Whether redirects are followed at all.
    pub follow: bool,
    /// Whether credentials go to other origins too (`--location-trusted`).
    pub trusted: bool,
    /// The most redirects; `None` for no limit.
    pub most: Option<u32>,
    /// The schemes that are followed.
    pub schemes: Schemes,
    /// Whether the method was given by the user, who then means it for every step.
    pub keeps_method: bool,
}

/// A step of a chain: what is asked of whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The URL.
    pub url: Url,
    /// The method.
    pub method: String,
    /// Whether the body goes with it.
    pub with_body: bool,
    /// Whether the credentials do.
    pub with_credentials: bool,
    /// Redirects so far.
    pub redirects: u32,
}

impl Step {
    /// Where the answer comes from: the URL without what may differ each time.
    pub fn place(&self) -> String {
        let mut url = self.url.clone();
        url.set_query(None);
        url.set_fragment(None);
        url.into()
    }

    /// The next step, where the answer redirects and that is followed.
    pub fn next(&self, status: u16, location: Option<&str>, plan: &RedirectPlan) -> Result<Option<Self>, Failure> {
        let (true, 300..=303 | 307 | 308, Some(location)) =
            (plan.follow, status, location.filter(|location| !location.trim().is_empty()))
        else {
            return Ok(None);
        };
        if plan.most.is_some_and(|most| self.redirects >= most) {
            let most = plan.most.unwrap_or_default();
            return Err(Failure::new(Fault::Redirects, format!("more than {most} redirects (--max-redirs)")));
        }
        let mut url = self
            .url
            .join(location.trim())
            .map_err(|error| Failure::new(Fault::Url, format!("the server redirects to what is no URL: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            let scheme = url.scheme();
            return Err(Failure::new(
                Fault::Scheme,
                format!("the server redirects to {scheme}:, which is not followed"),
            ));
        }
        if !plan.schemes.allow(url.scheme()) {
            let text = format!("the server redirects to {}:, which --proto or --proto-redir forbids", url.scheme());
            return Err(Failure::new(Fault::Scheme, text));
        }
        // Who is meant to be asked for a password is the user's to say.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        if url.fragment().is_none() {
            url.set_fragment(self.url.fragment());
        }
        let to_get = match status {
            303 => self.method != "HEAD",
            // What every client does, whatever the standard once said.
            301 | 302 => self.method == "POST",
            _ => false,
        };
        let same = url.origin() == self.url.origin();
        Ok(Some(Self {
            method: if to_get && !plan.keeps_method { "GET".to_owned() } else { self.method.clone() },
            with_body: self.with_body && !to_get,
            with_credentials: self.with_credentials && (same || plan.trusted),
            redirects: self.redirects + 1,
            url,
        }))
    }
}

/// Whether a header can go to another origin: one that cannot carry a secret.
pub fn is_harmless(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["accept", "content-", "if-"].iter().any(|prefix| name.starts_with(prefix))
        || ["user-agent", "range"].contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: RedirectPlan =
        RedirectPlan { follow: true, trusted: false, most: Some(3), schemes: Schemes::ALL, keeps_method: false };

    fn step(method: &str) -> Step {
        Step {
            url: Url::parse("http://a.example/x?y#z").unwrap(),
            method: method.to_owned(),
            with_body: true,
            with_credentials: true,
            redirects: 0,
        }
    }

    #[test]
    fn methods_and_bodies_go_on_as_the_standard_says() {
        for (status, method, next, body) in [
            (301, "POST", "GET", false),
            (302, "POST", "GET", false),
            (303, "POST", "GET", false),
            (303, "PUT", "GET", false),
            (303, "HEAD", "HEAD", true),
            (301, "PUT", "PUT", true),
            (307, "POST", "POST", true),
            (308, "POST", "POST", true),
        ] {
            let to = step(method).next(status, Some("/n"), &PLAN).unwrap().unwrap();
            assert_eq!((to.method.as_str(), to.with_body), (next, body), "{status} {method}");
            assert_eq!(to.url.as_str(), "http://a.example/n#z");
        }
        for (status, location) in [(200, Some("/n")), (304, Some("/n")), (302, None)] {
            assert_eq!(step("GET").next(status, location, &PLAN).unwrap(), None);
        }
    }

    #[test]
    fn credentials_stay_with_their_origin() {
        for (location, stay) in [
            ("/n", true),
            ("http://a.example:80/n", true),
            ("http://a.example:81/n", false),
            ("https://a.example/n", false),
            ("//b.example/n", false),
        ] {
            let to = step("GET").next(302, Some(location), &PLAN).unwrap().unwrap();
            assert_eq!(to.with_credentials, stay, "{location}");
            let trusted = RedirectPlan { trusted: true, ..PLAN };
            assert!(step("GET").next(302, Some(location), &trusted).unwrap().unwrap().with_credentials);
        }
        // Once they were left behind they do not come back.
        let there = step("GET").next(302, Some("//b.example/"), &PLAN).unwrap().unwrap();
        assert!(!there.next(302, Some("http://a.example/"), &PLAN).unwrap().unwrap().with_credentials);
        assert!(is_harmless("Accept-Language") && is_harmless("content-type") && is_harmless("If-None-Match"));
        assert!(!is_harmless("Authorization") && !is_harmless("Cookie") && !is_harmless("X-Api-Key"));
    }

    #[test]
    fn chains_end() {
        let mut at = step("GET");
        for _ in 0..3 {
            at = at.next(302, Some("/n"), &PLAN).unwrap().unwrap();
        }
        assert!(at.next(302, Some("/n"), &PLAN).is_err());
        for wrong in ["file:///etc/passwd", "ftp://x/", "http://", "http://[x"] {
            assert!(step("GET").next(302, Some(wrong), &PLAN).is_err(), "{wrong}");
        }
    }
}
