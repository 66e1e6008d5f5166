"""The command ``hpcrowd convert``. It loads what it needs when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from hpcrowd.scenarios.commands.options import AsJson

convert_app = typer.Typer()


@convert_app.command()
def convert(
    context: typer.Context,
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="IN",
            help="Trace, folder of results, or - for standard input.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="OUT", help="File, or - for standard output; .gz packs.", show_default=False
        ),
    ] = None,
    from_format: Annotated[
        str | None,
        typer.Option("--from", help="Format of IN; found from the content unless given."),
    ] = None,
    to_format: Annotated[
        str | None, typer.Option("--to", help="Format of OUT; found from its name unless given.")
    ] = None,
    mapping: Annotated[
        Path | None,
        typer.Option("--map", help="TOML file: what the columns of a table of your own mean."),
    ] = None,
    zone: Annotated[
        str | None,
        typer.Option(help="Time zone of local times in IN, such as Europe/Stockholm; else UTC."),
    ] = None,
    queue: Annotated[
        Literal["partition", "qos"], typer.Option(help="What of Slurm is the queue of a job.")
    ] = "partition",
    nodes: Annotated[
        int | None, typer.Option(min=1, help="Processors of the machine, for the header.")
    ] = None,
    anonymise: Annotated[
        bool,
        typer.Option(
            "--anonymise", help="Pseudonyms instead of names of users, groups and programs."
        ),
    ] = False,
    salt: Annotated[
        str | None,
        typer.Option(
            envvar="HPCROWD_SALT",
            help="Secret of pseudonyms: the same one gives the same; drawn and forgotten if none.",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse what would repair, drop or lose anything.")
    ] = False,
    list_all: Annotated[bool, typer.Option("--list", help="List the formats, and end.")] = False,
    as_json: AsJson = False,
) -> None:
    """Turn a trace into another format, and tell what that one cannot hold.

    Users and the like become numbers where a format has no names; then OUT.names.csv keeps them.

    \b
    sacct -aDP -S 2024-01-01 --format=ALL | hpcrowd convert - jobs.swf.gz --zone Europe/Paris
    hpcrowd convert jobs.swf.gz jobs.json --to batsim
    hpcrowd convert runs/fluid jobs.csv --to batsim-jobs
    hpcrowd convert mine.csv jobs.swf.gz --map mine.toml
    """
    from hpcrowd.scenarios.commands.convert import ConvertRequest, convert_command, list_formats

    told = getattr(context.get_parameter_source("salt"), "name", "")
    if list_all:
        list_formats(as_json=as_json)
        return
    convert_command(
        ConvertRequest(
            source=source,
            target=target,
            from_format=from_format,
            to_format=to_format,
            mapping=mapping,
            zone=zone,
            queue=queue,
            processors=nodes,
            # A salt that only stands in the environment asks for nothing.
            anonymise=anonymise or told == "COMMANDLINE",
            salt=salt,
            strict=strict,
        ),
        as_json=as_json,
    )
