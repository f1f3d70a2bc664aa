//! What the benches and tests of this repository use beside the front door. No promise is made about any of it: it
//! changes without notice.
//!
//! `.ci/run` compiles the library once with `--cfg front_door_only`, which leaves this module out: what the compiler
//! then calls unused has no caller in the program.
#![allow(missing_docs, reason = "documented where they are declared")]

/// See `crate::catalogues`.
pub fn catalogues() -> crate::settings::catalogue::Catalogues {
    crate::catalogues()
}

pub mod cassette {
    pub use crate::cassette::{
        Cassette, Drift, Exchange, Header, Outcome, Pool, Redactor, Request, StoppingDesign, blobs_dir, key, path,
    };
}

pub mod cli {
    pub use crate::cli::{check, list, schema};
}

pub mod flow {
    pub use crate::flow::{FLOWS, by_name};
    pub mod tools {
        pub use crate::flow::tools::guard;
    }
    pub mod tool_rag {
        pub mod tools {
            pub use crate::flow::tool_rag::tools::index_keywords;
        }
    }
}

pub mod gate {
    pub use crate::gate::{Evaluation, Evaluator, TrialResult, Verdict, evaluate};
}

pub mod history {
    pub use crate::history::{Point, append, doubtful, load};
}

pub mod knowledge {
    pub use crate::knowledge::{
        BATCH, Corpus, DEFAULT_KB, Declared, Embedded, ExternalRecord, Found, KeywordIndex, KnowledgeBase,
        KnowledgeSource, KnowledgeSources, Passage, Search, SearchError, StoredPassage, Vectors, embedded_text,
        prepare, qdrant_bodies, store, tokenize, vector_file,
    };
}

pub mod metric {
    pub use crate::metric::catalogue::members;
    pub use crate::metric::{generic, grounding};
    pub use crate::trace::spans::published as span_attributes;
}

pub mod plan {
    pub use crate::plan::{Plan, PlannedCase, PlannedTrial, Selection, build, trial_seed};
}

pub mod platform {
    pub mod clock {
        pub use crate::platform::clock::{BoxFuture, Clock, PausableClock, RealClock, VirtualClock, block_on};
    }
}

pub mod provider {
    pub use crate::provider::{
        Access, ChatClient, ChatModel, Embedder, ErrorKind, Failure, ProviderError, RetryPolicy, chat, chat_client,
        perplexity_agent,
    };
    pub mod wire {
        pub use crate::provider::wire::answer::{Part, Piece, Said};
        pub use crate::provider::wire::{
            Dialect, WireError, anthropic_messages, by_name, dialects, embeddings, error_kind, error_message, gemini,
            openai_chat, openai_responses, perplexity_agent, perplexity_sonar,
        };
    }
}

pub mod report {
    pub use crate::report::{Beside, Pages, TimelineBuilder, View, html};
}

pub mod scenario {
    pub use crate::scenario::{Case, Loaded, SequenceStep, expect, load};
}

pub mod settings {
    pub use crate::settings::{Auth, KnowledgeBaseSettings, PaceLimits};
}

pub mod simulator {
    pub use crate::simulator::{Behaviour, BehaviourError, load};
}

pub mod suite {
    pub mod evaluation {
        pub use crate::suite::evaluation::{ExaminedTrace, RunEvaluator, score};
    }
    pub mod import {
        pub use crate::suite::import::{Format, Imported, messages};
    }
    pub mod mutation {
        pub use crate::suite::mutation::{Noticed, Sound};
    }
}

pub mod trace {
    pub use crate::trace::{
        Arm, Lane, Member, PLAN, TRACES, ToolOutcome, Trace, TrialEnd, TurnOutcome, What, seal, write_trace,
    };
}

pub mod transport {
    pub use crate::transport::{
        Budget, HttpRequest, HttpResponse, LimitTransport, LiveTransport, Pace, Profile, RecordTransport,
        ReplayTransport, SIMULATOR_HEADER, Service, Target, Transport, TransportError, sse,
    };
}

pub mod trial {
    pub use crate::trial::{Opened, record_with, replay};
    pub mod proxy {
        pub use crate::trial::proxy::Proxy;
    }
}
