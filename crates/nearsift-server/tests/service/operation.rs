//! Running it: health, metrics, snapshots, restarts, TLS.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::support::{Request, Service, TestKeys, text};

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
        "nearsift_write_duration_seconds_count{collection=\"default\"} 1",
        "nearsift_problems_total{kind=\"no-route\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    assert!(metrics.ends_with("# EOF\n"));
    let build = format!(
        "nearsift_build_info{{version=\"{}\",os=\"{}\",arch=\"{}\"}} 1\n",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    );
    assert!(metrics.contains(&build), "{build}\n{metrics}");
    let value = |name: &str| -> f64 {
        let own = metrics.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        own.unwrap_or_else(|| panic!("{name}\n{metrics}")).parse().unwrap()
    };
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    assert!(value("process_start_time_seconds") <= now + 1.0);
    if cfg!(target_os = "linux") {
        assert!(value("process_cpu_seconds_total") >= 0.0);
        assert!(value("process_resident_memory_bytes") > 1e6);
        assert!(value("process_virtual_memory_bytes") > value("process_resident_memory_bytes"));
        assert!(value("process_open_fds") > 3.0);
        assert!(value("process_max_fds") >= value("process_open_fds"));
    }
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
fn slow_requests_are_listed_without_anything_of_their_documents() {
    let keys = TestKeys::new();
    let service = Service::with(|config| config.keys = keys.lines.clone());
    let secret = format!("{} 秘密", text(1));
    let check = json!({"text": secret});
    let asked = |path: &str| {
        let request = Request::new("POST", path).key(&keys.read).body(check.to_string());
        service.send(&request);
    };
    asked("/v1/check");
    asked("/v1/collections/default/check");
    asked("/v1/collections/%E7%A7%98%E5%AF%86/check");
    asked("/nowhere/secret");
    service.send(&Request::new("GET", "/slow-requests")).problem("no-key");
    let answer = service.send(&Request::new("GET", "/slow-requests").key(&keys.read));
    let listed = answer.ok();
    let requests = listed["requests"].as_array().unwrap();
    let of = |route: &str| {
        let own = requests.iter().filter(|one| one["route"] == route);
        own.map(|one| (one["status"].clone(), one["collection"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(of("/v1/check"), [(json!(200), json!("default"))]);
    let mut named = of("/v1/collections/{name}/check");
    named.sort_by_key(|(status, _)| status.as_u64());
    assert_eq!(named, [(json!(200), json!("default")), (json!(404), json!(null))]);
    let length = check.to_string().len();
    assert!(requests.iter().any(|one| one["body_bytes"] == length), "{listed}");
    let took = |nth: usize| requests[nth]["milliseconds"].as_f64().unwrap();
    assert!((1..requests.len()).all(|nth| took(nth - 1) >= took(nth)));
    let written = listed.to_string();
    for hidden in ["秘密", "secret", "nsk_", "%E7"] {
        assert!(!written.contains(hidden), "{hidden}: {written}");
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
        config.log = nearsift_server::Log::Off;
        config
    });
    let error = swapped.err().unwrap().to_string();
    assert!(error.contains("cert") || error.contains("PEM"), "{error}");
}

#[test]
fn the_documentation_has_every_route_and_setting() {
    let pages = ["http-api", "service-settings"].map(|name| {
        let path = testkit::repository().join(format!("docs/operate/{name}.md"));
        std::fs::read_to_string(path).unwrap()
    });
    let page = pages.concat();
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

#[test]
fn a_damaged_collection_costs_no_other_one() {
    let service = Service::start();
    let document = json!({"documents": [{"id": "a", "text": text(1)}]});
    for name in ["good", "bad"] {
        assert_eq!(service.post("/v1/collections", &json!({"name": name})).status, 201);
        let path = format!("/v1/collections/{name}/documents");
        assert_eq!(service.post(&path, &document).ok()["stored"], 1);
    }
    let folder = service.stop();
    let manifest = folder.path().join("data/bad/MANIFEST");
    let mut bytes = std::fs::read(&manifest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    std::fs::write(&manifest, &bytes).unwrap();
    // A folder that holds no store is none that can be served either.
    std::fs::create_dir(folder.path().join("data/empty")).unwrap();
    let service = Service::in_folder(folder, |_| {});
    assert_eq!(service.get("/v1/collections/good/documents/a").ok()["id"], "a");
    assert_eq!(service.post("/v1/documents", &document).ok()["stored"], 1);
    for bad in ["bad", "empty"] {
        let answer = service.post(&format!("/v1/collections/{bad}/documents"), &document);
        answer.problem("collection-unavailable");
        service.post("/v1/collections", &json!({"name": bad})).problem("conflict");
        service.delete(&format!("/v1/collections/{bad}")).problem("collection-unavailable");
    }
    assert_eq!(service.get("/readyz").ok(), json!({"status": "ok", "unavailable_collections": 2}));
    let told = service.get("/v1/collections").ok();
    assert_eq!(told["collections"].as_array().unwrap().len(), 2, "{told}");
    assert_eq!(told["unavailable"][0]["name"], "bad");
    let why = told["unavailable"][0]["why"].as_str().unwrap();
    assert!(why.contains("MANIFEST") && why.contains("damaged"), "{why}");
    let metrics = service.get("/metrics").text();
    assert!(metrics.contains("nearsift_writable{collection=\"bad\"} 0"), "{metrics}");
    // Put right, it is served again.
    let folder = service.stop();
    bytes[middle] ^= 0x40;
    std::fs::write(folder.path().join("data/bad/MANIFEST"), &bytes).unwrap();
    let service = Service::in_folder(folder, |_| {});
    assert_eq!(service.get("/v1/collections/bad/documents/a").ok()["id"], "a");
}

#[test]
fn a_store_of_numbered_documents_is_served_by_decimal_texts() {
    use nearsift::fingerprint::{Bits, Fingerprint};
    use nearsift::recipe::Recipe;
    use nearsift_store::{IdKind, Kind, Metadata, RecipeMark, Settings, Store};
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    let settings = Settings {
        kind: Kind::Fingerprints { bits: Bits::B64, max_distance: 3 },
        ids: IdKind::Numbers,
        recipe: RecipeMark::of(&Recipe::parse("simhash64").unwrap()),
        hash_key: None,
        texts: None,
    };
    let store = Store::create(&folder.path().join("data/numbers"), &settings).unwrap();
    let page = nearsift_store::Value::from(Fingerprint::from_u64(0xff));
    store.insert(u64::MAX.into(), &page, &Metadata::default()).unwrap();
    store.close().unwrap();
    let service = Service::in_folder(folder, |_| {});
    let at = |path: &str| format!("/v1/collections/numbers{path}");
    assert_eq!(service.get(&at("/stats")).ok()["ids"], "numbers");
    let held = service.get(&at("/documents/18446744073709551615")).ok();
    assert_eq!(held["id"], "18446744073709551615");
    let check = |id: &str| {
        let body = json!({"id": id, "fingerprint": "00000000000000fe", "insert": true});
        service.post(&at("/check"), &body)
    };
    assert_eq!(check("7").ok()["matches"][0]["id"], "18446744073709551615");
    // Under its own id it is the document itself, and no duplicate.
    assert_eq!(check("18446744073709551615").ok()["insert"], "exists");
    for bad in ["", "a", "-1", "007", "1.0", "18446744073709551616"] {
        assert_eq!(check(bad).problem("invalid-id")["pointer"], "/id", "{bad}");
    }
    service.get(&at("/documents/x")).problem("invalid-id");
    let documents = json!({"documents": [
        {"id": "1", "fingerprint": "0f0f0f0f0f0f0f0f"},
        {"id": "one", "fingerprint": "0f0f0f0f0f0f0f0f"},
        {"id": 2, "fingerprint": "0f0f0f0f0f0f0f0f"},
        {"id": "1", "fingerprint": "0f0f0f0f0f0f0f0f"}
    ]});
    let outcomes = service.post(&at("/documents"), &documents).ok();
    let outcome = |n: usize| outcomes["outcomes"][n]["outcome"].as_str().unwrap();
    assert_eq!([0, 1, 2, 3].map(outcome), ["added", "refused", "refused", "exists"]);
    assert_eq!(service.delete(&at("/documents/1")).ok()["outcome"], "removed");
}

#[test]
fn a_data_folder_that_is_gone_is_noticed_by_writes_and_by_readiness() {
    use std::os::unix::fs::PermissionsExt;
    let service = Service::start();
    let stored = |service: &Service, id: &str| {
        let document = json!({"documents": [{"id": id, "text": text(1)}]});
        service.post("/v1/documents", &document)
    };
    assert_eq!(stored(&service, "a").ok()["stored"], 1);
    let folder = service.folder.path().join("data/default");
    let may = |mode| std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode));
    may(0o555).unwrap();
    service.get("/readyz").problem("store-failed");
    assert!(stored(&service, "b").status >= 500);
    may(0o755).unwrap();
    assert_eq!(service.get("/readyz").ok()["status"], "ok");
    assert_eq!(stored(&service, "b").ok()["stored"], 1);

    std::fs::remove_dir_all(&folder).unwrap();
    service.get("/readyz").problem("store-failed");
    stored(&service, "c").problem("store-failed");
    service.get("/healthz").ok();
}

#[test]
fn the_page_is_for_everybody_and_may_load_nothing_from_elsewhere() {
    let keys = TestKeys::new();
    let service = Service::with(|config| config.keys = keys.lines.clone());
    for (path, media) in [
        ("/", "text/html; charset=utf-8"),
        ("/page/page.js", "text/javascript; charset=utf-8"),
        ("/page/page.css", "text/css; charset=utf-8"),
    ] {
        let file = service.get(path);
        assert_eq!((file.status, file.header("content-type")), (200, media), "{path}");
        let policy = file.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"));
        assert!(!policy.contains("unsafe") && file.header("x-content-type-options") == "nosniff");
        let known = Request::new("GET", path).header("If-None-Match", file.header("etag"));
        assert_eq!(service.send(&known).status, 304, "{path}");
        let foreign = Request::new("GET", path).header("Origin", "http://evil.example");
        service.send(&foreign).problem("foreign-origin");
    }
    assert_eq!(service.get("/page/face.json").ok(), json!({"face": "service"}));
    service.get("/page/other.js").problem("no-route");
    service.get("/v1/stats").problem("no-key");
}

#[test]
fn differences_and_features_are_answered_when_asked() {
    let service = Service::start();
    let (a, b) =
        ("漢語，今天下午的阅读活动共有三十个家庭参加", "汉语 今天下午的阅读活动共有四十个家庭参加");
    let plain = service.post("/v1/compare", &json!({"a": {"text": a}, "b": {"text": b}})).ok();
    assert!(plain.get("differences").is_none() && plain["min_score"] == 0.63);
    let asked = json!({"a": {"text": a}, "b": {"text": b}, "differences": true});
    let marked = service.post("/v1/compare", &asked).ok();
    let side = |other: &str| -> String {
        let pieces = marked["differences"].as_array().unwrap().iter();
        pieces
            .filter(|piece| piece["side"] != other)
            .map(|piece| piece["text"].as_str().unwrap())
            .collect()
    };
    assert_eq!([side("b"), side("a")], [a, b]);
    let counts = marked["differences"].as_array().unwrap().iter();
    let counts = counts.filter(|piece| piece["side"] != "both" && piece["is_equal"] != true);
    assert_eq!(counts.map(|piece| piece["text"].as_str().unwrap()).collect::<String>(), "三四");
    let features = service.post("/v1/features", &json!({"text": a})).ok();
    let weights: Vec<u64> = features["features"]
        .as_array()
        .unwrap()
        .iter()
        .map(|own| own["weight"].as_u64().unwrap())
        .collect();
    assert!(weights.len() > 5 && weights.is_sorted_by(|a, b| a >= b), "{features}");
    assert_eq!((&features["beginning"], &features["truncated"]), (&json!(a), &json!(false)));
    let long = service.post("/v1/features", &json!({"text": text(7).repeat(3000)})).ok();
    assert!(long["truncated"] == true && long["features"].as_array().unwrap().len() <= 200);
    let ready = json!({"fingerprint": "0123456789abcdef"});
    service.post("/v1/features", &ready).problem("invalid-field");
}
