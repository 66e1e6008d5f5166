import sys; sys.path.insert(0,'/tmp/proto')
from forest import *
name=sys.argv[1]
D=pickle.load(open(f'/tmp/proto/{name}.pkl','rb')); tr=D['R'][D['known'][D['R']]]
X=D['X'];y=D['y'];cnt=np.bincount(D['user'][tr],minlength=D['nU']); w=1/np.sqrt(cnt[D['user'][tr]])
ix={n:i for i,n in enumerate(NAMES)}
def t(label,cols,leaf=20,trees=20,w=w,mf=.4):
    Z=X[:,cols]; q=QRF(Z[tr],y[tr],D['user'][tr],w,leaf=leaf,trees=trees,mf=mf); rng=np.random.default_rng(0)
    r=evaluate(D,lambda b,ok,d,qq: q.draw(Z[b],rng,d,D['user'][b],None,ok)); print(label,{k:round(float(v),4) for k,v in r.items()},flush=True)
t('ended resp',[0,1],leaf=200)
base=['ended','resp','run','wait','req','hour','dow']
t('base',[ix[k] for k in base],leaf=50)
base=['ended','resp','run','req','hour','dow']
t('no wait',[ix[k] for k in base],leaf=50)
base=['ended','resp','run','hour','dow','req','own_ema_e','own_ema_f','own_last','own_cont']
t('+own',[ix[k] for k in base],leaf=50)
rest=[i for i,n in enumerate(NAMES) if n not in('wait',)]
t('all but wait',rest,leaf=50)
rest=[i for i,n in enumerate(NAMES) if n not in('site_ema','site_ema_f','grp_ema')]
t('all but site',rest,leaf=50)
rest=[i for i,n in enumerate(NAMES) if n not in('age','own_n','days_active')]
t('all but age',rest,leaf=50)
rest=[i for i,n in enumerate(NAMES) if n not in('age','own_n','days_active','tsin','slen','own_resp_ema')]
t('all but age,tsin',rest,leaf=50)
