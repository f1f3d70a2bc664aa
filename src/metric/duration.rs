//! Durations as criteria and expectations write them: `250ms`, `10s`, `1.5s`, `2m`.

/// Reads a duration, in microseconds.
///
/// # Errors
/// When it is not a number with one of the units `us`, `ms`, `s`, `m`, or is too long to count.
pub fn parse_duration(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let split = text.find(|character: char| character.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "m" | "min" => 60e6,
        _ => return Err(format!("`{text}` is not a time: write a number and `ms`, `s` or `m`, for example `10s`")),
    };
    let number = number.trim();
    let plain = !number.is_empty() && number.chars().all(|character| character.is_ascii_digit() || character == '.');
    match number.parse::<f64>() {
        Ok(value) if plain && value * scale < 1e18 => Ok((value * scale).round() as u64),
        _ => Err(format!("`{text}` is not a time: `{number}` is not a number that can be counted")),
    }
}

#[cfg(test)]
mod tests {
    use super::parse_duration;

    #[test]
    fn units_are_read_and_nonsense_is_refused() {
        for (text, expected) in [("10s", 10_000_000), ("250ms", 250_000), ("1.5 s", 1_500_000), ("2m", 120_000_000)] {
            assert_eq!(parse_duration(text), Ok(expected));
        }
        for text in ["", "10", "s", "-1s", "1e3s", "NaNs", "10 days", "infs", "99999999999999999999m"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
