//! Dialect of Perplexity's chat API, retired on 27 September 2026: decoded for old recordings and compatible gateways.
//!
//! It has the format of Chat Completions with `citations` and `search_results` beside the choices; its streams repeat
//! the whole message in each chunk.

use super::perplexity_agent::HOST;
use super::{Dialect, UNCOMPARED, USUAL, openai_chat as chat, openai_chat_answer as answer};
use crate::cassette::Profile;

/// The dialect's name.
const NAME: &str = "perplexity-sonar";

/// Path of its endpoint, below the base URL.
const ENDPOINT: &str = "/chat/completions";

static PROFILE: Profile = Profile { name: NAME, version: 1, drop: UNCOMPARED, layout: &chat::LAYOUT };

/// The dialect.
pub const DIALECT: &Dialect = &Dialect {
    about: "Perplexity's chat API, retired on 27 September 2026: read for old recordings.",
    profile: &PROFILE,
    searches: true,
    retired: true,
    own_host: Some(HOST),
    endpoint: |host, path| Some(path).filter(|path| host == HOST && *path == ENDPOINT),
    decode_request: |_, body| chat::decode(NAME, body),
    encode: |request, tools| chat::encode(NAME, request, tools),
    decode_response: |body| answer::read(NAME, body),
    ..USUAL
};
