import sys,time; sys.path.insert(0,'/tmp/proto'); import numpy as np
from real import *
from hpcrowd.analysis.validation.futures import *
from hpcrowd.analysis.validation.forecasts import *
from hpcrowd.analysis.validation.models import UserModel
from hpcrowd.analysis.validation.scores import *
from hpcrowd.agents.behaviours.composed import Composed
from hpcrowd.agents.behaviours.heldout import HeldOut
from hpcrowd.agents.behaviours.when import BatchOrder
from hpcrowd.agents.learned.think import LearnedPauses
from hpcrowd.agents.presets import Recipe
from hpcrowd.agents.populations.population import add_users
from hpcrowd.environment.simulation import Simulation
def run_learned(parts,model,seed=0,think=LearnedPauses):
    jobs=parts.work.jobs.copy(); jobs.erase_outcome()
    sim=Simulation(jobs,max(int(jobs.processors.max()),1),'recorded',clock=parts.clock,seed=seed)
    def make(work):
        when=BatchOrder(work); known=parts.known[when.units.session]
        return HeldOut(Composed(when,think(model)),known,parts.since,None)
    add_users(sim,parts.work,make); t=time.time(); sim.run(); dt=time.time()-t
    return jobs.take(parts.second_jobs),dt
def show(parts,label,run,record,w,extra=''):
    ob=observe(parts,run); d={m:round(float(distances(record[m],ob[m],w)[MEASURES[m]][0]),3) for m in MEASURES}
    print(label,d,'volume',round(volume(parts,run),3),extra,flush=True)
if __name__=='__main__':
    f=sys.argv[1]; jobs,clock=load(f); parts=Parts.of(jobs,clock,.5)
    w=np.ones((1,len(parts.work.sessions.users))); record=observe(parts,as_recorded(parts.second.jobs))
    for name in sys.argv[2].split(','):
        m=UserModel.of(name) if name!='aw' else UserModel('aw',Recipe('batches',window='fitted'))
        show(parts,name,simulate_second(parts,m),record,w)
    for s in (Settings(even=0.),Settings(even=.25),Settings(even=0.,pull=0),Settings(even=0.,leaf=50),Settings(even=0.,leaf=10),Settings(even=0.,trees=100)):
        model=fit_learned([(parts.first,clock)],s); run,dt=run_learned(parts,model); show(parts,f'learned {s}',run,record,w,f'{dt:.1f} s {dt/len(parts.work.jobs)*1e6:.1f} us/job {score(parts,model)}')
