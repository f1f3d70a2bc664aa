//! `ragcheck serve`: serves a flow as a chat service, with the settings of a scenario.

use super::arguments::Serve;
use super::exit::Exit;
use super::output::{self, Problem};
use super::select::{current_folder, from_here, variables};
use crate::plan::Selection;
use crate::serve::{self, Served, Service, ServiceOptions};
use crate::suite::Suite;
use crate::trial::{self, Opened, Variables};
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};

/// Minimum characters of a token.
const SHORTEST_TOKEN: usize = 16;

/// Serves until stopped.
///
/// # Errors
/// If the settings have mistakes, a key is missing, or the address cannot be used.
pub(super) fn run(given: &Serve) -> Result<Exit, Problem> {
    let variables = variables(given.env_file.as_deref())?;
    let token = given.token_env.as_deref().map(|name| token(name, &variables)).transpose()?;
    serve::may_listen(given.listen, token.is_some()).map_err(|why| why.to_string())?;
    let served = served(given, variables)?;
    let options = ServiceOptions {
        state: given.state.clone().unwrap_or_else(|| served.usual_state()),
        session_lifetime: given.session_lifetime,
        most_requests: usize::from(given.max_requests),
        token,
        test_target: given.test_target,
    };
    let model = served.model_name();
    let service = Arc::new(Service::open(served, options).map_err(|why| why.to_string())?);
    started(&mut Builder::new_multi_thread())?.block_on(async {
        let listener = tokio::net::TcpListener::bind(given.listen)
            .await
            .map_err(|why| format!("{} cannot be listened on: {why}; try another --listen", given.listen))?;
        let bound = listener.local_addr().map_err(|why| why.to_string())?;
        output::remark(&format!("serving {} ({model}) on http://{bound}; Ctrl-C stops it", service.flow()));
        serve::serve(service, listener, stopped()).await.map_err(|why| format!("the service stopped: {why}"))?;
        Ok(Exit::Passed)
    })
}

/// The token in a variable.
fn token(name: &str, variables: &Variables) -> Result<String, Problem> {
    let value = variables.get(name).cloned().or_else(|| std::env::var(name).ok()).unwrap_or_default();
    let value = value.trim().to_owned();
    if value.chars().count() < SHORTEST_TOKEN {
        return Err(Problem::Words(format!(
            "--token-env: the variable {name} holds no token of at least {SHORTEST_TOKEN} characters"
        )));
    }
    crate::platform::secrets::declare([(name.to_owned(), value.clone())]);
    Ok(value)
}

/// What to serve: the settings of the scenario named like the flow, else of the first scenario with the flow.
fn served(given: &Serve, variables: Variables) -> Result<Served, Problem> {
    let (paths, _) = from_here(&given.scenario.iter().cloned().collect::<Vec<_>>(), None);
    let suite = Suite::load(&current_folder()?, &paths, None)?;
    // A scenario named like its flow describes the flow's purpose.
    let named = suite.loaded().scenarios.iter().any(|loaded| loaded.scenario.scenario == given.flow);
    let only = if named { vec![format!("{}/*", given.flow)] } else { Vec::new() };
    let selection =
        Selection { only, flow: Some(given.flow.clone()), variant: given.variant.clone(), ..Selection::default() };
    let mut plan = suite.plan_passes(&selection, 0, None)?;
    trial::name_models(&mut plan, &variables);
    let nothing = || Problem::Words(format!("no scenario has the flow `{}`", given.flow));
    let settings = plan.trials.iter().next().ok_or_else(nothing)?;
    let mut loaded = (**suite.loaded()).clone();
    let variant = plan.scenario_of(settings).and_then(|scenario| scenario.variant(&settings.lane.variant));
    let declared = variant.and_then(|variant| variant.settings.clone()).ok_or_else(nothing)?;
    let model = given.model_url.as_ref().map(|url| (declared.model.provider.clone(), url));
    let search = declared.search.as_ref().zip(given.search_url.as_ref());
    let search = search.map(|(search, url)| (search.provider.clone(), url));
    for (provider, url) in model.into_iter().chain(search) {
        if let Some(provider) = loaded.project.providers.get_mut(&provider) {
            provider.base_url.clone_from(url);
        }
    }
    let mut opened = Opened::new(Arc::new(loaded), &plan).map_err(|why| why.to_string())?;
    opened.variables = variables;
    Ok(Served::new(opened, settings.clone()))
}

/// A runtime with timers and sockets.
pub(super) fn started(runtime: &mut Builder) -> Result<Runtime, Problem> {
    Ok(runtime.enable_all().build().map_err(|why| format!("no runtime could be started: {why}"))?)
}

/// Resolves on a signal to stop.
pub(super) async fn stopped() {
    let interrupted = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    #[cfg(unix)]
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let terminated = std::future::pending::<()>();
    tokio::select! {
        () = interrupted => {}
        () = terminated => {}
    }
}
