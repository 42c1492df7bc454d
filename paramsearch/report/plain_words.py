"""The sections of the report for readers who are not specialists: a summary and a glossary."""

from __future__ import annotations

import math

from accounting.base.enclosure import counted
from accounting.base.errors import required
from accounting.model.change import ZERO_OUT
from paramsearch.certification.audit import Audit
from paramsearch.parameters.honest_fraction import in_words
from paramsearch.parameters.words import PREMISE
from paramsearch.report.html import Html, element, facts, join, number, percent, section

_LARGEST_POWER = 20.0
"""Largest eps whose e^eps is written out; beyond it the number says nothing to anybody."""
_GLOSSARY = (
    (
        "ε (epsilon)",
        "How much the probability of any observation may change, as a factor, when one person’s "
        "value changes: by at most e to the power ε. Smaller is more private; at ε = 0 nothing "
        "would change.",
    ),
    (
        "δ (delta)",
        "An allowance on top of that factor: every probability may exceed the limit that ε sets by "
        "at most δ. It should be far smaller than 1 divided by the number of users.",
    ),
    (
        "Noise",
        "Random messages that the users’ devices add to the true ones. They cancel out in the sum, "
        "up to a small error, and hide what any one person contributed.",
    ),
    (
        "Atom",
        "A group of messages that sum to zero and are always sent together as noise.",
    ),
    (
        "Burst",
        "A way to send noise: a device sends it rarely, and then a whole group of copies of an "
        "atom at once. Other noise has more and smaller groups. The guarantee is the same, with "
        "fewer messages.",
    ),
    (
        "Shuffler",
        "The part of the system that collects all messages and passes them on in random order, "
        "without their senders. The guarantee is about what comes out of it.",
    ),
    (
        "Substitution",
        "One way to say what the guarantee protects: which value a person has. Whether the person "
        "takes part at all is not hidden.",
    ),
    (
        "Zero-out",
        "Another way: whether a person’s value is there at all, with the noise of the person’s "
        "device in either case. Which of two values it is, is hidden less well: that is two such "
        "steps.",
    ),
    (
        "Release",
        "One published sum. If the same people report several times, their releases have to be "
        "counted together.",
    ),
    (
        "Honest users",
        "Users whose devices add the noise that the file prescribes. The proof counts on their "
        "noise alone, and on this: who is missing must not depend on the noise that was drawn.",
    ),
    (
        "Noise event",
        "One time that a device adds noise: copies of a message or of an atom, sent together. Most "
        "devices have none, so the noise of all comes from few people, and it is gone if their "
        "messages are lost.",
    ),
    (
        "RMSE",
        "Root mean square error: the typical distance of the published sum from the true one.",
    ),
    (
        "Upper and lower bound",
        "Numbers between which the true δ is proved to lie; they are not estimates.",
    ),
    (
        "SHA-256",
        "A fingerprint. Two files with the same fingerprint of their bytes are, for all practical "
        "purposes, the same. The fingerprint of the content leaves white space and the order of "
        "fields out: it stays the same where a file is only laid out anew, and it is what the "
        "file states and clients show.",
    ),
    (
        "The verdicts",
        "Certified: the claim is proved. Violated: it is proved to be false. Undecided: neither "
        "was proved, so the claim must not be relied on. Misstated: the certificate in the file "
        "says something that is proved to be false, even if the claim is proved. Rejected: the "
        "file contradicts itself or was changed. Files of the last two kinds must not be used, "
        "whatever their noise gives.",
    ),
)


def summary_section(audit: Audit, users: int | None) -> Html:
    """Summarize what was checked, what came out, and what it rests on."""
    return section(
        "summary",
        "In plain words",
        element("p", element("strong", "What was checked. "), _checked(users)),
        element("p", element("strong", "What came out. "), _found(audit)),
        element("p", element("strong", "What it rests on. "), _conditions(audit, users)),
    )


