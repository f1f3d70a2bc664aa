//! Which exchanges a lane recorded, and which of them answers a request: format, keys, misses, redaction, files.
//!
//! On disk a lane is one YAML file: a header (who recorded what, when, on which knowledge), the times of local
//! stages, and the exchanges in order of sending. An exchange has a `key` over its request, hashes of the parts that
//! people change (`drift`), the `request` as what it adds to an earlier one, and the `response`. Prompts and tool
//! lists lie in `blobs/` beside the scenario's cases, named by content. Files may be edited by hand: what counts is
//! the key and the response, and a reader ignores members that it does not know. An old build refuses a newer
//! `cassette:` version and says so. The last line (`end`) tells a file that was cut off and one that was edited. Lanes recorded until decided have their `stopping.json` beside them.
//!
//! Nothing here knows a provider's dialect, opens a connection or reads a clock.

mod base64;
mod body;
mod cache;
mod canonical;
mod delta;
mod difference;
mod drift;
mod end;
mod exchange;
mod format;
mod keys;
mod local_times;
mod miss;
mod pool;
mod rekey;
mod scan;
mod shape;
mod stopping;
mod store;
#[cfg(test)]
mod tests;
mod unpack;
mod vcr;
mod word_diff;

pub use crate::platform::secrets::Redactor;
pub use canonical::{Profile, Request, hex, key, stored_body};
pub use drift::{Drift, drift};
pub use exchange::{Cassette, Chunk, Exchange, Header, Outcome, StoredRequest, Take};
pub use keys::Keys;
pub use local_times::LocalTimes;
pub use miss::{Explanation, explain};
pub use pool::{Pool, Taken};
pub use rekey::{RekeyProblem, Rekeyed};
pub use scan::{Find, scan};
pub use shape::{Change, Shape};
pub use stopping::{StoppingDesign, StoppingError, stopping_path};
pub use store::{CassetteError, blobs_dir, path};
pub use unpack::{LONGEST_BODY, UnpackError, unpack};
pub use vcr::{Imported, Refusal, Route, VcrError, import_vcr};
