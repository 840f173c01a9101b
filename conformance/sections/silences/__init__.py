"""Where the documents are silent: what legacy pmap does is what the others are asked for."""
