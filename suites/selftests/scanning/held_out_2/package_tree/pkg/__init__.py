from pkg.core import maps as maps
from pkg.core.maps import train_step

__all__ = ["maps", "train_step"]
