"""The service through the Python client that openapi-generator generates.

    pydantic_client.py URL KEY
"""

import sys

from nearsift_client import ApiClient, CollectionsApi, Configuration, DocumentsApi
from nearsift_client.exceptions import ApiException
from nearsift_client.models import (
    Check,
    Compare,
    Document,
    Documents,
    Evidence,
    Inserted,
    Name,
    NewCollection,
    Page,
    ProblemDetails,
    Verdict,
)

URL, KEY = sys.argv[1:]
TEXT = "黄河之水天上来，奔流到海不复回。" + "".join(chr(0x4E00 + 7919 * n * n % 5000) for n in range(200))
NEAR = TEXT.replace("天上", "山中")
OTHER = "".join(chr(0x4E00 + 104_729 * n * n % 5000) for n in range(1, 200))
ID = "http://a.example/页?q=1&r=%2F"


def refused(status, call):
    try:
        call()
    except ApiException as error:
        problem = ProblemDetails.from_json(error.body)
        assert error.status == problem.status == status, error
        return problem
    raise AssertionError("no error")


def run(evidence, recipe, **near):
    name, is_distance = f"pydantic-{evidence.value}", "max_distance" in near
    client = ApiClient(Configuration(host=URL, access_token=KEY))
    collections, documents = CollectionsApi(client), DocumentsApi(client)
    made = collections.create_collection(NewCollection(name=name, recipe=recipe, **near))
    assert made.name == name and made.documents == 0 and isinstance(made.recipe_digest, str), made

    new = documents.check_of(name, Check(text=TEXT, id=ID, insert=True, source="a.example"))
    assert (new.verdict, new.insert, new.matches, new.truncated) == (Verdict.NEW, Inserted.ADDED, [], False), new
    assert new.evidence == evidence and new.text.characters > 200, new

    for text, is_same in [(TEXT, True), (NEAR, False)]:
        found = documents.check_of(name, Check(text=text))
        assert found.verdict == Verdict.DUPLICATE and found.evidence == evidence and found.insert is None, found
        (match,) = found.matches
        assert (match.id, match.source) == (ID, "a.example"), match
        value, none = (match.distance, match.score) if is_distance else (match.score, match.distance)
        assert none is None and isinstance(value, int if is_distance else (int, float)), match
        assert (value == (0 if is_distance else 1.0)) == is_same, match
    again = documents.check_of(name, Check(text=NEAR, id="again", insert=True))
    assert (again.verdict, again.insert) == (Verdict.DUPLICATE, Inserted.NEAR), again

    batch = [Document(id="other", text=OTHER), Document(id="near", text=NEAR), Document(id=" " * 2048, text="")]
    stored = documents.add_documents_of(name, Documents(documents=batch, unless_near=True))
    assert (stored.stored, stored.not_stored) == (1, 2), stored
    added, near, empty = stored.outcomes
    assert (added.id, added.outcome) == ("other", Name.ADDED), added
    assert (near.outcome, near.near.id, near.near.evidence) == (Name.NEAR, ID, evidence), near
    assert empty.outcome == Name.NO_FINGERPRINT and empty.reason, empty

    compared = documents.compare_of(name, Compare(a=Page(text=TEXT), b=Page(text=NEAR)))
    assert compared.near_duplicates is True and compared.same_text is False, compared
    assert isinstance(compared.distance, int) and (compared.score is None) == is_distance, compared
    assert 0.9 < compared.verified.cosine <= 1 and compared.features.features_a > 100, compared

    held = documents.get_document_of(name, ID)
    assert held.id == ID and held.characters == new.text.characters, held
    assert documents.remove_document_of(name, ID).outcome == Name.REMOVED
    gone = refused(404, lambda: documents.get_document_of(name, ID))
    assert gone.type == "urn:nearsift:problem:no-document", gone

    refused(401, CollectionsApi(ApiClient(Configuration(host=URL))).list_collections)
    refused(409, lambda: collections.create_collection(NewCollection(name=name)))
    assert collections.delete_collection(name).deleted == name


run(Evidence.SKETCH, "sketch", min_score=0.5)
run(Evidence.FINGERPRINT, "simhash64", max_distance=16)
run(Evidence.TEXT, "sketch", keep_texts=True)
