"""Where the checkout is, for tests that need it while they are collected."""

from pathlib import Path

#: The checkout.
ROOT = Path(__file__).resolve().parents[2]
