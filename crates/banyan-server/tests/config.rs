//! Where settings come from.

use std::path::PathBuf;
use std::time::Duration;

use banyan_server::config::{Config, Source, Sources};
use banyan_server::logs::Format;

fn variables(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    std::fs::write(&path, text).unwrap();
    (dir, path)
}

fn origin(config: &Config, key: &str) -> (String, Source) {
    let origin = config.origins.iter().find(|origin| origin.key == key).unwrap();
    (origin.value.clone(), origin.source.clone())
}

fn refusal(sources: &Sources) -> String {
    Config::load(sources).unwrap_err().to_string()
}

#[test]
fn without_anything_said_there_are_defaults() {
    let config = Config::load(&Sources::default()).unwrap();
    assert_eq!(config.settings.listen.to_string(), "127.0.0.1:7420");
    assert_eq!((config.data.clone(), config.file.clone()), (None, None));
    assert!(config.origins.iter().all(|origin| origin.source == Source::Default));
    assert_eq!(origin(&config, "limits.body_bytes").0, "64MiB");
    assert_eq!(origin(&config, "drain").0, "8s");
}

#[test]
fn the_file_then_the_environment_then_flags() {
    let (_dir, path) = file(
        "listen = \"127.0.0.1:1\"\ndrain = \"1s\"\ncors_origins = [\"https://a.example\", \"https://b.example\"]\n\
         [limits]\nbody_bytes = \"1MiB\"\nconnections = 5\nrequests_per_second = 7\n[log]\nformat = \"json\"\n",
    );
    let sources = Sources::from_variables(variables(&[
        ("BANYAN_CONFIG", path.to_str().unwrap()),
        ("BANYAN_DRAIN", "2s"),
        ("BANYAN_LIMITS_BODY_BYTES", "2MiB"),
        ("BANYAN_DATA", "/somewhere"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318"),
    ]))
    .flag("limits.body_bytes", "--set", Some("3MiB"))
    .flag("listen", "--listen", None::<&str>);
    let config = Config::load(&sources).unwrap();
    let from_file = Source::File(path.clone());
    assert_eq!(origin(&config, "listen"), ("127.0.0.1:1".to_owned(), from_file.clone()));
    assert_eq!(origin(&config, "limits.connections"), ("5".to_owned(), from_file));
    assert_eq!(origin(&config, "drain"), ("2s".to_owned(), Source::Environment("BANYAN_DRAIN".to_owned())));
    assert_eq!(origin(&config, "limits.body_bytes"), ("3MiB".to_owned(), Source::Flag("--set".to_owned())));
    assert_eq!(config.file, Some(path));
    assert_eq!(config.data, Some(PathBuf::from("/somewhere")));
    assert_eq!(config.settings.drain, Duration::from_secs(2));
    assert_eq!(config.settings.limits.body_bytes, 3 << 20);
    assert_eq!(config.settings.limits.requests_per_second, Some(7));
    assert_eq!(config.settings.cors_origins, ["https://a.example", "https://b.example"]);
    assert_eq!(config.settings.traces.unwrap().endpoint, "http://127.0.0.1:4318");
    assert_eq!(config.logs.format, Format::Json);
}

#[test]
fn the_own_variable_wins_over_the_one_of_others() {
    let environment = variables(&[
        ("BANYAN_TRACES_ENDPOINT", "http://ours:1"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://theirs:1"),
    ]);
    let config = Config::load(&Sources::from_variables(environment)).unwrap();
    assert_eq!(
        origin(&config, "traces.endpoint"),
        ("http://ours:1".to_owned(), Source::Environment("BANYAN_TRACES_ENDPOINT".to_owned()))
    );
}

#[test]
fn the_usual_file_is_read_when_it_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let environment = variables(&[("XDG_CONFIG_HOME", dir.path().to_str().unwrap())]);
    let sources = Sources::from_variables(environment);
    assert_eq!(Config::load(&sources).unwrap().file, None);
    if cfg!(any(windows, target_os = "macos")) {
        return;
    }
    let path = dir.path().join("banyan/config.toml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "drain = '3s'").unwrap();
    let config = Config::load(&sources).unwrap();
    assert_eq!((config.file, config.settings.drain), (Some(path), Duration::from_secs(3)));
}

#[test]
fn paths_in_the_file_start_beside_it() {
    let (dir, path) = file("[tls]\ncertificate = 'cert.pem'\nkey = '/etc/key.pem'\n");
    let config = Config::load(&Sources::default().file(Some(path))).unwrap();
    let tls = config.settings.tls.unwrap();
    assert_eq!((tls.certificate, tls.key), (dir.path().join("cert.pem"), PathBuf::from("/etc/key.pem")));
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let (_dir, path) = file("[limits]\nbody = '1MiB'\n");
    let said = refusal(&Sources::default().file(Some(path.clone())));
    assert!(said.contains("`limits.body`") && said.contains(path.to_str().unwrap()), "{said}");

    let (_dir, path) = file("drain = 30\n");
    let said = refusal(&Sources::default().file(Some(path.clone())));
    assert!(said.contains("`drain`") && said.contains("30s") && said.contains(path.to_str().unwrap()), "{said}");

    let (_dir, path) = file("drain = \n");
    assert!(refusal(&Sources::default().file(Some(path))).contains("is not TOML"));

    assert!(
        refusal(&Sources::default().file(Some("/nowhere/config.toml".into()))).contains("/nowhere/config.toml")
    );

    let environment = variables(&[("BANYAN_LISTEN", "everywhere")]);
    let said = refusal(&Sources::from_variables(environment));
    assert!(said.contains("$BANYAN_LISTEN") && said.contains("`everywhere`"), "{said}");

    let said = refusal(&Sources::default().flag("tls.key", "--tls-key", Some("/k.pem")));
    assert!(said.contains("--tls-key") && said.contains("`tls.certificate`"), "{said}");
}

#[test]
fn variables_that_mean_nothing_are_pointed_out() {
    let environment = variables(&[("BANYAN_LISTN", "127.0.0.1:1"), ("BANYAN_URL", "http://x"), ("OTHER", "1")]);
    let config = Config::load(&Sources::from_variables(environment)).unwrap();
    assert_eq!(config.unknown_variables, ["BANYAN_LISTN"]);
}

#[test]
fn what_would_never_be_heeded_is_refused() {
    for (name, value) in [
        ("BANYAN_LOG_LEVEL", "loud"),
        ("BANYAN_LOG_LEVEL", "info,information"),
        ("BANYAN_HOSTS", "box.lan:80"),
        ("BANYAN_HOSTS", "https://box.lan"),
        ("BANYAN_HOSTS", "box.lan, [::1]"),
    ] {
        let text = refusal(&Sources::from_variables(variables(&[(name, value)])));
        assert!(text.contains(value.split(',').next_back().unwrap().trim()), "{text}");
    }
    for (name, value) in
        [("BANYAN_LOG_LEVEL", "INFO,banyan::requests=debug"), ("BANYAN_HOSTS", "Box.lan,::1,10.0.0.1")]
    {
        Config::load(&Sources::from_variables(variables(&[(name, value)]))).unwrap();
    }
}
