"""The commands on the catalogue and on recorded cells, one module each; they run no cells."""
