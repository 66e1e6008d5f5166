import sys; sys.path.insert(0,'/tmp/proto')
from month import *
import hpcrowd.agents.learned.think as T
T.CANDIDATES=30
jobs,clock=load(sys.argv[1])
M={}
for n in ('similar','adjusted','aw','think-time-windows','linear-windows','fluid'):
    m=UserModel.of(n) if n!='aw' else UserModel('aw',Recipe('batches',window='fitted')); M[n]=lambda parts,m=m: parts.users(m)
cache={}
def fitted(parts,s):
    k=(parts.since,str(s))
    if k not in cache: cache[k]=fit_learned([(parts.first,clock)],s)
    return cache[k]
for e,p in ((0.,0.),(0.,.5),(.25,.3)): M[f'L even{e} pull{p}']=lambda parts,e=e,p=p: maker_learned(parts,fitted(parts,Settings(even=e)).with_pull(p))
parts=Parts.of(jobs,clock,.5); print(score(parts,fitted(parts,Settings(even=0.)).with_pull(.3)))
gather(jobs,clock,(.4,.6,.8),28,M,seeds=2)
