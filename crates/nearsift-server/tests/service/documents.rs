//! Documents: stored, found, compared, removed.

use std::sync::{Arc, Barrier};

use serde_json::{Value, json};

use crate::support::{Service, text};

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[test]
fn a_page_is_new_until_it_was_stored() {
    let service = Service::start();
    let page = text(1);
    let check = |text: &str| service.post("/v1/check", &json!({"text": text})).ok();
    let first = check(&page);
    assert_eq!((&first["verdict"], first["matches"].as_array().unwrap().len()), (&json!("new"), 0));
    assert_eq!(first["evidence"], "sketch");

    let stored = service.post(
        "/v1/documents",
        &json!({"documents": [
            {"id": "http://a.example/1?x=y", "text": page, "time": 1_700_000_000, "source": "a.example"},
            {"id": "other", "text": text(2)}
        ]}),
    );
    assert_eq!(stored.ok()["stored"], 2);

    let edited = page.replacen(page.chars().nth(50).unwrap(), "改", 1);
    let again = check(&edited);
    assert_eq!(again["verdict"], "duplicate", "{again}");
    let found = &again["matches"][0];
    assert_eq!(
        (&found["id"], &found["source"], &found["time"]),
        (&json!("http://a.example/1?x=y"), &json!("a.example"), &json!(1_700_000_000))
    );
    assert!(found["score"].as_f64().unwrap() > 0.4, "{found}");
    assert_eq!(check(&text(3))["verdict"], "new");
    // It does not duplicate itself.
    let own =
        service.post("/v1/check", &json!({"text": page, "id": "http://a.example/1?x=y"})).ok();
    assert_eq!(own["verdict"], "new", "{own}");

    let path = "/v1/documents/http:%2F%2Fa.example%2F1%3Fx=y";
    let held = service.get(path).ok();
    assert_eq!(
        (&held["source"], &held["characters"]),
        (&json!("a.example"), &json!(200)),
        "{held}"
    );
    assert_eq!(held["sketch"].as_str().unwrap().len(), 128);
    assert_eq!(service.delete(path).ok()["outcome"], "removed");
    assert_eq!(service.delete(path).ok()["outcome"], "absent");
    service.get(path).problem("no-document");
    assert_eq!(check(&page)["verdict"], "new");
}

