"""Ways in which training and inference code uses pmap, each as a small whole program."""
