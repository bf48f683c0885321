"""The service through the client that openapi-python-client generates.

    attrs_client.py URL KEY
"""

import sys

from nearsift_client import AuthenticatedClient, Client
from nearsift_client.api.collections import create_collection, delete_collection, list_collections
from nearsift_client.api.documents import add_documents_of, check_of, compare_of, get_document_of, remove_document_of
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
from nearsift_client.types import UNSET

URL, KEY = sys.argv[1:]
TEXT = "黄河之水天上来，奔流到海不复回。" + "".join(chr(0x4E00 + 7919 * n * n % 5000) for n in range(200))
NEAR = TEXT.replace("天上", "山中")
OTHER = "".join(chr(0x4E00 + 104_729 * n * n % 5000) for n in range(1, 200))
ID = "http://a.example/页?q=1&r=%2F"


def run(evidence, recipe, **near):
    name, is_distance = f"attrs-{evidence.value}", "max_distance" in near
    client = AuthenticatedClient(base_url=URL, token=KEY)
    made = create_collection.sync(client=client, body=NewCollection(name=name, recipe=recipe, **near))
    assert made.name == name and made.documents == 0 and isinstance(made.recipe_digest, str), made

    new = check_of.sync(name, client=client, body=Check(text=TEXT, id=ID, insert=True, source="a.example"))
    assert (new.verdict, new.insert, new.matches, new.truncated) == (Verdict.NEW, Inserted.ADDED, [], False), new
    assert new.evidence == evidence and new.text.characters > 200, new

    for text, is_same in [(TEXT, True), (NEAR, False)]:
        found = check_of.sync(name, client=client, body=Check(text=text))
        assert found.verdict == Verdict.DUPLICATE and found.evidence == evidence and found.insert is UNSET, found
        (match,) = found.matches
        assert (match.id, match.source) == (ID, "a.example"), match
        value, none = (match.distance, match.score) if is_distance else (match.score, match.distance)
        assert none is UNSET and isinstance(value, int if is_distance else float), match
        assert (value == (0 if is_distance else 1.0)) == is_same, match
    again = check_of.sync(name, client=client, body=Check(text=NEAR, id="again", insert=True))
    assert (again.verdict, again.insert) == (Verdict.DUPLICATE, Inserted.NEAR), again

    batch = [Document(id="other", text=OTHER), Document(id="near", text=NEAR), Document(id="", text=OTHER)]
    stored = add_documents_of.sync(name, client=client, body=Documents(documents=batch, unless_near=True))
    assert (stored.stored, stored.not_stored) == (1, 2), stored
    added, near, refused = stored.outcomes
    assert (added.id, added.outcome) == ("other", Name.ADDED), added
    assert (near.outcome, near.near.id, near.near.evidence) == (Name.NEAR, ID, evidence), near
    assert refused.outcome == Name.REFUSED and isinstance(refused.problem, ProblemDetails), refused
    assert (refused.problem.status, refused.problem.pointer) == (422, "/documents/2/id"), refused.problem

    compared = compare_of.sync(name, client=client, body=Compare(a=Page(text=TEXT), b=Page(text=NEAR)))
    assert compared.near_duplicates is True and compared.same_text is False, compared
    assert isinstance(compared.distance, int) and (compared.score is UNSET) == is_distance, compared
    assert 0.9 < compared.verified.cosine <= 1 and compared.features.features_a > 100, compared

    held = get_document_of.sync(name, ID, client=client)
    assert held.id == ID and held.characters == new.text.characters, held
    removed = remove_document_of.sync(name, ID, client=client)
    assert removed.outcome == Name.REMOVED, removed
    gone = get_document_of.sync(name, ID, client=client)
    assert isinstance(gone, ProblemDetails) and gone.type_ == "urn:nearsift:problem:no-document", gone

    nobody = list_collections.sync(client=Client(base_url=URL))
    assert isinstance(nobody, ProblemDetails) and nobody.status == 401, nobody
    assert delete_collection.sync(name, client=client).deleted == name


run(Evidence.SKETCH, "sketch", min_score=0.5)
run(Evidence.FINGERPRINT, "simhash64", max_distance=16)
run(Evidence.TEXT, "sketch", keep_texts=True)
