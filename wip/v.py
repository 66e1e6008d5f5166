import sys,time; sys.path.insert(0,'/tmp/proto')
from dataclasses import replace
from hpcrowd.environment.traces.formats.registry import read_trace
from hpcrowd.environment.traces.trace import jobs_from_trace
from hpcrowd.environment.clock import Clock
from hpcrowd.agents.presets import Recipe
from hpcrowd.analysis.validation.validation import *
from hpcrowd.analysis.validation.protocol import protocol
tr=read_trace(sys.argv[1]); from hpcrowd.analysis.validation.waits import with_waits; JB,NT=with_waits(jobs_from_trace(tr).jobs,tr['wait'],tr.processors); print(NT); names=sys.argv[2].split(','); ori=tuple(float(x) for x in sys.argv[3].split(',')); seeds=int(sys.argv[4])
ms=[]
for n in names:
    if '@' in n:
        from hpcrowd.analysis.models.users.learned import Settings; ms.append(UserModel(n,Recipe('batches','learned'),fit=eval('Settings('+n.split('@')[1].replace(';',',')+')')))
    elif n=='learned': ms.append(UserModel('learned',Recipe('batches','learned')))
    elif n=='aw': ms.append(UserModel('aw',Recipe('batches',window='fitted')))
    else: ms.append(UserModel.of(n))
t=time.time()
v=validate(JB,ms,Clock.of(tr.header),replace(protocol(),origins=ori,seeds=seeds),processors=tr.processors,progress=lambda l,d,n: print(l,d,n,round(time.time()-t,1),file=sys.stderr,flush=True))
print(sys.argv[1][-30:],v.asked)
ms=list(RANKED)
print(' '*20,' '.join(f'{m[:13]:>14s}' for m in ms))
for n in v.order:
    print(f'{n:20s}',' '.join((f'{v.scores[n][m].statistics[RANKED[m]].value:8.3f}{"=" if v.scores[n][m].tied else " "}({v.scores[n][m].rank:2d}) ' if m in v.scores[n] else ' '*14) for m in ms), f'{v.volume[n]:.2f} {v.mean_rank(n):.1f}')
for n,f in v.floors.items(): print(f'{n:20s}',' '.join((f'{f[m].statistics[RANKED[m]].value:8.3f}      ' if m in f else ' '*14) for m in ms))
if 'learned' in v.drawn:
    for m in ms:
        print(m, {n:(round(d.value,3),round(d.low,3),round(d.high,3)) for n in v.models if n!='learned' and (d:=v.difference('learned',n,m))})
