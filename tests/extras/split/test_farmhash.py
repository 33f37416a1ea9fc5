"""Fingerprints that pyfarmhash 0.5.1 (Google's C++) computed, at every branch of the function."""

from __future__ import annotations

import hashlib

import pytest

from realmctl.extras.split.farmhash import fingerprint64

TEXT = "".join(chr(32 + (i * i * 7 + i * 3) % 95) for i in range(520))

# length of the beginning of TEXT, farmhash.fingerprint64 of it
BY_LENGTH = {
    0: 11160318154034397263,
    1: 9003534451727337555,
    3: 11504169646964633721,
    4: 4161085374503328249,
    7: 17174218452560667284,
    8: 5027868207068912307,
    16: 1567710036417297070,
    17: 15515772586101816254,
    32: 7728043234349190708,
    33: 1479079175525355617,
    64: 10053782144491085985,
    65: 12425144372513644371,
    128: 10986309730141729051,
    129: 18345035640479539031,
    193: 8342286482904975555,
    520: 15979297586676522698,
}


@pytest.mark.parametrize(("length", "fingerprint"), BY_LENGTH.items())
def test_fingerprints(length, fingerprint):
    assert fingerprint64(TEXT[:length].encode()) == fingerprint


def test_fingerprints_of_every_length():
    """SHA-256 of the 521 fingerprints, little endian, that pyfarmhash gives for the beginnings of TEXT."""
    every = b"".join(fingerprint64(TEXT[:length].encode()).to_bytes(8, "little") for length in range(len(TEXT) + 1))
    digest = "b3a029cff64abd81e0a235cf9042b074068cccd983ba6badbd8bb1dd0f9d73e1"
    assert hashlib.sha256(every).hexdigest() == digest


def test_text_is_hashed_as_utf_8():
    assert fingerprint64("who sang “déjà vu”".encode()) == 14247292331344786447
    assert fingerprint64("東京はどこ".encode()) == 15428686855499639135
