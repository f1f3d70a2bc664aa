//! Unpacks compressed bodies within limits: a few kilobytes of gzip may hold gigabytes.

use super::word_diff::printable;
use brotli_decompressor::Decompressor;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use ruzstd::decoding::StreamingDecoder;
use std::io::Read;

/// Maximum bytes of a response body, compressed or not; longer ones are refused.
pub(crate) const LONGEST_BODY: usize = 16 << 20;

/// Why a body cannot be unpacked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnpackError {
    /// The body does not match its header.
    #[error("is broken {packing}: {message}")]
    Broken { packing: &'static str, message: String },
    /// It is longer than [`LONGEST_BODY`].
    #[error("is longer than {} MiB", LONGEST_BODY >> 20)]
    TooLong,
    /// The compression is not supported.
    #[error("is compressed with {packing}, which ragcheck does not read (it reads gzip, deflate, br and zstd)")]
    Unknown { packing: String },
}

/// Undoes the compression named by `content-encoding`. Returns the body unchanged if it was unpacked before and the
/// header was left. Header names are in lower case.
///
/// # Errors
/// [`UnpackError`] if the body is broken, too long, or of an unsupported compression.
pub(crate) fn unpack(bytes: Vec<u8>, headers: &[(String, String)]) -> Result<Vec<u8>, UnpackError> {
    unpack_within(LONGEST_BODY, bytes, headers)
}

/// [`unpack`] for at most `longest` bytes.
///
/// # Errors
/// As for [`unpack`].
pub(crate) fn unpack_within(
    longest: usize,
    bytes: Vec<u8>,
    headers: &[(String, String)],
) -> Result<Vec<u8>, UnpackError> {
    let packing = headers.iter().find(|(name, _)| name == "content-encoding").map(|(_, value)| value.trim());
    let bounded = |packing: &'static str, packed: &mut dyn Read| bounded(longest, packing, packed);
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return bounded("gzip", &mut MultiGzDecoder::new(&bytes[..]));
    }
    let text = std::str::from_utf8(&bytes).is_ok();
    match packing.map(str::to_ascii_lowercase).as_deref() {
        Some("deflate") if !text => match bounded("deflate", &mut ZlibDecoder::new(&bytes[..])) {
            Err(UnpackError::Broken { .. }) => bounded("deflate", &mut DeflateDecoder::new(&bytes[..])),
            read => read,
        },
        Some("br") if !text => bounded("br", &mut Decompressor::new(&bytes[..], 4096)),
        Some("zstd") if !text => match StreamingDecoder::new(&bytes[..]) {
            Ok(mut decoder) => bounded("zstd", &mut decoder),
            Err(why) => Err(UnpackError::Broken { packing: "zstd", message: why.to_string() }),
        },
        Some(other) if !matches!(other, "" | "identity" | "gzip" | "deflate" | "br" | "zstd") && !text => {
            Err(UnpackError::Unknown { packing: printable(other, 40) })
        }
        _ if bytes.len() > longest => Err(UnpackError::TooLong),
        _ => Ok(bytes),
    }
}

fn bounded(longest: usize, packing: &'static str, packed: &mut dyn Read) -> Result<Vec<u8>, UnpackError> {
    let broken = |why: std::io::Error| UnpackError::Broken { packing, message: printable(&why.to_string(), 200) };
    let mut bytes = Vec::new();
    packed.take(longest as u64 + 1).read_to_end(&mut bytes).map_err(broken)?;
    if bytes.len() > longest { Err(UnpackError::TooLong) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    #[test]
    fn a_small_archive_of_a_huge_body_is_refused_at_the_bound() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        for _ in 0..=LONGEST_BODY >> 20 {
            gzip.write_all(&vec![b' '; 1 << 20]).expect("memory");
        }
        let packed = gzip.finish().expect("memory");
        assert!(packed.len() < 1 << 20, "{}", packed.len());
        assert_eq!(unpack(packed, &[]), Err(UnpackError::TooLong));
        assert_eq!(unpack(vec![b' '; LONGEST_BODY + 1], &[]), Err(UnpackError::TooLong));
    }
}
