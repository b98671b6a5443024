//! What a browser must not be talked into, and what configuration lets in.

use crate::outside::{UNSEEN, chromium, skip};
use crate::wire::{Answer, Server, settings};
use banyan_server::{KeyStore, NewKey, Settings};

async fn with_host(server: &Server, host: &str) -> Answer {
    server.send(format!("GET /readyz HTTP/1.1\r\n{host}\r\n")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn only_names_of_loopback_are_answered_while_there_is_no_key() {
    let server = Server::start(Settings { hosts: vec!["box.lan".to_owned()], ..settings() }).await;
    let port = server.address().port();
    for host in ["localhost", "127.0.0.1", "[::1]", "LOCALHOST", "box.lan", "Box.LAN", "a.localhost"] {
        assert_eq!(with_host(&server, &format!("host: {host}:{port}\r\n")).await.status, 200, "{host}");
    }
    for host in ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "192.168.0.1", ""] {
        let answer = with_host(&server, &format!("host: {host}\r\n")).await;
        assert_eq!((answer.status, answer.code().as_str()), (421, "http/wrong_host"), "{host}");
    }
    assert_eq!(with_host(&server, "").await.status, 400);
    assert_eq!(with_host(&server, "host: localhost\r\nhost: evil.example\r\n").await.status, 400);
    let absolute = "GET http://evil.example/readyz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    assert_eq!(server.send(absolute).await.status, 400);
    let absolute = "GET http://localhost/readyz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    assert_eq!(server.send(absolute).await.status, 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_stands_in_for_the_name() {
    let dir = tempfile::tempdir().unwrap();
    KeyStore::open(dir.path()).create(NewKey { name: "one".to_owned(), ..NewKey::default() }, 0).unwrap();
    let server = Server::start_in(dir, settings()).await;
    assert_eq!(with_host(&server, "host: sessions.example\r\n").await.status, 200);
    for none in ["", "host: a b\r\n", "host: somebody@sessions.example\r\n", "host: sessions.example:port\r\n"] {
        assert_eq!(with_host(&server, none).await.status, 400, "{none}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_other_origins_are_refused() {
    let server = Server::start(settings()).await;
    let list = async |headers: &str| server.ask("POST", "/v1/call/session::list", headers, "{}").await;
    for refused in [
        "origin: https://evil.example\r\n",
        "origin: http://localhost:3000\r\n",
        "origin: null\r\n",
        "origin: \r\n",
        "origin: http://\r\n",
        "sec-fetch-site: cross-site\r\nsec-fetch-mode: no-cors\r\nsec-fetch-dest: image\r\n",
        "sec-fetch-site: same-site\r\nsec-fetch-mode: no-cors\r\nsec-fetch-dest: script\r\n",
        "sec-fetch-site: cross-site\r\nsec-fetch-mode: navigate\r\nsec-fetch-dest: document\r\n",
    ] {
        let answer = list(refused).await;
        assert_eq!((answer.status, answer.code().as_str()), (403, "auth/forbidden"), "{refused}");
        assert_eq!(answer.header("access-control-allow-origin"), None);
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    }
    for fine in ["origin: http://localhost\r\n", "sec-fetch-site: same-origin\r\n", "sec-fetch-site: none\r\n", ""]
    {
        let answer = list(fine).await;
        assert_eq!(answer.status, 200, "{fine}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"));
    }
    // A link on another site may be followed; a frame may not be filled.
    let navigate = |dest: &str| {
        format!("sec-fetch-site: cross-site\r\nsec-fetch-mode: navigate\r\nsec-fetch-dest: {dest}\r\n")
    };
    assert_eq!(server.get("/readyz", &navigate("document")).await.status, 200);
    assert_eq!(server.get("/readyz", &navigate("iframe")).await.status, 403);
    // Nobody was let in, so nobody is told how to come in.
    let preflight = "origin: https://evil.example\r\naccess-control-request-method: POST\r\n";
    assert_eq!(server.ask("OPTIONS", "/v1/call/session::list", preflight, "").await.status, 403);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn origins_are_let_in_by_configuration() {
    let app = "https://app.example";
    let server = Server::start(Settings { cors_origins: vec![app.to_owned()], ..settings() }).await;
    let asked = format!(
        "origin: {app}\r\naccess-control-request-method: POST\r\naccess-control-request-headers: authorization, content-type\r\n"
    );
    let preflight = server.ask("OPTIONS", "/v1/call/session::list", &asked, "").await;
    assert_eq!((preflight.status, preflight.header("access-control-allow-origin")), (204, Some(app)));
    for header in ["authorization", "content-type", "last-event-id", "traceparent"] {
        assert!(preflight.header("access-control-allow-headers").unwrap().contains(header), "{header}");
    }
    for method in ["get", "post", "put", "patch", "delete"] {
        assert!(preflight.header("access-control-allow-methods").unwrap().contains(method), "{method}");
    }
    // Answers and refusals alike can be read by the page.
    for (path, body, status) in [
        ("/v1/call/session::list", "{}", 200),
        ("/v1/call/session::list", "[", 400),
        ("/v1/call/made::up", "{}", 404),
        ("/made/up", "", 404),
    ] {
        let answer = server.ask("POST", path, &format!("origin: {app}\r\n"), body).await;
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (status, Some(app)), "{path}");
        assert!(answer.header("access-control-expose-headers").unwrap().contains("x-request-id"));
        assert!(answer.header("vary").unwrap().contains("origin"));
        assert_eq!(answer.header("access-control-allow-credentials"), None);
    }
    let stream = server.get("/v1/events", &format!("origin: {app}\r\n")).await;
    assert_eq!((stream.status, stream.header("access-control-allow-origin")), (200, Some(app)));
    assert_eq!(stream.header("x-content-type-options"), Some("nosniff"));
    let other = server.ask("POST", "/v1/call/session::list", "origin: https://app.example.evil\r\n", "{}").await;
    assert_eq!((other.status, other.header("access-control-allow-origin")), (403, None));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_origins_may_be_let_in_without_credentials() {
    let server = Server::start(Settings { cors_origins: vec!["*".to_owned()], ..settings() }).await;
    let answer = server.ask("POST", "/v1/call/session::list", "origin: https://any.example\r\n", "{}").await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, Some("*")));
    assert_eq!(answer.header("access-control-allow-credentials"), None);
    server.stop().await;
}

/// A page of another origin tries what pages can, and writes down how it went.
const PAGE: &str = r#"<!doctype html><body><script>
const at = new URLSearchParams(location.search).get('at');
const tries = {
  fetch: () => fetch(at + '/v1/call/session::create', {method: 'POST', headers: {'content-type': 'application/json'}, body: '{}'}).then(r => r.status, () => 'refused'),
  simple: () => fetch(at + '/v1/call/session::create', {method: 'POST', body: '{}'}).then(r => r.status, () => 'refused'),
  blind: () => fetch(at + '/v1/call/session::create', {method: 'POST', mode: 'no-cors', body: '{}'}).then(() => 'sent', () => 'refused'),
};
(async () => {
  const went = [];
  for (const [name, run] of Object.entries(tries)) went.push(name + '=' + await run());
  document.body.textContent = 'went: ' + went.join(' ');
})();
</script></body>"#;

#[tokio::test(flavor = "multi_thread")]
async fn chromium_keeps_other_origins_out_unless_they_are_let_in() {
    let chromium = match chromium() {
        Ok(chromium) => chromium,
        Err(why) => return skip("chromium_keeps_other_origins_out_unless_they_are_let_in", &why),
    };
    let pages = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let page = format!("http://{}", pages.local_addr().unwrap());
    tokio::spawn(async move {
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{PAGE}",
            PAGE.len()
        );
        while let Ok((mut stream, _)) = pages.accept().await {
            let mut head = [0; 4096];
            let _ = tokio::io::AsyncReadExt::read(&mut stream, &mut head).await;
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, answer.as_bytes()).await;
        }
    });
    let visit = async |server: &Server| {
        let profile = tempfile::tempdir().unwrap();
        let url = format!("{page}/?at=http://localhost:{}", server.address().port());
        let mut browser = tokio::process::Command::new(&chromium);
        browser
            .args(UNSEEN)
            .args(["--virtual-time-budget=20000", "--dump-dom"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(url)
            .kill_on_drop(true);
        let output =
            tokio::time::timeout(std::time::Duration::from_secs(90), browser.output()).await.unwrap().unwrap();
        let dom = String::from_utf8_lossy(&output.stdout).into_owned();
        let went = dom.split("went: ").nth(1).map(|rest| rest.split('<').next().unwrap().trim().to_owned());
        went.unwrap_or_else(|| panic!("{dom}\n{}", String::from_utf8_lossy(&output.stderr)))
    };
    let sessions = async |server: &Server| {
        let listed = server.ask("POST", "/v1/call/session::list", "", "{}").await;
        listed.json()["sessions"].as_array().unwrap().len()
    };

    let server = Server::start(settings()).await;
    assert_eq!(visit(&server).await, "fetch=refused simple=refused blind=refused");
    assert_eq!(sessions(&server).await, 0);
    server.stop().await;

    let server = Server::start(Settings { cors_origins: vec![page.clone()], ..settings() }).await;
    assert_eq!(visit(&server).await, "fetch=200 simple=200 blind=sent");
    assert_eq!(sessions(&server).await, 3);
    server.stop().await;
}
