//! The gateway: downloads files that answers of `managed-rag` link to, with the service's token, which is never
//! exposed.
//!
//! A link is `/gateway/download/RESOURCE/f/FIELD/FILE`. Only the file is returned: headers of the service are not
//! passed on, a page is never shown as one of ours, and errors contain neither the service's message nor its address.

use super::api::ApiError;
use super::service::Service;
use crate::platform::secrets;
use crate::provider::{Download, ProviderError};
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use percent_encoding::percent_decode_str;
use std::sync::Arc;

/// Path prefix of links.
pub(super) const PREFIX: &str = "/gateway/download/";
/// The only type of field that holds a file.
const FILE: &str = "f";
/// Maximum number of characters of a link's segment.
const LONGEST_PART: usize = 300;

/// A file, by its link.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Link {
    resource: String,
    field: String,
    filename: String,
}

impl Link {
    /// Parses a path; `None` for a path that no answer links to. Only the names of the resource and the field are handed
    /// on: behind a server that decodes paths, one with a slash or of only dots would lead to another resource or box.
    fn of(path: &str) -> Option<Self> {
        let parts: Vec<String> = path.strip_prefix(PREFIX)?.split('/').map(part).collect::<Option<_>>()?;
        let [resource, kind, field, filename] = <[String; 4]>::try_from(parts).ok()?;
        let is_plain = |name: &str| !name.contains(['/', '\\', '%']);
        (kind == FILE && is_plain(&resource) && is_plain(&field)).then_some(Self { resource, field, filename })
    }
}

fn part(text: &str) -> Option<String> {
    let decoded = percent_decode_str(text).decode_utf8().ok()?;
    let plain = !decoded.chars().any(char::is_control) && decoded.chars().nth(LONGEST_PART).is_none();
    let leads_up = decoded.chars().all(|letter| letter == '.');
    (plain && !leads_up).then(|| decoded.into_owned())
}

/// Serves a file.
pub(super) async fn download(State(service): State<Arc<Service>>, uri: Uri) -> Result<Response, ApiError> {
    let link = Link::of(uri.path()).ok_or_else(unknown)?;
    Ok(shown(&link, &service.download(&link.resource, &link.field).await?))
}

fn unknown() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "unknown_file", "No answer links to such a file.")
}

/// Error of a download, without the service's message and address.
pub(super) fn refused(error: &ProviderError) -> ApiError {
    match error {
        ProviderError::Failed { status: Some(404), .. } => unknown(),
        ProviderError::Failed { .. } | ProviderError::Miss(_) => {
            let message = "The document cannot be fetched at the moment. Please try again later.";
            ApiError::new(StatusCode::BAD_GATEWAY, "document_unavailable", message)
        }
    }
}

/// A PDF opens at the page that the link names. Any other file is saved instead of shown, because a foreign page would
/// have the rights of ours.
fn shown(link: &Link, file: &Download) -> Response {
    let kind = file.content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_pdf = kind == "application/pdf";
    let kind = if is_pdf { kind } else { "application/octet-stream".to_owned() };
    let disposition = if is_pdf { "inline" } else { "attachment" };
    let name: String = link
        .filename
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || "._- ".contains(letter) { letter } else { '_' })
        .collect();
    let headers: [(HeaderName, String); 4] = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_DISPOSITION, format!("{disposition}; filename=\"{name}\"")),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (header::CACHE_CONTROL, "private, no-store".to_owned()),
    ];
    (headers, secrets::clean_text_bytes(&file.bytes).into_owned()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_a_resource_a_field_and_a_file_and_no_part_leads_elsewhere() {
        let link = Link::of("/gateway/download/r-1/f/manual/error%20codes%2F2.pdf").expect("a link");
        assert_eq!(
            (link.resource.as_str(), link.field.as_str(), link.filename.as_str()),
            ("r-1", "manual", "error codes/2.pdf")
        );
        for wrong in [
            "/gateway/download/",
            "/gateway/download/r/f/manual",
            "/gateway/download/r/f/manual/a/b",
            "/gateway/download/r/t/manual/a.pdf",
            "/gateway/download/../f/manual/a.pdf",
            "/gateway/download/..%2F..%2Fother%2Fresource%2Fr/f/manual/a.pdf",
            "/gateway/download/r/f/..%5Cmanual/a.pdf",
            "/gateway/download/..%252Fr/f/manual/a.pdf",
            "/gateway/download/%2e%2E/f/manual/a.pdf",
            "/gateway/download/r/f/%2e/a.pdf",
            "/gateway/download//f/manual/a.pdf",
            "/gateway/download/r%0d%0ax/f/manual/a.pdf",
            "/gateway/download/%ff/f/manual/a.pdf",
            "/api/download/r/f/manual/a.pdf",
        ] {
            assert_eq!(Link::of(wrong), None, "{wrong}");
        }
        assert_eq!(Link::of(&format!("/gateway/download/{}/f/m/a.pdf", "r".repeat(LONGEST_PART + 1))), None);
    }

    #[test]
    fn a_page_of_somebody_elses_is_saved_and_a_pdf_is_opened() {
        let link = Link { resource: "r".into(), field: "f".into(), filename: "a\"\r\nb.pdf".into() };
        let told = |content_type: &str| {
            let file = Download { content_type: content_type.into(), bytes: "x".into() };
            let response = shown(&link, &file);
            let of = |name: HeaderName| response.headers()[name].to_str().expect("text").to_owned();
            (of(header::CONTENT_TYPE), of(header::CONTENT_DISPOSITION))
        };
        let own = ("application/pdf".to_owned(), "inline; filename=\"a___b.pdf\"".to_owned());
        assert_eq!(told("Application/PDF; x=1"), own);
        let saved = ("application/octet-stream".to_owned(), "attachment; filename=\"a___b.pdf\"".to_owned());
        assert_eq!(told("text/html"), saved);
        assert_eq!(told("image/svg+xml"), saved);
    }
}
