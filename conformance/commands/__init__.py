"""What commands on the catalogue and on recorded cells do, a module each; runs nothing."""
