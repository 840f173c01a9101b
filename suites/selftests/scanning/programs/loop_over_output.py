import jax

scores = jax.pmap(lambda x: x.sum())

def show(x):
    for score in scores(x):  # finds: iteration-goes-through-the-host
        print(score)
