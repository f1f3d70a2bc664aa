//! The server of a review, on loopback.
//!
//! | request | answer |
//! |---|---|
//! | `GET /TOKEN/` | leads to the first conversation without a rating |
//! | `GET /TOKEN/N` | conversation N; 0 says that all are rated |
//! | `POST /TOKEN/N`, `satisfied=yes` or `satisfied=no` | writes the rating, then leads to the next one without a rating |
//!
//! The token is in the address that is printed, so no other page and no other user of this machine can guess it.
//! Requests from other web pages and to other host names are refused all the same (`platform::loopback`).

use crate::platform::lock::lock;
use crate::platform::{files, loopback, secrets};
use crate::report::review::{ReviewPage, html};
use crate::suite::review::{RatingsError, RatingsTable, ReviewItem};
use axum::extract::{Request, State};
use axum::http::header::{self, HOST, ORIGIN};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use std::future::{Future, IntoFuture};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Longest body of a rating, in bytes.
const LONGEST_BODY: usize = 64;

/// A review in progress.
pub(super) struct Session {
    items: Vec<ReviewItem>,
    file: PathBuf,
    then: String,
    /// By item, its rating. Locked while the file is written.
    ratings: Mutex<Vec<Option<bool>>>,
}

/// The session, and the path that leads to it.
struct Served {
    token: String,
    session: Session,
}

/// A status with the reason.
type Refused = (StatusCode, String);

impl Session {
    /// Opens a review with the ratings that its file has. Those whose trial is now in the sample are marked so.
    pub(super) fn open(items: Vec<ReviewItem>, file: PathBuf, then: String) -> Result<Self, RatingsError> {
        let _turn = files::turn();
        let mut table = RatingsTable::read(&file)?;
        let ratings: Vec<Option<bool>> = items.iter().map(|item| table.rating(&item.trial)).collect();
        let mut marked = false;
        for (item, rating) in items.iter().zip(&ratings).filter(|(item, _)| item.sampled) {
            if let Some(satisfied) = rating {
                marked |= table.rate(&item.trial, *satisfied, true)?;
            }
        }
        if marked {
            table.write()?;
        }
        Ok(Self { items, file, then, ratings: Mutex::new(ratings) })
    }

    /// The first item without a rating after `place`, from the beginning again at the end; as a number from 1, or 0.
    fn next(&self, place: usize) -> usize {
        let ratings = lock(&self.ratings);
        let free = |place: &usize| ratings[*place].is_none();
        (place..ratings.len()).chain(0..place).find(free).map_or(0, |place| place + 1)
    }

    /// Writes a rating. The file is read again first: people, and other reviews, may have changed it meanwhile.
    fn rate(&self, place: usize, satisfied: bool) -> Result<(), RatingsError> {
        let _turn = files::turn();
        let mut ratings = lock(&self.ratings);
        let item = &self.items[place];
        let mut table = RatingsTable::read(&self.file)?;
        if table.rate(&item.trial, satisfied, item.sampled)? {
            table.write()?;
        }
        ratings[place] = Some(satisfied);
        Ok(())
    }

    fn page(&self, number: usize) -> std::io::Result<String> {
        let ratings = lock(&self.ratings);
        let place = number.checked_sub(1);
        let file = self.file.file_name().unwrap_or_default().to_string_lossy();
        html(&ReviewPage {
            number,
            of: self.items.len(),
            rated: ratings.iter().flatten().count(),
            satisfied: place.and_then(|place| ratings[place]),
            conversations: place.map_or(&[], |place| &self.items[place].conversations),
            file: &file,
            then: &self.then,
        })
    }
}

/// Listens on loopback; returns the address with the token, and the server, which runs until it is dropped.
pub(super) async fn open(
    session: Session,
    port: u16,
) -> std::io::Result<(String, impl Future<Output = std::io::Result<()>>)> {
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    let token = hex::encode(bytes);
    let address = format!("http://{}/{token}/", listener.local_addr()?);
    let routes = axum::Router::new().fallback(answer).with_state(Arc::new(Served { token, session }));
    Ok((address, axum::serve(listener, routes).into_future()))
}

async fn answer(State(served): State<Arc<Served>>, request: Request) -> Response {
    let answered = served.answer(request).await;
    let mut response = answered.unwrap_or_else(|(status, why)| (status, format!("{why}\n")).into_response());
    let headers = [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::CONTENT_SECURITY_POLICY, "frame-ancestors 'none'"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, header::HeaderValue::from_static(value));
    }
    response
}

impl Served {
    async fn answer(&self, request: Request) -> Result<Response, Refused> {
        let (head, body) = request.into_parts();
        let header = |name: HeaderName| head.headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        loopback::admit_own_page(header(HOST), header(ORIGIN))
            .map_err(|why| (StatusCode::FORBIDDEN, why.to_string()))?;
        let unknown =
            || (StatusCode::NOT_FOUND, "nothing is here: open the address that ragcheck review printed".to_owned());
        let path: Vec<&str> = head.uri.path().trim_start_matches('/').split('/').collect();
        let (token, rest) = path.split_first().ok_or_else(unknown)?;
        if *token != self.token {
            return Err(unknown());
        }
        let items = self.session.items.len();
        let number = match rest {
            [""] => return Ok(see(&self.token, self.session.next(0))),
            [number] => number.parse().ok().filter(|number| *number <= items).ok_or_else(unknown)?,
            _ => return Err(unknown()),
        };
        match (head.method.as_str(), number) {
            ("GET", 0) if self.session.next(0) != 0 => Ok(see(&self.token, self.session.next(0))),
            ("GET", _) => {
                let page =
                    self.session.page(number).map_err(|why| (StatusCode::INTERNAL_SERVER_ERROR, why.to_string()))?;
                let kind = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
                Ok((kind, secrets::clean(&page).into_owned()).into_response())
            }
            ("POST", 1..) => {
                let body = axum::body::to_bytes(body, LONGEST_BODY).await.unwrap_or_default();
                let satisfied = match &body[..] {
                    b"satisfied=yes" => true,
                    b"satisfied=no" => false,
                    _ => return Err((StatusCode::BAD_REQUEST, "send satisfied=yes or satisfied=no".to_owned())),
                };
                let written = self.session.rate(number - 1, satisfied);
                written
                    .map_err(|why| (StatusCode::INTERNAL_SERVER_ERROR, format!("the rating was not written: {why}")))?;
                Ok(see(&self.token, self.session.next(number)))
            }
            _ => Err((StatusCode::METHOD_NOT_ALLOWED, "served: GET, and POST of a rating".to_owned())),
        }
    }
}

/// Leads to another page.
fn see(token: &str, number: usize) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, format!("/{token}/{number}"))]).into_response()
}
