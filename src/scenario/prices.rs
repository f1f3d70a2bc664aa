//! Prices as written: in the project file and in its price file.

use super::Project;
use super::diagnostic::{At, Diagnostic, Mistake, diagnose};
use super::files::shown;
use super::project::PriceFile;
use super::read_files::read;
use super::repair::parse;
use crate::settings::price::Prices;
use std::path::Path;

/// Adds the prices of the price file to the project, whose own prices win; also returns the number of files read.
pub(super) fn with_price_file(root: &Path, mut project: Project, out: &mut Vec<Diagnostic>) -> (Project, usize) {
    let Some(name) = &project.price_file else { return (project, 0) };
    let path = root.join(name);
    let file = shown(root, &path);
    match read(&path, &file) {
        Err(diagnostic) => {
            out.push((*diagnostic).with_help("`price_file` in ragcheck.yaml names it, relative to that file"));
        }
        Ok(text) => {
            if let Some(parsed) = parse::<PriceFile>(&text, &file, "", &[], out) {
                let mistakes = parsed.own(check(&parsed.value.prices, At::ROOT.key("prices")));
                out.extend(diagnose(mistakes, &file, &text));
                for (model, price) in parsed.value.prices {
                    project.prices.entry(model).or_insert(price);
                }
            }
        }
    }
    (project, 1)
}

pub(super) fn check(prices: &Prices, at: At<'_>) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    for (name, price) in prices {
        let at = at.key(name);
        if !name.contains('/') {
            let mistake = Mistake::at(at, "bad-name", "the key of a price is `provider/model`").on_key();
            mistakes.push(mistake.help("the provider as ragcheck.yaml calls it, the model as scenarios call it"));
        }
        for (key, figure) in price.figures() {
            if figure.is_some_and(|figure| !figure.is_finite() || figure < 0.0) {
                mistakes.push(Mistake::at(at.key(key), "bad-value", "a price is 0 or more"));
            }
        }
    }
    mistakes
}
