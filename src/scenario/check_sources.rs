//! Checks that the sources in expectations are documents and passages that the agent can find.
//!
//! Documents are identified by file name. The passages of a folder are read only when an expectation names one, and
//! only once.

use super::Scenario;
use super::check::Surroundings;
use super::check_expect::Expectations;
use super::diagnostic::{At, Mistake, did_you_mean};
use crate::platform::files;
use crate::settings::catalogue::PassageNames;
use crate::trace::Role;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::OnceLock;

/// Prefixes of ids that are not in a folder: pages and learned entries.
const ELSEWHERE: [&str; 4] = ["http://", "https://", "learned", "result-"];

/// Citable sources of a scenario's knowledge bases, by `kb_id`.
pub(super) struct Citable {
    bases: BTreeMap<String, Base>,
}

/// Citable sources of one folder.
struct Base {
    folder: PathBuf,
    documents: BTreeSet<String>,
    names: PassageNames,
    passages: OnceLock<Option<BTreeSet<String>>>,
}

impl Base {
    /// The passages; `None` where the folder cannot be read.
    fn passages(&self) -> Option<&BTreeSet<String>> {
        self.passages.get_or_init(|| (self.names.passages)(&self.folder)).as_ref()
    }
}

/// Whether an id names the document or one of its passages.
fn is_of(id: &str, document: &str) -> bool {
    id.strip_prefix(document).is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
}

impl Citable {
    /// Citable sources of a scenario; `None` where a base is not a folder of the project, or cannot be read.
    pub(super) fn of(scenario: &Scenario, around: Surroundings<'_>) -> Option<Self> {
        let names = around.catalogues.passages?;
        let mut bases = BTreeMap::new();
        for (id, name) in scenario.knowledge.names() {
            let settings = around.project.knowledge_bases.get(name);
            if settings.is_some_and(|settings| settings.server.is_some()) {
                return None;
            }
            let folder = settings.and_then(|settings| settings.folder.as_ref()).unwrap_or(name);
            let folder = around.root.join(&around.project.knowledge).join(folder);
            let entries = files::entries(&folder).ok()?;
            let found = entries.iter().filter(|entry| !entry.is_folder);
            let documents = found.filter_map(|entry| (names.document)(&entry.path)).collect();
            bases.insert(id.clone(), Base { folder, documents, names, passages: OnceLock::new() });
        }
        (!bases.is_empty()).then_some(Self { bases })
    }

    /// The bases that users of this tenant search: all if there is no such tenant.
    fn bases(&self, tenant: Option<&str>) -> impl Iterator<Item = &Base> {
        let own = tenant.filter(|tenant| self.bases.contains_key(*tenant));
        self.bases.iter().filter(move |(id, _)| own.is_none_or(|own| own == *id)).map(|(_, base)| base)
    }

    /// Reason why no source has this `id`, and what to write instead.
    fn missing(&self, id: &str, tenant: Option<&str>) -> Option<(String, String)> {
        let holding: Vec<&Base> =
            self.bases(tenant).filter(|base| base.documents.iter().any(|document| is_of(id, document))).collect();
        if holding.is_empty() {
            let known: BTreeSet<&str> =
                self.bases(tenant).flat_map(|base| base.documents.iter().map(String::as_str)).collect();
            let document = id.rsplit_once('#').map_or(id, |(document, _)| document);
            return Some((format!("there is no document `{id}`"), did_you_mean(document, known)));
        }
        if holding.iter().any(|base| base.documents.contains(id)) {
            return None;
        }
        let read: Option<Vec<&BTreeSet<String>>> = holding.iter().map(|base| base.passages()).collect();
        let read = read?;
        let of_document = |passage: &&str| {
            let mut documents = holding.iter().flat_map(|base| &base.documents);
            documents.any(|document| is_of(id, document) && is_of(passage, document))
        };
        let known: BTreeSet<&str> = read.into_iter().flatten().map(String::as_str).filter(of_document).collect();
        if known.iter().any(|passage| is_of(passage, id)) {
            return None;
        }
        Some((format!("there is no passage `{id}`"), did_you_mean(id, known)))
    }
}

impl Expectations<'_> {
    /// Reports ids that match no document, passage, page or learned entry.
    pub(super) fn sources(&mut self, list: &[String], at: At<'_>) {
        let Some(citable) = self.citable else { return };
        let outside = self.has_role(Role::External) || self.has_role(Role::Index);
        let mut unknown = Vec::new();
        for (index, id) in list.iter().enumerate().filter(|(_, id)| !id.trim().is_empty()) {
            let at = at.index(index);
            if ELSEWHERE.iter().any(|begin| id.starts_with(begin)) {
                if !outside {
                    let message = format!("no tool of this flow finds `{id}`");
                    let mistake = Mistake::at(at, "unknown-document", message);
                    unknown.push(mistake.label("it searches documents alone"));
                }
            } else if let Some((message, label)) = citable.missing(id, self.tenant.as_deref()) {
                unknown.push(Mistake::at(at, "unknown-document", message).label(label));
            }
        }
        self.mistakes.extend(unknown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(folder: &std::path::Path) -> Base {
        let names = crate::catalogues().passages.expect("names");
        let entries = files::entries(folder).expect("a folder");
        let documents = entries.iter().filter_map(|entry| (names.document)(&entry.path)).collect();
        Base { folder: folder.to_owned(), documents, names, passages: OnceLock::new() }
    }

    #[test]
    fn a_document_is_called_as_its_passages_are_and_a_passage_must_be_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
        write("care.md", "One.\n\n## Two\nThree.\n");
        write("care.csv", "id,text\n7,Seven.\na#b,Eight.\n");
        write("care.pdf", "not read");
        let citable = Citable { bases: BTreeMap::from([("default_kb".to_owned(), base(folder.path()))]) };
        for id in ["care", "care#2", "care.csv", "care.csv#7", "care.csv#a#b", "care.csv#a"] {
            assert_eq!(citable.missing(id, None), None, "{id}");
        }
        for id in ["care.md", "care#3", "care#0", "care.pdf", "care.csv#8", "car"] {
            assert!(citable.missing(id, None).is_some(), "{id} is no source");
        }
        assert_eq!(citable.missing("care#3", None).expect("told").0, "there is no passage `care#3`");
    }

    #[test]
    fn users_of_a_tenant_find_its_documents_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        for (tenant, file) in [("north", "ice.md"), ("south", "sun.md")] {
            std::fs::create_dir(folder.path().join(tenant)).expect("made");
            std::fs::write(folder.path().join(tenant).join(file), "One.").expect("written");
        }
        let bases = ["north", "south"].map(|tenant| (tenant.to_owned(), base(&folder.path().join(tenant))));
        let citable = Citable { bases: BTreeMap::from(bases) };
        assert_eq!(citable.missing("ice#1", Some("north")), None);
        assert!(citable.missing("ice#1", Some("south")).is_some());
        assert_eq!(citable.missing("sun", Some("nobody")), None, "an unknown tenant is another mistake");
    }
}
