//! Recordings of a lane's exchanges: format, matching keys, misses, redaction and files.
//!
//! On disk a lane is one YAML file: a header (recorder, date, origin, knowledge), the durations of local stages, and
//! the exchanges in order of sending. An exchange has a `key` over its request, hashes of the parts that people change
//! (`drift`), the `request` as additions to an earlier one, and the `response`. Prompts and tool lists are in `blobs/`
//! beside the scenario's cases, named by content. Files may be edited by hand: replay uses the key and the response,
//! and a reader ignores unknown members. An old build refuses a newer `cassette:` version. The last line (`end`) shows
//! whether the file is truncated or edited. Lanes recorded until decided have a `stopping.json` beside them.
//!
//! Nothing here knows a provider's dialect, opens a connection or reads a clock.

mod base64;
mod body;
mod canonical;
mod dated;
mod delta;
mod difference;
mod digest;
mod drift;
mod end;
mod exchange;
pub(crate) mod foreign;
mod format;
mod keys;
mod layout;
mod local_times;
mod minted;
mod miss;
mod part_hashes;
mod pool;
mod rekey;
mod reordered;
mod scan;
mod shape;
mod stopping;
mod store;
mod surroundings;
#[cfg(test)]
mod tests;
mod unpack;
mod word_diff;

pub use crate::platform::secrets::Redactor;
pub(crate) use base64::decode as decode_base64;
pub use canonical::Request;
pub(crate) use canonical::stored_body;
pub(crate) use dated::Now;
pub(crate) use digest::hex;
pub use drift::Drift;
pub(crate) use drift::drift;
pub use exchange::{Cassette, Exchange, Header, Outcome};
pub(crate) use exchange::{Chunk, StoredRequest, Take};
pub(crate) use keys::Keys;
#[cfg(not(front_door_only))]
pub use keys::key;
pub use layout::Profile;
pub(crate) use layout::{Layout, Place, is_marked};
pub(crate) use local_times::LocalTimes;
pub(crate) use minted::{Minted, holding, minted, of_now};
pub(crate) use miss::{Explanation, Missed, explain};
pub use pool::Pool;
pub(crate) use pool::Taken;
pub(crate) use rekey::{RekeyProblem, Rekeyed};
pub(crate) use reordered::in_recorded_order;
pub(crate) use scan::{Find, scan};
pub(crate) use shape::{Change, Shape};
pub use stopping::StoppingDesign;
pub(crate) use stopping::{StoppingError, stopping_path};
pub(crate) use store::{CassetteError, recorded_at, start_path};
pub use store::{blobs_dir, path};
pub(crate) use unpack::{LONGEST_BODY, UnpackError, unpack};
