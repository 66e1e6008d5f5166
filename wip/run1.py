import sys; sys.path.insert(0,'/tmp/proto')
from forest import *
for name in sys.argv[1:]:
    D=pickle.load(open(f'/tmp/proto/{name}.pkl','rb')); tr=D['R'][D['known'][D['R']]]
    X=D['X'];y=D['y'];cnt=np.bincount(D['user'][tr],minlength=D['nU'])
    for label,w,leaf,prior in (('uniform',None,20,None),('min30',np.minimum(1,30/cnt[D['user'][tr]]),20,None),('sqrt',1/np.sqrt(cnt[D['user'][tr]]),20,None),('sqrt own',1/np.sqrt(cnt[D['user'][tr]]),20,5.),('sqrt leaf50',1/np.sqrt(cnt[D['user'][tr]]),50,None)):
        t=time.time(); q=QRF(X[tr],y[tr],D['user'][tr],w,leaf=leaf,trees=20)
        rng=np.random.default_rng(0)
        r=evaluate(D,lambda b,ok,d,qq: q.draw(X[b],rng,d,D['user'][b],prior,ok))
        print(name,label,{k:round(v,4) for k,v in r.items()},round(time.time()-t,1),flush=True)
    imp=np.argsort(-q.f.feature_importances_); print([(NAMES[i],round(float(q.f.feature_importances_[i]),3)) for i in imp[:20]])
