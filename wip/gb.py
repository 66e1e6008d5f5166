import sys; sys.path.insert(0,'/tmp/proto')
from forest import *
from sklearn.ensemble import HistGradientBoostingClassifier
for name in sys.argv[1:]:
    D=pickle.load(open(f'/tmp/proto/{name}.pkl','rb')); tr=D['R'][D['known'][D['R']]]
    X=D['X'];y=D['y'];cnt=np.bincount(D['user'][tr],minlength=D['nU']); w=1/np.sqrt(cnt[D['user'][tr]])
    K=24; edges=np.unique(np.quantile(y[tr],np.linspace(0,1,K+1)[1:-1])); cls=np.searchsorted(edges,y[tr]); 
    vals=[np.sort(y[tr][cls==k]) for k in range(len(edges)+1)]
    for it,lr,ml in ((60,.06,50),(100,.06,50)):
        t=time.time(); g=HistGradientBoostingClassifier(max_iter=it,learning_rate=lr,min_samples_leaf=ml,max_leaf_nodes=15,l2_regularization=1.,early_stopping=False,random_state=0).fit(X[tr],cls,sample_weight=w); t1=time.time()-t
        rng=np.random.default_rng(0)
        def draw(b,ok,d,q):
            p=g.predict_proba(X[b]); out=np.full((len(b),d),np.nan)
            for i in range(len(b)):
                c=rng.choice(p.shape[1],400,p=p[i]/p[i].sum()); v=np.array([vals[k][int(rng.random()*len(vals[k]))] for k in c]); v=v[v>=ok[i]][:d]
                out[i,:len(v)]=v
                if not len(v): out[i,0]=ok[i]
            return out
        print(name,'gb',it,{k:round(float(v),4) for k,v in evaluate(D,draw).items()},round(t1,1),flush=True)
