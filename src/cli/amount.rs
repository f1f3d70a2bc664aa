//! Parses typed amounts: money and shares.

/// Why a typed amount is invalid.
#[derive(Debug, thiserror::Error)]
pub(super) enum AmountError {
    #[error("write US dollars, `2.50`")]
    Money,
    #[error("write a share from 0% up to 99%, `2%`")]
    Share,
}

/// Parses an amount of money above 0.
pub(super) fn money(text: &str) -> Result<f64, AmountError> {
    let amount = text.trim().trim_start_matches('$').parse::<f64>().ok();
    amount.filter(|amount| amount.is_finite() && *amount > 0.0).ok_or(AmountError::Money)
}

/// Parses a share, `2%` or `0.02`.
pub(super) fn share(text: &str) -> Result<f64, AmountError> {
    let (number, scale) = text.trim().strip_suffix('%').map_or((text.trim(), 1.0), |number| (number.trim(), 100.0));
    let value = number.parse::<f64>().ok().map(|value| value / scale);
    value.filter(|value| (0.0..1.0).contains(value)).ok_or(AmountError::Share)
}
