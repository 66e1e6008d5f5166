import sys; sys.path.insert(0,'/tmp/proto')
from month import *
import hpcrowd.agents.learned.think as T
T.CANDIDATES=int(sys.argv[2])
jobs,clock=load(sys.argv[1]); parts=Parts.of(jobs,clock,.5); m=fit_learned([(parts.first,clock)],Settings(even=0.))
for p in (0.,.5,1.): print(p,score(parts,m.with_pull(p)),flush=True)
m=fit_learned([(parts.first,clock)],Settings(even=0.5)); print('even.5',score(parts,m),flush=True)
cache={}
def fitted(parts,s):
    k=(parts.since,str(s))
    if k not in cache: cache[k]=fit_learned([(parts.first,clock)],s)
    return cache[k]
M={}
for p in (.0,.5,1.): M[f'L pull{p}']=lambda parts,p=p: maker_learned(parts,fitted(parts,Settings(even=0.)).with_pull(p))
gather(jobs,clock,SH,28,M,seeds=3)
