//! Running it: health, metrics, snapshots, restarts, TLS.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::support::{Service, text};

#[test]
fn what_was_stored_is_there_after_a_restart() {
    let service = Service::start();
    let document = json!({"documents": [{"id": "a", "text": text(1)}]});
    assert_eq!(service.post("/v1/documents", &document).ok()["stored"], 1);
    let service = Service::in_folder(service.stop(), |_| {});
    assert_eq!(service.post("/v1/check", &json!({"text": text(1)})).ok()["matches"][0]["id"], "a");
    assert_eq!(service.get("/readyz").ok()["status"], "ok");
}

#[test]
fn documents_expire() {
    let service = Service::start();
    let document = json!({"documents": [{"id": "a", "text": text(1), "ttl_seconds": 1}]});
    assert_eq!(service.post("/v1/documents", &document).ok()["stored"], 1);
    std::thread::sleep(Duration::from_millis(2100));
    service.get("/v1/documents/a").problem("no-document");
    assert_eq!(service.post("/v1/check", &json!({"text": text(1)})).ok()["verdict"], "new");
}

#[test]
fn snapshots_are_named_by_the_service_alone() {
    let service = Service::start();
    let document = json!({"documents": [{"id": "a", "text": text(1)}]});
    assert_eq!(service.post("/v1/documents", &document).ok()["stored"], 1);
    service.post("/v1/snapshots", &json!({"name": "../../evil"})).problem("invalid-field");
    let taken = service.post("/v1/snapshots", &json!({}));
    assert_eq!(taken.status, 201);
    let name = taken.ok()["snapshot"].as_str().unwrap().to_owned();
    let second = service.post("/v1/collections/default/snapshots", &json!({})).ok();
    assert_ne!(second["snapshot"], name.as_str());
    assert_eq!(service.get("/v1/snapshots").ok()["snapshots"].as_array().unwrap().len(), 2);
    let folder = service.folder.path().join("data/.snapshots/default").join(&name);
    let copy = nearsift_store::Store::open(&folder).unwrap();
    assert_eq!(copy.stats().documents, 1);
    drop(copy);
    let kept = service.folder.path().join("data/kept");
    std::fs::create_dir(&kept).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&kept, service.folder.path().join("data/.snapshots/default/link"))
        .unwrap();
    for evil in [
        "..%2f..%2fkept",
        "%2e%2e",
        "..%5c..",
        "%2fetc",
        "link",
        "x%00",
        ".",
        "default%2f..",
        &"a".repeat(65),
    ] {
        let answer = service.raw(
            format!("DELETE /v1/snapshots/{evil} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes(),
        );
        assert!(answer.starts_with("HTTP/1.1 404 "), "{evil}: {answer}");
    }
    for evil in ["..", ".snapshots", "%2e%2e", "..%2fdata%2fdefault", "kept%2f"] {
        let answer = service.raw(
            format!("GET /v1/collections/{evil}/stats HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes(),
        );
        assert!(answer.starts_with("HTTP/1.1 404 "), "{evil}: {answer}");
    }
    assert!(kept.exists());
    assert_eq!(service.delete(&format!("/v1/snapshots/{name}")).ok()["deleted"], name.as_str());
    assert!(!folder.exists());
}

#[test]
fn metrics_and_openapi_can_be_read() {
    let service = Service::start();
    service.post("/v1/documents", &json!({"documents": [{"id": "a", "text": text(1)}]})).ok();
    service.get("/no/such/path/of/which/there/are/many").problem("no-route");
    let metrics = service.get("/metrics");
    assert!(metrics.header("content-type").starts_with("application/openmetrics-text"));
    let metrics = metrics.text();
    for line in [
        "nearsift_requests_total{method=\"POST\",route=\"/v1/documents\",status=\"200\"} 1",
        "nearsift_requests_total{method=\"(other)\",route=\"(none)\",status=\"404\"} 1",
        "nearsift_document_outcomes_total{outcome=\"added\"} 1",
        "nearsift_documents{collection=\"default\"} 1",
        "nearsift_writable{collection=\"default\"} 1",
        "nearsift_problems_total{kind=\"no-route\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    assert!(metrics.ends_with("# EOF\n"));
    let told = service.get("/openapi.json").ok();
    assert!(told["openapi"].as_str().unwrap().starts_with("3."));
    // Every reference leads somewhere.
    let text = told.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1).map(|rest| rest.split('"').next().unwrap())
    {
        assert!(told.pointer(reference).is_some(), "{reference}");
    }
}

#[test]
fn a_service_that_stops_finishes_what_is_under_way() {
    let service = Service::start();
    let mut stream = service.connect();
    let body = json!({"documents": [{"id": "late", "text": text(1)}]}).to_string();
    let head = format!(
        "POST /v1/documents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&body.as_bytes()[..20]).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let stopping = std::thread::spawn(move || service.stop());
    std::thread::sleep(Duration::from_millis(300));
    stream.write_all(&body.as_bytes()[20..]).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let service = Service::in_folder(stopping.join().unwrap(), |_| {});
    assert_eq!(service.get("/v1/documents/late").ok()["id"], "late");
}

#[test]
fn https_is_spoken_with_a_certificate() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let service = Service::in_folder(folder, |config| {
        config.tls_cert = Some(certificate.clone());
        config.tls_key = Some(key.clone());
    });
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = rustls::pki_types::ServerName::try_from("localhost").unwrap();
    let client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = rustls::StreamOwned::new(client, service.connect());
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    // Plain HTTP is no TLS.
    assert!(!service.raw(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").contains("200"));
    let swapped = nearsift_server::Server::start({
        let mut config = nearsift_server::Config::new(service.folder.path());
        config.listen = "127.0.0.1:0".parse().unwrap();
        config.tls_cert = Some(key);
        config.tls_key = Some(certificate);
        config
    });
    let error = swapped.err().unwrap().to_string();
    assert!(error.contains("cert") || error.contains("PEM"), "{error}");
}

#[test]
fn the_documentation_has_every_route_and_setting() {
    let page = std::fs::read_to_string(testkit::repository().join("docs/SERVICE.md")).unwrap();
    for (method, path, _) in nearsift_server::routes() {
        let is_doubled = path.starts_with("/v1/collections/{name}/");
        let is_listed =
            page.contains(&format!("`{method} {path}`")) || page.contains(&format!("`{path}`"));
        let is_public =
            ["/healthz", "/readyz", "/openapi.json"].contains(&&*path) && page.contains(&path);
        assert!(is_doubled || is_listed || is_public, "{method} {path}");
    }
    for setting in nearsift_server::SETTINGS {
        assert!(page.contains(&format!("`{}`", setting.name)), "{}", setting.name);
    }
}