def _checked(users: int | None) -> str:
    people = "the users" if users is None else f"{users:,} user{'s' if users > 1 else ''}"
    return (
        f"The file says how much random noise the devices of {people} add to their messages. Its "
        "purpose is that the sum of all values can be published while every person’s own value "
        "stays hidden. The audit trusted nothing that the file says about its own protection: it "
        "computed the protection again from the noise, with proved bounds instead of estimates."
    )


def _found(audit: Audit) -> Html | str:
    proof, claim = audit.proof, audit.claim
    if audit.verdict in ("misstated", "rejected"):
        words = (
            "The file is not what it says it is and must not be used. "
            if audit.verdict == "rejected"
            else "The certificate in the file says something that is proved to be false, so the "
            "file must not be used. "
        )
        words += (
            "The numbers on this page are about the noise that was found in it, as if that stood "
            "alone: "
        )
        alone = {
            "certified": "by itself, it would give the protection that is claimed.",
            "violated": "it does not give the protection that is claimed.",
        }
        return words + alone.get(audit.noise_verdict or "", "whether it suffices is undecided.")
    if audit.verdict == "undecided":
        return (
            "The audit could neither prove nor refute what is claimed. Until it is decided, the "
            "claim must not be relied on."
        )
    if audit.verdict == "violated":
        return (
            "The protection that is claimed is proved not to hold: for at least one person’s "
            "change of value, observers can learn more than the claim allows."
        )
    times: Html | str = "e to the power ε times"
    if claim.eps <= _LARGEST_POWER:
        factor = math.nextafter(math.exp(claim.eps), math.inf)
        times = join([number(factor, 4, "upper"), " times"])
    what = (
        "a person’s values in all releases together" if claim.releases > 1 else "one person’s value"
    )
    if claim.same_change:
        what = "one person’s value, by the same change in every release,"
        if audit.rounded:
            what = (
                "the whole number that one person’s value is rounded to, by the same change in "
                "every release (the value itself is not covered, since every release rounds it "
                "afresh),"
            )
    upper = required(proof, "the proof of a claim").enclosure.upper
    if audit.lost is not None:
        upper = audit.lost.delta_upper
    changed = f"Replace {what} by any other"
    if claim.adjacency == ZERO_OUT:
        changed = f"Remove {what} from the sum, or put it in where there was none"
    return join(
        [
            f"The claim is proved. {changed}: the probability of anything that "
            "observers of the shuffled messages could see is then at most ",
            times,
            " what it was, plus at most ",
            number(upper, 4, "upper"),
            ".",
        ]
    )


def _conditions(audit: Audit, users: int | None) -> str:
    everybody = "all users" if users is None else f"all {users:,} users"
    missing = "what they send arrives"
    if audit.claim.honest < 1:
        part = percent(in_words(audit.claim.honest, audit.proved_for))
        everybody = f"at least {part} of the users"
        missing += f"; {PREMISE} that was drawn"
    if audit.claim.lost:
        lost = counted(audit.claim.lost, "user")
        missing += f" but for {lost} with noise in every release, lost whatever they drew"
    ending = (
        " It is a mathematical statement about this file. Whether it meets a legal requirement is "
        "for others to judge."
    )
    if audit.verdict != "certified":
        return (
            f"The result is about the case that {everybody} add their noise exactly as the file "
            f"says, that {missing}, and that observers see the shuffled messages and nothing else. "
            "Otherwise there may be even less protection." + ending
        )
    times = f"{audit.claim.releases:,} times" if audit.claim.releases > 1 else "once"
    return (
        f"The result holds only if {everybody} add their noise exactly as the file says; if "
        f"{missing}; if observers see the shuffled messages and nothing else, that is, neither "
        "who sent a message, nor how many messages a person sent, nor when; and if each person’s "
        f"data is used {times}, no more." + ending
    )


def glossary_section() -> Html:
    """The words of the report."""
    return section("glossary", "Glossary", facts(_GLOSSARY))
