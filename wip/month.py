import sys,time; sys.path.insert(0,'/tmp/proto')
from sim import *
from dataclasses import replace
from hpcrowd.environment.clock import DAY
class Win:
    """parts with an end"""
    def __init__(s,parts,days): s.__dict__.update(parts.__dict__); s.p=parts; s.until=parts.since+days*DAY; s.days=days
    @property
    def end(s): return s.until
    second_jobs=property(lambda s:s.p.second_jobs)
    def users(s,*a,**k): return s.p.users(*a,**k)
    @property
    def second(s): return s.p.second
def clip(win,jobs,rec=False):
    t=jobs.recorded_submit if rec else jobs.submit
    return jobs.take(np.flatnonzero((t>=win.since)&(t<=win.until)))
def simulate(parts,maker,seed,until):
    jobs=parts.work.jobs.copy(); jobs.erase_outcome()
    sim=Simulation(jobs,max(int(jobs.processors.max()),1),'recorded',clock=parts.clock,seed=seed)
    add_users(sim,parts.work,maker); sim.run(until+8*DAY) if until else sim.run()
    return jobs.take(parts.second_jobs)
def maker_learned(parts,model,think=LearnedPauses):
    def make(work):
        when=BatchOrder(work); known=parts.known[when.units.session]
        return HeldOut(Composed(when,think(model)),known,parts.since,None)
    return make
def gather(jobs,clock,shares,days,models,seeds=2):
    """models: name -> function(parts)->maker"""
    U=len(np.unique(jobs.user)); rec={}; sims={n:{} for n in models}; vol={n:[] for n in models}; truth=[]
    for share in shares:
        parts=Parts.of(jobs,clock,share); win=Win(parts,days)
        r=clip(win,as_recorded(parts.second.jobs)); truth.append(len(r))
        for k,v in observe(win,r).items(): rec[k]=rec.get(k,0)+v
        for n,f in models.items():
            mk=f(parts); vs=[]
            for s in range(seeds):
                o=clip(win,simulate(parts,mk,s,win.until)); vs.append(len(o))
                for k,v in observe(win,o).items(): sims[n][k]=sims[n].get(k,0)+v
            vol[n].append(np.mean(vs))
    w=np.ones((1,U)); truth=np.array(truth)
    for n in models:
        d={m:round(float(distances(rec[m],sims[n][m],w)[MEASURES[m]][0]),3) for m in MEASURES}
        v=np.array(vol[n]); print(f'{n:28s}',d,'vol',(v/truth).round(2),'abslog',round(float(np.mean(abs(np.log(v/truth)))),3),flush=True)
SH=(.5,.7)
if __name__=='__main__':
    jobs,clock=load(sys.argv[1]); days=28
    M={}
    for n in ('similar','adjusted','aw','distribution','think-time-windows','rigid'):
        m=UserModel.of(n) if n!='aw' else UserModel('aw',Recipe('batches',window='fitted')); M[n]=lambda parts,m=m: parts.users(m)
    for lab,s in {'L sqrt':Settings(),'L uni':Settings(even=0.),'L uni pull0':Settings(even=0.,pull=0.),'L .25':Settings(even=.25)}.items():
        M[lab]=lambda parts,s=s: maker_learned(parts,fit_learned([(parts.first,clock)],s))
    gather(jobs,clock,SH,days,M)
