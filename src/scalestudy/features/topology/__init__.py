"""The GPUs and cores of this node, the links between them, and the bandwidth measured over them."""
