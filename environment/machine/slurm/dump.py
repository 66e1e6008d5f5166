"""The file that ``sacctmgr dump CLUSTER`` writes.

::

    # a comment
    Cluster - 'toy':Fairshare=1:QOS='normal'
    Parent - 'root'
    User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
    Account - 'physics':Description='p':Organization='o':Fairshare=50:GrpTRES=gres/gpu:a100=4
    Parent - 'physics'
    User - 'ada':Partition='long':MaxJobs=4:DefaultQOS='high':QOS='+high,normal'
    QOS - 'high':Priority=100                        Slurm 24.05 and later

What the line of the cluster says holds for root, as its name is that of the whole cluster.

Source: man page sacctmgr(1), FLAT FILE DUMP AND LOAD.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpcrowd.environment.errors import MachineError
from hpcrowd.environment.machine.checks import ROOT
from hpcrowd.environment.machine.slurm.records import Kind, Record, Value
from hpcrowd.environment.machine.slurm.tables import KEYS

_LINE = re.compile(r"(Cluster|Parent|Account|User|QOS) - ('[^']*'|\"[^\"]*\"|[^:\s]+)\s*(:.*)?$")

# A colon also stands before the type of a GPU, which no quotes protect: a key follows elsewhere.
_OPTION = re.compile(
    r":([A-Z][A-Za-z]+)\s*[-+]?=\s*((?:'[^']*'|\"[^\"]*\")(?=$|:[A-Z])|.*?"
    r"(?=$|:(?:Def|Adm|Coord|Fair|Share|Max|Grp|Min|QOS|Desc|Org|Part|Prio|WCKey|Flags|Preempt|"
    r"Usage|Grace|Limit|Comment)[A-Za-z]*\s*[-+]?=))"
)


def records_of(text: str, source: str) -> Iterator[Record]:
    """Yield the associations of a file, and QOS if it has them.

    Parameters
    ----------
    text, source
        The text, and its file.

    Raises
    ------
    MachineError
        If a line is not one of a dump.
    """
    parent, cluster = ROOT, ""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        where = f"{source}:{number}"
        match = _LINE.match(line)
        options = list(_OPTION.finditer(match[3] or "")) if match else []
        if match is None or sum(len(one[0]) for one in options) != len((match[3] or "").rstrip()):
            raise MachineError(f"{where}: not a line of sacctmgr dump; leave it out")
        what, name = match[1], match[2].strip("'\"")
        values = [
            Value(KEYS.get(one[1].lower(), one[1]), one[2].strip("'\""), where) for one in options
        ]
        if what == "Parent":
            parent = name
        elif what == "QOS":
            yield Record(Kind.QOS, where, [Value("Name", name, where), *values])
        else:
            cluster = name if what == "Cluster" else cluster
            named = {
                "Cluster": {"Account": ROOT},
                "Account": {"Account": name, "Parent": parent},
                "User": {"Account": parent, "User": name},
            }[what] | {"Cluster": cluster}
            values = [value for value in values if value.key != "MaxNodesPerJob"] + [
                Value("MaxTRES", f"node={value.text}", where)
                for value in values
                if value.key == "MaxNodesPerJob"
            ]
            yield Record(
                Kind.ASSOCIATION,
                where,
                [*values, *(Value(key, one, where) for key, one in named.items())],
            )
