import sys; sys.path.insert(0,'/tmp/proto')
from forest import *
groups={'fail':['fail'],'site':['site_ema','site_ema_f'],'grp':['grp_ema'],'req':['req','resp_req','run_req'],'wait':['wait'],'age':['age','own_n','days_active'],'dens':['dens','denshere8'],'hour':['hour','dow','hour_s','hour_c'],'own last':['own_last','own_last2','own_last_b'],'own ema':['own_ema_e','own_ema_f','own_ema_long','own_short','own_sd'],'cont':['own_cont'],'respema':['own_resp_ema'],'tsin':['tsin'],'slen':['slen','sbatches'],'size':['procs','njobs','ndeps','bspan'],'open':['open'],'run':['run','run_req'],'silent':['silent']}
tot={}
for name in sys.argv[1:]:
    D=pickle.load(open(f'/tmp/proto/{name}.pkl','rb')); tr=D['R'][D['known'][D['R']]]
    X=D['X'];y=D['y'];cnt=np.bincount(D['user'][tr],minlength=D['nU']); w=1/np.sqrt(cnt[D['user'][tr]])
    def t(label,cols,seed=0):
        Z=X[:,cols]; q=QRF(Z[tr],y[tr],D['user'][tr],w,leaf=30,trees=30,mf=.4,seed=seed); rng=np.random.default_rng(0)
        r=evaluate(D,lambda b,ok,d,qq: q.draw(Z[b],rng,d,D['user'][b],None,ok)); return np.array(list(r.values()))
    allc=list(range(len(NAMES))); base=(t('',allc)+t('',allc,1))/2; print(name,'all',base.round(4),flush=True)
    for g,fs in groups.items():
        cols=[i for i in allc if NAMES[i] not in fs]; d=(t('',cols)+t('',cols,1))/2-base; tot.setdefault(g,[]).append(d); print(name,'-',g,d.round(4),flush=True)
print({g:np.mean(d,0).round(4) for g,d in tot.items()})
