import sys; sys.path.insert(0,'/tmp/proto')
from month import *
import hpcrowd.agents.learned.think as T
T.CANDIDATES=40
jobs,clock=load(sys.argv[1]); days=28
M={}
cache={}
def fitted(parts,s):
    k=(parts.since,str(s))
    if k not in cache: cache[k]=fit_learned([(parts.first,clock)],s)
    return cache[k]
for p in (.0,.5,1.): M[f'L{p}']=lambda parts,p=p: maker_learned(parts,fitted(parts,Settings(even=0.)).with_pull(p))
tot={n:np.zeros(168) for n in [*M,'rec','first']}; 
for share in SH:
    parts=Parts.of(jobs,clock,share); win=Win(parts,days)
    r=clip(win,as_recorded(parts.second.jobs)); tot['rec']+=np.bincount(clock.second_of_week(r.submit)//3600,minlength=168)
    tot['first']+=np.bincount(clock.second_of_week(parts.first.jobs.recorded_submit)//3600,minlength=168)
    for n,f in M.items():
        mk=f(parts)
        for s in range(3):
            o=clip(win,simulate(parts,mk,s,win.until)); tot[n]+=np.bincount(clock.second_of_week(o.submit)//3600,minlength=168)
R=tot['rec']/tot['rec'].sum()
for n,v in tot.items():
    v=v/v.sum(); tv=lambda a,b: round(float(abs(a-b).sum()/2),3)
    print(n,'168',tv(v,R),'24h',tv(v.reshape(7,24).sum(0),R.reshape(7,24).sum(0)),'wd',tv(v.reshape(7,24).sum(1),R.reshape(7,24).sum(1)), (v.reshape(7,24).sum(0)*100).round(1)[[2,6,8,10,12,14,16,18,20,22]],(v.reshape(7,24).sum(1)*100).round(1))
