DEADLINE_S = 60.0
BESIDE_JIT = ("mapped", "plain jit")  # contenders
