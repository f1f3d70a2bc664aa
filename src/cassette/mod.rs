//! (room under construction)
mod yaml;
