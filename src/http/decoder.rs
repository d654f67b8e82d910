//! What takes the coding off a body (RFC 9110 §8.4): gzip and deflate.

use std::io::{self, Write};

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use super::framing::Head;
use crate::cause::cause;
use crate::net::{Failure, Fault};

/// The decoder of a body.
pub enum Decoder {
    /// There is no coding.
    Plain,
    /// It is known, and nothing was seen yet: an empty body is no broken one.
    Unseen(Coding),
    /// gzip, one member after the other.
    Gzip(MultiGzDecoder<Vec<u8>>),
    /// deflate, which is the zlib format.
    Zlib(ZlibDecoder<Vec<u8>>),
    /// deflate as some servers misread it, without the format around it.
    Deflate(DeflateDecoder<Vec<u8>>),
}

/// A coding by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// `gzip`.
    Gzip,
    /// `deflate`.
    Deflate,
}

impl Decoder {
    /// The decoder for this answer; bodies are decoded only where that was `asked` for.
    pub fn of(head: &Head, asked: bool) -> Result<Self, Failure> {
        let coding = head.value("content-encoding").unwrap_or_default().trim().to_ascii_lowercase();
        match coding.as_str() {
            _ if !asked => Ok(Self::Plain),
            "" | "identity" => Ok(Self::Plain),
            "gzip" | "x-gzip" => Ok(Self::Unseen(Coding::Gzip)),
            "deflate" => Ok(Self::Unseen(Coding::Deflate)),
            other => Err(Failure::new(Fault::Encoding, format!("the body's coding '{other}' was not asked for"))),
        }
    }

    /// Whether there is a coding.
    pub fn is_coded(&self) -> bool {
        !matches!(self, Self::Plain)
    }

    /// Decodes some bytes.
    pub fn take(&mut self, bytes: &[u8], mut plain: impl FnMut(&[u8]) -> Result<(), Failure>) -> Result<(), Failure> {
        if let (Self::Unseen(coding), Some(first)) = (&self, bytes.first()) {
            *self = match coding {
                Coding::Gzip => Self::Gzip(MultiGzDecoder::new(Vec::new())),
                // zlib's first byte: the method, and a window of at most 32 KiB (RFC 1950 §2.2).
                Coding::Deflate if first & 0x0f == 8 && first >> 4 <= 7 => Self::Zlib(ZlibDecoder::new(Vec::new())),
                Coding::Deflate => Self::Deflate(DeflateDecoder::new(Vec::new())),
            };
        }
        if matches!(self, Self::Plain) {
            return plain(bytes);
        }
        match self {
            Self::Plain | Self::Unseen(_) => Ok(()),
            Self::Gzip(decoder) => decode(decoder, MultiGzDecoder::get_mut, bytes, plain),
            Self::Zlib(decoder) => decode(decoder, ZlibDecoder::get_mut, bytes, plain),
            Self::Deflate(decoder) => decode(decoder, DeflateDecoder::get_mut, bytes, plain),
        }
    }

    /// Decodes what is left at the end, which must be the end of the coding too.
    pub fn finish(&mut self, mut plain: impl FnMut(&[u8]) -> Result<(), Failure>) -> Result<(), Failure> {
        let finished = match self {
            Self::Plain | Self::Unseen(_) => return Ok(()),
            Self::Gzip(decoder) => decoder.try_finish().map(|()| decoder.get_ref()),
            Self::Zlib(decoder) => decoder.try_finish().map(|()| decoder.get_ref()),
            Self::Deflate(decoder) => decoder.try_finish().map(|()| decoder.get_ref()),
        };
        plain(finished.map_err(|error| broken(&error))?)
    }
}

/// Decodes bytes. They may unfold a thousandfold: at each step the decoder takes only what fills
/// its own buffer, and what has come out is handed on before the next.
fn decode<D: Write>(
    decoder: &mut D,
    out: fn(&mut D) -> &mut Vec<u8>,
    mut bytes: &[u8],
    mut plain: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    while !bytes.is_empty() {
        let taken = match decoder.write(bytes) {
            // What follows the end of the coding is no part of it.
            Ok(0) => Err(io::ErrorKind::WriteZero.into()),
            result => result,
        };
        bytes = &bytes[taken.map_err(|error| broken(&error))?..];
        plain(out(decoder))?;
        out(decoder).clear();
    }
    Ok(())
}

fn broken(error: &io::Error) -> Failure {
    Failure::new(Fault::Encoding, format!("the body's coding is broken: {}", cause(error)))
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    /// The body in these pieces, decoded.
    fn decoded(coding: &str, bytes: &[u8], step: usize) -> Result<Vec<u8>, Failure> {
        let fields = vec![("Content-Encoding".to_owned(), coding.to_owned())];
        let mut decoder = Decoder::of(&Head { fields, ..Head::default() }, true)?;
        let mut all = Vec::new();
        for piece in bytes.chunks(step) {
            decoder.take(piece, |plain| {
                all.extend_from_slice(plain);
                Ok(())
            })?;
        }
        decoder.finish(|plain| {
            all.extend_from_slice(plain);
            Ok(())
        })?;
        Ok(all)
    }

    #[test]
    fn codings_are_taken_off_and_what_is_cut_is_broken() {
        let text: Vec<u8> = (0..20_000u32).map(|at| (at * at % 249) as u8).collect();
        macro_rules! coded {
            ($encoder:ident) => {{
                let mut encoder = $encoder::new(Vec::new(), Compression::fast());
                encoder.write_all(&text).unwrap();
                encoder.finish().unwrap()
            }};
        }
        let gzip = coded!(GzEncoder);
        for (coding, bytes) in [
            ("gzip", &gzip),
            ("X-Gzip", &gzip),
            ("deflate", &coded!(ZlibEncoder)),
            ("deflate", &coded!(DeflateEncoder)),
            ("identity", &text),
        ] {
            for step in [1, 1000, 1 << 20] {
                assert!(decoded(coding, bytes, step).unwrap() == text, "{coding} {step}");
            }
            if coding != "identity" {
                for cut in [1, 5, bytes.len() / 2, bytes.len() - 1] {
                    assert!(decoded(coding, &bytes[..cut], 1000).is_err(), "{coding} {cut}");
                }
                assert!(decoded(coding, &[&bytes[..], b"junk"].concat(), 1000).is_err(), "{coding}");
            }
            assert!(decoded(coding, b"", 1).unwrap().is_empty());
        }
        assert!(decoded("gzip", &[&gzip[..], &gzip].concat(), 7).unwrap() == [&text[..], &text].concat());
        assert!(decoded("br", b"", 1).is_err());
    }
}
