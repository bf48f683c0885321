"""Answers that come before a request's body was taken, by curl and httpx over TLS and HTTP/2: each must arrive whole.

    http2.py URL KEY CERTIFICATE FOLDER TIMES UPLOADS

Each answer is tried TIMES times; by httpx, those to large bodies UPLOADS times.
"""

import collections
import json
import pathlib
import ssl
import subprocess
import sys

import httpx

URL, KEY, CERTIFICATE, FOLDER, TIMES, UPLOADS = sys.argv[1:]
SMALL = json.dumps({"text": "a text"}).encode()
LARGE, HUGE = (json.dumps({"text": "a" * size}).encode() for size in (20_000_000, 40_000_000))
JSON = {"content-type": "application/json"}
BEARER = {"authorization": f"Bearer {KEY}"}
# Status, kind of problem, headers, body.
CASES = [
    (401, "no-key", JSON, SMALL),
    (415, "not-accepted-media", {"content-type": "text/plain", **BEARER}, SMALL),
    (413, "body-too-large", {**JSON, **BEARER}, LARGE),
    (413, "body-too-large", {**JSON, **BEARER}, HUGE),
]


def by_curl(path, headers):
    command = ["curl", "--silent", "--show-error", "--http2", "--cacert", CERTIFICATE, "--max-time", "60"]
    command += [word for name, value in headers.items() for word in ("--header", f"{name}: {value}")]
    command += ["--data-binary", f"@{path}", "--write-out", "\n%{http_version} %{http_code}", f"{URL}/v1/check"]
    done = subprocess.run(command, capture_output=True, text=True)
    body, _, told = done.stdout.rpartition("\n")
    if done.returncode:
        return done.stderr.strip(), body
    return told, body


def by_httpx(client, headers, body):
    # In pieces: of one large piece it copies the rest for each frame, which takes it longer than a body may take.
    pieces = (body[at : at + 1_000_000] for at in range(0, len(body), 1_000_000))
    headers = {**headers, "content-length": str(len(body))}
    try:
        answer = client.post(f"{URL}/v1/check", headers=headers, content=pieces)
    except httpx.HTTPError as error:
        return repr(error), ""
    return f"{answer.http_version.removeprefix('HTTP/')} {answer.status_code}", answer.text


def judge(told, text, status, kind):
    """What is wrong with an answer, or nothing."""
    if told != f"2 {status}":
        return told
    problem = json.loads(text)
    good = problem["type"] == f"urn:nearsift:problem:{kind}" and problem["status"] == status and problem["detail"]
    return "" if good else text


def main():
    trusted = ssl.create_default_context(cafile=CERTIFICATE)
    told, wrong = [], []
    for status, kind, headers, body in CASES:
        path = pathlib.Path(FOLDER) / "body.json"
        path.write_bytes(body)
        curl = [judge(*by_curl(path, headers), status, kind) for _ in range(int(TIMES))]
        # Half of the tries share a connection, which must survive its answers; the others have one each.
        shared = httpx.Client(http2=True, verify=trusted, timeout=60)
        fetched = []
        for number in range(int(TIMES if body is SMALL else UPLOADS)):
            if number % 2:
                fetched.append(judge(*by_httpx(shared, headers, body), status, kind))
            else:
                with httpx.Client(http2=True, verify=trusted, timeout=60) as client:
                    fetched.append(judge(*by_httpx(client, headers, body), status, kind))
        for client, results in [("curl", curl), ("httpx", fetched)]:
            for what, times in collections.Counter(filter(None, results)).items():
                wrong.append(f"{client}, {status}: {times} of {len(results)} times: {what}")
        told.append(f"{status} to {len(body):,} bytes {len(curl)} times by curl and {len(fetched)} by httpx")
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"whole answers: {', '.join(told)}")


main()
