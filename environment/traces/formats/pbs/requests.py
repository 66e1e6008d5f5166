"""What jobs of PBS and Torque ask of a machine: their chunks and nodes as columns of a trace.

A chunk of PBS Professional, ``select=2:ncpus=8:ngpus=1``, is on one node as a task of Slurm is: two
tasks of 8 cores and one GPU each. Torque asks for nodes, ``nodes=2:ppn=4:gpus=1:bigmem``: two of
them, with four tasks and one GPU on each. Of chunks that differ only the sums can be held.

Source: qsub(1B) and pbs_resources(7B) of PBS Professional; Torque Administrator Guide (Requesting
resources).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

#: Columns that requests become, see ``SITE_COLUMNS`` of
#: :mod:`hpcrowd.environment.traces.formats.common.site_columns`.
COLUMNS = ("tasks", "cores_per_task", "tasks_per_node", "asked_nodes", "asked_max_nodes", "gpus",
           "gpus_per_node", "gpus_per_task", "constraints")  # fmt: skip

#: The word for a GPU in chunks of PBS Professional, and in nodes of Torque.
GPUS = {"ncpus": "ngpus", "ppn": "gpus"}

#: Words of nodes of Torque that are no properties of nodes.
SHARING = frozenset(("shared", "exclusive_process", "exclusive", "default", "reseterr"))

_COUNT = re.compile(r"\d{1,9}", re.ASCII)
_WORD = re.compile(r"[A-Za-z][\w.-]*", re.ASCII)


class Chunks(NamedTuple):
    """The chunks, or nodes, that a job asks for."""

    processors: int
    text: str


class Chunk(NamedTuple):
    """A kind of chunk: what one of them has."""

    cores: int
    gpus: int
    features: tuple[str, ...]
    memory: str  #: as PBS writes it; empty if it asks for none


def kinds(text: str, per_chunk: str) -> list[tuple[int, Chunk]]:
    """Return how many chunks of each kind there are.

    Parameters
    ----------
    text
        Chunks such as ``2:ncpus=8:mem=4gb+1:ncpus=4``, or nodes such as ``2:ppn=4+n17:ppn=2``.
    per_chunk
        ``ncpus`` for chunks, ``ppn`` for nodes.
    """
    found: dict[Chunk, int] = {}
    for part in text.split("+"):
        first, *rest = part.split(":")
        told = dict(word.partition("=")[::2] for word in rest)
        if per_chunk == "ppn":
            features = [word for word, value in told.items() if not value and word not in SHARING]
        else:
            features = [word for word, value in told.items() if value.lower() == "true"]
        cores, gpus = (
            int(value) if _COUNT.fullmatch(value) else usual
            for value, usual in ((told.get(per_chunk, ""), 1), (told.get(GPUS[per_chunk], ""), 0))
        )
        one = Chunk(cores, gpus, tuple(filter(_WORD.fullmatch, features)), told.get("mem", ""))
        found[one] = found.get(one, 0) + (int(first) if _COUNT.fullmatch(first) else 1)
    return [(count, one) for one, count in found.items() if count]


def asked_of(said: Mapping[str, Any]) -> dict[str, str]:
    """Return the columns of :data:`COLUMNS` that a job has.

    Parameters
    ----------
    said
        The values of its records, by our names: ``select``, ``nodes``, ``place``, ``ngpus``.
    """
    select, nodes = said.get("select"), said.get("nodes")
    found: dict[str, Any] = {}
    if select is not None:
        found = _of_chunks(kinds(select.text, "ncpus"), said.get("place", "").split(":"))
    elif nodes is not None:
        found = _of_nodes(kinds(nodes.text, "ppn"))
    if not any(name.startswith("gpus") for name in found):
        found["gpus"] = said.get("ngpus", 0)
    return {name: str(value) for name, value in found.items() if value}


def _of_chunks(chunks: list[tuple[int, Chunk]], place: list[str]) -> dict[str, Any]:
    count = sum(number for number, _ in chunks)
    found: dict[str, Any] = {}
    if len(chunks) == 1 and chunks[0][1].cores:
        one = chunks[0][1]
        found = {"tasks": count, "cores_per_task": one.cores, "gpus_per_task": one.gpus,
                 "constraints": "&".join(one.features)}  # fmt: skip
    else:
        found["gpus"] = sum(number * one.gpus for number, one in chunks)
    if "scatter" in place:
        found |= {"asked_nodes": count, "asked_max_nodes": count}
        found |= {"tasks_per_node": 1} if "tasks" in found else {}
    elif "pack" in place:
        found |= {"asked_nodes": 1, "asked_max_nodes": 1}
    return found


def _of_nodes(nodes: list[tuple[int, Chunk]]) -> dict[str, Any]:
    count = sum(number for number, _ in nodes)
    found: dict[str, Any] = {"asked_nodes": count, "asked_max_nodes": count}
    if len(nodes) != 1:
        return found | {"gpus": sum(number * one.gpus for number, one in nodes)}
    one = nodes[0][1]
    return found | {
        "tasks": count * one.cores, "tasks_per_node": one.cores, "gpus_per_node": one.gpus,
        "constraints": "&".join(one.features),
    }  # fmt: skip


def words_of(columns: Mapping[str, str], processors: float) -> dict[str, str]:
    """Return the resources that hold columns of :data:`COLUMNS`, as far as any do.

    Parameters
    ----------
    columns
        The columns of a job.
    processors
        The processors that it asks for; what gives others is left out.

    Returns
    -------
    dict
        Of ``select``, ``nodes``, ``place`` and ``ngpus`` those that are needed.
    """
    count = {name: int(text) if _COUNT.fullmatch(text) else 0 for name, text in columns.items()}
    tasks, cores, each = (count[name] for name in COLUMNS[:3])
    nodes = count["asked_nodes"] if columns["asked_nodes"] == columns["asked_max_nodes"] else 0
    features = columns["constraints"].split("&") if columns["constraints"] else []
    if not all(map(_WORD.fullmatch, features)):
        features = []
    if tasks and cores and tasks * cores == processors:
        words = [str(tasks), f"ncpus={cores}"]
        words += [f"ngpus={count['gpus_per_task']}"] if count["gpus_per_task"] else []
        found = {"select": ":".join([*words, *(f"{one}=True" for one in features)])}
        if each == 1 and nodes == tasks:
            return found | {"place": "scatter"}
        return found | {"place": "pack"} if nodes == 1 and not each else found
    if nodes and each and nodes * each == tasks == processors:
        words = [str(nodes), f"ppn={each}"]
        words += [f"gpus={count['gpus_per_node']}"] if count["gpus_per_node"] else []
        return {"nodes": ":".join([*words, *features])}
    return {"ngpus": str(count["gpus"])} if count["gpus"] else {}
