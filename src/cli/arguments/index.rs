//! Arguments of the subcommands for knowledge bases and keyword indexes.

use super::Printed;
use crate::settings::ServerAddress;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct Knowledge {
    #[command(subcommand)]
    pub command: KnowledgeCommand,
    /// How the result is printed.
    #[arg(long, global = true, value_enum, default_value_t = Printed::Human)]
    pub format: Printed,
}

#[derive(Debug, Clone, Subcommand)]
pub(in crate::cli) enum KnowledgeCommand {
    /// Print what a query finds.
    Search {
        /// The knowledge base: a folder below the project's knowledge folder, or one that the project declares.
        base: String,
        /// The query.
        query: String,
        /// How many passages at most.
        #[arg(long, default_value_t = 5)]
        top_k: usize,
    },
    /// Read all documents, build the index, and store its list of passages for `diff`; of a base with embeddings, ask for the
    /// vectors of what is new.
    Index {
        /// The knowledge base.
        base: String,
    },
    /// Write a base's new and changed passages with their vectors to a server, and remove there what is gone.
    Push {
        /// The knowledge base, declared with `embeddings`.
        base: String,
        /// The collection, created where there is none; by default the base's own `server`.
        #[arg(long, value_name = "chroma://HOST:PORT/COLLECTION")]
        to: Option<ServerAddress>,
    },
    /// Print each document with its format, and how many passages and characters it has.
    Stats {
        /// The knowledge base.
        base: String,
    },
    /// Print which passages were added, changed or removed since the last `index`.
    Diff {
        /// The knowledge base.
        base: String,
    },
}

#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct Keywords {
    #[command(subcommand)]
    pub command: KeywordsCommand,
    /// How the result is printed.
    #[arg(long, global = true, value_enum, default_value_t = Printed::Human)]
    pub format: Printed,
}

#[derive(Debug, Clone, Subcommand)]
pub(in crate::cli) enum KeywordsCommand {
    /// Print every keyword, how often it was used, and where it came from.
    List {
        /// The index's file; by default the project's `keyword_index`.
        index: Option<PathBuf>,
    },
    /// Print one keyword with every question, query and answer that it came from.
    Show {
        /// The keyword; case, spaces and a plural do not matter.
        keyword: String,
        /// The index's file; by default the project's `keyword_index`.
        index: Option<PathBuf>,
    },
    /// Print everything as JSON.
    Export {
        /// The index's file; by default the project's `keyword_index`.
        index: Option<PathBuf>,
    },
    /// Remove keywords that meet every condition given; without one, what the project's `keyword_index` forgets.
    Prune {
        /// The index's file; by default the project's `keyword_index`.
        index: Option<PathBuf>,
        /// Not indexed or used for at least this long: `720h`, `30d`.
        #[arg(long, value_name = "TIME")]
        idle: Option<String>,
        /// Used fewer times than this.
        #[arg(long, value_name = "N")]
        fewer_uses_than: Option<u64>,
    },
}
