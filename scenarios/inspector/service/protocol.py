"""What a page may ask of the server: messages in JSON over its websocket.

Everything from a browser is checked here, before anything acts on it: there are numbers, names of
panels and settings, and entries of lists, but no paths and no code.

======== =======================================================================================
open     show these runs: settings for each, or changes of users since a second
show     bring all runs to a second, earlier or later, and return panels
halt     stop a ``show`` that takes long
seeds    repeat all runs with several seeds
forecast simulate futures from the second that is shown
save     return a panel as a file
======== =======================================================================================

Each is answered with its ``id``; the server also pushes ``hello``, ``run``,
``timeline``, ``progress``, ``failed``, ``seeds`` and ``forecast``.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from hpcrowd.environment.clock import DAY
from hpcrowd.environment.errors import QuantityError
from hpcrowd.environment.limits.numbers import MOST_PROCESSORS
from hpcrowd.scenarios.inspector.panels.registry import PANELS

#: Furthest second that a page may ask for, s: over thirty thousand years.
LAST_SECOND = 10**12

#: Longest message from a browser, characters.
LONGEST = 100_000

#: Longest requested time of a job that a page asks about, s: ten years.
LONGEST_REQUEST = 10 * 366 * DAY

#: Most jobs of one alternative.
MOST_JOBS = 1000

Second = Annotated[int, Field(ge=0, le=LAST_SECOND)]
Place = Annotated[int, Field(ge=-LAST_SECOND, le=LAST_SECOND)]
Number = Annotated[int, Field(ge=-(2**62), le=2**62)]
Text = Annotated[str, Field(max_length=200)]


class Message(BaseModel):
    """The base of all messages: numbers are numbers, and nothing unknown is in them."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Behave(Message):
    """Give a user another behaviour."""

    user: Number
    kind: Literal["behaviour"]
    value: Text


class EdgeChange(Message):
    """Set the think time of an edge of a user's graph, s, or add or remove the edge."""

    user: Number
    kind: Literal["think_time", "add_edge", "remove_edge"]
    before: Number
    after: Number
    seconds: Second | None = None


Change = Annotated[Behave | EdgeChange, Field(discriminator="kind")]


class RunAsked(Message):
    """A run of the page."""

    settings: Annotated[dict[Text, Text], Field(max_length=20)] = Field(default_factory=dict)
    since: Second | None = None
    edits: Annotated[list[Change], Field(max_length=100)] = Field(default_factory=list)


class Open(Message):
    """Show runs: none for those of the command."""

    id: int
    do: Literal["open"]
    runs: Annotated[list[RunAsked], Field(max_length=2)] = Field(default_factory=list)
    at: Second | None = None
    again: bool = False


class Show(Message):
    """Bring the runs to a second, or to the next event of a user, and return panels."""

    id: int
    do: Literal["show"]
    at: Second | None = None
    event: Number | None = None
    begin: Place | None = Field(default=None, alias="from")
    end: Place | None = Field(default=None, alias="to")
    user: Number | None = None
    job: Number | None = None
    panels: Annotated[list[Text], Field(max_length=20)] = Field(default_factory=list)
    most: Annotated[int, Field(ge=0, le=50_000)] = 20_000

    def view(self) -> dict[str, Any]:
        """Return what is seen, as a run is asked for it."""
        return {
            "from": self.begin, "to": self.end, "user": self.user, "job": self.job,
            "most": self.most, "panels": [name for name in self.panels if name in PANELS],
        }  # fmt: skip


class Halt(Message):
    """Stop what takes long."""

    id: int | None = None
    do: Literal["halt"]


class Seeds(Message):
    """Repeat all runs with this many seeds; 0 stops that."""

    id: int
    do: Literal["seeds"]
    count: Annotated[int, Field(ge=0, le=100)]


class JobAsked(Message):
    """Equal jobs that one would submit now; requested time in s."""

    processors: Annotated[int, Field(ge=1, le=MOST_PROCESSORS)]
    requested: Annotated[int, Field(ge=1, le=LONGEST_REQUEST)]
    count: Annotated[int, Field(ge=1, le=MOST_JOBS)] = 1


class Forecast(Message):
    """Simulate futures of all runs from where they are; 0 stops that."""

    id: int
    do: Literal["forecast"]
    futures: Literal[0, 20, 50, 200]
    days: Literal[1, 7] = 1
    user: Number | None = None
    jobs: Annotated[list[JobAsked], Field(max_length=2)] = Field(default_factory=list)


class Save(Message):
    """Return a panel of a run as a file."""

    id: int
    do: Literal["save"]
    run: Annotated[int, Field(ge=0, le=1)]
    panel: Text
    kind: Literal["csv", "png", "svg"]
    begin: Place | None = Field(default=None, alias="from")
    end: Place | None = Field(default=None, alias="to")
    user: Number | None = None
    job: Number | None = None


Request = Open | Show | Halt | Seeds | Forecast | Save

_REQUEST: TypeAdapter[Request] = TypeAdapter(Annotated[Request, Field(discriminator="do")])


def parse_request(text: str) -> Request:
    """Return a message from a browser; a QuantityError says in one line why it is none."""
    if len(text) > LONGEST:
        raise QuantityError(f"message of {len(text):,} characters: at most {LONGEST:,}")
    try:
        return _REQUEST.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise QuantityError(
            f"message: {where or 'content'}: {first['msg'].lower()}, "
            f"not {json.dumps(first['input'], default=str)[:60]}"
        ) from None
