import sys
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.trace import jobs_from_trace
from hpcrowd.environment.clock import Clock
from hpcrowd.analysis.validation.events import find_events
import time
for f in sys.argv[1:]:
    tr=read_trace(f); c=Clock.of(tr.header); t=time.time(); ev=find_events(jobs_from_trace(tr).jobs,c); print(f[-32:],len(ev),round(time.time()-t,1))
    for e in ev: print('  ',e.kind,c.local(e.begin).strftime('%Y-%m-%d %H:%M'),round((e.end-e.begin)/3600,1),'h',round(e.before,2),'->',round(e.after,2),f'{e.chance:.1e}')
