import cProfile,pstats,sys
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.trace import jobs_from_trace
from hpcrowd.environment.clock import Clock
from hpcrowd.analysis.validation.events import find_events
tr=read_trace('/work/shared/traces/SDSC-DS-2004-2.1-cln.swf.gz'); j=jobs_from_trace(tr).jobs; c=Clock.of(tr.header)
p=cProfile.Profile(); p.runcall(find_events,j,c); pstats.Stats(p).sort_stats('cumulative').print_stats(14)