#[test]
fn each_document_of_a_batch_is_judged_by_itself() {
    let service = Service::start();
    let batch = json!({"documents": [
        {"id": "a", "text": text(1)},
        {"id": "a", "text": text(2)},
        {"id": "b", "text": "!!"},
        {"id": "", "text": text(3)},
        {"id": "x".repeat(2049), "text": text(3)},
        {"id": "bell\u{7}", "text": text(3)},
        {"id": "c"},
        {"id": "c", "text": "x", "html_base64": "eA=="},
        {"id": "c", "text": text(3), "colour": "red"},
        {"id": "c", "text": 7},
        {"id": "c", "html_base64": "not base64!"},
        {"id": "c", "fingerprint": "0123456789abcdef"},
        {"id": "c", "text": text(3), "ttl_seconds": 0},
        {"id": "c", "text": text(3), "source": "s".repeat(1025)},
        17,
        {"id": "lone \u{fffd}", "text": text(3)},
        {"id": "x".repeat(2048), "text": text(4)}
    ]});
    let answer = service.post("/v1/documents", &batch).ok();
    let outcomes: Vec<&str> = answer["outcomes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|o| o["outcome"].as_str().unwrap())
        .collect();
    let mut expect = vec!["added", "exists", "no_fingerprint"];
    expect.extend(["refused"; 12]);
    expect.extend(["added", "added"]);
    assert_eq!(outcomes, expect, "{answer:#}");
    assert_eq!((&answer["stored"], &answer["not_stored"]), (&json!(3), &json!(14)));
    let problem = |n: usize| &answer["outcomes"][n]["problem"];
    assert_eq!(problem(3)["type"], "urn:nearsift:problem:invalid-id");
    assert_eq!(problem(3)["pointer"], "/documents/3/id");
    assert!(
        problem(8)["detail"].as_str().unwrap().contains("unknown field `colour`"),
        "{}",
        problem(8)
    );
    assert!(
        problem(9)["pointer"].as_str().unwrap().starts_with("/documents/9/text"),
        "{}",
        problem(9)
    );
    assert_eq!(problem(10)["pointer"], "/documents/10/html_base64");
    assert_eq!(answer["outcomes"][2]["reason"], "no letters or digits");
    assert_eq!(service.get("/v1/stats").ok()["documents"], 3);

    let replace = json!({"documents": [{"id": "a", "text": text(9)}], "existing": "replace"});
    assert_eq!(service.post("/v1/documents", &replace).ok()["outcomes"][0]["outcome"], "replaced");
    let near = json!({"documents": [{"id": "n1", "text": text(20)}, {"id": "n2", "text": text(20)}], "unless_near": true});
    let near = service.post("/v1/documents", &near).ok();
    assert_eq!(
        near["outcomes"][1]["near"],
        json!({"id": "n1", "score": 1.0, "evidence": "sketch"}),
        "{near}"
    );
    service
        .post(
            "/v1/documents",
            &json!({"documents": [], "existing": "replace", "unless_near": true}),
        )
        .problem("invalid-field");
    assert_eq!(service.post("/v1/documents", &json!({"documents": []})).ok()["stored"], 0);
}

#[test]
fn of_equal_pages_at_the_same_time_exactly_one_is_new() {
    let service = Arc::new(Service::with(|config| config.max_requests = 1000));
    for round in 0..10 {
        let page = text(100 + round);
        let barrier = Arc::new(Barrier::new(16));
        let threads: Vec<_> = (0..16)
            .map(|n| {
                let (service, barrier, page) =
                    (Arc::clone(&service), Arc::clone(&barrier), page.clone());
                std::thread::spawn(move || {
                    barrier.wait();
                    let body = json!({"id": format!("{round}-{n}"), "text": page, "insert": true});
                    service.post("/v1/check", &body).ok()
                })
            })
            .collect();
        let answers: Vec<Value> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        let winners: Vec<&Value> = answers.iter().filter(|a| a["insert"] == "added").collect();
        assert_eq!(winners.len(), 1, "{answers:#?}");
        assert_eq!(winners[0]["verdict"], "new");
        let losers = answers.iter().filter(|a| a["insert"] != "added");
        for loser in losers {
            assert_eq!(
                (&loser["insert"], &loser["verdict"]),
                (&json!("near"), &json!("duplicate")),
                "{loser}"
            );
            assert_eq!(loser["matches"].as_array().unwrap().len(), 1, "{loser}");
        }
    }
    assert_eq!(service.get("/v1/stats").ok()["documents"], 10);
}

#[test]
fn an_insert_that_is_repeated_says_that_it_was_done() {
    let service = Service::start();
    let body = json!({"id": "a", "text": text(1), "insert": true});
    assert_eq!(service.post("/v1/check", &body).ok()["insert"], "added");
    let again = service.post("/v1/check", &body).ok();
    assert_eq!((&again["insert"], &again["verdict"]), (&json!("exists"), &json!("new")));
    let empty = service.post("/v1/check", &json!({"id": "b", "text": "", "insert": true})).ok();
    assert_eq!(
        (&empty["insert"], &empty["verdict"]),
        (&json!("no_fingerprint"), &json!("undecided"))
    );
    let check = |body: &Value, pointer: &str| {
        assert_eq!(service.post("/v1/check", body).problem("invalid-field")["pointer"], pointer);
    };
    check(&json!({"text": "x", "insert": true}), "/id");
    check(&json!({"id": "x", "text": "x", "insert": true, "min_score": 0.5}), "/min_score");
    check(&json!({"id": "x", "text": "x", "insert": true, "budget": 5}), "/budget");
    check(&json!({"text": "x", "ttl_seconds": 5}), "/ttl_seconds");
    check(&json!({"text": "x", "max_distance": 5}), "/max_distance");
    check(&json!({"text": "x", "limit": 0}), "/limit");
    check(&json!({"text": "x", "budget": 0}), "/budget");
    check(&json!({"text": "x", "charset": "gbk"}), "/charset");
    check(&json!({"sketch": "00", "keys": "00"}), "/sketch");
    check(&json!({"sketch": "0".repeat(128)}), "/keys");
    check(&json!({}), "");
}

#[test]
fn pages_are_decoded_and_ready_sketches_are_taken() {
    let service = Service::start();
    let article = text(7);
    let html = format!("<html><head><title>t</title></head><body><p>{article}</p></body></html>");
    let (gbk, _, _) = encoding_rs::GBK.encode(&html);
    let body = json!({"id": "page", "html_base64": base64(&gbk), "charset": "gbk", "insert": true});
    let stored = service.post("/v1/check", &body).ok();
    assert_eq!(
        (&stored["insert"], &stored["text"]["charset"]),
        (&json!("added"), &json!("gb18030")),
        "{stored}"
    );
    let made = service.post("/v1/fingerprint", &json!({"text": article})).ok();
    let ready = json!({"sketch": made["sketch"], "keys": made["keys"]});
    let found = service.post("/v1/query", &ready).ok();
    assert_eq!(
        (&found["matches"][0]["id"], &found["matches"][0]["score"]),
        (&json!("page"), &json!(1.0)),
        "{found}"
    );
    assert_eq!(found["truncated"], false);
    let all =
        service.post("/v1/query", &json!({"text": article, "min_score": 0.0, "limit": 1000})).ok();
    assert_eq!(all["matches"].as_array().unwrap().len(), 1);
    // The same sketch under another id, ready made.
    let document = json!({"id": "ready", "sketch": made["sketch"], "keys": made["keys"]});
    assert_eq!(service.post("/v1/documents", &json!({"documents": [document]})).ok()["stored"], 1);
    assert_eq!(service.post("/v1/query", &ready).ok()["matches"].as_array().unwrap().len(), 2);
}

#[test]
fn an_inserted_page_tells_that_not_all_were_compared() {
    let service = Service::start();
    let made = service.post("/v1/fingerprint", &json!({"text": text(1)})).ok();
    // Unlike the page, and with all its keys: more of them than a search goes through.
    for first in (0..17_000).step_by(1000) {
        let document =
            |n: i32| json!({"id": format!("{n}"), "sketch": "0".repeat(128), "keys": made["keys"]});
        let documents: Vec<Value> = (first..first + 1000).map(document).collect();
        let stored = service.post("/v1/documents", &json!({"documents": documents})).ok();
        assert_eq!(stored["stored"], 1000);
    }
    let body = json!({"id": "page", "text": text(1), "insert": true});
    let checked = service.post("/v1/check", &body).ok();
    assert_eq!(
        (&checked["insert"], &checked["verdict"], &checked["truncated"]),
        (&json!("added"), &json!("new"), &json!(true)),
        "{checked}"
    );
}

#[test]
fn two_pages_are_compared() {
    let service = Service::start();
    let (a, b) = (text(1), text(2));
    let edited: String = a.chars().take(195).chain("结尾不同了".chars()).collect();
    let compare = |a: &str, b: &str| {
        service.post("/v1/compare", &json!({"a": {"text": a}, "b": {"text": b}})).ok()
    };
    let alike = compare(&a, &edited);
    assert_eq!(
        (&alike["near_duplicates"], &alike["same_text"]),
        (&json!(true), &json!(false)),
        "{alike}"
    );
    assert!(alike["verified"]["alignment"].as_f64().unwrap() > 0.9);
    assert!(alike["features"]["jaccard"].as_f64().unwrap() > 0.5);
    let other = compare(&a, &b);
    assert_eq!(other["near_duplicates"], false, "{other}");
    assert_eq!(compare("短", "短")["same_text"], true);
    assert_eq!(compare("★★", "★★")["same_text"], true);
    assert_eq!(compare("Stra\u{df}e in İZMİR", "STRAS\u{ad}SE in izmir")["same_text"], true);
    let lesson = |sign: &str| {
        format!("Learn C{sign} in twenty short lessons with exercises and all answers")
    };
    let signs = compare(&lesson("++"), &lesson("#"));
    assert_eq!(
        (&signs["near_duplicates"], &signs["same_text"]),
        (&json!(true), &json!(false)),
        "{signs}"
    );
    assert!(signs["verified"]["score"].as_f64().unwrap() < 1.0, "{signs}");
    assert!(signs["verified"].get("differ").is_none(), "{signs}");
    let forecast = |[rain, wind, dawn, noon]: [u32; 4]| {
        format!(
            "The chance of rain is {rain} per cent, winds blow at {wind} kilometres an hour, and the temperature rises from {dawn} degrees at dawn to {noon} degrees in the afternoon of the same day."
        )
    };
    let numbers = compare(&forecast([20, 35, 7, 19]), &forecast([20, 48, 11, 23]));
    let verified = &numbers["verified"];
    let values = ["agree", "differ"].map(|name| verified[name].as_u64());
    assert!(values[0] >= Some(1) && values[1] >= Some(3), "{numbers}");
    let wrong =
        service.post("/v1/compare", &json!({"a": {"text": "x"}, "b": {"html_base64": "%"}}));
    assert_eq!(wrong.problem("invalid-field")["pointer"], "/b/html_base64");
}

#[test]
fn collections_have_their_own_recipes() {
    let service = Service::start();
    let new = json!({"name": "old-prints", "recipe": "simhash64", "max_distance": 5});
    let made = service.post("/v1/collections", &new);
    assert_eq!(made.status, 201);
    assert_eq!(
        (&made.ok()["kind"], &made.ok()["max_distance"]),
        (&json!("fingerprints"), &json!(5))
    );
    service.post("/v1/collections", &new).problem("conflict");
    let base = "/v1/collections/old-prints";
    let documents = json!({"documents": [
        {"id": "a", "fingerprint": "00000000000000ff"},
        {"id": "b", "fingerprint": "000000000000000f"},
        {"id": "c", "fingerprint": "ff"},
        {"id": "d", "sketch": "0".repeat(128), "keys": "0".repeat(256)},
        {"id": "e", "text": text(1)}
    ]});
    let stored = service.post(&format!("{base}/documents"), &documents).ok();
    assert_eq!(stored["stored"], 3, "{stored:#}");
    let ask = json!({"fingerprint": "00000000000000fe", "max_distance": 5});
    let found = service.post(&format!("{base}/query"), &ask).ok();
    let distances: Vec<u64> = found["matches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["distance"].as_u64().unwrap())
        .collect();
    assert_eq!(distances, [1, 5], "{found}");
    let one = service
        .post(&format!("{base}/query"), &json!({"fingerprint": "00000000000000fe", "limit": 1}))
        .ok();
    assert_eq!(one["matches"].as_array().unwrap().len(), 1);
    let beyond = service.post(
        &format!("{base}/query"),
        &json!({"fingerprint": "00000000000000fe", "max_distance": 6}),
    );
    assert_eq!(beyond.problem("invalid-field")["pointer"], "/max_distance");
    assert_eq!(service.get(&format!("{base}/documents/a")).ok()["fingerprint"], "00000000000000ff");
    service.get("/v1/documents/a").problem("no-document");

    for (bad, pointer) in [
        (json!({"name": "../x"}), "/name"),
        (json!({"name": "A"}), "/name"),
        (json!({"name": ""}), "/name"),
        (json!({"name": "x", "recipe": "md5"}), "/recipe"),
        (json!({"name": "x", "max_distance": 3}), "/max_distance"),
        (json!({"name": "x", "min_score": 1.5}), "/min_score"),
        (json!({"name": "x", "recipe": "simhash64", "min_score": 0.5}), "/min_score"),
    ] {
        assert_eq!(
            service.post("/v1/collections", &bad).problem("invalid-field")["pointer"],
            pointer,
            "{bad}"
        );
    }
    service
        .post("/v1/collections", &json!({"name": "x", "recipe": "simhash64", "max_distance": 65}))
        .problem("invalid-field");

    let names = |service: &Service| -> Vec<String> {
        let all = service.get("/v1/collections").ok();
        all["collections"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| c["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&service), ["default", "old-prints"]);
    // It is all there after a restart, with its recipe.
    let service = Service::in_folder(service.stop(), |_| {});
    assert_eq!(service.get(&format!("{base}/stats")).ok()["documents"], 3);
    service.delete("/v1/collections/default").problem("conflict");
    assert_eq!(service.delete(base).ok()["deleted"], "old-prints");
    service.get(&format!("{base}/stats")).problem("no-collection");
    assert_eq!(names(&service), ["default"]);
    assert_eq!(service.post("/v1/collections", &new).status, 201);
    assert_eq!(service.get(&format!("{base}/stats")).ok()["documents"], 0);
}

#[test]
fn a_collection_with_texts_goes_by_them() {
    let service = Service::start();
    for (name, recipe) in [("pages", "sketch"), ("prints", "simhash64")] {
        let new = json!({"name": name, "recipe": recipe, "keep_texts": true});
        let made = service.post("/v1/collections", &new);
        assert_eq!(made.status, 201);
        assert_eq!(
            (&made.ok()["keep_texts"], &made.ok()["min_score"]),
            (&json!(true), &json!(0.63))
        );
        let base = format!("/v1/collections/{name}");
        let page = text(1);
        let edited = page.replacen(page.chars().nth(50).unwrap(), "改", 1);
        let insert = |id: &str, text: &str| {
            let check = json!({"id": id, "text": text, "insert": true});
            service.post(&format!("{base}/check"), &check).ok()
        };
        let added = insert("a", &page);
        assert_eq!((&added["insert"], &added["evidence"]), (&json!("added"), &json!("text")));
        let exact =
            service.post("/v1/compare", &json!({"a": {"text": page}, "b": {"text": edited}}));
        let exact = exact.ok()["verified"]["score"].as_f64().unwrap();
        let near = insert("b", &edited);
        assert_eq!(
            (&near["insert"], &near["evidence"]),
            (&json!("near"), &json!("text")),
            "{near}"
        );
        let score = near["matches"][0]["score"].as_f64().unwrap();
        assert!((0.0..2e-9).contains(&(exact - score)), "{exact} {score}");
        assert_eq!(near["matches"][0].get("distance"), None);
        assert_eq!(insert("c", &text(2))["insert"], "added");

        // In batches; and the score that is asked is that of texts.
        let documents = json!({"unless_near": true, "documents": [
            {"id": "d", "text": edited}, {"id": "e", "text": text(3)},
        ]});
        let stored = service.post(&format!("{base}/documents"), &documents).ok();
        assert_eq!(stored["outcomes"][0]["near"]["evidence"], "text", "{stored}");
        assert_eq!(stored["outcomes"][1]["outcome"], "added", "{stored}");
        let count = |least: f64| {
            let query = json!({"text": edited, "min_score": least});
            let found = service.post(&format!("{base}/query"), &query).ok();
            found["matches"].as_array().unwrap().len()
        };
        assert_eq!((count(exact - 0.001), count(exact + 0.001)), (1, 0));

        // What has no text says nothing of it, and one that is too long is not kept.
        let (ready, pointer) = match recipe {
            "sketch" => (json!({"sketch": "0".repeat(128), "keys": "0".repeat(256)}), "/sketch"),
            _ => (json!({"fingerprint": "00000000000000ff"}), "/fingerprint"),
        };
        for route in ["check", "query"] {
            let refused = service.post(&format!("{base}/{route}"), &ready).problem("invalid-field");
            assert_eq!(refused["pointer"], pointer);
            assert!(refused["detail"].as_str().unwrap().contains("keeps texts"), "{refused}");
        }
        let mut document = ready.clone();
        document["id"] = json!("f");
        let refused =
            service.post(&format!("{base}/documents"), &json!({"documents": [document]})).ok();
        assert_eq!(refused["outcomes"][0]["problem"]["pointer"], format!("/documents/0{pointer}"));
        let long = json!({"text": text(4) + &"很长的一页".repeat(300_000)});
        let refused = service.post(&format!("{base}/check"), &long).problem("document-too-large");
        assert!(refused["detail"].as_str().unwrap().contains("4194304"), "{refused}");
    }
    // All of it is there after a start.
    let service = Service::in_folder(service.stop(), |_| {});
    let check = json!({"text": text(3)});
    let again = service.post("/v1/collections/pages/check", &check).ok();
    assert_eq!((&again["verdict"], &again["evidence"]), (&json!("duplicate"), &json!("text")));
    let bad = json!({"name": "x", "recipe": "simhash64", "keep_texts": true, "min_score": 2});
    let refused = service.post("/v1/collections", &bad).problem("invalid-field");
    assert_eq!(refused["pointer"], "/min_score");
}
