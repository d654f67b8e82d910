//! A source of randomness that gives the number that a vector names.

use std::convert::Infallible;

use rand::TryRng;

/// The greatest u that can be drawn from [0, 1), and the nearest to 1.
pub const GREATEST: f64 = 1.0 - f64::EPSILON / 2.0;

/// Draws this u in [0, 1) whenever it is asked.
pub struct Always(pub f64);

/// The bits that make up a u: `random::<f64>()` takes the upper 53 of 64.
const PRECISION: i32 = 53;

impl TryRng for Always {
    type Error = Infallible;

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "u is in [0, 1)")]
        let upper = (self.0 * 2f64.powi(PRECISION)) as u64;
        Ok(upper << (u64::BITS.cast_signed() - PRECISION))
    }

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        unreachable!("delays draw 64 bits")
    }

    fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Infallible> {
        unreachable!("delays draw 64 bits")
    }
}
