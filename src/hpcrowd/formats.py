"""Formats of traces: read and write files, parse and generate lines."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .environment.traces.formats.batsim.jobs import generate_batsim_jobs as generate_batsim_jobs
    from .environment.traces.formats.batsim.jobs import parse_batsim_jobs as parse_batsim_jobs
    from .environment.traces.formats.batsim.jobs import read_batsim_jobs as read_batsim_jobs
    from .environment.traces.formats.batsim.jobs import write_batsim_jobs as write_batsim_jobs
    from .environment.traces.formats.batsim.workloads import generate_batsim as generate_batsim
    from .environment.traces.formats.batsim.workloads import parse_batsim as parse_batsim
    from .environment.traces.formats.batsim.workloads import read_batsim as read_batsim
    from .environment.traces.formats.batsim.workloads import write_batsim as write_batsim
    from .environment.traces.formats.common.base import FormatOptions as FormatOptions
    from .environment.traces.formats.common.base import Losses as Losses
    from .environment.traces.formats.gridengine import generate_gridengine as generate_gridengine
    from .environment.traces.formats.gridengine import parse_gridengine as parse_gridengine
    from .environment.traces.formats.gridengine import read_gridengine as read_gridengine
    from .environment.traces.formats.gridengine import write_gridengine as write_gridengine
    from .environment.traces.formats.gwf import generate_gwf as generate_gwf
    from .environment.traces.formats.gwf import parse_gwf as parse_gwf
    from .environment.traces.formats.gwf import read_gwf as read_gwf
    from .environment.traces.formats.gwf import write_gwf as write_gwf
    from .environment.traces.formats.htcondor import generate_htcondor as generate_htcondor
    from .environment.traces.formats.htcondor import parse_htcondor as parse_htcondor
    from .environment.traces.formats.htcondor import read_htcondor as read_htcondor
    from .environment.traces.formats.htcondor import write_htcondor as write_htcondor
    from .environment.traces.formats.lsf import generate_lsf as generate_lsf
    from .environment.traces.formats.lsf import parse_lsf as parse_lsf
    from .environment.traces.formats.lsf import read_lsf as read_lsf
    from .environment.traces.formats.lsf import write_lsf as write_lsf
    from .environment.traces.formats.pbs.accounting import generate_pbs as generate_pbs
    from .environment.traces.formats.pbs.accounting import parse_pbs as parse_pbs
    from .environment.traces.formats.pbs.accounting import read_pbs as read_pbs
    from .environment.traces.formats.pbs.accounting import write_pbs as write_pbs
    from .environment.traces.formats.registry import find_format as find_format
    from .environment.traces.formats.registry import parse_format as parse_format
    from .environment.traces.formats.slurm.accounting import generate_sacct as generate_sacct
    from .environment.traces.formats.slurm.accounting import parse_sacct as parse_sacct
    from .environment.traces.formats.slurm.accounting import read_sacct as read_sacct
    from .environment.traces.formats.slurm.accounting import write_sacct as write_sacct
    from .environment.traces.formats.slurm.json_records import (
        generate_sacct_json as generate_sacct_json,
    )
    from .environment.traces.formats.slurm.json_records import parse_sacct_json as parse_sacct_json
    from .environment.traces.formats.slurm.json_records import read_sacct_json as read_sacct_json
    from .environment.traces.formats.slurm.json_records import write_sacct_json as write_sacct_json
    from .environment.traces.formats.tables.columns import generate_csv as generate_csv
    from .environment.traces.formats.tables.columns import generate_parquet as generate_parquet
    from .environment.traces.formats.tables.columns import parse_csv as parse_csv
    from .environment.traces.formats.tables.columns import parse_parquet as parse_parquet
    from .environment.traces.formats.tables.columns import read_csv as read_csv
    from .environment.traces.formats.tables.columns import read_parquet as read_parquet
    from .environment.traces.formats.tables.columns import write_csv as write_csv
    from .environment.traces.formats.tables.columns import write_parquet as write_parquet
    from .environment.traces.formats.tables.mapped import generate_mapped as generate_mapped
    from .environment.traces.formats.tables.mapped import parse_mapped as parse_mapped
    from .environment.traces.formats.tables.mapped import read_mapped as read_mapped
    from .environment.traces.formats.tables.mapped import write_mapped as write_mapped
    from .environment.traces.formats.tables.mapping import TableMapping as TableMapping
    from .environment.traces.formats.tables.mapping import read_mapping as read_mapping
else:
    from hpcrowd.names import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
