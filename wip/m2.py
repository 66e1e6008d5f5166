import sys; sys.path.insert(0,'/tmp/proto')
from month import *
import hpcrowd.agents.learned.think as T
jobs,clock=load(sys.argv[1])
cache={}
def fitted(parts,s):
    k=(parts.since,s._replace() if 0 else str(s)); 
    if k not in cache: cache[k]=fit_learned([(parts.first,clock)],s)
    return cache[k]
T.CANDIDATES=int(sys.argv[2]); M={}
for e in (0.,):
    for p in (.5,1.,1.5):
        M[f'L even{e} pull{p}']=lambda parts,e=e,p=p: maker_learned(parts,fitted(parts,Settings(even=e)).with_pull(p))
gather(jobs,clock,SH,28,M,seeds=3)
